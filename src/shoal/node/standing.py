"""The standing of a node, for people, from its folder alone. No node reads any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from shoal.errors import RunError
from shoal.runs import Follower, Ledger
from shoal.runs.records import Arrived, Note, Shared, Started, VerdictGiven, content_of, decode_payload
from shoal.swarm.presence import PRESENCE, peers_seen

MOST_AUTHORS = 4096
"""Authors that are told apart; a journal may name any number of them."""


class Traffic(msgspec.Struct, frozen=True):
    """Items `shared` by a node, `received`, `rejected` by its check or `passed_over` because it cannot check
    them, and `used`; `peers` it has heard of."""

    peers: int = 0
    shared: int = 0
    received: int = 0
    rejected: int = 0
    used: int = 0
    passed_over: int = 0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """`done` is the share of the node's work from 0 to 1. Speed is counted in `work` (evaluations, tokens),
    the budget of `allowed` (None: no limit) in `spent`. `per_second` and `seconds_left` are the watcher's
    estimates, None before any progress. `ended`: it will do no more; `trouble`: why it stopped early;
    `waiting`: why its first turn is late. Of processes that died, `restarts` counts those that were started
    again, and `restarted` tells of the last; `down`: the node has no process now, until it restarts or as it
    was left dead."""

    name: str
    model: str
    done: float = 0.0
    work: int = 0
    spent: int = 0
    allowed: int | None = None
    traffic: Traffic = Traffic()
    per_second: float | None = None
    seconds_left: float | None = None
    ended: bool = False
    trouble: str = ""
    waiting: str = ""
    restarts: int = 0
    restarted: str = ""
    down: Literal["", "restarts", "dead"] = ""

    def figures(self) -> Mapping[str, object]:
        """The numbers of its own application, for programs."""
        return {}


NoteOf = TypeVar("NoteOf")
StandingOf = TypeVar("StandingOf", bound=Standing)
StandingOut = TypeVar("StandingOut", bound=Standing, covariant=True)


class Progress(msgspec.Struct, Generic[StandingOf], frozen=True):
    """The state of a whole run: `done` of `total` in `unit` (calls, steps). While there are no nodes yet,
    `making` has the share that is done, from 0 to 1, of each model that is made on first use."""

    done: int
    total: int
    unit: str
    seconds: float
    nodes: tuple[StandingOf, ...]
    making: dict[str, float] = {}


class Tally:
    """A journal in the figures of all applications. A damaged one is read up to `trouble`, the place."""

    def __init__(self, journal: Path) -> None:
        self.ledger = Ledger()
        self.trouble = ""
        self._follower = Follower(journal)
        self._presence = journal.with_name(PRESENCE)
        self._authors: set[str] = set()
        self._shared = self._received = self._rejected = self._passed_over = 0

    def notes(self, expected: type[NoteOf]) -> Iterator[NoteOf]:
        """The notes among the new records, in their type."""
        for note in self.read():
            try:
                yield decode_payload(note, expected, f"the note of record {self._follower.number}")
            except RunError as error:
                self.trouble = str(error)
                return

    def read(self) -> Iterator[msgspec.Raw]:
        """The same as they stand in the journal."""
        if self.trouble:
            return
        try:
            for record in self._follower.poll():
                self.ledger.take(record)
                match content_of(record):
                    case Note(note=note):
                        yield note
                    case Arrived(author=author):
                        self._received += 1
                        if len(self._authors) < MOST_AUTHORS:
                            self._authors.add(author)
                    case VerdictGiven() as verdict:
                        self._rejected += verdict.rejected
                        self._passed_over += verdict.passed_over
                    case Shared(items=items):
                        self._shared += sum(1 for item in items if not item.refused)
                    case Started(budget=budget):
                        self.ledger.budget = dict(budget)
        except RunError as error:
            self.trouble = str(error)

    def traffic(self, used: int) -> Traffic:
        """Peers are those that the exchange heard, or, where it left no file, the authors of items."""
        seen = peers_seen(self._presence) if self._presence.is_file() else 0
        peers = max(len(self._authors), seen)
        return Traffic(peers, self._shared, self._received, self._rejected, used, self._passed_over)


@dataclass
class _Course:
    """The point from which a node's progress is measured; `moved`: it made some progress just then."""

    seconds: float
    work: int
    done: float
    moved: bool = False
    rate: float | None = None


class Pace:
    """The speed of nodes and the time they still need, by the watcher's clock, also for nodes in virtual
    time. Work of an earlier process and the time until a node's first progress do not count."""

    def __init__(self) -> None:
        self._courses: dict[str, _Course] = {}

    def of(self, standings: Sequence[StandingOf], seconds: float) -> list[StandingOf]:
        """The standings with `per_second` and `seconds_left`; `seconds` grows from call to call."""
        return [self._paced(one, seconds) for one in standings]

    def _paced(self, one: StandingOf, seconds: float) -> StandingOf:
        course = self._courses.setdefault(one.name, _Course(seconds, one.work, one.done))
        left: float | None = None
        elapsed = seconds - course.seconds
        if one.ended:
            left = 0.0
        elif elapsed > 0:
            if course.moved or one.work > course.work:
                course.rate = (one.work - course.work) / elapsed
            if one.done > course.done:
                left = max(0.0, (1.0 - one.done) * elapsed / (one.done - course.done))
        if not course.moved and (one.work > course.work or one.done > course.done):
            self._courses[one.name] = _Course(seconds, one.work, one.done, moved=True, rate=course.rate)
        return msgspec.structs.replace(one, per_second=course.rate, seconds_left=left)


def longest_left(standings: Sequence[Standing]) -> float | None:
    """The seconds that the slowest node still needs; None as long as those of one node are unknown."""
    left = [one.seconds_left for one in standings if not one.trouble]
    return None if not left or None in left else max(one for one in left if one is not None)


def note_waiting(found: StandingOf, presence: Path, wait_for: int) -> StandingOf:
    """The standing, with a note if the node has heard too few peers for its first turn."""
    heard = peers_seen(presence)
    if heard >= wait_for:
        return found
    peers = "1 peer" if wait_for == 1 else f"{wait_for} peers"
    return msgspec.structs.replace(found, waiting=f"waiting for {peers}, {heard} heard so far")
