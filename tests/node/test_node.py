"""The loop, live: order, look-ahead, deadlines, budgets, foreign items."""

from collections.abc import Generator, Sequence
from typing import Any

import pytest
from examples.hypotenuses import Hypotenuses, Known, Legs, Search, Triangle, search_legs
from msgspec import Raw

from shoal.errors import RunError, ShoalError
from shoal.node import NodeSettings, Reply, Turn, Verdict
from shoal.runs import MemoryJournal, sum_up
from shoal.runs.journal import Record
from shoal.runs.records import Answered, Arrived, Asked, Missed, Shared, VerdictGiven, content_of
from shoal.swarm.authors import Received
from tests.node.scripted import LIMIT, ScriptedExchange, contents, make_node, out_of_order, received, run


def test_a_node_alone_settles_everything_and_finishes() -> None:
    node = make_node(MemoryJournal())
    run(node)
    assert node.finished_because == "nothing more to produce"
    assert set(node.state.found) == {5, 10, 13, 15, 17, 20}
    assert len(node.state.barren) == LIMIT - 6
    assert node.turns == LIMIT


def test_everything_is_journaled_before_it_is_used() -> None:
    """The application sees nothing that is not in the journal at that moment."""
    journal = MemoryJournal()

    class Watching(Hypotenuses):
        def absorb(self, state, turn, own, judged):  # type: ignore[no-untyped-def]
            answered = [content.turn for content in contents(journal, Answered)]
            assert turn.number in answered
            assert len(contents(journal, VerdictGiven)) >= len(judged)
            return super().absorb(state, turn, own, judged)

        def verify(self, state, turn, batch):  # type: ignore[no-untyped-def]
            journaled = {content.seq for content in contents(journal, Arrived)}
            assert {received.seq for received in batch} <= journaled
            return super().verify(state, turn, batch)

    def answer(state: Known, search: Search) -> Reply[Legs]:
        assert contents(journal, Asked)[-1].turn == len(contents(journal, Asked))
        return search_legs(state, search)

    exchange = ScriptedExchange([[received(5, (3, 4), 1)], [received(10, (6, 8), 2)]])
    run(make_node(journal, exchange, application=Watching(LIMIT), answer=answer))
    assert len(contents(journal, VerdictGiven)) >= 1


@pytest.mark.parametrize("look_ahead", [1, 2, 5])
def test_each_turn_is_drawn_from_the_state_after_the_turn_look_ahead_before(look_ahead: int) -> None:
    drawn: dict[int, int] = {}
    absorbed: list[int] = []

    class Watching(Hypotenuses):
        def produce(self, state, turn):  # type: ignore[no-untyped-def]
            drawn[turn.number] = len(absorbed)
            return super().produce(state, turn)

        def absorb(self, state, turn, own, judged):  # type: ignore[no-untyped-def]
            absorbed.append(turn.number)
            return super().absorb(state, turn, own, judged)

    journal, application = MemoryJournal(), Watching(1000)
    node = make_node(journal, look_ahead=look_ahead, delay=out_of_order, application=application)
    run(node, most_turns=30)
    assert absorbed == list(range(1, 31))
    assert all(drawn[number] == max(0, number - look_ahead) for number in range(1, 31))


def test_the_outcome_does_not_depend_on_which_answer_comes_first() -> None:
    fast, slow = MemoryJournal(), MemoryJournal()
    one, other = make_node(fast, look_ahead=4), make_node(slow, look_ahead=4, delay=out_of_order)
    run(one)
    run(other)
    assert one.state == other.state
    order = [content.turn for content in contents(slow, Answered)]
    assert order != sorted(order), "the delays must really have let answers overtake each other"
    assert [c.request for c in contents(fast, Asked)] == [c.request for c in contents(slow, Asked)]


def test_same_seed_same_bytes() -> None:
    journals = [MemoryJournal(), MemoryJournal()]
    for journal in journals:
        exchange = ScriptedExchange([[], [received(5, (3, 4))]])
        run(make_node(journal, exchange, look_ahead=3, delay=out_of_order))
    assert journals[0].lines == journals[1].lines


def test_a_turn_that_misses_its_deadline_is_recorded_and_the_late_answer_ignored() -> None:
    journal = MemoryJournal()
    node = make_node(journal, look_ahead=2, deadline=3.0, delay=lambda call: 10.0 if call.turn == 2 else 1.0)
    run(node)
    missed = contents(journal, Missed)
    assert [(content.turn, content.reason) for content in missed] == [(2, "deadline")]
    assert node.late_answers == 1
    assert len(node.state.found) + len(node.state.barren) == LIMIT


