"""Resuming is replaying: a node killed after any record goes on as if it had not been."""

from pathlib import Path

import pytest
from examples.hypotenuses import Hypotenuses, Known, Legs, Search, Triangle, search_legs

from shoal.errors import RunError
from shoal.node import Node, Reply, Turn
from shoal.runs import Checkpoints, Ledger, MemoryJournal, sum_up
from shoal.runs.records import Arrived, Asked, Shared, Started
from tests.node.scripted import (
    LIMIT,
    ScriptedExchange,
    contents,
    journal_of,
    make_node,
    out_of_order,
    received,
    run,
)

BATCHES = [[], [received(5, (3, 4), 1)], [received(15, (9, 12), 2), received(11, (1, 2), 3)], [], []]


class Silent(Hypotenuses):
    """Explains nothing, so that as little as possible is in the journal."""

    explain = None  # type: ignore[assignment]


@pytest.mark.parametrize("look_ahead", [1, 3])
@pytest.mark.parametrize("application", [Hypotenuses, Silent])
def test_killed_after_any_record_and_resumed_it_ends_the_same(look_ahead: int, application: type) -> None:
    def make(journal: MemoryJournal) -> Node[Known, Search, Legs, None]:
        return make_node(journal, look_ahead=look_ahead, delay=out_of_order, application=application(LIMIT))

    journal = MemoryJournal()
    node = make(journal)
    run(node)
    for cut in range(len(journal.lines) + 1):
        resumed = make(journal_of(journal.lines[:cut]))
        run(resumed, start=100.0)
        assert resumed.state == node.state, f"killed after record {cut}"
        assert resumed.turns == node.turns


@pytest.mark.parametrize("look_ahead", [1, 3])
def test_the_same_with_foreign_items_that_an_exchange_hands_out_again(look_ahead: int) -> None:
    def make(journal: MemoryJournal, exchange: ScriptedExchange) -> Node[Known, Search, Legs, None]:
        return make_node(journal, exchange, look_ahead=look_ahead, delay=out_of_order)

    journal = MemoryJournal()
    node = make(journal, ScriptedExchange(BATCHES))
    run(node)
    everything = [[item for batch in BATCHES for item in batch]]
    for cut in range(len(journal.lines) + 1):
        again = journal_of(journal.lines[:cut])
        resumed = make(again, ScriptedExchange(everything))
        run(resumed, start=100.0)
        assert set(resumed.state.found) == set(node.state.found)
        arrived = [content.seq for content in contents(again, Arrived)]
        assert len(arrived) == len(set(arrived)) == 3


@pytest.mark.parametrize("look_ahead", [1, 3])
@pytest.mark.parametrize("says", [(), ("fresh",), ("after",), ("fresh", "after")])
def test_what_is_on_record_as_shared_is_not_shared_again(look_ahead: int, says: tuple[str, ...]) -> None:
    """Records of what may be left out are told apart by their turn, also when nothing more is drawn while later
    turns are under way, so that one turn's record follows directly on that of the turn before."""

    class Talkative(Silent):
        def produce(self, state, turn):  # type: ignore[no-untyped-def]
            return super().produce(state, turn) if turn.number <= 10 else None

        def share(self, state, turn, fresh):  # type: ignore[no-untyped-def]
            if ("after" if fresh is None else "fresh") in says:
                yield Triangle(turn.number, (0, 0 if fresh is None else 1))

    def make(journal: MemoryJournal, exchange: ScriptedExchange) -> Node[Known, Search, Legs, None]:
        application = Talkative(LIMIT)
        return make_node(
            journal, exchange, look_ahead=look_ahead, delay=out_of_order, application=application
        )

    journal, exchange = MemoryJournal(), ScriptedExchange()
    run(make(journal, exchange))
    assert len(exchange.shared) == len(set(exchange.shared)) == 10 * len(says)
    for cut in range(len(journal.lines) + 1):
        prefix, rest = journal_of(journal.lines[:cut]), ScriptedExchange()
        on_record = sum(len(shared.items) for shared in contents(prefix, Shared))
        run(make(prefix, rest), start=100.0)
        assert rest.shared == exchange.shared[on_record:], f"killed after record {cut}"


