"""Budgets: a sum over the journal.

What is asked of the outside is *reserved* before it is asked, at the most it may cost, and *settled* at what
it did cost once its turn begins. An attempt that has no recorded answer when it is asked again counts as
spent in full, and so does a missed one. So as long as nothing costs more than was reserved for it,

    spent + reserved <= budget        for every measure, at every moment, across `kill -9` and resume.

Settling waits for the turn, not for the answer, so that what fits does not depend on which answer came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.runs.journal import Record
from shoal.runs.records import Amounts, Answered, Asked, Missed, TurnBegun, content_of


class Ledger:
    """The sums of one node so far. `budget` may be raised at any time; a measure not in it has no limit."""

    def __init__(self, budget: Mapping[str, int] | None = None) -> None:
        self.budget: Amounts = dict(budget or {})
        self.spent: Amounts = {}
        # By how much single answers cost more than was reserved for them: empty as long as the law holds.
        self.overrun: Amounts = {}
        self._reserved: dict[int, Amounts] = {}
        self._cost: dict[int, Amounts] = {}

    @property
    def reserved(self) -> Amounts:
        """What the turns that are not yet settled may still cost."""
        total: Amounts = {}
        for amounts in self._reserved.values():
            _add(total, amounts)
        return total

    def reserved_for(self, turn: int) -> Amounts:
        return dict(self._reserved.get(turn, {}))

    def fits(self, reserve: Mapping[str, int]) -> bool:
        reserved = self.reserved
        return all(
            self.spent.get(measure, 0) + reserved.get(measure, 0) + reserve.get(measure, 0) <= limit
            for measure, limit in self.budget.items()
        )

    def ask(self, turn: int, reserve: Mapping[str, int]) -> None:
        lost = self._reserved.pop(turn, None)
        if lost is not None:
            _add(self.spent, lost)
        self._reserved[turn] = dict(reserve)

    def answer(self, turn: int, cost: Mapping[str, int] | None) -> None:
        if cost is not None and turn in self._reserved:
            self._cost[turn] = dict(cost)

    def settle(self, turn: int) -> None:
        reserved = self._reserved.pop(turn, {})
        cost = self._cost.pop(turn, reserved)
        _add(self.spent, cost)
        for measure, amount in cost.items():
            if amount > reserved.get(measure, 0):
                _add(self.overrun, {measure: amount - reserved.get(measure, 0)})


def sum_up(records: Iterable[Record], budget: Mapping[str, int] | None = None) -> Ledger:
    """The ledger that a journal amounts to; for reports, and for checking a node from outside."""
    ledger = Ledger(budget)
    for record in records:
        match content_of(record):
            case Asked(turn=turn, reserve=reserve):
                ledger.ask(turn, reserve)
            case Answered(turn=turn, cost=cost) | Missed(turn=turn, cost=cost):
                ledger.answer(turn, cost)
            case TurnBegun(turn=turn):
                ledger.settle(turn)
    return ledger


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for measure, amount in amounts.items():
        total[measure] = total.get(measure, 0) + amount