def test_a_failure_of_the_outside_is_a_missed_turn_and_a_mistake_is_not() -> None:
    def failing(state: Known, search: Search) -> Reply[Legs]:
        if search.number % 5 == 0:
            raise ShoalError("the model is out of order")
        return search_legs(state, search)

    journal = MemoryJournal()
    run(make_node(journal, answer=failing), most_turns=40)
    assert {content.reason for content in contents(journal, Missed)} == {
        "ShoalError: the model is out of order"
    }

    def mistaken(state: Known, search: Search) -> Reply[Legs]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(make_node(MemoryJournal(), answer=mistaken))


@pytest.mark.parametrize("look_ahead", [1, 4])
def test_a_budget_is_spent_exactly_and_never_exceeded(look_ahead: int) -> None:
    calls = 0

    def counted(state: Known, search: Search) -> Reply[Legs]:
        nonlocal calls
        calls += 1
        return search_legs(state, search)

    journal = MemoryJournal()
    node = make_node(
        journal, look_ahead=look_ahead, delay=out_of_order, answer=counted, budget={"searches": 13}
    )
    run(node)
    assert node.finished_because == "the budget is spent"
    assert calls == 13 == node.ledger.spent["searches"] == sum_up(journal.read()).spent["searches"]


def test_what_is_left_of_a_reservation_can_be_spent_again() -> None:
    class Costly(Hypotenuses):
        def produce(self, state: Known, turn: Turn):  # type: ignore[no-untyped-def]
            proposal = super().produce(state, turn)
            return proposal and type(proposal)(proposal.request, {"tokens": 10})

    def cheap(state: Known, search: Search) -> Reply[Legs]:
        return Reply(search_legs(state, search).answer, {"tokens": 3})

    states = []
    for delay in (lambda call: 0.0, out_of_order):
        node = make_node(
            MemoryJournal(),
            application=Costly(LIMIT),
            answer=cheap,
            budget={"tokens": 50},
            look_ahead=3,
            delay=delay,
        )
        run(node)
        assert 40 < node.ledger.spent["tokens"] <= 50
        states.append(node.state)
    assert states[0] == states[1]


def test_foreign_items_are_verified_here_and_credited() -> None:
    lies = received(11, (3, 4), seq=2)
    far = received(10**9, (3, 4), seq=3)
    exchange = ScriptedExchange([[received(5, (3, 4), seq=1), lies, far]])
    journal = MemoryJournal()
    node = make_node(journal, exchange)
    run(node)
    assert node.state.taught == 1
    assert exchange.credits == [
        (1, "verified", ""),
        (2, "rejected", "not a right triangle"),
        (3, "rejected", "out of range"),
        (1, "used", ""),
        (1, "useful", ""),
    ]
    assert Triangle(13, (5, 12)) in exchange.shared
    assert Triangle(5, (3, 4)) not in exchange.shared, "it was learnt, not found here"


def test_an_item_that_cannot_be_checked_here_is_passed_over_live_and_on_resume() -> None:
    class Provincial(Hypotenuses):
        def verify(self, state, turn, batch):  # type: ignore[no-untyped-def]
            return [
                Verdict(False, "too large for this node: 13", passed_over=True) if one.item.hypotenuse > 10
                else Verdict(True)
                for one in batch
            ]  # fmt: skip

    exchange = ScriptedExchange([[received(13, (5, 12), 1), received(5, (3, 4), 2)]])
    journal = MemoryJournal()
    node = make_node(journal, exchange, application=Provincial(LIMIT))
    run(node)
    assert [(one.accepted, one.passed_over, one.rejected) for one in contents(journal, VerdictGiven)] == [
        (False, True, False),
        (True, False, False),
    ]
    assert (1, "passed_over", "too large for this node") in exchange.credits
    assert node.state.taught == 1
    again = make_node(journal, application=Provincial(LIMIT))
    assert again.state == node.state
    with pytest.raises(ValueError, match="not both"):
        Verdict(True, passed_over=True)


def test_a_verdict_of_an_earlier_version_is_read_as_it_was() -> None:
    old = b'{"turn":1,"author":"a","epoch":1,"kind":"item","seq":1,"index":0,"accepted":false,"reason":"unusable task"}'
    found = content_of(Record(1, "verdict", 0.0, Raw(old)))
    assert isinstance(found, VerdictGiven)
    assert (found.rejected, found.passed_over) == (True, False)


def test_nothing_foreign_stops_a_node() -> None:
    class Fragile(Hypotenuses):
        def verify(self, state, turn, batch):  # type: ignore[no-untyped-def]
            if any(one.item.hypotenuse == 5 for one in batch):
                raise RecursionError("deep: very deep")
            return super().verify(state, turn, batch)

    exchange = ScriptedExchange([[received(10, (6, 8), 1), received(5, (3, 4), 2), received(13, (5, 12), 3)]])
    journal = MemoryJournal()
    node = make_node(journal, exchange, application=Fragile(LIMIT))
    run(node)
    verdicts = contents(journal, VerdictGiven)
    assert [one.accepted for one in verdicts] == [True, False, True], "one bad item takes no other with it"
    assert verdicts[1].reason == "the verifier raised RecursionError: deep: very deep"
    assert (2, "rejected", "the verifier raised RecursionError") in exchange.credits
    assert node.state.taught == 2


