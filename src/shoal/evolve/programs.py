"""Every program that the journals of a run name: who made it, from which parent, and when.

What a peer outside the run says about the origin of its champion is not used: such a program has the maker
"peer" and no parent. No battle is played.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.evolve.elite import Elite
from shoal.evolve.placer import PEER
from shoal.evolve.settings import EvolveSettings
from shoal.runs import RunFolder, read
from shoal.runs.records import Answered, Asked, VerdictGiven, content_of, decode_payload, refusing
from shoal.runs.search import (
    Open,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchEvidence,
    SearchRequest,
)

_REQUEST: Any = SearchRequest
_ANSWER: Any = SearchAnswer
MOST_ANCESTORS = 20
MOST_LINES = 2000
"""Lines of each side that a difference looks at."""


class Made(msgspec.Struct, frozen=True):
    """A program of a run. `round` counts from 0, as in the journals. `made_at` is the time of its maker's
    journal, None where nobody in the run made it; `fitness` is what its maker's node measured then, against
    that round's opponents."""

    digest: str
    source: str
    model: str
    node: str
    round: int
    parent: str | None = None
    made_at: float | None = None
    fitness: float | None = None


class Ancestor(msgspec.Struct, frozen=True):
    """`difference` are the lines that changed from its parent, with a sign in front; empty without one."""

    program: Made
    difference: list[str]


class Lineage(msgspec.Struct, frozen=True):
    """Newest first. `complete`: the last one has no parent, and not only none that is shown."""

    ancestors: list[Ancestor]
    complete: bool


Programs = dict[str, Made]


def read_programs_of(settings: EvolveSettings, folder: Path) -> Programs:
    """By digest. Of several who made the same program, the first by time is its maker."""
    opened = RunFolder.look(folder)
    made: list[Made] = []
    others: Programs = {}
    for index, name in enumerate(settings.node_names()):
        path = opened.journal_path(name)
        if path.exists():
            _read_node(path, name, settings.models[index], made, others)
    programs: Programs = {}
    for one in sorted(made, key=lambda one: (one.made_at or 0.0, one.node)):
        programs.setdefault(one.digest, one)
    return {**others, **programs}


def _read_node(path: Path, node: str, model: str, made: list[Made], others: Programs) -> None:
    asked: dict[int, Propose] = {}
    for record in read(path):
        if record.kind not in ("asked", "answered", "verdict"):
            continue
        with refusing(path, record):
            content = content_of(record)
        where = f"{path}: record {record.number}"
        if isinstance(content, Asked):
            request: SearchRequest = decode_payload(content.request, _REQUEST, where)
            if isinstance(request, Propose):
                asked[content.turn] = request
            elif isinstance(request, Open):
                visitors = (visitor.program for visitor in request.visitors)
                for program in (*request.opponents, *request.entrants, *visitors):
                    others.setdefault(program.digest, _not_made(program))
        elif isinstance(content, Answered):
            answer: SearchAnswer = decode_payload(content.answer, _ANSWER, where)
            if isinstance(answer, Proposed) and answer.digest:
                proposal = asked.pop(content.turn, None)
                made.append(
                    Made(
                        answer.digest,
                        answer.source,
                        model,
                        node,
                        0 if proposal is None else proposal.round,
                        None if proposal is None else proposal.parent,
                        record.time,
                        None if answer.evaluation is None else answer.evaluation.fitness,
                    )
                )
        elif isinstance(content, VerdictGiven) and content.accepted:
            evidence = decode_payload(content.evidence, SearchEvidence, where)
            others.setdefault(
                evidence.digest, Made(evidence.digest, evidence.source, PEER, content.author, 0)
            )


def _not_made(program: Program) -> Made:
    origin = program.origin
    return Made(program.digest, program.source, origin.model, origin.node, origin.round)


def as_made(programs: Mapping[str, Made], elite: Elite) -> str:
    """The source of an elite as its maker wrote it, with name, author and comments. A received
    champion is kept in its plain form, so the copy in an archive may lack them."""
    known = programs.get(elite.digest)
    return elite.source if known is None else known.source


def find_program(programs: Mapping[str, Made], beginning: str) -> Made:
    """The one whose digest begins so; ConfigError says what there is instead."""
    found = sorted(digest for digest in programs if digest.startswith(beginning.lower()))
    if beginning and len(found) == 1:
        return programs[found[0]]
    if beginning and found:
        listed = ", ".join(digest[:16] for digest in found[:5])
        raise ConfigError(f"{len(found)} programs begin with {beginning[:64]}: {listed}…: give more of it")
    newest = sorted(programs.values(), key=lambda one: (-(one.made_at or 0.0), one.digest))
    listed = ", ".join(one.digest[:12] for one in newest[:5])
    raise ConfigError(
        f"no program begins with {beginning[:64]!r}: the run has {len(programs)}"
        + (f", the newest {listed}" if listed else "")
    )


def lineage_of(
    programs: Mapping[str, Made],
    digest: str,
    most: int = MOST_ANCESTORS,
    plain: Callable[[str], str] = lambda source: source,
) -> Lineage:
    """The program and its ancestors as far as they are known, at most `most`. Ends also where two nodes made
    each other's parents. `plain` gives the form of a source that differences are made of, so that a model's
    habits of spacing are none."""
    found: list[Ancestor] = []
    seen: set[str] = set()
    program: Made | None = programs[digest]
    while program is not None and program.digest not in seen and len(found) < most:
        seen.add(program.digest)
        parent = None if program.parent is None else programs.get(program.parent)
        changed = [] if parent is None else difference(plain(parent.source), plain(program.source))
        found.append(Ancestor(program, changed))
        program = parent
    return Lineage(found, program is None or program.digest in seen)


def difference(before: str, after: str) -> list[str]:
    """The changed lines: "-" was there before, "+" is there after."""
    old, new = before.splitlines()[:MOST_LINES], after.splitlines()[:MOST_LINES]
    compared = difflib.unified_diff(old, new, n=0, lineterm="")
    return [line for place, line in enumerate(compared) if place >= 2 and not line.startswith("@@")]
