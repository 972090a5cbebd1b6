"""What a transport is: it moves bytes between nodes, best effort, and never blocks its caller.

A message may be lost, delayed, duplicated or reordered, and it may come under a wrong topic: whoever
receives it decides by its content alone. Everything above (signatures, repair, quotas) is the same for
every transport, and one contract test-suite holds for all of them.

Topics are short slash-separated words, e.g. "log/3", "latest", "beacon", "to/<node id>". A directed
message is a message on the topic that only its receiver subscribes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_MESSAGE_BYTES = 1 << 20
"""Larger messages are refused by `publish` and dropped on arrival."""


@dataclass(frozen=True, slots=True)
class TransportStats:
    """Counters since the transport was opened."""

    published: int = 0
    refused: int = 0  # publish() returned False: outbox full, or the message too large
    arrived: int = 0
    overflowed: int = 0  # arrived while the inbox was full: the oldest was dropped
    reopened: int = 0
    lost: int = 0  # accepted by publish(), but the engine failed to take it


class Transport(Protocol):
    """One node's access to a swarm. All methods may be called from one thread at a time, none blocks."""

    def publish(self, topic: str, message: bytes) -> bool:
        """Hands a message over for all subscribers of `topic`; False where it was refused and counted."""

    def subscribe(self, topics: frozenset[str]) -> None:
        """Replaces the set of topics whose messages arrive here. A node never gets its own messages."""

    def collect(self, limit: int = 1024) -> list[bytes]:
        """What has arrived since the last call, oldest first, at most `limit` messages."""

    def endpoints(self) -> Sequence[str]:
        """Addresses at which others can reach this node, for its beacon; empty where that has no meaning."""

    def meet(self, neighbours: Sequence[str]) -> None:
        """Tells endpoints of others who are present, to draw from whenever neighbours are drawn next: a node
        that joined by one address finds its place among them. Transports without neighbours do nothing."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """Starts to close and open the connection anew, with these endpoints to draw neighbours from (empty:
        as before). Returns at once; messages published meanwhile may be lost. The remedy against half-dead
        connections; transports that cannot have them do nothing."""

    def stats(self) -> TransportStats: ...

    def close(self) -> None:
        """Ends the connection; returns within a bounded time, and further calls do nothing."""
