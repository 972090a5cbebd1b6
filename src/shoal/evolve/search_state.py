"""Where a search stands: its course (plain data), the archive of the round, and whom candidates meet.

Only `Searcher.absorb` changes it. All of it can be written down and read back (`save`, `restore`), so that
resuming a long run need not begin at its first turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from shoal.errors import RunError
from shoal.evolve.archive import Archive, load
from shoal.evolve.domain import Candidate, Domain
from shoal.evolve.elite import Cell
from shoal.evolve.steps import Migrant, Program

Phase = Literal["drain", "open", "search", "done"]
Step = Literal["drain", "open", "propose", "close"]
Result = Literal["", "new", "improved", "rejected", "duplicate", "invalid", "failed", "missed"]

MOST_WAITING = 256
MOST_WAITING_OF_AUTHOR = 8


class Placed(msgspec.Struct, frozen=True):
    """A program that took a cell."""

    cell: Cell
    fitness: float
    digest: str
    model: str
    node: str


class Happened(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one turn did; journaled as its note, for people, reports and the dashboard.

    `cells`, `best` and `qd_score` are of the node's archive afterwards. `evaluations` were made in this turn.
    Of the `visitors` of a new round, `used` were placed in the archive or chosen as opponents. `novelty` is
    the share of the champions received for this round whose cell was empty in the archive of the round
    before; None without any.
    """

    turn: int
    round: int
    step: Step
    result: Result = ""
    digest: str = ""
    cell: Cell | None = None
    fitness: float | None = None
    placed: tuple[Placed, ...] = ()
    cells: int = 0
    best: float | None = None
    warriors: int = 0
    visitors: int = 0
    novelty: float | None = None
    said: str = ""
    qd_score: float = 0.0
    evaluations: int = 0
    used: int = 0


class Course(msgspec.Struct):
    """The plain part of the state. `turn` is the last one that was absorbed; `seen` are the programs that
    were evaluated in this round; `failed` the turns in a row whose model failed,
    `fatal_turn` the last one that trying again does not mend, and `trouble` what it said."""

    round: int = 0
    phase: Phase = "drain"
    turn: int = 0
    seed: int = 0
    opponents: list[Program] = []
    seen: set[str] = set()
    proposals: int = 0
    champions: list[Program] = []
    received: list[Program] = []
    waiting: list[Migrant] = []
    failed: list[int] = []
    fatal_turn: int = 0
    trouble: str = ""
    last: Happened | None = None

    def take_in(self, migrant: Migrant) -> None:
        """Keeps a migrant for the next round, within bounds; which ones stay does not depend on their order
        of arrival."""
        if migrant not in self.waiting:
            self.waiting = sorted([*self.waiting, migrant], key=lambda one: one.order)
        own = [one for one in self.waiting if one.author == migrant.author]
        if len(own) > MOST_WAITING_OF_AUTHOR:
            self.waiting.remove(own[0])
        if len(self.waiting) > MOST_WAITING:
            self.waiting.remove(min(self.waiting, key=lambda one: (one.epoch, one.seq, one.author)))


@dataclass(frozen=True)
class Arena:
    """Whom all candidates of a round meet, and on which seeds."""

    opponents: tuple[Candidate, ...]
    seed: int
    battles: int
    evaluator: str

    @property
    def warriors(self) -> int:
        return len(self.opponents) + 1


@dataclass
class SearchState:
    """`archive` and `arena` are None before the first round was opened."""

    course: Course = field(default_factory=Course)
    archive: Archive | None = None
    arena: Arena | None = None


def make_arena(domain: Domain, course: Course, battles: int) -> Arena:
    opponents = tuple(domain.parse(program.source) for program in course.opponents)
    evaluator = domain.evaluator(opponents, seed=course.seed, rounds=battles)
    return Arena(opponents, course.seed, battles, evaluator)


def save(state: SearchState, folder: Path) -> None:
    (folder / "course.json").write_bytes(msgspec.json.encode(state.course, order="deterministic"))
    if state.archive is not None:
        (folder / "archive.json").write_bytes(state.archive.snapshot())


def restore(folder: Path, domain: Domain, battles: int) -> SearchState:
    try:
        course = msgspec.json.decode((folder / "course.json").read_bytes(), type=Course)
        archive = folder / "archive.json"
        state = SearchState(course, load(archive.read_bytes()) if archive.exists() else None)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: the checkpoint cannot be read: {error}. Remove it and resume.") from error
    if state.archive is not None:
        state.arena = make_arena(domain, course, battles)
    return state
