"""Law 7: budgets are never exceeded, whatever the order of calls and wherever the process was killed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import BudgetError, ConfigError, RunError
from shoal.models import Amounts, Budget, BudgetRecord, Limits, Reserved, Settled
from shoal.models.budget import QUANTITIES

amounts = st.builds(Amounts, *[st.integers(0, 30)] * 4)
limits = st.builds(
    Limits,
    calls=st.none() | st.integers(0, 60),
    tokens=st.none() | st.integers(0, 60),
    dollars=st.none() | st.integers(0, 60).map(lambda micro: micro / 1e6),
    seconds=st.none() | st.integers(0, 60).map(lambda milli: milli / 1e3),
)
# A step reserves amounts, or settles the n-th open call with a part of what was reserved.
steps = st.lists(st.tuples(st.booleans(), amounts, st.integers(0, 5), st.integers(0, 4)), max_size=40)


def part(whole: Amounts, quarters: int) -> Amounts:
    return Amounts(*(getattr(whole, name) * quarters // 4 for name in QUANTITIES))


def play(budget: Budget, script: list[tuple[bool, Amounts, int, int]]) -> list[BudgetRecord]:
    records: list[BudgetRecord] = []
    opened: list[Reserved] = []
    for reserving, wanted, which, quarters in script:
        if reserving:
            try:
                reserved = budget.reserve(wanted)
            except BudgetError:
                continue
            opened.append(reserved)
            records.append(reserved)
        elif opened:
            reserved = opened.pop(which % len(opened))
            records.append(budget.settle(reserved.number, part(reserved.amounts, quarters)))
        for quantity in QUANTITIES:
            limit = budget.limits.of(quantity)
            used = getattr(budget.spent, quantity) + getattr(budget.held, quantity)
            assert limit is None or used <= limit
    return records


@given(limits, steps)
def test_a_budget_is_never_exceeded(limit: Limits, script: list[tuple[bool, Amounts, int, int]]) -> None:
    play(Budget(limit), script)


@given(limits, steps, st.integers(0, 40))
def test_folding_the_records_gives_the_same_state_also_after_a_kill(
    limit: Limits, script: list[tuple[bool, Amounts, int, int]], killed_after: int
) -> None:
    budget = Budget(limit)
    records = play(budget, script)
    encoded = [msgspec.json.encode(record) for record in records]
    decoded = [msgspec.json.decode(line, type=BudgetRecord) for line in encoded]
    assert decoded == records
    folded = Budget.fold(limit, decoded)
    assert folded.spent == budget.spent + budget.held
    assert folded.held == Amounts()
    cut = Budget.fold(limit, records[:killed_after])
    for quantity in QUANTITIES:
        bound = limit.of(quantity)
        assert bound is None or getattr(cut.spent, quantity) <= bound
    for quantity in QUANTITIES:
        assert folded.remaining(quantity) == budget.remaining(quantity)


@given(limits, steps)
def test_a_refused_reservation_changes_nothing(
    limit: Limits, script: list[tuple[bool, Amounts, int, int]]
) -> None:
    budget = Budget(limit)
    play(budget, script)
    before = (budget.spent, budget.held)
    try:
        budget.reserve(Amounts(61, 61, 61, 61))
    except BudgetError as error:
        assert (budget.spent, budget.held) == before
        assert error.quantity in QUANTITIES


def test_what_calls_in_flight_hold_is_refused_for_now_only() -> None:
    budget = Budget(Limits(calls=1))
    held = budget.reserve(Amounts(calls=1))
    with pytest.raises(BudgetError, match="in flight") as caught:
        budget.reserve(Amounts(calls=1))
    assert caught.value.temporary
    budget.settle(held.number, Amounts(calls=1))
    with pytest.raises(BudgetError, match="raise the limit") as caught:
        budget.reserve(Amounts(calls=1))
    assert not caught.value.temporary


def test_more_than_was_reserved_is_shown_and_ends_the_budget() -> None:
    budget = Budget(Limits(tokens=100))
    held = budget.reserve(Amounts(tokens=90))
    budget.settle(held.number, Amounts(tokens=120))
    assert budget.overrun == Amounts(tokens=30)
    with pytest.raises(BudgetError):
        budget.reserve(Amounts(tokens=1))
    budget.reserve(Amounts(calls=1))


def test_damaged_records_are_named() -> None:
    with pytest.raises(RunError, match="not open"):
        Budget.fold(Limits(), [Settled(0, Amounts())])
    with pytest.raises(RunError, match="twice"):
        Budget.fold(Limits(), [Reserved(0, Amounts()), Reserved(0, Amounts())])


def test_limits_are_checked() -> None:
    with pytest.raises(ConfigError, match="dollars"):
        Limits(dollars=-1)
    with pytest.raises(ConfigError, match="seconds"):
        Limits(seconds=float("inf"))
    assert Limits(dollars=0.1).of("microdollars") == 100_000
    assert Limits(seconds=2.5).of("milliseconds") == 2500
