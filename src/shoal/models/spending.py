"""The cost of one question to a model, in whole numbers: its calls, tokens and money.

The budget of a run is the node's ledger (`shoal.runs.Ledger`), from which a question is given a number of
calls. `Spending` sees that no more are made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from shoal.errors import BudgetError

QUANTITIES = ("calls", "tokens", "microdollars")


class Amounts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sums of whole numbers do not depend on their order."""

    calls: int = 0
    tokens: int = 0
    microdollars: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, name) + getattr(other, name) for name in QUANTITIES))


class Spending:
    """At most `calls` calls (None: any number), and what was spent on them. `before` is called with the
    number of each attempt, 1, 2, 3 …, before it is sent; an exception of it stops the call. Thread-safe."""

    def __init__(self, calls: int | None = None, before: Callable[[int], None] = lambda number: None) -> None:
        self.spent = Amounts()
        self._calls = calls
        self._before = before
        self._attempts = 0
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def calls_left(self) -> int | None:
        """Calls that can still be begun; None: no limit."""
        return None if self._calls is None else max(0, self._calls - self.spent.calls - self._under_way)

    def begin(self) -> None:
        """Takes one call, or raises BudgetError."""
        with self._lock:
            if self.calls_left == 0:
                raise BudgetError(f"the {self._calls} calls for this question are spent")
            self._under_way += 1
            self._attempts += 1
            number = self._attempts
        try:
            self._before(number)
        except BaseException:
            self.end(Amounts())
            raise

    def end(self, amounts: Amounts) -> None:
        """Books the cost of a call that was begun."""
        with self._lock:
            self._under_way -= 1
            self.spent += amounts
