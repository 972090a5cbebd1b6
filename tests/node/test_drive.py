"""The same nodes under each driver: threads, round robin, virtual time; with a real exchange between them."""

import itertools
import random
import signal
import threading
import time

import pytest
from examples.hypotenuses import Hypotenuses, Known, Legs, Search, search_legs

from shoal.node import (
    Inline,
    Node,
    NodeSettings,
    Reply,
    Stop,
    Threads,
    run_in_field,
    run_in_threads,
    run_in_turns,
)
from shoal.runs import MemoryJournal
from shoal.runs.records import Shared, Stopped, VerdictGiven
from shoal.swarm import Exchange, ExchangeSettings, Identity, LiveExchange, MemoryHub
from tests.node.scripted import contents

LIMIT = 120
FAST = ExchangeSettings(flush_seconds=0.0)


def make_swarm(size: int) -> tuple[list[Node[Known, Search, Legs, None]], list[Exchange]]:
    hub, nodes, exchanges = MemoryHub(), [], []
    for index in range(size):
        identity = Identity(bytes([index + 1]) * 32)
        rng = random.Random(index)
        exchanges.append(Exchange(identity, hub.open(), Hypotenuses.kinds, FAST, now=1e6, rng=rng))
        nodes.append(
            Node(
                Hypotenuses(LIMIT),
                Inline(search_legs),
                name=f"node-{index}",
                seed=1,
                journal=MemoryJournal(),
                now=1e6,
                exchange=exchanges[-1],
            )
        )
    return nodes, exchanges


def run_swarm() -> list[Node[Known, Search, Legs, None]]:
    nodes, exchanges = make_swarm(4)
    ticks = itertools.count()
    assert run_in_turns(nodes, exchanges, clock=lambda: 1e6 + next(ticks) / 20, most_rounds=1000)
    return nodes


def test_nodes_in_one_process_learn_from_each_other_and_search_less() -> None:
    nodes = run_swarm()
    solo = make_swarm(1)[0][0]
    run_in_turns([solo], clock=lambda: 1e6)
    for node in nodes:
        assert node.state.found.keys() == solo.state.found.keys()
        assert node.state.taught > len(solo.state.found) // 3
        assert node.turns < solo.turns
    authors = {verdict.author for verdict in contents(nodes[0].journal, VerdictGiven)}
    assert len(authors) == 3


def test_in_one_process_with_a_clock_that_counts_the_same_seed_gives_the_same_bytes() -> None:
    one, other = run_swarm(), run_swarm()
    for node, twin in zip(one, other, strict=True):
        assert node.journal.lines == twin.journal.lines  # type: ignore[attr-defined]


def test_a_fast_node_does_not_depend_on_a_slow_or_dead_one() -> None:
    """Law 6: the turns of the fast node take the same calls, whoever else is there."""

    def fast_turns(slow_moves: bool) -> int:
        (fast, slow), exchanges = make_swarm(2)
        now = 1e6
        for _ in range(60):
            fast.advance(now)
            if slow_moves:
                slow.step(now)
            for exchange in exchanges:
                exchange.tick(now)
            now += 0.01
        return fast.turns

    assert fast_turns(slow_moves=True) == fast_turns(slow_moves=False) == 60


def test_a_node_whose_peer_never_answers_finishes_alone() -> None:
    nodes, exchanges = make_swarm(2)
    ticks = itertools.count()
    assert run_in_turns(nodes[:1], exchanges, clock=lambda: 1e6 + next(ticks) / 20)
    assert nodes[0].turns == LIMIT


def test_round_robin_ends_after_the_rounds_it_was_given() -> None:
    nodes, exchanges = make_swarm(2)
    assert not run_in_turns(nodes, exchanges, clock=lambda: 1e6, most_rounds=5)
    assert [node.turns for node in nodes] == [5, 5]


def slow_search(search: Search) -> Reply[Legs]:
    time.sleep(0.002)
    return search_legs(Known(), search)


def in_field(exchange: LiveExchange | None, name: str) -> Node[Known, Search, Legs, None]:
    return Node(
        Hypotenuses(LIMIT),
        Threads(slow_search),
        name=name,
        seed=1,
        journal=MemoryJournal(),
        now=time.time(),
        exchange=exchange,
        settings=NodeSettings(look_ahead=3, deadline=20.0),
    )


def test_nodes_in_threads_with_live_exchanges_learn_from_each_other() -> None:
    hub = MemoryHub()
    exchanges = [LiveExchange(Identity.create(), hub.open(), Hypotenuses.kinds, FAST) for _ in range(3)]
    try:
        nodes = [in_field(exchange, f"node-{index}") for index, exchange in enumerate(exchanges)]
        assert run_in_threads(nodes, Stop()) == ["nothing more to produce"] * 3
    finally:
        for exchange in exchanges:
            exchange.close()
    assert len({frozenset(node.state.found) for node in nodes}) == 1
    assert sum(node.state.taught for node in nodes) > 0
    assert all(contents(node.journal, Shared) for node in nodes)


def test_if_one_node_fails_the_others_stop_and_the_failure_is_seen() -> None:
    def mistaken(search: Search) -> Reply[Legs]:
        raise ZeroDivisionError("a mistake")

    patient, broken = in_field(None, "patient"), in_field(None, "broken")
    patient.application = Hypotenuses(100_000)
    broken.outside = Threads(mistaken)
    with pytest.raises(ZeroDivisionError, match="a mistake"):
        run_in_threads([patient, broken], Stop())
    (stopped,) = contents(patient.journal, Stopped)
    assert stopped.reason == "node broken failed"


def test_a_call_that_never_ends_is_given_up_after_the_grace() -> None:
    never, ended = threading.Event(), threading.Event()

    def hanging(search: Search) -> Reply[Legs]:
        never.wait(60)
        ended.set()
        raise AssertionError

    node, stop = in_field(None, "a"), Stop()
    node.outside = Threads(hanging)
    threading.Timer(0.05, stop.request, ["enough"]).start()
    assert run_in_field(node, stop, grace=0.2) == "enough"
    assert not ended.is_set(), "the call was not waited for"
    never.set()


def test_stop_takes_the_signals_over_and_gives_them_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Stop() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
        assert stop.reason == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_where_a_person_is_waited_for_the_first_signal_interrupts(number: signal.Signals) -> None:
    with Stop() as stop:
        stop.at_once = True
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        assert stop.reason == number.name
