"""Frozen nodes and cut networks: everything arrives in the end, and everybody hears everybody again.

The short form does one fault of each sort in a small swarm. The full one does ten of each, one after the
other in one swarm of twelve, as it would go on for a long time: the one to run before an engine is upgraded.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.field.forwarder import Forwarder
from tests.swarm.field.harness import Field, say
from tests.swarm.field.namespaces import Namespaces
from tests.swarm.field.test_swarm import options
from tests.swarm.transport.conftest import NatsServer, free_port

pytestmark = pytest.mark.timeout(240)

GROUPS = 4

Harm = Callable[[], None]


@contextmanager
def swarm(place: Path, nodes: int, network: str) -> Iterator[Field]:
    """Nodes of one machine, joined by Unix sockets or from one TCP address."""
    first = f"tcp/127.0.0.1:{free_port()}"
    with Field() as field:
        for number in range(nodes):
            where: dict[str, Any] = {"runtime": str(place / "run")}
            if network == "tcp":
                where = {"listen": [first if number == 0 else "tcp/127.0.0.1:0"], "join": [first][:number]}
            field.add(f"n{number}", options(place, f"n{number}", **where))
        field.wait_met(30)
        time.sleep(5.0 if network == "tcp" else 1.0)  # joiners by one address become full members meanwhile
        yield field


@contextmanager
def divided(place: Path, nodes: int) -> Iterator[tuple[Field, Namespaces]]:
    """Nodes in four namespaces, all started from one address."""
    with Namespaces(GROUPS) as spaces, Field() as field:
        first = f"tcp/{spaces.host(0)}:7000"
        for number in range(nodes):
            group = number % GROUPS
            listen = f"tcp/{spaces.host(group)}:{7000 + number}"
            join = [first] if number else []
            field.add(
                f"n{number}",
                options(place, f"n{number}", listen=[listen], join=join),
                spaces.prefix(group),
            )
        field.wait_met(30)
        time.sleep(5.0)
        yield field, spaces


def suffer(field: Field, what: str, seconds: float, harm: Harm, heal: Harm) -> None:
    """One fault; then all that was published until its end is everywhere within 30 s, and nobody is deaf
    to anybody after 60 s."""
    reopened = sum(field.figures("reopened"))
    harm()
    time.sleep(seconds)
    heal()
    time.sleep(1.0)  # so that the healed ones have told how much they published
    healed = time.monotonic()
    target = field.target()
    whole = field.wait_complete(target, 30)
    field.wait_heard(60 - (time.monotonic() - healed))
    heard = time.monotonic() - healed
    reopened = sum(field.figures("reopened")) - reopened
    say(
        f"{what} {seconds:.0f} s: {field.delivered(target):.2f} % of {sum(target.values())} notes at each of"
        f" {len(field.nodes)} nodes {whole:.1f} s after, all heard {heard:.1f} s after, {reopened} reopened"
    )


def freeze(field: Field, name: str, seconds: float, what: str) -> None:
    node = field.nodes[name]
    suffer(field, what, seconds, node.freeze, node.thaw)


@pytest.mark.parametrize("network", ["unix", pytest.param("tcp", marks=pytest.mark.soak)])
def test_a_frozen_node(place: Path, network: str) -> None:
    with swarm(place, 6, network) as field:
        freeze(field, "n0", 7.0, f"freeze over {network}")  # the first one is the best connected


def test_a_cut(place: Path) -> None:
    if not Namespaces.allowed():
        cut_off_client(place)
        return
    with divided(place, 8) as (field, spaces):
        suffer(field, "cut of a namespace", 7.0, lambda: spaces.cut(1), lambda: spaces.heal(1))


def cut_off_client(place: Path) -> None:
    """Where namespaces are not allowed: a node that dials out through something that stops forwarding."""
    port = free_port()
    forwarder = Forwarder(port)
    with Field() as field:
        field.add("n0", options(place, "n0", listen=[f"tcp/127.0.0.1:{port}"]))
        for number in range(1, 4):
            where = {"listen": ["tcp/127.0.0.1:0"], "join": [f"tcp/127.0.0.1:{port}"]}
            field.add(f"n{number}", options(place, f"n{number}", **where))
        field.add("n4", options(place, "n4", join=[f"tcp/127.0.0.1:{forwarder.port}"]))
        field.wait_met(20)
        time.sleep(5.0)
        suffer(field, "cut by a forwarder", 7.0, forwarder.cut, forwarder.heal)
    forwarder.close()


def test_the_same_faults_over_nats(place: Path) -> None:
    with NatsServer() as server, Field() as field:
        forwarder = Forwarder(server.port)
        for number in range(5):
            join = f"nats://127.0.0.1:{forwarder.port if number == 4 else server.port}"
            field.add(f"n{number}", options(place, f"n{number}", engine="nats", join=[join]))
        field.wait_met(20)
        time.sleep(1.0)

        def harm() -> None:
            forwarder.cut()
            field.nodes["n0"].freeze()

        def heal() -> None:
            forwarder.heal()
            field.nodes["n0"].thaw()

        suffer(field, "freeze and cut over nats", 7.0, harm, heal)
        forwarder.close()


@pytest.mark.soak
@pytest.mark.parametrize("network", ["unix", "tcp"])
def test_ten_freezes_in_one_long_lived_swarm(place: Path, network: str) -> None:
    rng = random.Random(11)
    with swarm(place, 12, network) as field:
        for _ in range(10):
            freeze(field, f"n{rng.randrange(4)}", 20.0, f"freeze over {network}")


@pytest.mark.soak
def test_ten_cuts_in_one_long_lived_swarm(place: Path) -> None:
    if not Namespaces.allowed():
        pytest.skip("network namespaces are not allowed here")
    rng = random.Random(12)
    with divided(place, 12) as (field, spaces):
        for _ in range(10):
            group = rng.randrange(GROUPS)
            suffer(
                field,
                f"cut of namespace {group}",
                rng.uniform(4.0, 20.0),
                lambda group=group: spaces.cut(group),
                lambda group=group: spaces.heal(group),
            )
