"""Budgets: a sum over the journal. A request is *reserved* before it is asked, at the most it may cost, and
*settled* at its real cost once its turn begins. Of a request that was lost with its process, the parts that
were *sent* count as spent; a missed one counts in full. So as long as nothing costs more than its reserve,

    spent + reserved <= budget        for every measure, at every moment, across `kill -9` and resume.

Settling waits for the turn, so the room in a budget does not depend on the order of answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from shoal.runs.journal import Record
from shoal.runs.records import Amounts, Answered, Asked, Missed, Sent, TurnBegun, content_of


@dataclass(slots=True)
class _Open:
    """A turn that was asked and is not settled. `cost` is None before there is an answer."""

    reserve: Amounts
    sent: Amounts
    cost: Amounts | None = None


class Ledger:
    """The sums of one node so far. `budget` may be raised at any time; a measure not in it has no limit."""

    def __init__(self, budget: Mapping[str, int] | None = None) -> None:
        self.budget: Amounts = dict(budget or {})
        self.spent: Amounts = {}
        # The excess of single answers over their reserve: empty as long as the law holds.
        self.overrun: Amounts = {}
        self._open: dict[int, _Open] = {}

    @property
    def reserved(self) -> Amounts:
        """The most that unsettled turns may still cost."""
        return _total(one.reserve for one in self._open.values())

    @property
    def booked(self) -> Amounts:
        """Spent for certain if the process died now: settled turns, known costs, and sent parts."""
        rest = (one.sent if one.cost is None else one.cost for one in self._open.values())
        return _total([self.spent, *rest])

    def parts_of(self, turn: int) -> tuple[Amounts, Amounts]:
        """The reserve of an unsettled turn, and the sent part of it."""
        one = self._open.get(turn, _Open({}, {}))
        return dict(one.reserve), dict(one.sent)

    def fits(self, reserve: Mapping[str, int]) -> bool:
        reserved = self.reserved
        return all(
            self.spent.get(measure, 0) + reserved.get(measure, 0) + reserve.get(measure, 0) <= limit
            for measure, limit in self.budget.items()
        )

    def take(self, record: Record) -> None:
        match content_of(record):
            case Asked(turn=turn, reserve=reserve, first=first):
                self.ask(turn, reserve, first)
            case Sent(turn=turn, amounts=amounts):
                self.send(turn, amounts)
            case Answered(turn=turn, cost=cost) | Missed(turn=turn, cost=cost):
                self.answer(turn, cost)
            case TurnBegun(turn=turn):
                self.settle(turn)

    def ask(self, turn: int, reserve: Mapping[str, int], first: Mapping[str, int] | None = None) -> None:
        """Reserves. A turn that is asked again was lost: the parts that were sent are spent."""
        if turn in self._open:
            _add(self.spent, self._open[turn].sent)
        self._open[turn] = _Open(dict(reserve), dict(reserve if first is None else first))

    def send(self, turn: int, amounts: Mapping[str, int]) -> None:
        if turn in self._open:
            _add(self._open[turn].sent, amounts)

    def answer(self, turn: int, cost: Mapping[str, int] | None) -> None:
        if turn in self._open:
            self._open[turn].cost = dict(self._open[turn].reserve if cost is None else cost)

    def settle(self, turn: int) -> None:
        if (one := self._open.pop(turn, None)) is None:
            return
        cost = one.reserve if one.cost is None else one.cost
        _add(self.spent, cost)
        for measure, amount in cost.items():
            if amount > one.reserve.get(measure, 0):
                _add(self.overrun, {measure: amount - one.reserve.get(measure, 0)})


def sum_up(records: Iterable[Record], budget: Mapping[str, int] | None = None) -> Ledger:
    """The ledger after these records of a journal."""
    ledger = Ledger(budget)
    for record in records:
        ledger.take(record)
    return ledger


def _total(amounts: Iterable[Mapping[str, int]]) -> Amounts:
    total: Amounts = {}
    for one in amounts:
        _add(total, one)
    return total


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for measure, amount in amounts.items():
        total[measure] = total.get(measure, 0) + amount