@pytest.mark.parametrize("look_ahead", [1, 3])
def test_a_replayed_node_equals_the_one_that_went_on(look_ahead: int) -> None:
    """Also in the middle of a turn: after every single step the journal alone gives the same state."""
    journal = MemoryJournal()
    node = make_node(journal, ScriptedExchange(BATCHES), look_ahead=look_ahead, delay=out_of_order)
    now = 0.0
    while (status := node.step(now)) != "finished":
        if status == "waiting":
            now = node.wake_at() or now
        replayed = make_node(journal_of(journal.lines), ScriptedExchange(), look_ahead=look_ahead)
        assert replayed.state == node.state
        assert replayed.turns == node.turns
        assert replayed.ledger.spent == node.ledger.spent
        assert replayed.ledger.reserved == node.ledger.reserved
        assert replayed.fold.flights.keys() == node.fold.flights.keys()


@pytest.mark.parametrize("look_ahead", [1, 3])
def test_a_budget_holds_across_kills_and_what_was_lost_counts_as_spent(look_ahead: int) -> None:
    limit, calls = 17, 0

    def counted(state: Known, search: Search) -> Reply[Legs]:
        nonlocal calls
        calls += 1
        return search_legs(state, search)

    def make(journal: MemoryJournal) -> Node[Known, Search, Legs, None]:
        budget = {"searches": limit}
        return make_node(journal, look_ahead=look_ahead, delay=out_of_order, answer=counted, budget=budget)

    whole = MemoryJournal()
    run(make(whole))
    lost_something = False
    for cut in range(len(whole.lines) + 1):
        journal = journal_of(whole.lines[:cut])
        calls = sum(isinstance(content, Asked) for content in contents(journal))
        node = make(journal)
        run(node, start=100.0)
        assert node.ledger.spent["searches"] == calls == limit
        assert sum_up(journal.read()).spent == node.ledger.spent
        lost_something |= any(asked.attempt > 1 for asked in contents(journal, Asked))
    assert lost_something


def test_a_budget_raised_on_resume_is_used() -> None:
    journal = MemoryJournal()
    run(make_node(journal, look_ahead=3, delay=out_of_order, budget={"searches": 5}))
    node = make_node(journal, look_ahead=2, delay=out_of_order, budget={"searches": 9}, now=50.0)
    run(node, start=50.0)
    assert node.ledger.spent == {"searches": 9}
    assert [content.budget["searches"] for content in contents(journal, Started)] == [5, 9]


def test_a_lost_call_is_asked_again_with_a_new_deadline() -> None:
    journal = MemoryJournal()
    node = make_node(journal, deadline=3.0, delay=lambda call: 1.0)
    while not node.unanswered:
        node.step(0.0)
    resumed = make_node(journal, deadline=3.0, delay=lambda call: 1.0, now=1000.0)
    run(resumed, start=1000.0)
    assert resumed.turns == LIMIT
    assert [(asked.turn, asked.attempt) for asked in contents(journal, Asked)][:2] == [(1, 1), (1, 2)]


