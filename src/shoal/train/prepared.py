"""Groups that were written before: a file of rollouts, or the proposals of a search.

A file has one JSON object a line: {"family": …, "parameters": {…}, "completions": [{"text": …, "finished":
true}, …]}. The seed of a task follows from its sender, so the parameters of its family must hold everything
that matters, as those of `corewar:beat` with opponents and a parent do.

Of a run of `shoal evolve`, the programs that were proposed for one parent, in one round, against that round's
opponents, are completions of one Core War task.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError, TaskError
from shoal.runs import RunFolder, read
from shoal.runs.records import Answered, Asked, content_of, decode_payload
from shoal.runs.search import Open, Propose, Proposed, SearchAnswer, SearchRequest
from shoal.runs.training import MOST_COMPLETIONS, Sampled
from shoal.tasks.family import MOST_PARAMETERS
from shoal.tasks.registry import canonical_name

_REQUEST: Any = SearchRequest
_ANSWER: Any = SearchAnswer
MOST_LINE = 1 << 20
MOST_GROUPS = 100_000
CORE_WAR = "corewar:beat"
MOST_OPPONENTS = 4
ROOM_FOR_DEFAULTS = 200
BATTLES = 20
"""The battles of one answer that the family allows with the usual rules, in all."""


class Written(msgspec.Struct, frozen=True):
    text: str
    finished: bool = True


class Prepared(msgspec.Struct, frozen=True):
    family: str
    parameters: dict[str, Any]
    completions: tuple[Written, ...]

    def sampled(self) -> list[Sampled]:
        return [Sampled(one.text, one.finished) for one in self.completions[:MOST_COMPLETIONS]]


def read_prepared(path: Path) -> list[Prepared]:
    """The groups of a file or of a run of a search; ConfigError says what is wrong, and where."""
    if path.is_dir():
        groups = list(_from_search(path))
        problem = "no parent in this run has two or more children that fit into a task"
    else:
        try:
            with path.open("rb") as file:
                groups = list(_from_lines(path, file))
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
        problem = "there is no group in it: give one JSON object a line"
    if not groups:
        raise ConfigError(f"{path}: {problem}")
    return groups


def _from_lines(path: Path, lines: Any) -> Iterator[Prepared]:
    decode = msgspec.json.Decoder(Prepared).decode
    number = 0
    while line := lines.readline(MOST_LINE + 1):
        number += 1
        if len(line) > MOST_LINE:
            raise ConfigError(f"{path}, line {number}: longer than {MOST_LINE} bytes")
        if number > MOST_GROUPS:
            raise ConfigError(f"{path}: more than {MOST_GROUPS} groups: split the file")
        if not line.strip():
            continue
        try:
            group = decode(line)
            canonical_name(group.family)
        except (msgspec.MsgspecError, TaskError) as error:
            form = '; a completion is an object: {"text": "…"}' if "completions" in str(error) else ""
            raise ConfigError(f"{path}, line {number}: {error}{form}") from error
        if len(group.completions) < 2:
            raise ConfigError(f"{path}, line {number}: a group has two completions or more")
        yield group


def _from_search(folder: Path) -> Iterator[Prepared]:
    run = RunFolder.look(folder)
    for journal in sorted((run.path / "nodes").glob("*/journal.jsonl")):
        opponents: dict[int, list[str]] = {}
        families: dict[tuple[int, str], dict[str, None]] = defaultdict(dict)
        asked: dict[int, SearchRequest] = {}
        for record in read(journal):
            where = f"{journal}: record {record.number}"
            match content_of(record):
                case Asked(turn=turn, request=raw):
                    request = asked[turn] = decode_payload(raw, _REQUEST, where)
                    if isinstance(request, Open):
                        opponents[request.round] = [one.source for one in request.opponents]
                case Answered(turn=turn, answer=raw):
                    request, answer = asked.get(turn), decode_payload(raw, _ANSWER, where)
                    if not (isinstance(request, Propose) and isinstance(answer, Proposed)):
                        continue
                    if request.parent_source and answer.source:
                        families[request.round, request.parent_source][answer.source] = None
        for (number, parent), children in families.items():
            parameters = _task(opponents.get(number, []), parent)
            if len(children) >= 2 and parameters is not None:
                yield Prepared(CORE_WAR, parameters, tuple(Written(source) for source in children))


def _task(opponents: list[str], parent: str) -> dict[str, Any] | None:
    """The task of beating these from this parent, with as many opponents as its name has room for."""
    for count in range(min(len(opponents), MOST_OPPONENTS), 0, -1):
        fixed = {"parent": parent, "mutations": 0, "all": 1}
        parameters = {"opponents": opponents[:count], "rounds": BATTLES // count, **fixed}
        if len(json.dumps(parameters)) <= MOST_PARAMETERS - ROOM_FOR_DEFAULTS:
            return parameters
    return None
