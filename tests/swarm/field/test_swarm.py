"""Real processes form a swarm: many of them, in any order, one that dies and comes back, one that is lazy."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.swarm.field.harness import Field, say
from tests.swarm.transport.conftest import free_port

pytestmark = pytest.mark.timeout(240)


def options(place: Path, name: str, **more: Any) -> dict[str, Any]:
    return {"engine": "zenoh", "swarm": str(place), "key": str(place / f"{name}.key"), **more}


@pytest.mark.parametrize("network", ["unix", pytest.param("tcp", marks=pytest.mark.soak)])
def test_32_nodes_started_in_random_order_have_all_messages_also_one_that_was_killed(
    place: Path, network: str
) -> None:
    numbers = list(range(32))
    random.Random(7).shuffle(numbers)
    first = f"tcp/127.0.0.1:{free_port()}"
    began = time.monotonic()
    with Field() as field:
        for number in numbers:
            if network == "unix":
                where: dict[str, Any] = {"runtime": str(place / "run")}
            elif number == 0:
                where = {"listen": [first]}
            else:
                where = {"listen": ["tcp/127.0.0.1:0"], "join": [first]}
            name = f"n{number}"
            field.add(name, options(place, name, every=1.0, notes=3, period=1.0, **where))
            time.sleep(0.05)
        field.wait_met(60)
        met = time.monotonic() - began
        while len(field.target()) < 32 or min(field.target().values()) < 3:
            time.sleep(0.1)
        field.wait_complete(field.target(), 60)
        took = time.monotonic() - began
        say(f"32 nodes over {network}: all have met after {met:.1f} s, all have all after {took:.1f} s")
        kill_and_restart(field, f"n{numbers[5]}")


def kill_and_restart(field: Field, name: str) -> None:
    """A killed node comes back with its key, and gets all items again, published before, meanwhile and since."""
    victim = field.nodes[name]
    before = victim.line
    victim.kill()
    victim.line = {}
    time.sleep(1.0)
    victim.start()
    while victim.line.get("shared", 0) < 3:
        assert victim.process.poll() is None, victim.errors
        time.sleep(0.1)
    target = field.target()
    took = field.wait_complete(target, 60)
    assert victim.line["node"] == before["node"]
    assert victim.line["life"] != before["life"]
    say(f"killed and back: {field.delivered(target):.2f} % {took:.1f} s after its third new message")


def test_who_never_gathers_neither_holds_up_the_others_nor_grows(place: Path) -> None:
    with Field() as field:
        for number in range(4):
            more = {"lazy": True, "settings": {"inbox_bytes": 1 << 20}} if number == 3 else {}
            where = {"runtime": str(place / "run"), "every": 0.25, "size": 60_000}
            field.add(f"n{number}", options(place, f"n{number}", **where, **more))
        field.wait_met(20)
        time.sleep(8.0)
        lazy = field.nodes.pop("n3")
        target = field.target()
        try:
            field.wait_complete(target, 20)
            figures = lazy.line["figures"]
            say(f"lazy node: {figures['waiting bytes']} bytes wait, {figures['dropped items']} items dropped")
            assert figures["waiting bytes"] <= 1 << 20
            assert figures["dropped items"] > 0
        finally:
            lazy.kill()
