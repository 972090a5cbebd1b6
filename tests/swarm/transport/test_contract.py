"""What holds for every transport. Each test runs over every engine."""

from __future__ import annotations

import time

import pytest

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES
from tests.swarm.transport.conftest import Swarm, eventually

pytestmark = pytest.mark.timeout(120)  # what must not block or hang ends long before

PAUSE = 0.25
"""Long enough for a message to arrive that must not arrive."""


def test_a_message_reaches_all_subscribers_once_and_nobody_else(swarm: Swarm) -> None:
    sender, first, second, other = (swarm.open("hello", "news") for _ in range(4))
    swarm.meet(sender, first, second, other)
    other.subscribe(frozenset({"hello"}))
    time.sleep(PAUSE)
    assert sender.publish("news", b"one")
    received = {"first": [], "second": []}

    def arrived() -> bool:
        received["first"] += first.collect()
        received["second"] += second.collect()
        return all(received.values())

    assert eventually(arrived)
    time.sleep(PAUSE)
    arrived()
    assert received == {"first": [b"one"], "second": [b"one"]}
    assert sender.collect() == []
    assert other.collect() == []


def test_topics_are_isolated(swarm: Swarm) -> None:
    sender = swarm.open("hello", "log/1")
    one, eleven = swarm.open("hello", "log/1"), swarm.open("hello", "log/11")
    swarm.meet(sender, one, eleven)
    sender.publish("log/1", b"for one")
    sender.publish("log/11", b"for eleven")
    sender.publish("log", b"for nobody")
    got: list[list[bytes]] = [[], []]

    def arrived() -> bool:
        got[0] += one.collect()
        got[1] += eleven.collect()
        return all(got)

    assert eventually(arrived)
    time.sleep(PAUSE)
    arrived()
    assert got == [[b"for one"], [b"for eleven"]]


def test_subscribe_replaces_the_set(swarm: Swarm) -> None:
    sender, reader = swarm.open("hello"), swarm.open("hello", "old")
    swarm.meet(sender, reader)
    reader.subscribe(frozenset({"hello", "new"}))
    swarm.meet(sender, reader)
    got: list[bytes] = []

    def arrived() -> bool:
        sender.publish("old", b"old")
        sender.publish("new", b"new")
        time.sleep(0.05)
        got.extend(reader.collect())
        return b"new" in got

    assert eventually(arrived)
    time.sleep(PAUSE)
    assert set(got + reader.collect()) == {b"new"}


def test_collect_never_blocks_and_honours_its_limit_oldest_first(swarm: Swarm) -> None:
    sender, reader = swarm.open("hello"), swarm.open("hello", "news")
    assert reader.collect() == [], "with nothing there it returns all the same"
    swarm.meet(sender, reader)
    before = reader.stats().arrived
    for number in range(10):
        assert sender.publish("news", b"%d" % number)
    assert eventually(lambda: reader.stats().arrived - before == 10)
    assert reader.collect(3) == [b"0", b"1", b"2"]
    assert reader.collect(0) == []
    assert reader.collect(100) == [b"%d" % number for number in range(3, 10)]


def test_the_largest_message_arrives_and_a_larger_one_is_refused(swarm: Swarm) -> None:
    sender, reader = swarm.open("hello"), swarm.open("hello", "news")
    swarm.meet(sender, reader)
    refused = sender.stats().refused
    assert not sender.publish("news", bytes(MOST_MESSAGE_BYTES + 1))
    assert sender.stats().refused == refused + 1
    got: list[bytes] = []

    def arrives() -> bool:
        sender.publish("news", bytes(MOST_MESSAGE_BYTES))  # best effort: a single one may be lost
        time.sleep(0.3)
        got.extend(reader.collect())
        return bool(got)

    assert eventually(arrives)
    assert {len(message) for message in got} == {MOST_MESSAGE_BYTES}


def test_a_slow_reader_neither_blocks_the_sender_nor_grows(swarm: Swarm) -> None:
    sender, reader, swift = (swarm.open("hello", "news") for _ in range(3))
    swarm.meet(sender, reader, swift)
    before = reader.stats()
    for number in range(12_000):
        while not sender.publish("news", b"%d " % number + bytes(200)):
            time.sleep(0.005)
        swift.collect()

    def the_swift_one_hears() -> bool:
        sender.publish("news", b"last ")  # best effort: some of the burst may be lost, so it is said again
        return any(message.startswith(b"last ") for message in swift.collect())

    assert eventually(the_swift_one_hears)

    def the_slow_one_overflows() -> bool:
        for _ in range(100):
            sender.publish("news", b"last " + bytes(200))
        return reader.stats().overflowed > before.overflowed

    assert eventually(the_slow_one_overflows)
    while (arrived := reader.stats().arrived) and not time.sleep(0.5) and reader.stats().arrived > arrived:
        pass
    after = reader.stats()
    kept: list[bytes] = []
    while batch := reader.collect():
        kept += batch
    assert kept[-1].startswith(b"last ")
    assert len(kept) == after.arrived - before.arrived - (after.overflowed - before.overflowed) <= 8192


def test_late_joiner_receives_what_is_published_after(swarm: Swarm) -> None:
    early = [swarm.open("hello", "news") for _ in range(3)]
    swarm.meet(*early)
    late = swarm.open("hello", "news")
    swarm.meet(*early, late)
    assert early[1].publish("news", b"to the late one")
    assert eventually(lambda: b"to the late one" in late.collect())


def test_after_reopening_traffic_resumes(swarm: Swarm) -> None:
    nodes = [swarm.open("hello") for _ in range(4)]
    swarm.meet(*nodes)
    endpoints = [endpoint for node in nodes for endpoint in node.endpoints()]
    nodes[1].reopen(endpoints)
    nodes[1].reopen(())
    nodes[1].publish("hello", b"refused or sent, but never an error")
    swarm.meet(*nodes)
    assert nodes[1].stats().reopened <= 2


def test_close_is_final(swarm: Swarm) -> None:
    node, other = swarm.open("hello"), swarm.open("hello")
    swarm.meet(node, other)
    other.publish("hello", b"nobody will collect this")
    node.close()
    node.close()
    published = node.stats().published
    assert not node.publish("hello", b"too late")
    node.subscribe(frozenset({"news"}))
    node.reopen(())
    assert node.collect() == []
    assert node.stats().published == published
    assert list(node.endpoints()) == []


def test_what_was_published_before_closing_still_goes_out(swarm: Swarm) -> None:
    sender, reader = swarm.open("hello"), swarm.open("hello", "news")
    swarm.meet(sender, reader)
    for number in range(50):
        assert sender.publish("news", b"%d" % number)
    sender.close()
    got: list[bytes] = []
    assert eventually(lambda: got.extend(reader.collect()) or len(got) == 50), len(got)
