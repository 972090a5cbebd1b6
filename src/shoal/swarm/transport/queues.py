"""The two bounded queues between a node's thread and the threads of a network engine.

Both are bounded by messages and by bytes, so that neither a burst of small messages nor a few large ones can
grow a node. They differ in what gives way: a full inbox drops its *oldest* message (newer experience is worth
more, and repair fetches the rest), a full outbox refuses the *newest* (its owner still holds it).

The locks in here are held for a few instructions and never around a call into an engine, so an engine's
callback may take them at any time.
"""

from __future__ import annotations

import threading
from collections import deque

MOST_MESSAGES = 8192
MOST_BYTES = 64 << 20
MOST_OUTGOING = 2048
MOST_OUTGOING_BYTES = 32 << 20


class Inbox:
    """Messages that have arrived and that nobody has collected yet."""

    def __init__(self, most_messages: int = MOST_MESSAGES, most_bytes: int = MOST_BYTES) -> None:
        self.arrived = 0
        self.overflowed = 0
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._bytes = 0
        self._messages: deque[bytes] = deque()
        self._lock = threading.Lock()

    def put(self, message: bytes) -> None:
        """Adds a message; where it does not fit, the oldest ones are dropped and counted."""
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


class Outbox:
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
        """Adds a message; False, and nothing added, where it does not fit."""
        with self._lock:
            full = len(self._messages) >= self._most_messages or self._bytes + len(message) > self._most_bytes
            if not full:
                self._messages.append((topic, message))
                self._bytes += len(message)
            return not full

    def take(self, limit: int) -> list[tuple[str, bytes]]:
        """Removes and returns the oldest (topic, message) pairs, at most `limit`."""
        with self._lock:
            taken = [self._messages.popleft() for _ in range(min(limit, len(self._messages)))]
            self._bytes -= sum(len(message) for _, message in taken)
            return taken

    def clear(self) -> int:
        """Forgets everything; how many messages that were."""
        with self._lock:
            forgotten = len(self._messages)
            self._messages.clear()
            self._bytes = 0
            return forgotten
