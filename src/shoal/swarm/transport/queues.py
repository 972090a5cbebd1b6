"""The two bounded queues between a node's thread and an engine's threads, and the calls that use them.

Both are bounded by messages and by bytes. A full incoming queue drops its *oldest* message (newer experience
is worth more, and repair fetches the rest); a full outgoing queue refuses the *newest*, which the sender
still holds. Their locks are never held around a call into an engine, so callbacks may take them at any time.
"""

from __future__ import annotations

import threading
from collections import deque

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, TransportStats, is_topic

MOST_INCOMING, MOST_INCOMING_BYTES = 8192, 64 << 20
MOST_OUTGOING, MOST_OUTGOING_BYTES = 2048, 32 << 20


class IncomingQueue:
    """Messages that arrived and were not collected yet."""

    def __init__(self, most_messages: int = MOST_INCOMING, most_bytes: int = MOST_INCOMING_BYTES) -> None:
        self.arrived = 0
        self.overflowed = 0
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._bytes = 0
        self._messages: deque[bytes] = deque()
        self._lock = threading.Lock()

    def put(self, message: bytes) -> None:
        """Adds a message; if it does not fit, the oldest ones are dropped and counted."""
        with self._lock:
            self.arrived += 1
            self._messages.append(message)
            self._bytes += len(message)
            while len(self._messages) > self._most_messages or self._bytes > self._most_bytes:
                self._bytes -= len(self._messages.popleft())
                self.overflowed += 1

    def take(self, limit: int) -> list[bytes]:
        """Removes and returns the oldest messages, at most `limit`."""
        with self._lock:
            taken = [self._messages.popleft() for _ in range(min(limit, len(self._messages)))]
            self._bytes -= sum(map(len, taken))
            return taken

    def clear(self) -> None:
        with self._lock:
            self._messages.clear()
            self._bytes = 0


class OutgoingQueue:
    """Messages that were accepted for sending and that the engine has not taken yet."""

    def __init__(self, most_messages: int = MOST_OUTGOING, most_bytes: int = MOST_OUTGOING_BYTES) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._bytes = 0
        self._messages: deque[tuple[str, bytes]] = deque()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._messages)

    def offer(self, topic: str, message: bytes) -> bool:
        """Adds a message if it fits; says whether it did."""
        with self._lock:
            fits = (
                len(self._messages) < self._most_messages and self._bytes + len(message) <= self._most_bytes
            )
            if fits:
                self._messages.append((topic, message))
                self._bytes += len(message)
            return fits

    def take(self, limit: int) -> list[tuple[str, bytes]]:
        """Removes and returns the oldest (topic, message) pairs, at most `limit`."""
        with self._lock:
            taken = [self._messages.popleft() for _ in range(min(limit, len(self._messages)))]
            self._bytes -= sum(len(message) for _, message in taken)
            return taken

    def clear(self) -> int:
        """Forgets all messages and returns their number."""
        with self._lock:
            forgotten = len(self._messages)
            self._messages.clear()
            self._bytes = 0
            return forgotten


class QueuedTransport:
    """The node's side of a transport whose engine has its own thread. That thread sends the messages in
    `_outgoing`, fills `_incoming`, subscribes to `_topics`, and is woken by `_notify`."""

    def __init__(self) -> None:
        self._incoming = IncomingQueue()
        self._outgoing = OutgoingQueue()
        self._published = self._refused = self._lost = self._reopened = 0
        self._topics: frozenset[str] = frozenset()
        self._open = False  # messages are accepted
        self._closing = False

    def publish(self, topic: str, message: bytes) -> bool:
        accepted = (
            self._open
            and len(message) <= MOST_MESSAGE_BYTES
            and is_topic(topic)
            and self._outgoing.offer(topic, message)
        )
        if accepted:
            self._published += 1
            self._notify()
        elif not self._closing:
            self._refused += 1
        return accepted

    def subscribe(self, topics: frozenset[str]) -> None:
        for topic in topics:
            if not is_topic(topic):
                raise ValueError(f"{topic!r} is not a topic: words of A-Z a-z 0-9 _ - with slashes between")
        self._topics = topics
        self._notify()

    def collect(self, limit: int = 1024) -> list[bytes]:
        return self._incoming.take(limit)

    def stats(self) -> TransportStats:
        arrived, overflowed = self._incoming.arrived, self._incoming.overflowed
        return TransportStats(self._published, self._refused, arrived, overflowed, self._reopened, self._lost)

    def _notify(self) -> None:
        raise NotImplementedError

    def _arrive(self, message: bytes) -> None:
        if len(message) <= MOST_MESSAGE_BYTES:
            self._incoming.put(message)
