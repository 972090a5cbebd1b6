"""The transport within one process: a hub that hands messages on at once. For tests, and for several nodes
in one process. Nothing is lost except by a full inbox, which drops its oldest message, as the others do.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, TransportStats

INBOX_MESSAGES = 8192


class MemoryHub:
    """What the transports of one process share. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: dict[str, dict[MemoryTransport, None]] = {}
        self._opened = 0

    def open(self, inbox_messages: int = INBOX_MESSAGES) -> MemoryTransport:
        """A new node's access."""
        with self._lock:
            self._opened += 1
            return MemoryTransport(self, f"memory/{self._opened}", inbox_messages)

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
            if receiver is not sender:
                receiver._arrive(message)


class MemoryTransport:
    """One node's access to a hub; made by `MemoryHub.open`."""

    def __init__(self, hub: MemoryHub, endpoint: str, inbox_messages: int) -> None:
        self._hub = hub
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._inbox: deque[bytes] = deque(maxlen=inbox_messages)
        self._topics: frozenset[str] = frozenset()
        self._closed = False
        self._published = self._refused = self._arrived = self._overflowed = self._reopened = 0

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
        with self._lock:
            return [self._inbox.popleft() for _ in range(min(limit, len(self._inbox)))]

    def endpoints(self) -> Sequence[str]:
        return () if self._closed else (self._endpoint,)

    def meet(self, neighbours: Sequence[str]) -> None:
        """There are no neighbours to draw: the hub reaches everyone."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """There is no connection that could be half dead; counted only."""
        self._reopened += 1

    def stats(self) -> TransportStats:
        return TransportStats(self._published, self._refused, self._arrived, self._overflowed, self._reopened)

    def close(self) -> None:
        if not self._closed:
            self._hub._replace(self, self._topics, frozenset())
            self._closed = True
            with self._lock:
                self._inbox.clear()

    def _arrive(self, message: bytes) -> None:
        with self._lock:
            if self._closed:
                return
            self._arrived += 1
            if len(self._inbox) == self._inbox.maxlen:
                self._overflowed += 1
            self._inbox.append(message)
