"""The simulator itself: same seed, same bytes; and faults that happen as announced."""

from __future__ import annotations

import random

from shoal.sim.adversaries import Malformed, Sybils
from shoal.sim.network import START, Link, Network, SimTransport
from shoal.sim.scenarios import large
from shoal.sim.swarm import SharingApplication, SimSwarm


def busy_run(seed: int) -> tuple[str, list[dict[str, int]]]:
    swarm = SimSwarm(6, seed, link=Link(0.02, 0.3, 0.2, 0.2))
    swarm.at(3.0, lambda: swarm.network.partition({swarm.nodes[0].transport: 1}))
    swarm.at(5.0, lambda: swarm.network.freeze(swarm.nodes[1].transport, 4.0))
    swarm.at(6.0, lambda: swarm.kill(swarm.nodes[2]))
    swarm.at(7.0, lambda: swarm.network.partition({swarm.nodes[0].transport: 0}))
    swarm.at(8.0, lambda: (swarm.restart(swarm.nodes[2]), None)[1])
    swarm.at(9.0, lambda: (Malformed(swarm, rate=3), Sybils(swarm, rate=2, identities=5), None)[2])
    swarm.run(20.0)
    return swarm.digest(), [node.exchange.figures() for node in swarm.nodes]


def test_same_seed_same_run_byte_for_byte() -> None:
    first, again, other = busy_run(1), busy_run(1), busy_run(2)
    assert first == again
    assert first[0] != other[0]


class Ear:
    """Writes down when something arrives."""

    def __init__(self, transport: SimTransport) -> None:
        self.transport = transport
        self.heard: list[tuple[float, bytes]] = []

    def wake(self, now: float) -> None:
        self.heard += [(round(now - START, 2), message) for message in self.transport.collect()]

    def next_due(self) -> float:
        return START + 1e9


def ears(network: Network, count: int) -> list[Ear]:
    found = []
    for _ in range(count):
        transport = network.open()
        ear = Ear(transport)
        transport.subscribe(frozenset({"topic"}))
        network.attach(transport, ear)
        found.append(ear)
    return found


def test_messages_take_their_time() -> None:
    network = Network(1, Link(delay=0.1, jitter=0.0))
    one, other = ears(network, 2)
    network.links[other.transport.number, one.transport.number] = Link(delay=0.5, jitter=0.0)
    one.transport.publish("topic", b"x")
    other.transport.publish("topic", b"y")
    network.run(1.0)
    assert other.heard == [(0.1, b"x")]
    assert one.heard == [(0.5, b"y")]


def test_loss_duplication_and_reordering() -> None:
    network = Network(1, Link(delay=0.0, jitter=0.5, loss=0.5, duplication=0.5))
    one, other = ears(network, 2)
    for number in range(1000):
        one.transport.publish("topic", number.to_bytes(2, "big"))
    network.run(1.0)
    messages = [message for _, message in other.heard]
    assert 400 < len(set(messages)) < 600
    assert 600 < len(messages) < 900
    assert messages != sorted(messages)


def test_partitions_freezes_and_the_dead() -> None:
    network = Network(1, Link(delay=0.01, jitter=0.0))
    one, apart, frozen, dead = ears(network, 4)
    network.partition({apart.transport: 1})
    network.freeze(frozen.transport, 5.0)
    network.remove(dead.transport)
    one.transport.publish("topic", b"x")
    network.run(1.0)
    assert (apart.heard, frozen.heard, dead.heard) == ([], [], [])
    network.partition({apart.transport: 0})
    one.transport.publish("topic", b"y")
    network.run(6.0)
    assert apart.heard == [(1.01, b"y")]
    assert frozen.heard == [(5.0, b"x"), (5.0, b"y")]


def test_nodes_have_their_own_speed() -> None:
    swarm = SimSwarm(
        3,
        1,
        applications=lambda number: SharingApplication(f"node {number}", interval=(0.5, 2.0, 10.0)[number]),
    )
    swarm.run(20.0)
    counts = [
        node.application.count for node in swarm.nodes if isinstance(node.application, SharingApplication)
    ]
    assert counts[0] >= 38
    assert counts[1] >= 9
    assert counts[2] <= 2


def test_a_large_swarm_is_complete_and_small() -> None:
    swarm = large(100, shards=8, follow=2, interval=2.0, size=200)
    swarm.run(10.0)
    for node in swarm.nodes:
        followed = sum(
            other.exchange._context.following.home in node.exchange._context.following.shards
            for other in swarm.nodes
            if other is not node
        )
        assert isinstance(node.application, SharingApplication)
        assert 3 * followed <= node.application.foreign <= 5 * followed
        assert len(node.exchange._context.authors) == followed + 1, (
            "nothing is remembered of authors not followed"
        )


def test_random_choices_do_not_touch_the_global_generator() -> None:
    random.seed(5)
    state = random.getstate()
    SimSwarm(3, 1).run(3.0)
    assert random.getstate() == state
