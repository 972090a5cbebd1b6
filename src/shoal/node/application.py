"""An application's part of the loop: its state and the functions `produce`, `share`, `gather`, `verify`,
`absorb`. It may rely on these rules, and must keep them:

- `produce`, `share` and `verify` read the state. Only `gather` and `absorb` change it.
- State is a fold over the journal. On resume, `gather` and `absorb` are called again, in the same order with
  the same values; `produce`, `share` and `verify` are not, because their results are in the journal. So
  `gather` and `absorb` depend on nothing but their arguments: time is `turn.now`, randomness is
  `turn.random(purpose)`, and a verdict is the only way from `verify` to `gather` and `absorb`.
- Requests, answers and evidence always come back out of their journal form, JSON, live as on resume.
- A sender's claims are in `received.item`. The loop gives them no meaning; `verify` decides.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from shoal.runs.ledger import Ledger
from shoal.runs.seeds import Part, derive
from shoal.swarm.accounts import Credit
from shoal.swarm.authors import Place, Received
from shoal.swarm.kinds import Kinds

State = TypeVar("State")
Request = TypeVar("Request")
Answer = TypeVar("Answer")
Evidence = TypeVar("Evidence")
StateIn = TypeVar("StateIn", contravariant=True)


class Proposal(msgspec.Struct, Generic[Request], frozen=True):
    """A request for the outside, and the most that it may cost, e.g. {"calls": 3, "tokens": 900}. The part
    `first` (None: all) is spent once the request is asked; `Call.spend` tells of each further part before."""

    request: Request
    reserve: Mapping[str, int] = {}
    first: Mapping[str, int] | None = None


class GiveUp(msgspec.Struct, frozen=True):
    """The node ends early, once nothing is under way any more; `reason` is told to people."""

    reason: str


class Own(msgspec.Struct, Generic[Request, Answer], frozen=True):
    """A request of this node with its answer. `answer` is None if it was missed; `missed` then says why."""

    request: Request
    answer: Answer | None
    missed: str = ""


class Verdict(msgspec.Struct, Generic[Evidence], frozen=True):
    """The finding about a foreign item. `reason` is a short phrase to count; a colon may add more. An item is
    `passed_over` where this node cannot check it, whoever sent it: its author gains and loses nothing."""

    accepted: bool
    reason: str = ""
    evidence: Evidence | None = None
    passed_over: bool = False

    def __post_init__(self) -> None:
        if self.accepted and self.passed_over:
            raise ValueError("a verdict accepts an item or passes it over, not both")


class Judged(msgspec.Struct, Generic[Evidence], frozen=True):
    received: Received[Any]
    verdict: Verdict[Evidence]


class Turn(msgspec.Struct):
    """The surroundings of one turn, the same live and on resume. `number` counts from 1; `ledger` is to be
    read."""

    number: int
    now: float
    seed: int
    node: str
    ledger: Ledger
    credits: list[tuple[str, Place, Credit]] = []

    def random(self, *purpose: Part) -> random.Random:
        """A generator of its own for this purpose in this turn of this node."""
        return derive(self.seed, self.node, *purpose, self.number)

    def credit(self, author: str, place: Place, outcome: Literal["used", "useful"]) -> None:
        """Tells the accounts that the author's item at `place` was used, and then, if it made a difference,
        that it was useful. An item counts once for each. `verified`, `rejected` and
        `passed_over` follow from verdicts."""
        if (author, place, outcome) not in self.credits:
            self.credits.append((author, place, outcome))


class Application(Protocol[State, Request, Answer, Evidence]):
    """A use of the loop. `name` is for the journal; `kinds` are the items that it shares and takes in."""

    # Read-only to the loop, so that plain class attributes will do.
    @property
    def name(self) -> str: ...
    @property
    def kinds(self) -> Kinds: ...
    @property
    def request_type(self) -> type[Request]: ...
    @property
    def answer_type(self) -> type[Answer]: ...
    @property
    def evidence_type(self) -> type[Evidence]: ...

    def initial_state(self) -> State: ...

    def produce(self, state: State, turn: Turn) -> Proposal[Request] | GiveUp | None:
        """The request of this turn; None: none until more is absorbed, or the end if nothing is under way."""

    def share(self, state: State, turn: Turn, fresh: Own[Request, Answer] | None) -> Iterable[msgspec.Struct]:
        """The items to send out: with the new answer, before it is absorbed (experience goes out before the
        learning that it serves), and with None afterwards (a winner goes out once it won)."""

    def gather(
        self, state: State, turn: Turn, arrived: Sequence[Received[Any]]
    ) -> Generator[Sequence[Received[Any]], Sequence[Verdict[Evidence]], None]:
        """Takes in the items that have arrived, and yields batches to be verified now; each `yield` gives
        their verdicts back. Items may wait in the state for a later turn. An author leaves probation only by
        verified items, so leaving out known items holds honest authors back."""

    def verify(self, state: State, turn: Turn, batch: Sequence[Received[Any]]) -> Sequence[Verdict[Evidence]]:
        """Judges foreign items here: one verdict each. If it raises, each item is judged alone, and an
        exception over that one is a rejection that names it: nothing foreign stops a node."""

    def absorb(
        self, state: State, turn: Turn, own: Own[Request, Answer], judged: Sequence[Judged[Evidence]]
    ) -> State:
        """Learns from the own answer and the verified items; returns the state, perhaps changed in place."""


@runtime_checkable
class Explains(Protocol[StateIn]):
    """An application that explains its turns to people; the result is journaled as `note`."""

    def explain(self, state: StateIn, turn: Turn) -> object: ...


@runtime_checkable
class Restarts(Protocol[State]):
    """An application that does something when a new process takes its node up."""

    def restarted(self, state: State) -> State:
        """The state to go on from, as a function of the state alone: every later resume calls it again."""

    def share_again(self, state: State) -> Iterable[msgspec.Struct]:
        """Items to send out once more, because others may have been restarted too."""


@runtime_checkable
class Snapshots(Protocol[State]):
    """An application whose state can be written down, so that a resume does not start at the first turn."""

    def snapshot(self, state: State, folder: Path) -> None: ...

    def restore(self, folder: Path) -> State: ...


class ExchangeLike(Protocol):
    """The part of an exchange that a node uses. None of it blocks."""

    def share(self, item: msgspec.Struct) -> object: ...

    def gather(self, limit: int | None = None) -> list[Received[Any]]: ...

    def credit(self, author: str, place: Place, outcome: Credit, reason: str = "") -> None: ...

    def hand_back(self, author: str) -> None:
        """Tells that an item of the author was handed out before this start."""
