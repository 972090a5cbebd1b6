"""The smallest useful application, as an example to copy: nodes search for hypotenuses together.

A whole number c is a *hypotenuse* if there are whole numbers a, b > 0 with a² + b² = c². Finding the legs
(a, b) takes a search; checking them takes one line. So whoever found a pair shares it, and whoever receives
it checks it and need not search that number any more. docs/write-an-application.md walks through this
module.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.node.application import Application, Judged, Own, Proposal, Turn, Verdict
from shoal.node.outside import Reply
from shoal.swarm.authors import Received
from shoal.swarm.kinds import Kind, Kinds


# What is shared: the number, and what a stranger needs to check it. New fields go to the end, with a default.
class Triangle(msgspec.Struct, array_like=True, frozen=True):
    hypotenuse: int
    legs: tuple[int, int]


# What the outside is asked, and what it answers. Both are journaled, so both are plain data.
class Search(msgspec.Struct, frozen=True):
    number: int


class Legs(msgspec.Struct, frozen=True):
    legs: tuple[int, int] | None


# The state: whatever the node has learnt. Only `gather` and `absorb` change it.
@dataclass
class Known:
    found: dict[int, tuple[int, int]] = field(default_factory=dict)
    barren: set[int] = field(default_factory=set)
    taught: int = 0  # how many of `found` came from others

    def is_settled(self, number: int) -> bool:
        return number in self.found or number in self.barren


def search_legs(state: Known, search: Search) -> Reply[Legs]:
    """The outside of this application: slow, and the same wherever it runs. Elsewhere it would be a model."""
    square = search.number**2
    for short in range(1, search.number):
        long = math.isqrt(square - short**2)
        if long < short:
            break
        if long**2 + short**2 == square:
            return Reply(Legs((short, long)), {"searches": 1})
    return Reply(Legs(None), {"searches": 1})


class Hypotenuses:
    """Settles every number from 1 to `limit`: its legs, or that there are none."""

    name = "hypotenuses"
    kinds = Kinds([Kind("triangle", Triangle, max_bytes=1024, keep="log")])
    request_type = Search
    answer_type = Legs
    evidence_type = type(None)  # the verdict says it all

    def __init__(self, limit: int = 200) -> None:
        self.limit = limit

    def initial_state(self) -> Known:
        return Known()

    def produce(self, state: Known, turn: Turn) -> Proposal[Search] | None:
        """A number that is not settled yet, at random, so that nodes rarely search the same one."""
        candidates = [number for number in range(1, self.limit + 1) if not state.is_settled(number)]
        if not candidates:
            return None
        number = turn.random("number").choice(candidates)
        return Proposal(Search(number), {"searches": 1})

    def share(self, state: Known, turn: Turn, fresh: Own[Search, Legs] | None) -> Iterable[Triangle]:
        """What was just found, at once. Called again after the turn with None: nothing to add then."""
        if fresh is not None and fresh.answer is not None and fresh.answer.legs is not None:
            yield Triangle(fresh.request.number, fresh.answer.legs)

    def gather(
        self, state: Known, turn: Turn, arrived: Sequence[Received[Triangle]]
    ) -> Generator[Sequence[Received[Triangle]], Sequence[Verdict[None]], None]:
        """All items in one batch, known ones too: checking is cheap, and an author whose items are never
        checked stays on probation, however honest it is."""
        yield arrived

    def verify(
        self, state: Known, turn: Turn, batch: Sequence[Received[Triangle]]
    ) -> Sequence[Verdict[None]]:
        """Believes nothing: the sum is done here."""
        return [self._check(received.item) for received in batch]

    def _check(self, triangle: Triangle) -> Verdict[None]:
        if not 1 <= triangle.hypotenuse <= self.limit:
            return Verdict(False, "out of range")
        short, long = triangle.legs
        if not 0 < short <= long or short**2 + long**2 != triangle.hypotenuse**2:
            return Verdict(False, "not a right triangle")
        return Verdict(True)

    def absorb(
        self, state: Known, turn: Turn, own: Own[Search, Legs], judged: Sequence[Judged[None]]
    ) -> Known:
        """One own result and any number of verified foreign ones. A missed answer leaves the number open."""
        for one in judged:
            triangle = one.received.item
            if one.verdict.accepted and isinstance(triangle, Triangle):
                turn.credit(one.received.author, one.received.place, "used")
                if triangle.hypotenuse not in state.found:
                    state.found[triangle.hypotenuse] = triangle.legs
                    state.taught += 1
                    turn.credit(one.received.author, one.received.place, "useful")
        if own.answer is not None:
            if own.answer.legs is None:
                state.barren.add(own.request.number)
            else:
                state.found.setdefault(own.request.number, own.answer.legs)
        return state

    # Optional: what people see of a turn, and how to resume without replaying everything.

    def explain(self, state: Known, turn: Turn) -> dict[str, int]:
        return {"found": len(state.found), "barren": len(state.barren), "taught": state.taught}

    def snapshot(self, state: Known, folder: Path) -> None:
        (folder / "known.json").write_bytes(msgspec.json.encode(state))

    def restore(self, folder: Path) -> Known:
        return msgspec.json.decode((folder / "known.json").read_bytes(), type=Known)


if TYPE_CHECKING:  # lets the type checker say what is missing
    _application: Application[Known, Search, Legs, None] = Hypotenuses()
