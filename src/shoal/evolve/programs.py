"""Every program that the journals of a run name: its maker, its parent, its time. The word of a peer outside
the run about its champion's origin is not used: such a program has the maker "peer" and no parent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.evolve.archive import Elite
from shoal.evolve.history import read_run
from shoal.evolve.placer import PEER
from shoal.evolve.settings import EvolveSettings
from shoal.runs import RunFolder, read
from shoal.runs.records import Answered, Asked, VerdictGiven, content_of, decode_payload, reads_run, refusing
from shoal.runs.search import (
    Cell,
    Open,
    Origin,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchEvidence,
    SearchRequest,
)
from shoal.runs.tables import Rows

_REQUEST: Any = SearchRequest
_ANSWER: Any = SearchAnswer
MOST_ANCESTORS = 20
MOST_LINES = 2000
"""Lines of each side that a difference looks at."""


class Made(msgspec.Struct, frozen=True):
    """A program of a run; `round` counts from 0. `made_at` is the time of its maker's journal, None where
    nobody in the run made it; `fitness` is its maker's finding, against the opponents of that round."""

    digest: str
    source: str
    model: str
    node: str
    round: int
    parent: str | None = None
    made_at: float | None = None
    fitness: float | None = None


class Ancestor(msgspec.Struct, frozen=True):
    """`difference` has the lines that changed from its parent, with a sign in front."""

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
                number, parent = (0, None) if proposal is None else (proposal.round, proposal.parent)
                fitness = None if answer.evaluation is None else answer.evaluation.fitness
                found = (answer.digest, answer.source, model, node)
                made.append(Made(*found, number, parent, record.time, fitness))
        elif isinstance(content, VerdictGiven) and content.accepted:
            evidence = decode_payload(content.evidence, SearchEvidence, where)
            program = Program(evidence.digest, evidence.source, Origin(PEER, content.author))
            others.setdefault(program.digest, _not_made(program))


def _not_made(program: Program | Elite) -> Made:
    origin = program.origin
    return Made(program.digest, program.source, origin.model, origin.node, origin.round)


def as_made(programs: Mapping[str, Made], elite: Elite) -> str:
    """The source as its maker wrote it: a received champion is kept in its plain form, without comments."""
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
    """The program and its known ancestors, at most `most`; ends where two nodes made each other's parents.
    Differences are between `plain` sources, so that habits of spacing do not show."""
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


MOST_LISTED = 40


class CellHolder(msgspec.Struct, frozen=True):
    """`fitness` and `measures` are against the common opponents; `labels` are the values of the cell, by
    measure. The program was made `seconds` after the run began; None where nobody in the run made it."""

    cell: Cell
    labels: dict[str, str]
    fitness: float
    measures: dict[str, float]
    seconds: float | None
    program: Made


def parse_cell(text: str) -> Cell:
    """ "2,5" as a cell."""
    parts = text.replace(" ", ",").strip("()").split(",")
    if not all(part.isdecimal() and len(part) <= 6 for part in parts):
        raise ConfigError(f"--cell {text[:40]!r}: write it as two whole numbers, such as 2,5")
    return tuple(int(part) for part in parts)


def holder_of(folder: Path, cell: Cell) -> CellHolder:
    """The elite of the cell in the common archive; ConfigError says which cells are filled."""
    run = read_run(folder)
    if not run.archives:
        raise ConfigError(f"{folder}: no archive has been opened yet: there are no cells")
    common = run.common
    elite = common.get(cell)
    if elite is None:
        filled = [",".join(map(str, place)) for place, _ in common.items()]
        listed = " ".join(filled[:MOST_LISTED]) + (" …" if len(filled) > MOST_LISTED else "")
        sides = " × ".join(str(side) for side in common.shape)
        raise ConfigError(
            f"cell {','.join(map(str, cell))} holds nothing: of {sides} cells, counted from 0, these are "
            f"filled: {listed}"
        )
    program = read_programs_of(run.settings, folder).get(elite.digest) or _not_made(elite)
    began = min((history.events[0].time for history in run.histories if history.events), default=0.0)
    evaluation = common.evaluation(elite)
    return CellHolder(
        cell,
        {axis.measure: axis.label(place) for axis, place in zip(common.axes, cell, strict=True)},
        evaluation.fitness,
        dict(evaluation.measures),
        None if program.made_at is None else max(0.0, round(program.made_at - began, 3)),
        program,
    )


@reads_run
def export_search(folder: Path, out: Path) -> dict[str, Rows]:
    """The tables `events` and `elites`; the elites' programs are written to out/programs."""
    run = read_run(folder)
    columns = ("turn", "round", "step", "result", "fitness", "cells", "best", "digest")
    events = [
        {
            "node": event.node,
            "time": event.time,
            "calls": event.calls,
            "cell": " ".join(map(str, event.note.cell or ())),
            **{column: getattr(event.note, column) for column in columns},
        }
        for history in run.histories
        for event in history.events
    ]
    elites: list[dict[str, Any]] = []
    (out / "programs").mkdir(parents=True)
    programs = read_programs_of(run.settings, folder)
    for cell, elite in sorted(run.common.items()):
        name = f"{'-'.join(map(str, cell))}-{elite.digest[:12]}{run.domain.words.suffix}"
        (out / "programs" / name).write_text(as_made(programs, elite), encoding="utf-8")
        elites.append(
            {
                "cell": " ".join(map(str, cell)),
                "fitness": run.common.fitness(elite),
                "model": elite.origin.model,
                "digest": elite.digest,
                "file": f"programs/{name}",
            }
        )
    return {"events": events, "elites": elites}
