from hypothesis import given, settings, strategies as st

from shoal.runs import Ledger, MemoryJournal, sum_up
from shoal.runs.records import Answered, Asked, Missed, TurnBegun, encode_payload, kind_of

NOTHING = encode_payload(None, "nothing")


def test_reserved_is_spent_until_it_is_known_what_it_cost() -> None:
    ledger = Ledger({"calls": 3, "tokens": 1000})
    ledger.ask(1, {"calls": 1, "tokens": 600})
    assert not ledger.fits({"calls": 1, "tokens": 401})
    assert ledger.fits({"calls": 1, "tokens": 400})
    ledger.answer(1, {"calls": 1, "tokens": 100})
    assert not ledger.fits({"calls": 1, "tokens": 401}), "an answer counts when its turn begins, not before"
    ledger.settle(1)
    assert ledger.spent == {"calls": 1, "tokens": 100}
    assert ledger.fits({"calls": 2, "tokens": 900})


def test_an_attempt_without_an_answer_is_spent_in_full() -> None:
    ledger = Ledger({"calls": 3})
    ledger.ask(1, {"calls": 1})
    ledger.ask(1, {"calls": 1})
    ledger.settle(1)
    assert ledger.spent == {"calls": 2}
    assert ledger.reserved == {}


def test_what_costs_more_than_was_reserved_is_counted_and_shown() -> None:
    ledger = Ledger({"tokens": 100})
    ledger.ask(1, {"tokens": 10})
    ledger.answer(1, {"tokens": 25})
    ledger.settle(1)
    assert ledger.spent == {"tokens": 25}
    assert ledger.overrun == {"tokens": 15}


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=20), st.integers(0, 60)
)
@settings(deadline=None)
def test_spent_and_reserved_never_exceed_the_budget(turns: list[tuple[int, int, bool]], limit: int) -> None:
    ledger, journal = Ledger({"tokens": limit}), MemoryJournal()
    for turn, (reserve, cost, is_answered) in enumerate(turns, start=1):
        if not ledger.fits({"tokens": reserve}):
            continue
        asked = Asked(turn, 1, {"tokens": reserve}, NOTHING)
        over = (
            Answered(turn, 1, NOTHING, {"tokens": min(cost, reserve)}) if is_answered else Missed(turn, 1, "")
        )
        for content in (asked, over, TurnBegun(turn)):
            journal.append(kind_of(content), 0.0, content)
        ledger.ask(turn, asked.reserve)
        ledger.answer(turn, over.cost)
        ledger.settle(turn)
        assert ledger.spent.get("tokens", 0) + ledger.reserved.get("tokens", 0) <= limit
    assert sum_up(journal.read()).spent == ledger.spent
