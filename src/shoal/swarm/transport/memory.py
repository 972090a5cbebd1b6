"""The transport within one process: a hub that hands messages on at once. For tests, and for several nodes in
one process. Nothing is lost, except that a full queue drops its oldest message, as in all transports.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, TransportStats
from shoal.swarm.transport.queues import IncomingQueue


class MemoryHub:
    """The common part of the transports in one process. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, dict[MemoryTransport, None]] = {}
        self._opened = 0

    def open(self) -> MemoryTransport:
        """A new node's access."""
        with self._lock:
            self._opened += 1
            return MemoryTransport(self, f"memory/{self._opened}")

    def _replace(self, transport: MemoryTransport, old: frozenset[str], new: frozenset[str]) -> None:
        with self._lock:
            for topic in old - new:
                self._subscribers[topic].pop(transport, None)
                if not self._subscribers[topic]:
                    del self._subscribers[topic]
            for topic in new - old:
                self._subscribers.setdefault(topic, {})[transport] = None

    def _hand_on(self, sender: MemoryTransport, topic: str, message: bytes) -> None:
        with self._lock:
            receivers = list(self._subscribers.get(topic, ()))
        for receiver in receivers:
            if receiver is not sender and not receiver._closed:
                receiver._incoming.put(message)


class MemoryTransport:
    """One node's access to a hub; made by `MemoryHub.open`."""

    def __init__(self, hub: MemoryHub, endpoint: str) -> None:
        self._hub = hub
        self._endpoint = endpoint
        self._incoming = IncomingQueue()
        self._topics: frozenset[str] = frozenset()
        self._closed = False
        self._published = self._refused = self._reopened = 0

    def publish(self, topic: str, message: bytes) -> bool:
        if self._closed or len(message) > MOST_MESSAGE_BYTES:
            self._refused += 1
            return False
        self._published += 1
        self._hub._hand_on(self, topic, bytes(message))
        return True

    def subscribe(self, topics: frozenset[str]) -> None:
        if self._closed:
            return
        self._hub._replace(self, self._topics, topics)
        self._topics = topics

    def collect(self, limit: int = 1024) -> list[bytes]:
        return [] if self._closed else self._incoming.take(limit)

    def endpoints(self) -> Sequence[str]:
        return () if self._closed else (self._endpoint,)

    def meet(self, neighbours: Sequence[str]) -> None:
        """Does nothing: the hub reaches everyone."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """Only counts: no connection here can be half dead."""
        self._reopened += 1

    def stats(self) -> TransportStats:
        incoming = self._incoming
        return TransportStats(
            self._published, self._refused, incoming.arrived, incoming.overflowed, self._reopened
        )

    def close(self) -> None:
        if not self._closed:
            self._hub._replace(self, self._topics, frozenset())
            self._closed = True
            self._incoming.clear()
