"""A new process takes a node up: calls that were sent are booked, winners go out again, failures are forgiven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from examples.hypotenuses import Hypotenuses, Known, Legs, Search, Triangle

from shoal.node import Call, GiveUp, Node, NodeSettings, Proposal, Turn
from shoal.runs import MemoryJournal, sum_up
from shoal.runs.records import Missed, Shared
from tests.node.scripted import ScriptedExchange, contents, journal_of, make_node, run


class ThreeCalls(Hypotenuses):
    """A proposal may take up to three calls; the first one is sent when it is asked."""

    def produce(self, state: Known, turn: Turn) -> Proposal[Search] | None:
        proposal = super().produce(state, turn)
        return None if proposal is None else Proposal(proposal.request, {"calls": 3}, {"calls": 1})


class Silent:
    """An outside that never answers; `calls` are those that were begun."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def begin(self, call: Call, state: object, request: object, now: float) -> None:
        self.calls.append(call)

    def finished(self, now: float) -> list[Any]:
        return []

    def wait(self, seconds: float) -> None:
        pass

    def next_at(self) -> float | None:
        return None

    def close(self) -> None:
        pass


def asked(
    journal: MemoryJournal, budget: Mapping[str, int], look_ahead: int = 4
) -> tuple[Node[Known, Search, Legs, None], Silent]:
    outside = Silent()
    node = Node(
        ThreeCalls(100),
        outside,
        name="a",
        seed=3,
        journal=journal,
        now=0.0,
        settings=NodeSettings(look_ahead=look_ahead, budget=dict(budget)),
    )
    node.advance(0.0)
    return node, outside


def test_after_a_kill_the_calls_that_were_sent_are_booked_and_no_others() -> None:
    journal = MemoryJournal()
    node, outside = asked(journal, {"calls": 100})
    assert len(outside.calls) == 4
    assert node.ledger.reserved == {"calls": 12}
    outside.calls[1].spend({"calls": 1})
    killed = journal_of(journal.lines)
    assert sum_up(killed.read()).booked == {"calls": 5}, "four first calls and one more"
    again, _ = asked(killed, {"calls": 100})
    assert again.ledger.spent == {"calls": 5}
    assert again.ledger.booked == sum_up(killed.read()).booked == {"calls": 9}, "and four are under way anew"


def test_a_budget_holds_however_often_a_node_is_killed() -> None:
    journal, budget = MemoryJournal(), {"calls": 10}
    for _ in range(12):
        node, outside = asked(journal, budget, look_ahead=2)
        for call in outside.calls:
            for _ in range(2):
                call.spend({"calls": 1})
        ledger = sum_up(journal.read(), budget)
        assert ledger.booked.get("calls", 0) <= 10
        assert node.ledger.fits({"calls": 0})
        journal = journal_of(journal.lines)
    lost = [content for content in contents(journal, Missed) if content.reason.startswith("lost")]
    assert lost, "no room is left to ask the lost ones again"


class Champions(Hypotenuses):
    """Gives up after failures, forgives them on a restart, and sends its largest triangle once more."""

    def produce(self, state: Known, turn: Turn) -> Proposal[Search] | GiveUp | None:
        if len(state.barren) >= 8:
            return GiveUp("eight numbers were barren")
        return super().produce(state, turn)

    def restarted(self, state: Known) -> Known:
        state.barren.clear()
        return state

    def share_again(self, state: Known) -> Iterable[Triangle]:
        if state.found:
            best = max(state.found)
            yield Triangle(best, state.found[best])


def test_a_node_that_gives_up_says_why() -> None:
    node = make_node(MemoryJournal(), application=Champions(30))
    run(node)
    assert node.trouble == node.finished_because == "eight numbers were barren"


def test_a_restart_goes_through_the_journal_and_is_replayed() -> None:
    journal, exchange = MemoryJournal(), ScriptedExchange()
    for _ in range(4):
        node = make_node(journal, exchange, application=Champions(30))
        run(node)
        node.close(0.0, node.finished_because)
    again = [content for content in contents(journal, Shared) if content.again]
    assert len(again) == 3, "once for each restart"
    assert sum(len(one.items) for one in contents(journal, Shared)) == len(exchange.shared)
    assert node.turns > 8, "the failures of earlier processes were forgiven"
    replayed = make_node(journal_of(journal.lines), application=Champions(30))
    expected = Champions(30).restarted(node.state)
    assert replayed.state == expected


def test_nothing_is_sent_again_by_a_new_node() -> None:
    exchange = ScriptedExchange()
    make_node(MemoryJournal(), exchange, application=Champions(30))
    assert exchange.shared == []


def test_an_item_is_credited_once_for_each_outcome() -> None:
    class Eager(Hypotenuses):
        def absorb(self, state, turn, own, judged):  # type: ignore[no-untyped-def]
            for one in (*judged, *judged):
                turn.credit(one.received.author, one.received.place, "used")
            return state

    from tests.node.scripted import received

    exchange = ScriptedExchange([[received(5, (3, 4), 1), received(10, (6, 8), 2)]])
    run(make_node(MemoryJournal(), exchange, application=Eager(4)), most_turns=3)
    assert [credit for credit in exchange.credits if credit[1] == "used"] == [
        (1, "used", ""),
        (2, "used", ""),
    ]