@pytest.mark.parametrize("look_ahead", [1, 3])
def test_from_a_checkpoint_it_ends_the_same_and_replays_less(tmp_path: Path, look_ahead: int) -> None:
    absorbed: list[int] = []

    class Watching(Hypotenuses):
        def absorb(self, state, turn, own, judged):  # type: ignore[no-untyped-def]
            absorbed.append(turn.number)
            return super().absorb(state, turn, own, judged)

    def make(journal: MemoryJournal, folder: Path, gathered: int = 0) -> Node[Known, Search, Legs, None]:
        return make_node(
            journal,
            ScriptedExchange(BATCHES[gathered:]),
            look_ahead=look_ahead,
            delay=out_of_order,
            application=Watching(LIMIT),
            checkpoints=Checkpoints(folder, keep=100),
            checkpoint_every=4,
        )

    journal = MemoryJournal()
    node = make(journal, tmp_path / "whole")
    run(node)
    for turns in range(1, node.turns):
        folder = tmp_path / str(turns)
        first = MemoryJournal()
        run(make(first, folder), most_turns=turns)
        absorbed.clear()
        resumed = make(first, folder, gathered=turns)
        assert resumed.turns == turns
        assert absorbed == list(range(turns // 4 * 4 + 1, turns + 1)) or turns % 4 == 0
        run(resumed, start=100.0)
        assert resumed.state == node.state
        assert resumed.turns == node.turns


def test_a_damaged_checkpoint_is_passed_over_and_said_so(tmp_path: Path) -> None:
    journal, checkpoints = MemoryJournal(), Checkpoints(tmp_path, keep=3)
    node = make_node(journal, checkpoints=checkpoints, checkpoint_every=5)
    run(node)
    newest = checkpoints.newest()
    assert newest.path is not None
    (newest.path / "known.json").write_text("{}")
    resumed = make_node(journal, checkpoints=checkpoints)
    assert resumed.state == node.state
    started = contents(journal, Started)[-1]
    assert started.from_checkpoint == newest.number - 5
    assert "known.json: this file of the checkpoint is damaged" in started.passed_over[0]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    journal, checkpoints = MemoryJournal(), Checkpoints(tmp_path)
    run(make_node(journal, checkpoints=checkpoints, checkpoint_every=5))
    with pytest.raises(RunError, match=r"ahead of its journal.* Restore the journal from a copy.* pay for"):
        make_node(journal_of(journal.lines[:10]), checkpoints=checkpoints)
    longer = MemoryJournal()
    run(make_node(longer, ScriptedExchange(BATCHES), look_ahead=2))
    with pytest.raises(RunError, match="not of one run"):
        make_node(longer, checkpoints=checkpoints)


def test_a_journal_of_another_node_or_application_is_refused() -> None:
    journal = MemoryJournal()
    run(make_node(journal, ScriptedExchange(BATCHES)))
    with pytest.raises(RunError, match="of node 'a' with seed 3, not of 'b' with seed 3"):
        Node(Hypotenuses(), make_node(MemoryJournal()).outside, name="b", seed=3, journal=journal, now=0.0)

    class Unwilling(Hypotenuses):
        def gather(self, state, turn, arrived):  # type: ignore[no-untyped-def]
            return iter(())

    with pytest.raises(RunError, match=r"\(verdict\) does not fit: .* Resume with the application"):
        make_node(journal, application=Unwilling(LIMIT))


def test_an_application_that_restores_nothing_says_so(tmp_path: Path) -> None:
    class Forgetful(Hypotenuses):
        snapshot = None  # type: ignore[assignment]

    journal, checkpoints = MemoryJournal(), Checkpoints(tmp_path)
    run(make_node(journal, checkpoints=checkpoints, checkpoint_every=5))
    with pytest.raises(RunError, match="'hypotenuses' cannot restore one"):
        make_node(journal, checkpoints=checkpoints, application=Forgetful(LIMIT))


def test_randomness_is_of_the_turn_and_not_of_the_process() -> None:
    one, other = Turn(4, 0.0, 1, "a", Ledger()), Turn(4, 9.0, 1, "a", Ledger())
    assert one.random("x").random() == other.random("x").random()
    assert one.random("x").random() != one.random("y").random()
    assert one.random("x").random() != Turn(5, 0.0, 1, "a", Ledger()).random("x").random()
    assert one.random("x").random() != Turn(4, 0.0, 1, "b", Ledger()).random("x").random()
