"""Transports move bytes between nodes. `open_transport` opens the one that a command line asks for.

An engine is imported when it is opened, so that importing this package costs nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from shoal.errors import ConfigError
from shoal.swarm.transport.addresses import Address, parse_address
from shoal.swarm.transport.base import Transport
from shoal.swarm.transport.neighbours import MOST_LINKS, check_degree
from shoal.swarm.transport.tls import TlsFiles

__all__ = ["MOST_LINKS", "TlsFiles", "Transport", "check_transport", "node_address", "open_transport"]


def check_transport(
    name: str,
    *,
    listen: Sequence[str] = (),
    join: Sequence[str] = (),
    advertise: Sequence[str] = (),
    tls: TlsFiles | None = None,
    degree: int | None = None,
) -> None:
    """Raises the ConfigError that `open_transport` would raise, without opening anything."""
    if tls is not None:
        tls.check()
    if degree is not None:
        check_degree(degree)
    if name == "nats":
        if degree is not None:
            raise ConfigError("degree: a NATS node has one link, to a server; leave it out")
        _nats_servers(listen, join)
    elif name == "zenoh":
        for text in (*listen, *join, *advertise):
            node_address(text, tls)
    else:
        fault = "it exists inside one process only" if name == "memory" else "it is not known"
        raise ConfigError(f'transport "{name}": {fault}; use "zenoh" or "nats"')


def open_transport(
    name: str,
    *,
    swarm: str,
    node_id: str,
    listen: Sequence[str] = (),
    join: Sequence[str] = (),
    advertise: Sequence[str] = (),
    tls: TlsFiles | None = None,
    runtime: Path | None = None,
    rng: random.Random | None = None,
    degree: int | None = None,
) -> Transport:
    """Opens this node's access to a swarm over an engine, "zenoh" or "nats".

    Zenoh nodes without `listen` and `join` find each other on one machine, in the user's runtime folder or in
    `runtime`. Others can reach this node at `listen`, or at `advertise` where that differs (a public name, a
    forwarded port); `join` are addresses of some nodes, or of NATS servers. A node that only joins dials out
    and needs no open port; others dial `degree` nodes, by default LINKS. With `tls`, every connection is
    mutual TLS and nothing else is accepted.
    Raises ConfigError if something cannot work as given and PeerError if the engine cannot start.
    """
    check_transport(name, listen=listen, join=join, advertise=advertise, tls=tls, degree=degree)
    if name == "nats":
        from shoal.swarm.transport.nats import NatsTransport

        servers = [str(address) for address in _nats_servers(listen, join)]
        return NatsTransport(servers, swarm=swarm, name=node_id, tls=tls)

    from shoal.swarm.transport.local import LocalNeighbours
    from shoal.swarm.transport.neighbours import LINKS, Neighbours, NetworkNeighbours
    from shoal.swarm.transport.zenoh import ZenohTransport

    rng = rng or random.Random()
    degree = LINKS if degree is None else degree
    neighbours: Neighbours
    if listen or join:
        listens, joins, advertised = (
            [node_address(text, tls) for text in texts] for texts in (listen, join, advertise)
        )
        neighbours = NetworkNeighbours(listens, joins, advertised, rng, degree)
    else:
        neighbours = LocalNeighbours(swarm, node_id, rng, runtime, degree)
    return ZenohTransport(neighbours, swarm=swarm, rng=rng, tls=tls)


def node_address(text: str, tls: TlsFiles | None) -> Address:
    """The address of a Shoal node; ConfigError unless it fits the presence or absence of certificates."""
    address = parse_address(text, secure=tls is not None)
    if address.scheme == "nats":
        raise ConfigError(f'address {text!r} is a NATS server; choose the transport "nats" for it')
    if address.scheme == "tls" and tls is None:
        raise ConfigError(
            f"address {text!r} needs certificates: the authority's, this node's, and its private key"
        )
    if address.scheme == "tcp" and tls is not None:
        raise ConfigError(f"address {text!r} is plain TCP, but certificates are given; write tls/…")
    return address


def _nats_servers(listen: Sequence[str], join: Sequence[str]) -> list[Address]:
    if listen:
        raise ConfigError("a NATS node does not listen; name the servers with --join nats://host:port")
    servers = [text if "/" in text else f"nats://{text}" for text in join] or ["nats://127.0.0.1:4222"]
    addresses = [parse_address(text) for text in servers]
    for address in addresses:
        if address.scheme != "nats":
            raise ConfigError(f"address {address} is not a NATS server; write nats://host:port")
    return addresses
