"""Neighbours: the other nodes that a node connects to, on the network. `local.py` has those on one machine.

Every node keeps a few links to randomly drawn others; the engine routes over them. A running session takes no
new endpoints, so a draw holds until the session is opened anew.
"""

from __future__ import annotations

import errno
import random
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from shoal.errors import ConfigError
from shoal.swarm.transport.addresses import Address, parse_address

LINKS = (
    4  # links that a router dials by default: if a third of the nodes die, the rest still reach each other
)
MOST_LINKS = 32  # more than this only repeat messages, and link states take up the machine
CLIENT_ENDPOINTS = 3  # endpoints of a client, which uses one of them at a time
MOST_REMEMBERED = 256
PORT_SECONDS = 3.0
LISTEN_FIRST_SECONDS = (2.5, 4.0)  # how long a node that knows few addresses is a client, to hear of more


@dataclass(frozen=True, slots=True)
class Draw:
    """The plan of a session: routers forward for others, clients hold one link to one of `connect`.
    A draw with `until` is temporary: it ends at that `time.monotonic()`."""

    mode: Literal["router", "client"]
    listen: tuple[str, ...]
    connect: tuple[str, ...]
    until: float | None = None


def check_degree(degree: int) -> None:
    """ConfigError unless a router can dial this many links."""
    if not 1 <= degree <= MOST_LINKS:
        raise ConfigError(f"degree {degree}: give the number of links that a node dials, 1 to {MOST_LINKS}")


class Neighbours(Protocol):
    """The place where a node listens, and the nodes that it dials."""

    def draw(self) -> Draw:
        """New neighbours, for opening a session."""

    def learn(self, endpoints: Sequence[str]) -> None:
        """Takes endpoints of nodes heard lately, to draw from next time."""

    def has_others(self, draw: Draw) -> bool:
        """Whether another draw could lead to a node that `draw` does not name."""

    def endpoints(self) -> Sequence[str]:
        """The addresses at which others can reach this node."""

    def leave(self) -> None:
        """Gives up this node's place."""


class NetworkNeighbours:
    """Neighbours by TCP or TLS address. A node without `listen` only dials out, as behind a NAT. Nodes that
    join by one or two addresses would make a star of the swarm, so such a node first comes as a client, hears
    the addresses of others, and then joins as a router with neighbours drawn among them. Learnt addresses
    come from strangers: a bounded number of the scheme in use is taken, so that with TLS on nothing can lead
    to a plain connection. Safe to use from two threads."""

    def __init__(
        self,
        listen: Sequence[Address],
        join: Sequence[Address],
        advertise: Sequence[Address],
        rng: random.Random,
        degree: int = LINKS,
    ) -> None:
        if not listen and not join:
            raise ConfigError("a node on the network needs an address to listen on or one to join")
        self._rng = rng
        self._degree = degree
        self._listen = tuple(_free(address) for address in listen)
        self._endpoints = tuple(str(address) for address in advertise or _reachable(self._listen, join))
        self._kinds = {address.scheme for address in (*listen, *join)}
        self._remembered: dict[str, None] = {}
        self._recent: list[str] = []
        self._lock = threading.Lock()
        self._few = bool(listen) and 0 < len(join) < max(2, degree - 1)
        self._full_member_at: float | None = None
        self._joined = tuple(str(address) for address in join)
        self._remember(self._joined)

    def draw(self) -> Draw:
        if self._few and self._full_member_at is None:
            self._full_member_at = time.monotonic() + self._rng.uniform(*LISTEN_FIRST_SECONDS)
        if self._full_member_at is not None and time.monotonic() < self._full_member_at:
            return Draw("client", (), self._joined, self._full_member_at)
        with self._lock:
            return self._draw()

    def _draw(self) -> Draw:
        recent = [place for place in self._recent if place in self._remembered]
        others = [place for place in self._remembered if place not in recent]
        mode: Literal["router", "client"] = "router" if self._listen else "client"
        count = self._degree if mode == "router" else CLIENT_ENDPOINTS
        # One link goes beyond those heard lately: after a cut they may all be on this side of it.
        drawn = self._rng.sample(recent, min(len(recent), count - 1 if others else count))
        drawn += self._rng.sample(others, min(len(others), count - len(drawn)))
        if mode == "client":
            self._rng.shuffle(drawn)
        return Draw(mode, tuple(str(address) for address in self._listen), tuple(drawn))

    def learn(self, endpoints: Sequence[str]) -> None:
        usable = []
        for text in endpoints:
            try:
                address = parse_address(text)
            except ConfigError:
                continue
            if address.scheme in self._kinds and not address.is_wildcard and address.port:
                usable.append(str(address))
        if usable:
            with self._lock:
                self._remember(usable)
                self._recent = list(dict.fromkeys(usable))[:MOST_REMEMBERED]

    def has_others(self, draw: Draw) -> bool:
        with self._lock:
            return any(place not in draw.connect for place in self._remembered)

    def endpoints(self) -> Sequence[str]:
        return self._endpoints

    def leave(self) -> None:
        pass

    def _remember(self, places: Iterable[str]) -> None:
        own = {*self._endpoints, *map(str, self._listen)}
        for place in places:
            if place not in own:
                self._remembered.pop(place, None)
                self._remembered[place] = None
        while len(self._remembered) > MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]


def _free(address: Address) -> Address:
    """The address, once this node can listen on it: a predecessor may hold it for a moment. Port 0 becomes a
    free port now, because the port must stay the same when the session is opened anew."""
    if address.scheme == "unixsock-stream":
        return address
    host = address.host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + PORT_SECONDS
    while True:
        try:
            with socket.create_server((host, address.port), family=family) as probe:
                return Address(address.scheme, address.host, probe.getsockname()[1])
        except OSError as error:
            if time.monotonic() > deadline or error.errno != errno.EADDRINUSE:
                raise ConfigError(f"cannot listen on {address}: {error.strerror or error}") from error
        time.sleep(0.1)


def _reachable(listen: Sequence[Address], join: Sequence[Address]) -> list[Address]:
    """The addresses to tell others; "every interface" becomes the one towards the swarm."""
    reachable = []
    for address in listen:
        if address.is_wildcard:
            host = _own_host(join[0].host if join else "", ipv6=address.host == "[::]")
            address = Address(address.scheme, host, address.port)
        reachable.append(address)
    return reachable


def _own_host(towards: str, *, ipv6: bool) -> str:
    family = socket.AF_INET6 if ipv6 else socket.AF_INET
    elsewhere = "2001:db8::1" if ipv6 else "192.0.2.1"  # documentation addresses: only the route is looked up
    for host in (towards.strip("[]"), elsewhere):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((host, 9))  # a datagram socket sends nothing here
                found = str(probe.getsockname()[0])
                return f"[{found}]" if ipv6 else found
        except OSError:
            continue
    return "[::1]" if ipv6 else "127.0.0.1"
