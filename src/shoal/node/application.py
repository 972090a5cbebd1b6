"""What an application gives to the loop: its state and five functions, `produce`, `share`, `gather`,
`verify`, `absorb`.

The loop calls them; it knows verbs and no application. What an application may rely on, and what it must
keep:

- `produce`, `share` and `verify` read the state, `gather` and `absorb` change it, and nobody else does.
- State is a fold over the journal. On resume, `gather` and `absorb` are called again, in the same order with
  the same values; `produce`, `share` and `verify` are not, their results are in the journal. So `gather` and
  `absorb` must depend on nothing but their arguments: time is `turn.now`, randomness is
  `turn.random(purpose)`.
- Requests, answers and evidence always come back out of their journal form, live as on resume; they are
  whatever msgspec can write as JSON and read back as the declared type.
- What a sender claims is in `received.item`. The loop gives it no meaning; `verify` decides.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from shoal.runs.seeds import Part, derive
from shoal.swarm.accounts import Outcome
from shoal.swarm.authors import Received
from shoal.swarm.kinds import Kinds

State = TypeVar("State")
Request = TypeVar("Request")
Answer = TypeVar("Answer")
Evidence = TypeVar("Evidence")
StateIn = TypeVar("StateIn", contravariant=True)


@dataclass(frozen=True, slots=True)
class Proposal(Generic[Request]):
    """What to ask the outside, and the most that it may cost, e.g. {"calls": 1, "tokens": 900}."""

    request: Request
    reserve: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Own(Generic[Request, Answer]):
    """What this node itself produced in a turn. `answer` is None if it was missed; `missed` then says why."""

    request: Request
    answer: Answer | None
    missed: str = ""


@dataclass(frozen=True, slots=True)
class Verdict(Generic[Evidence]):
    """What this node found about a foreign item: whether it is what it must be, and what was measured.

    `reason` is a short phrase that can be counted; after a colon it may tell more."""

    accepted: bool
    reason: str = ""
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Judged(Generic[Evidence]):
    """A foreign item with this node's verdict."""

    received: Received
    verdict: Verdict[Evidence]


@dataclass(slots=True)
class Turn:
    """The surroundings of one turn, the same live and on resume. `number` counts 1, 2, 3 …"""

    number: int
    now: float
    seed: int
    node: str
    credits: list[tuple[Received, Outcome, str]] = field(default_factory=list)

    def random(self, *purpose: Part) -> random.Random:
        """A generator of its own for this purpose in this turn of this node."""
        return derive(self.seed, self.node, *purpose, self.number)

    def credit(self, received: Received, outcome: Literal["used", "useful"], reason: str = "") -> None:
        """Tells the accounts that a foreign item was used, and then, if it made a difference, that it was
        useful. `verified` and `rejected` follow from verdicts."""
        self.credits.append((received, outcome, reason))


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

    def produce(self, state: State, turn: Turn) -> Proposal[Request] | None:
        """What to ask for turn `turn.number`. None: nothing until something more is absorbed; and if nothing
        is under way either, the node has finished."""

    def share(self, state: State, turn: Turn, fresh: Own[Request, Answer] | None) -> Iterable[msgspec.Struct]:
        """What to send out. Called twice a turn: with what was just produced, before it is absorbed
        (experience goes out before the learning that it serves), and with None afterwards (a winner goes out
        once it won)."""

    def gather(
        self, state: State, turn: Turn, arrived: Sequence[Received]
    ) -> Generator[Received, Verdict[Evidence], None]:
        """Takes in what has arrived, and yields the items to be verified now, one at a time; each `yield`
        gives the verdict back (so not `yield from` a list, which cannot take it). Items may wait in the state
        for a later turn, and a walk may end once it found enough. An author leaves probation only by items
        that were verified, so passing over what is known already holds honest authors back."""

    def verify(self, state: State, turn: Turn, received: Received) -> Verdict[Evidence]:
        """Judges one foreign item here. An exception is a rejection that names it: nothing foreign stops a
        node."""

    def absorb(
        self, state: State, turn: Turn, own: Own[Request, Answer], judged: Sequence[Judged[Evidence]]
    ) -> State:
        """Learns from what was produced and what was verified; returns the state (the same one, if changed in
        place)."""


@runtime_checkable
class Explains(Protocol[StateIn]):
    """An application that says for people what a turn did; what it returns is journaled as `note`."""

    def explain(self, state: StateIn, turn: Turn) -> object: ...


@runtime_checkable
class Snapshots(Protocol[State]):
    """An application whose state can be written down, so that resuming starts there and not at the first
    turn."""

    def snapshot(self, state: State, folder: Path) -> None: ...

    def restore(self, folder: Path) -> State: ...


class ExchangeLike(Protocol):
    """What a node uses of an exchange. None of it blocks."""

    def share(self, item: msgspec.Struct) -> object: ...

    def gather(self, limit: int | None = None) -> list[Received]: ...

    def credit(self, received: Received, outcome: Outcome, reason: str = "") -> None: ...
