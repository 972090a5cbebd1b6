"""The state of a search: its course (plain data), the archive of the round, and the opponents of candidates.
Only `Searcher.absorb` changes it. `save` and `restore` spare a resume the replay from the first turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from shoal.errors import RunError
from shoal.evolve.archive import Archive, load
from shoal.evolve.domain import Candidate, Domain
from shoal.runs.search import Migrant, Program, SearchNote

Phase = Literal["drain", "open", "search", "done"]
MOST_WAITING = 256
MOST_WAITING_OF_AUTHOR = 8


class Course(msgspec.Struct):
    """The plain part of the state. `calls_before`: calls that the node had spent when its round was opened.
    `turn` is the newest one that was absorbed; `seen` are the programs evaluated in this round; `failed` are
    the turns in a row whose model failed, `trouble` is the last message, and `fatal_turn` the last failure
    that trying again does not mend. `worked` are the seconds of the node's own rounds; `moved_at` is the time
    of the newest turn of this process, `own_until` that of the last own turn, and `heard_at` that of the last
    own turn or newest gather round."""

    round: int = 0
    phase: Phase = "drain"
    turn: int = 0
    seed: int = 0
    calls_before: int = 0
    opponents: list[Program] = []
    seen: set[str] = set()
    proposals: int = 0
    champions: list[Program] = []
    received: list[Program] = []
    waiting: list[Migrant] = []
    failed: list[int] = []
    fatal_turn: int = 0
    trouble: str = ""
    last: SearchNote | None = None
    worked: float = 0.0
    moved_at: float | None = None
    own_until: float = 0.0
    heard_at: float = 0.0

    def fail(self, turn: int, trouble: str, *, fatal: bool = False) -> None:
        self.failed.append(turn)
        self.trouble = trouble
        self.fatal_turn = turn if fatal else self.fatal_turn

    def work(self, now: float) -> None:
        """Counts the time of a turn of an own round; the time between two processes is nobody's work."""
        if self.moved_at is not None:
            self.worked += max(0.0, now - self.moved_at)
        self.moved_at = self.own_until = self.heard_at = now

    def forgive(self) -> None:
        self.failed, self.fatal_turn, self.trouble = [], 0, ""

    def take_in(self, migrant: Migrant) -> None:
        """Keeps a migrant for the next round, within bounds that do not depend on the order of arrival."""
        if migrant not in self.waiting:
            self.waiting = sorted([*self.waiting, migrant], key=lambda one: one.order)
        own = [one for one in self.waiting if one.author == migrant.author]
        if len(own) > MOST_WAITING_OF_AUTHOR:
            self.waiting.remove(own[0])
        if len(self.waiting) > MOST_WAITING:
            self.waiting.remove(min(self.waiting, key=lambda one: (one.epoch, one.seq, one.author)))


@dataclass(frozen=True)
class Arena:
    """The conditions of a round: the opponents of all candidates, the seed, and how often each is played."""

    opponents: tuple[Candidate, ...]
    seed: int
    repeats: int
    evaluator: str


@dataclass
class SearchState:
    """`archive` and `arena` are None before the first round was opened."""

    course: Course = field(default_factory=Course)
    archive: Archive | None = None
    arena: Arena | None = None


def make_arena(domain: Domain, course: Course, repeats: int) -> Arena:
    opponents = tuple(domain.parse(program.source) for program in course.opponents)
    evaluator = domain.evaluator(opponents, seed=course.seed, rounds=repeats)
    return Arena(opponents, course.seed, repeats, evaluator)


def save(state: SearchState, folder: Path) -> None:
    (folder / "course.json").write_bytes(msgspec.json.encode(state.course, order="deterministic"))
    if state.archive is not None:
        (folder / "archive.json").write_bytes(state.archive.snapshot())


def restore(folder: Path, domain: Domain, repeats: int) -> SearchState:
    try:
        course = msgspec.json.decode((folder / "course.json").read_bytes(), type=Course)
        archive = folder / "archive.json"
        state = SearchState(course, load(archive.read_bytes()) if archive.exists() else None)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: the checkpoint cannot be read: {error}. Remove it and resume.") from error
    if state.archive is not None:
        state.arena = make_arena(domain, course, repeats)
    return state
