"""Whom a node on the network dials."""

from __future__ import annotations

import random
import time

import pytest

from shoal.errors import ConfigError
from shoal.swarm.transport import neighbours
from shoal.swarm.transport.addresses import parse_address
from shoal.swarm.transport.neighbours import CLIENT_ENDPOINTS, LINKS, MOST_REMEMBERED, NetworkNeighbours


def network(listen: str = "", join: str = "", secure: bool = False, degree: int = LINKS) -> NetworkNeighbours:
    def parsed(texts: str) -> list[neighbours.Address]:
        return [parse_address(text, secure=secure) for text in texts.split()]

    return NetworkNeighbours(parsed(listen), parsed(join), [], random.Random(1), degree)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.0, 0.0))


def test_first_node_only_listens() -> None:
    draw = network("127.0.0.1:0").draw()
    assert draw.mode == "router"
    assert draw.connect == ()
    assert not draw.listen[0].endswith(":0")


def test_who_joins_by_one_address_comes_as_a_client_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.2, 0.2))
    joiner = network("127.0.0.1:0", "10.0.0.1:7")
    first = joiner.draw()
    assert (first.mode, first.listen, first.connect) == ("client", (), ("tcp/10.0.0.1:7",))
    assert first.until is not None
    assert joiner.endpoints()
    joiner.learn([f"tcp/10.0.0.{number}:7" for number in range(1, 20)])
    assert joiner.draw().mode == "client"
    time.sleep(0.25)
    second = joiner.draw()
    assert second.mode == "router"
    assert second.until is None
    assert len(set(second.connect)) == LINKS


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 32])
def test_the_gossip_degree_is_the_number_of_links_that_a_router_dials(degree: int) -> None:
    """Also with a small one, a node that knows one address hears of others first."""
    node = network("127.0.0.1:0", "10.0.0.1:7", degree=degree)
    node.draw()
    assert node._full_member_at is not None
    node.learn([f"tcp/10.0.0.{number}:7" for number in range(1, 60)])
    draws = [node.draw() for _ in range(20)]
    assert {draw.mode for draw in draws[1:]} == {"router"}
    assert {len(set(draw.connect)) for draw in draws[1:]} == {degree}
    assert len({place for draw in draws for place in draw.connect}) > degree, "drawn anew each time"


def test_who_only_joins_is_a_client_with_several_endpoints() -> None:
    client = network("", "10.0.0.1:7")
    assert client.draw().mode == "client"
    assert list(client.endpoints()) == []
    client.learn([f"tcp/10.0.0.{number}:7" for number in range(2, 20)])
    assert len(set(client.draw().connect)) == CLIENT_ENDPOINTS


def test_one_link_leads_beyond_those_heard_lately() -> None:
    node = network("127.0.0.1:0", "10.0.0.1:7")
    node.learn([f"tcp/10.0.0.{number}:7" for number in range(2, 9)])
    node.learn(["tcp/10.0.0.2:7", "tcp/10.0.0.3:7", "tcp/10.0.0.4:7", "tcp/10.0.0.5:7"])
    lately = {f"tcp/10.0.0.{number}:7" for number in range(2, 6)}
    for _ in range(20):
        assert len(set(node.draw().connect) - lately) == 1


def test_own_and_useless_addresses_are_not_dialled() -> None:
    node = network("127.0.0.1:0")
    node.learn(
        [*node.endpoints(), "tcp/0.0.0.0:7", "nonsense", "nats://10.0.0.1", "tls/10.0.0.1:7", "tcp/a:0"]
    )
    assert node.draw().connect == ()
    assert not node.has_others(node.draw())


def test_nothing_leads_from_tls_to_plain_tcp() -> None:
    node = network("tls/127.0.0.1:0", "tls/10.0.0.1:7", secure=True)
    node.learn(["tcp/10.0.0.2:7", "tls/10.0.0.3:7"])
    assert set(node.draw().connect) == {"tls/10.0.0.1:7", "tls/10.0.0.3:7"}


def test_memory_is_bounded() -> None:
    node = network("127.0.0.1:0", "10.0.0.1:7")
    for number in range(1, 1000):
        node.learn([f"tcp/10.1.{number // 256}.{number % 256}:7"])
    assert len(node._remembered) == MOST_REMEMBERED


def test_every_interface_is_told_to_others_as_an_address() -> None:
    (endpoint,) = network("0.0.0.0:0", "127.0.0.1:7").endpoints()
    assert endpoint.startswith("tcp/127.0.0.1:")


def test_taken_port_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(neighbours, "PORT_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ConfigError, match=r"cannot listen on tcp/127\.0\.0\.1"),
    ):
        network(f"127.0.0.1:{taken.getsockname()[1]}")


def test_neither_listening_nor_joining_is_explained() -> None:
    with pytest.raises(ConfigError, match="listen on or one to join"):
        network()
