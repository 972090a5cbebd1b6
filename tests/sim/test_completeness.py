"""Every schedule of delays, losses and duplicates ends with every honest frame of a followed shard at every
honest node, once links are up, within the bounds of the stores."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from shoal.sim.network import Link
from shoal.sim.scenarios import completeness
from shoal.sim.swarm import Best, SharingApplication, SimNode, SimSwarm
from shoal.swarm.settings import ExchangeSettings

links = st.builds(
    Link,
    delay=st.floats(0.0, 1.0),
    jitter=st.floats(0.0, 2.0),
    loss=st.floats(0.0, 0.9),
    duplication=st.floats(0.0, 0.5),
)
faults = st.lists(
    st.tuples(st.sampled_from(["freeze", "cut", "restart", "deaf"]), st.integers(0, 4), st.floats(1.0, 15.0), st.floats(1.0, 6.0)),
    max_size=4,
)  # fmt: skip


# Nobody leaves probation, so that everything that arrives is handed out at once.
EVERYTHING = ExchangeSettings(flush_seconds=0.0, probation_items=10**9)


def sharing(end: float, interval: float = 0.7) -> SimSwarm:
    return SimSwarm(
        5,
        1,
        settings=EVERYTHING,
        applications=lambda number: SharingApplication(f"node {number}", interval=interval, end=end),
    )


@given(st.integers(0, 10**6), links, faults)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_schedule_ends_complete(
    seed: int, link: Link, script: list[tuple[str, int, float, float]]
) -> None:
    swarm = SimSwarm(
        5,
        seed,
        settings=EVERYTHING,
        link=link,
        applications=lambda number: SharingApplication(
            f"node {number}", interval=0.5 + 0.3 * number, end=20.0
        ),
    )
    restarted = set()
    for fault, victim, second, seconds in script:
        if fault == "restart":
            restarted.add(victim)
        swarm.at(
            second, lambda fault=fault, victim=victim, seconds=seconds: harm(swarm, fault, victim, seconds)
        )
    swarm.run(22.0)
    swarm.network.link = Link()
    swarm.network.deaf.clear()
    swarm.network.partition({node.transport: 0 for node in swarm.nodes})
    swarm.run(80.0)
    if not restarted:
        assert completeness(swarm) == 1.0
    # Frames that a node had not passed on when it was killed are gone; all others agree on the rest.
    for number, author in enumerate(swarm.nodes):
        held = [
            {frame.order for frame in state.log}
            for place, node in enumerate(swarm.nodes)
            if (state := node.exchange._context.authors.get(author.identity.node_id)) is not None
            and place != number
        ]
        assert all(frames == held[0] for frames in held), f"the others do not agree about node {number}"


def harm(swarm: SimSwarm, fault: str, victim: int, seconds: float) -> None:
    node = swarm.nodes[victim]
    if fault == "freeze":
        swarm.network.freeze(node.transport, seconds)
    elif fault == "cut":
        swarm.network.partition({node.transport: 1 + victim})
        second = swarm.network.elapsed + seconds
        swarm.at(second, lambda: swarm.network.partition({swarm.nodes[victim].transport: 0}))
    elif fault == "restart":
        swarm.kill(node)
        swarm.restart(node)
    else:
        swarm.network.deaf.add((swarm.nodes[(victim + 1) % 5].transport.number, node.transport.number))


def test_a_partition_heals_to_everything() -> None:
    swarm = sharing(end=40.0)
    halves = {node.transport: number % 2 for number, node in enumerate(swarm.nodes)}
    swarm.at(5.0, lambda: swarm.network.partition(halves))
    swarm.at(35.0, lambda: swarm.network.partition(dict.fromkeys(halves, 0)))
    swarm.run(34.0)
    assert completeness(swarm) < 0.7
    swarm.run(50.0)
    assert completeness(swarm) == 1.0


def test_a_frozen_node_catches_up_and_accuses_nobody() -> None:
    swarm = sharing(end=60.0)
    victim = swarm.nodes[2]
    for second in (5.0, 30.0):
        swarm.at(second, lambda: swarm.network.freeze(victim.transport, 15.0))
    swarm.run(65.0)
    assert victim.exchange.figures()["stalls"] == 2
    assert completeness(swarm) == 1.0
    assert all(node.transport.reopened == 0 for node in swarm.nodes)


def test_a_deaf_pair_is_repaired_at_once_and_reopened_in_time() -> None:
    """Pushes from one node to another are lost for good, as after a broken reconnect; pulls get through."""
    swarm = sharing(end=60.0)
    author, receiver = swarm.nodes[0], swarm.nodes[1]
    swarm.at(5.0, lambda: swarm.network.deaf.add((author.transport.number, receiver.transport.number)))
    swarm.run(30.0)
    application = receiver.application
    assert isinstance(application, SharingApplication)
    texts = application.gathered.values()
    newest = max(int(text.split()[2]) for text in texts if text.startswith("node 0 "))
    assert isinstance(author.application, SharingApplication)
    assert author.application.count - newest <= 5, "the lag stays below a few seconds"
    assert receiver.transport.reopened == 1
    assert all(node.transport.reopened == 0 for node in swarm.nodes if node is not receiver)
    assert not swarm.network.deaf, "which mended it"


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("heard", "within"), [(1, 70.0), (2, 37.0), (4, 37.0)])
def test_a_node_that_nobody_answers_opens_its_connection_anew(seed: int, heard: int, within: float) -> None:
    """It wakes with a half-dead connection: it hears a few, is heard by nobody, and gets no answers."""
    swarm = SimSwarm(
        6,
        seed,
        settings=ExchangeSettings(flush_seconds=0.0),
        applications=lambda number: SharingApplication(f"node {number}", interval=0.7, end=95.0),
    )
    victim, *others = swarm.nodes

    def wake() -> None:
        swarm.network.break_connection(victim.transport, [node.transport for node in others[:heard]])

    swarm.at(10.0, lambda: swarm.network.freeze(victim.transport, 8.0))
    swarm.at(10.0, lambda: swarm.network.partition({victim.transport: 1}))
    swarm.at(18.0, lambda: swarm.network.partition({victim.transport: 0}))
    swarm.at(18.0, wake)
    swarm.run(33.0)
    assert victim.transport.reopened == 0, "not before it was sure"
    swarm.run(18.0 + within)
    assert victim.transport.reopened == 1
    assert all(node.transport.reopened == 0 for node in others)
    swarm.run(120.0)
    assert victim.transport.reopened == 1, "and not again"
    assert completeness(swarm) == 1.0


def test_the_dead_are_no_reason_to_reopen() -> None:
    swarm = sharing(end=90.0)
    swarm.at(10.0, lambda: swarm.kill(swarm.nodes[0]))
    swarm.run(90.0)
    assert all(node.transport.reopened == 0 for node in swarm.nodes)


def test_a_node_that_is_restarted_again_and_again_is_heard_each_time() -> None:
    swarm = sharing(end=70.0)

    def restart() -> None:
        swarm.kill(swarm.nodes[1])
        swarm.restart(swarm.nodes[1])

    for second in (10.0, 20.0, 30.0, 40.0, 50.0):
        swarm.at(second, restart)
    swarm.run(80.0)
    applications = [
        node.application for node in swarm.nodes if isinstance(node.application, SharingApplication)
    ]
    for place, application in enumerate(applications):
        if place != 1:
            texts = set(application.gathered.values())
            missing = [n for n in range(1, applications[1].count + 1) if f"node 1 {n} " not in texts]
            assert len(missing) <= 5, "at most what was under way when it was killed"


def test_a_late_joiner_gets_registers_then_recent_log() -> None:
    swarm = SimSwarm(
        5,
        1,
        settings=ExchangeSettings(flush_seconds=0.0, history_frames=10),
        applications=lambda number: SharingApplication(
            f"node {number}", interval=0.7, end=0.0 if number == 5 else 25.0
        ),
    )
    for number, node in enumerate(swarm.nodes):
        swarm.at(
            10.0, lambda node=node, number=number: (node.exchange.share(Best(f"best {number}")), None)[1]
        )
    joined: list[SimNode] = []
    swarm.at(20.0, lambda: joined.append(swarm.join()))
    swarm.run(24.0)
    (late,) = joined
    assert {received.item for received in late.exchange.latest("best").values()} == {
        Best(f"best {n}") for n in range(5)
    }
    swarm.run(40.0)
    assert isinstance(late.application, SharingApplication)
    texts = set(late.application.gathered.values())
    for number in range(5):
        count = swarm.nodes[number].application.count  # type: ignore[attr-defined]
        assert all(f"node {number} {n} " in texts for n in range(count - 15, count + 1))


def test_shards_are_complete_for_those_who_follow_them() -> None:
    choice = ExchangeSettings(flush_seconds=0.0, shards=4, follow=2, follow_all_until=0)
    swarm = SimSwarm(
        16,
        3,
        settings=choice,
        link=Link(loss=0.2),
        applications=lambda number: SharingApplication(f"node {number}", interval=1.0, end=20.0),
    )
    swarm.run(20.0)
    swarm.network.link = Link()
    swarm.run(60.0)
    pairs = 0
    for node in swarm.nodes:
        assert isinstance(node.application, SharingApplication)
        texts = set(node.application.gathered.values())
        for other in swarm.nodes:
            assert isinstance(other.application, SharingApplication)
            if (
                other is node
                or other.exchange._context.following.home not in node.exchange._context.following.shards
            ):
                continue
            pairs += 1
            count = other.application.count
            assert all(f"{other.application.name} {n} " in texts for n in range(1, count + 1))
    assert pairs > 40


@pytest.mark.soak
@given(st.integers(0, 10**9), links, faults)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_many_schedules_end_complete(
    seed: int, link: Link, script: list[tuple[str, int, float, float]]
) -> None:
    test_every_schedule_ends_complete.hypothesis.inner_test(seed, link, script)  # type: ignore[attr-defined]
