"""The transport protocol: it moves bytes between nodes, best effort, and never blocks its caller.

A message may be lost, delayed, duplicated or reordered, and it may arrive under a wrong topic: the receiver
decides by its content alone. A topic is a few words with slashes between them, e.g. "log/3", "beacon/3",
"to/<node id>". Only one node subscribes to a "to/…" topic, so a message there is directed to that node.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MOST_MESSAGE_BYTES = 1 << 20  # `publish` refuses larger messages, and larger ones that arrive are dropped

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_-]{1,64}){0,7}")


def is_topic(topic: str) -> bool:
    """Whether `topic` is up to eight words of letters, digits, `_` and `-`, with slashes between them."""
    return _TOPIC.fullmatch(topic) is not None


def short_hash(text: str) -> str:
    """16 hexadecimal digits that stand for `text` in keys of engines, where `*`, `.`, `/`, `$` and spaces
    have a meaning, and in the paths of Unix sockets, which are short."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class TransportStats:
    """Counters since the transport was opened."""

    published: int = 0
    refused: int = 0  # publish() returned False: too much waits to be sent, or the message is too large
    arrived: int = 0
    overflowed: int = 0  # arrived while the incoming queue was full: the oldest message was dropped
    reopened: int = 0
    lost: int = 0  # accepted by publish(), but the engine failed to take it


class Transport(Protocol):
    """One node's access to a swarm. One thread at a time may call its methods, and none of them blocks."""

    def publish(self, topic: str, message: bytes) -> bool:
        """Hands a message over for all subscribers of `topic`; False if it was refused, which is counted."""

    def subscribe(self, topics: frozenset[str]) -> None:
        """Replaces the set of topics whose messages arrive here. A node never gets its own messages."""

    def collect(self, limit: int = 1024) -> list[bytes]:
        """The messages that arrived since the last call, oldest first, at most `limit`."""

    def endpoints(self) -> Sequence[str]:
        """Addresses at which others can reach this node, for its beacon; empty if it has none."""

    def meet(self, neighbours: Sequence[str]) -> None:
        """Takes endpoints of present nodes, to draw neighbours from next time."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """Starts to close and open the connection anew, with neighbours drawn from these endpoints (empty: as
        before), and returns at once. Transports that cannot be half dead do nothing."""

    def stats(self) -> TransportStats: ...

    def close(self) -> None:
        """Ends the connection within a bounded time; further calls do nothing."""