def test_an_item_that_cannot_be_journaled_is_refused_and_the_node_goes_on() -> None:
    unwritable = received(5, (float("inf"), 4))  # type: ignore[arg-type]  # a float is infinite for anyone
    exchange = ScriptedExchange([[unwritable, received(10, (6, 8), seq=2)]])
    journal = MemoryJournal()
    node = make_node(journal, exchange)
    run(node)
    assert exchange.credits[0] == (1, "rejected", "cannot be journaled")
    assert node.state.taught == 1
    run(make_node(journal))  # and it can be resumed


def test_what_the_exchange_refuses_is_recorded_and_the_node_goes_on() -> None:
    journal = MemoryJournal()
    node = make_node(journal, ScriptedExchange(refuse="too large"))
    run(node)
    assert node.turns == LIMIT
    assert {item.refused for shared in contents(journal, Shared) for item in shared.items} == {"too large"}


class Lazy(Hypotenuses):
    """Keeps what arrives in its state and checks it only in every third turn, until two are found."""

    def initial_state(self) -> Any:
        state = super().initial_state()
        state.pool = []  # type: ignore[attr-defined]
        return state

    def gather(
        self, state: Any, turn: Turn, arrived: Sequence[Received[Triangle]]
    ) -> Generator[Sequence[Received[Triangle]], Sequence[Verdict[None]], None]:
        state.pool += arrived
        found = 0
        while turn.number % 3 == 0 and state.pool and found < 2:
            (verdict,) = yield [state.pool.pop(turn.random("walk").randrange(len(state.pool)))]
            found += verdict.accepted


def test_an_application_may_walk_its_pool_until_it_found_enough() -> None:
    batch = [
        received(5, (3, 4), 1),
        received(7, (1, 1), 2),
        received(10, (6, 8), 3),
        received(13, (5, 12), 4),
    ]
    journal = MemoryJournal()
    node = make_node(journal, ScriptedExchange([batch]), application=Lazy(1000))
    run(node, most_turns=6)
    verdicts = contents(journal, VerdictGiven)
    assert {verdict.turn for verdict in verdicts} == {3, 6}
    assert [sum(v.accepted for v in verdicts if v.turn == turn) for turn in (3, 6)] == [2, 1]
    assert len(verdicts) == 4


def test_what_arrived_once_is_not_taken_in_again() -> None:
    exchange = ScriptedExchange([[received(5, (3, 4))], [received(5, (3, 4))], [received(5, (3, 4), seq=2)]])
    journal = MemoryJournal()
    run(make_node(journal, exchange))
    assert [content.seq for content in contents(journal, Arrived)] == [1, 2]
    assert len(exchange.handed_back) == 1, "the books of the exchange are told"


def test_the_application_may_have_nothing_to_ask_until_more_is_absorbed() -> None:
    class InRounds(Hypotenuses):
        """Begins a round of three only when the last one is absorbed, whatever the look-ahead."""

        def produce(self, state: Known, turn: Turn):  # type: ignore[no-untyped-def]
            absorbed = len(state.found) + len(state.barren)
            return None if turn.number > absorbed // 3 * 3 + 3 else super().produce(state, turn)

        def share(self, state, turn, fresh):  # type: ignore[no-untyped-def]
            absorbed = len(state.found) + len(state.barren)
            if fresh is None and absorbed % 3 == 0:
                yield Triangle(5, (3, 4))

    def distinct(state: Known, search: Search) -> Reply[Legs]:
        return search_legs(state, search)

    exchange = ScriptedExchange()
    node = make_node(
        MemoryJournal(),
        exchange,
        look_ahead=1,
        application=InRounds(LIMIT),
        answer=distinct,
        delay=out_of_order,
    )
    run(node)
    assert node.turns == LIMIT
    assert len(exchange.shared) == LIMIT // 3


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="look_ahead is 0"):
        NodeSettings(look_ahead=0)


def test_what_cannot_be_journaled_is_refused_by_name() -> None:
    def unwritable(state: Known, search: Search) -> Reply[Any]:
        return Reply(object())

    with pytest.raises(RunError, match="an answer cannot be written as JSON"):
        run(make_node(MemoryJournal(), answer=unwritable))

    def untrue(state: Known, search: Search) -> Reply[Any]:
        return Reply({"legs": "long"})

    with pytest.raises(RunError, match="the answer of turn 1 is not what the application declares"):
        run(make_node(MemoryJournal(), answer=untrue))
