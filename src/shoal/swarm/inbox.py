"""The inbox: items that arrived and wait for `gather`, within bounds.

Laws. Within the bounds, `gather` depends on the set of items, never on their order of arrival. Equal content
is handed out once, from the sender with the smallest hash of (content, author), an order in which nobody can
be first for all content. Over the bounds an author's oldest item goes first, the largest author gives way,
and newcomers give way before all others. Authors are drawn first, then their newest item, so an author that
sends more is not drawn more. All authors on probation together get a fixed part of the items, plus a trickle:
a thousand fresh identities are no louder than one, and a swarm of newcomers is not held up.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias

import msgspec

from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import Received
from shoal.swarm.identity import NodeId
from shoal.swarm.settings import ExchangeSettings

Order: TypeAlias = tuple[int, int, int, str]  # of an author's items: epoch, number, place, kind

MOST_ALLOWANCE = 64.0
TRICKLE_AT_ONCE = 4.0
AUTHORS_PART = 8  # one author's items fill at most one in this many bytes


def order_of(received: Received[Any]) -> Order:
    return (received.epoch, received.seq, received.index, received.kind)


def precedence(received: Received[Any]) -> tuple[bytes, int, int, int, str]:
    """The rank among items with the same content: the smallest counts."""
    rank = blake2b(received.digest + received.author.encode("ascii"), digest_size=16).digest()
    return (rank, *order_of(received))


class Waiting(msgspec.Struct, eq=False, gc=False):
    """An item in the inbox; a newer one of its kind replaces a `register`."""

    received: Received[Any]
    size: int
    register: bool = False


def _age(waiting: Waiting) -> Order:
    return order_of(waiting.received)


@dataclass(slots=True, eq=False)
class Queue:
    """The waiting items of one author, oldest first."""

    items: list[Waiting] = field(default_factory=list)
    bytes: int = 0

    def extend(self, waiting: Sequence[Waiting]) -> None:
        """Adds items that are in order among themselves; nearly always they are newer than all others."""
        if not self.items or _age(self.items[-1]) < _age(waiting[0]):
            self.items.extend(waiting)
        else:
            for one in waiting:
                insort(self.items, one, key=_age)
        self.bytes += sum([one.size for one in waiting])

    def remove(self, waiting: Waiting) -> None:
        place = bisect_left(self.items, _age(waiting), key=_age)
        assert self.items[place] is waiting
        del self.items[place]
        self.bytes -= waiting.size


class Inbox:
    """Items that wait, by author."""

    def __init__(self, settings: ExchangeSettings, accounts: Accounts) -> None:
        self._settings = settings
        self._accounts = accounts
        self._established = accounts.established
        self._waiting: dict[NodeId, Queue] = {}
        self._handed_out: set[bytes] = set()
        self._handed_out_before: set[bytes] = set()
        self._allowance = 0.0  # how many items of newcomers may be handed out
        self._allowance_at: float | None = None
        self.items = 0
        self.bytes = 0
        self.dropped = 0
        self.repeated = 0

    def extend(self, author: NodeId, waiting: Sequence[Waiting]) -> int:
        """Takes in the items of one frame, except those handed out before; returns their number."""
        known, before = self._handed_out, self._handed_out_before
        fresh = [
            one for one in waiting if one.received.digest not in known and one.received.digest not in before
        ]
        self.repeated += len(waiting) - len(fresh)
        if fresh:
            self._add(author, fresh)
        return len(fresh)

    def replace(self, waiting: Waiting) -> bool:
        """Takes in a register for an older one, unless its content was handed out or a newer one waits."""
        received = waiting.received
        if received.digest in self._handed_out or received.digest in self._handed_out_before:
            self.repeated += 1
            return False
        waiting.register = True
        queue = self._waiting.get(received.author)
        for other in queue.items if queue is not None else ():
            if other.register and other.received.kind == received.kind:
                if order_of(other.received) >= order_of(received):
                    return False
                self._remove(received.author, other)
                break
        self._add(received.author, [waiting])
        return True

    def _add(self, author: NodeId, waiting: Sequence[Waiting]) -> None:
        queue = self._waiting.get(author)
        if queue is None:
            queue = self._waiting[author] = Queue()
        before = queue.bytes
        queue.extend(waiting)
        self.items += len(waiting)
        self.bytes += queue.bytes - before
        settings = self._settings
        most_bytes = settings.inbox_bytes // AUTHORS_PART
        while len(queue.items) > settings.inbox_author_items or (
            queue.bytes > most_bytes and len(queue.items) > 1
        ):
            self._drop(author)
        if self.items > settings.inbox_items or self.bytes > settings.inbox_bytes:
            self._shrink()

    def gather(self, limit: int | None, rng: random.Random, now: float) -> list[Received[Any]]:
        """Hands out waiting items, at most `limit`, sorted by author and by the author's own order."""
        groups = self._distinct()
        newcomers = {node: items for node, items in groups.items() if node not in self._established}
        others = {node: items for node, items in groups.items() if node not in newcomers}
        room = self.items if limit is None else limit
        share = self._settings.probation_share
        if not self._established:
            taken = self._draw(newcomers, room, rng)
        else:
            self._refill(now)
            earned = min(sum(map(len, others.values())), room) * share / (1 - share)
            most_new = int(self._allowance + earned)
            if limit is not None:
                most_new = min(most_new, max(1, int(share * limit)), limit)
            some_new = self._draw_newcomers(newcomers, most_new, rng)
            taken = self._draw(others, room - len(some_new), rng)
            earned = len(taken) * share / (1 - share)
            self._allowance = max(0.0, min(self._allowance + earned - len(some_new), MOST_ALLOWANCE))
            taken += some_new
        if len(taken) == self.items:
            self._waiting.clear()
            self.items = self.bytes = 0
        else:
            for waiting in taken:
                self._remove(waiting.received.author, waiting)
        taken.sort(key=lambda waiting: waiting.received.author)  # stable
        received = [waiting.received for waiting in taken]
        self._remember(received)
        return received

    def _draw_newcomers(
        self, newcomers: dict[NodeId, list[Waiting]], limit: int, rng: random.Random
    ) -> list[Waiting]:
        """First those who are about to pass probation, then the unknown."""
        promising = {node: items for node, items in newcomers.items() if self._accounts.promising(node)}
        unknown = {node: items for node, items in newcomers.items() if node not in promising}
        drawn = self._draw(promising, limit, rng)
        return drawn + self._draw(unknown, limit - len(drawn), rng)

    def _draw(self, groups: dict[NodeId, list[Waiting]], limit: int, rng: random.Random) -> list[Waiting]:
        """At most `limit` items: again and again an author by weight, then its newest item."""
        left = {node: len(items) for node, items in groups.items()}
        if sum(left.values()) > limit:
            nodes = list(left)
            weights = [self._accounts.weight(node) for node in nodes]
            for _ in range(limit):
                place = rng.choices(range(len(nodes)), weights)[0]
                left[nodes[place]] -= 1
                if not left[nodes[place]]:
                    del nodes[place], weights[place]
        else:
            left = dict.fromkeys(left, 0)
        return [waiting for node, items in groups.items() for waiting in items[left[node] :]]

    def _distinct(self) -> dict[NodeId, list[Waiting]]:
        """The waiting items, each content once, authors sorted, each one's newest last. Drops copies."""
        first: dict[bytes, Waiting] = {}
        copies: list[Waiting] = []
        known, before = self._handed_out, self._handed_out_before
        for node in sorted(self._waiting):
            for waiting in self._waiting[node].items:
                digest = waiting.received.digest
                other = first.setdefault(digest, waiting)
                if digest in known or digest in before:
                    copies.append(waiting)
                elif other is not waiting:
                    better = precedence(waiting.received) < precedence(other.received)
                    copies.append(other if better else waiting)
                    first[digest] = waiting if better else other
        for waiting in copies:
            self._remove(waiting.received.author, waiting)
        self.repeated += len(copies)
        return {node: list(self._waiting[node].items) for node in sorted(self._waiting)}

    def _refill(self, now: float) -> None:
        if self._allowance_at is not None:
            elapsed = max(0.0, now - self._allowance_at)
            trickle = elapsed * self._settings.newcomers_per_minute / 60
            self._allowance = max(self._allowance, min(self._allowance + trickle, TRICKLE_AT_ONCE))
        self._allowance_at = now

    def _remember(self, received: list[Received[Any]]) -> None:
        """Notes items as handed out: at least the last `remember_contents`, at most twice as many."""
        self._handed_out.update([one.digest for one in received])
        if len(self._handed_out) > self._settings.remember_contents:
            self._handed_out, self._handed_out_before = set(), self._handed_out

    def _remove(self, author: NodeId, waiting: Waiting) -> None:
        queue = self._waiting[author]
        queue.remove(waiting)
        if not queue.items:
            del self._waiting[author]
        self.items -= 1
        self.bytes -= waiting.size

    def _drop(self, author: NodeId) -> None:
        self._remove(author, self._waiting[author].items[0])
        self.dropped += 1

    def _shrink(self) -> None:
        """Back to seven eighths of the bounds; see the laws above for who gives way."""
        settings = self._settings
        newcomers = [node for node in self._waiting if node not in self._established]
        for nodes, share in ((newcomers, settings.probation_share), (list(self._waiting), 0.0)):
            largest = [(-len(self._waiting[node].items), node) for node in nodes if node in self._waiting]
            heapify(largest)
            count = -sum(size for size, _ in largest)
            while count > share * settings.inbox_items and (
                8 * self.items > 7 * settings.inbox_items or 8 * self.bytes > 7 * settings.inbox_bytes
            ):
                size, node = largest[0]
                self._drop(node)
                count -= 1
                if size < -1:
                    heapreplace(largest, (size + 1, node))
                else:
                    heappop(largest)
