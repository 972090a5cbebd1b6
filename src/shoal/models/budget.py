"""Budgets that hold: what a call may cost at most is reserved before it, what it did cost is settled after.

A pure state machine over whole numbers. `reserve` and `settle` give the record that belongs into the
journal; folding the records gives the same state again. A reservation that was never settled, because the
process was killed, counts as spent (law 7).

The guarantee: as long as no settlement is larger than its reservation, what is spent never exceeds a
limit, whatever the order of calls. A server that uses more than it was allowed is booked with what it
says, the excess is shown in `overrun`, and nothing further is granted beyond the limit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from shoal.errors import BudgetError, ConfigError, RunError

QUANTITIES = ("calls", "tokens", "microdollars", "milliseconds")


class Amounts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What calls cost, in whole numbers: sums do not depend on their order."""

    calls: int = 0
    tokens: int = 0
    microdollars: int = 0
    milliseconds: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, name) + getattr(other, name) for name in QUANTITIES))

    def above(self, other: Amounts) -> Amounts:
        """By how much each quantity exceeds the other's; 0 where it does not."""
        return Amounts(*(max(0, getattr(self, name) - getattr(other, name)) for name in QUANTITIES))

    @property
    def dollars(self) -> float:
        return self.microdollars / 1e6

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1e3


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The most that may be spent; None is no limit. `seconds` is time spent in calls, summed over them."""

    calls: int | None = None
    tokens: int | None = None
    dollars: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "dollars", "seconds"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < math.inf:
                raise ConfigError(f"a budget of {value} {name}: give 0 or more, or leave it out for no limit")

    def of(self, quantity: str) -> int | None:
        if quantity == "microdollars":
            return None if self.dollars is None else math.floor(round(self.dollars * 1e6, 3))
        if quantity == "milliseconds":
            return None if self.seconds is None else math.floor(round(self.seconds * 1e3, 3))
        limit: int | None = getattr(self, quantity)
        return limit


class Reserved(msgspec.Struct, frozen=True, tag="reserve"):
    number: int
    amounts: Amounts


class Settled(msgspec.Struct, frozen=True, tag="settle"):
    number: int
    amounts: Amounts


BudgetRecord = Reserved | Settled


class Budget:
    """One budget. Not for use by several threads: a `Ledger` adds the lock and the journal."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = Limits() if limits is None else limits
        self.spent = Amounts()
        self.overrun = Amounts()
        self._open: dict[int, Amounts] = {}
        self._next = 0

    @classmethod
    def fold(cls, limits: Limits, records: Iterable[BudgetRecord]) -> Budget:
        """The budget after these records, with reservations that were never settled booked as spent."""
        budget = cls(limits)
        for record in records:
            budget.apply(record)
        budget.lose_open()
        return budget

    @property
    def held(self) -> Amounts:
        """What calls in flight have reserved."""
        return sum(self._open.values(), Amounts())

    def remaining(self, quantity: str) -> int | None:
        """What can still be reserved now; None is no limit."""
        limit = self.limits.of(quantity)
        if limit is None:
            return None
        spent: int = getattr(self.spent, quantity)
        held: int = getattr(self.held, quantity)
        return max(0, limit - spent - held)

    def reserve(self, amounts: Amounts) -> Reserved:
        """Holds these amounts, or raises BudgetError and changes nothing."""
        held = self.held
        for quantity in QUANTITIES:
            limit, wanted = self.limits.of(quantity), getattr(amounts, quantity)
            spent = getattr(self.spent, quantity)
            if wanted < 0:
                raise ValueError(f"a reservation of {wanted} {quantity}")
            if limit is None or wanted == 0 or spent + getattr(held, quantity) + wanted <= limit:
                continue
            temporary = spent + wanted <= limit
            raise BudgetError(
                _refusal(quantity, limit, spent, wanted, temporary), quantity, temporary=temporary
            )
        record = Reserved(self._next, amounts)
        self.apply(record)
        return record

    def settle(self, number: int, amounts: Amounts) -> Settled:
        """Books what a reserved call did cost and frees the rest."""
        record = Settled(number, amounts)
        self.apply(record)
        return record

    def apply(self, record: BudgetRecord) -> None:
        """Takes a record into account without asking the limits: what happened has happened."""
        if isinstance(record, Reserved):
            if record.number < self._next:
                raise RunError(f"call {record.number} is reserved twice: the budget's records are damaged")
            self._next = record.number + 1
            self._open[record.number] = record.amounts
            return
        reserved = self._open.pop(record.number, None)
        if reserved is None:
            raise RunError(
                f"the budget's records settle call {record.number}, which is not open: the journal is damaged"
            )
        self.spent += record.amounts
        self.overrun += record.amounts.above(reserved)

    def lose_open(self) -> None:
        """Books every open reservation as spent: nobody is left to settle it."""
        self.spent += self.held
        self._open.clear()


def _refusal(quantity: str, limit: int, spent: int, wanted: int, temporary: bool) -> str:
    def shown(amount: int) -> str:
        if quantity == "microdollars":
            return f"${amount / 1e6:.6g}"
        return f"{amount / 1e3:g} seconds" if quantity == "milliseconds" else f"{amount} {quantity}"

    rest = "calls in flight hold the rest" if temporary else "raise the limit to go on"
    return (
        f"the budget of {shown(limit)} does not allow the next call: {shown(spent)} are spent "
        f"and it may need {shown(wanted)}; {rest}"
    )
