"""The inbox: items that arrived and wait for `gather`, within bounds.

Laws. Within the bounds, `gather` depends on the set of items, never on their order of arrival. Equal content
is handed out once, from the sender with the smallest hash of (content, author), an order in which nobody can
be first for all content. Over the bounds an author's oldest item goes first, the largest author gives way,
and newcomers give way before all others. Authors are drawn first, then their newest item, so an author that
sends more is not drawn more. All authors on probation together get a fixed part of the items, plus a trickle:
a thousand fresh identities are no louder than one, and a swarm of newcomers is not held up. As soon as anyone
is established, newcomers have that part of the places too, for a minute. `gather` costs by the items that it
hands out and by the authors of those that wait.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias

import msgspec

from shoal.swarm.accounts import NO_ROOM, REPEATED, SUPERSEDED, WAITED_TOO_LONG, Accounts
from shoal.swarm.authors import Received
from shoal.swarm.identity import NodeId
from shoal.swarm.settings import ExchangeSettings

Order: TypeAlias = tuple[int, int, int, str]  # of an author's items: epoch, number, place, kind

MOST_ALLOWANCE = 64.0
TRICKLE_AT_ONCE = 4.0
AUTHORS_PART = 8  # one author's items fill at most one in this many bytes
NEWCOMERS_WAIT = 60.0  # the seconds after which an item of a newcomer is dropped, if anyone is established


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

    def __init__(
        self, settings: ExchangeSettings, accounts: Accounts, *, books: Accounts | None = None
    ) -> None:
        """`accounts` tell who is established; the fate of items goes into `books`, by default the same."""
        self._settings = settings
        self._accounts = accounts
        self._books = books if books is not None else accounts
        self._established = accounts.established
        self._waiting: dict[NodeId, Queue] = {}
        self._by_content: dict[bytes, Waiting] = {}
        self._handed_out: set[bytes] = set()
        self._handed_out_before: set[bytes] = set()
        self._allowance = 0.0  # how many items of newcomers may be handed out
        self._allowance_at: float | None = None
        self._of_newcomers = 0  # as many of their items wait at most
        self.items = 0
        self.bytes = 0
        self.dropped = 0
        self.repeated = 0

    def extend(self, author: NodeId, waiting: Sequence[Waiting]) -> int:
        """Takes in the items of one frame, each content once; returns the number of those taken."""
        fresh = [one for one in waiting if not self._was_handed_out(one) and self._comes_first(one)]
        if fresh:
            self._add(author, fresh)
        return len(fresh)

    def replace(self, waiting: Waiting) -> bool:
        """Takes in a register for an older one, unless its content was handed out or a newer one waits."""
        received = waiting.received
        if self._was_handed_out(waiting):
            return False
        waiting.register = True
        queue = self._waiting.get(received.author)
        for other in queue.items if queue is not None else ():
            if other.register and other.received.kind == received.kind:
                if order_of(other.received) >= order_of(received):
                    self._books.refuse(received.author, SUPERSEDED)
                    return False
                self._remove(other, SUPERSEDED)
                break
        if not self._comes_first(waiting):
            return False
        self._add(received.author, [waiting])
        return True

    def waiting(self, author: NodeId) -> int:
        """The number of its items."""
        queue = self._waiting.get(author)
        return len(queue.items) if queue is not None else 0

    def forget(self, author: NodeId, reason: str) -> None:
        """Drops all items of an author."""
        while author in self._waiting:
            self._drop(author, reason)

    def expire(self, now: float) -> None:
        """Drops the items of newcomers that have waited for too long, if anyone is established."""
        if not self._established:
            return
        oldest = now - NEWCOMERS_WAIT
        for node in [node for node in self._waiting if node not in self._established]:
            for waiting in [one for one in self._waiting[node].items if one.received.arrived_at < oldest]:
                self._remove(waiting, WAITED_TOO_LONG)
                self.dropped += 1

    def gather(self, limit: int | None, rng: random.Random, now: float) -> list[Received[Any]]:
        """Hands out waiting items, at most `limit`, sorted by author and by the author's own order."""
        newcomers = [node for node in self._waiting if node not in self._established]
        room = self.items if limit is None else limit
        share = self._settings.probation_share
        if not self._established:
            taken = self._draw(newcomers, room, rng)
        else:
            self._refill(now)
            others = [node for node in self._waiting if node in self._established]
            earned = min(self._count(others), room) * share / (1 - share)
            most_new = int(self._allowance + earned)
            if limit is not None:
                most_new = min(most_new, max(1, int(share * limit)), limit)
            some_new = self._draw_newcomers(newcomers, most_new, rng)
            taken = self._draw(others, room - len(some_new), rng)
            earned = len(taken) * share / (1 - share)
            self._allowance = max(0.0, min(self._allowance + earned - len(some_new), MOST_ALLOWANCE))
            taken += some_new
        for waiting in taken:
            self._remove(waiting)
        taken.sort(key=lambda waiting: waiting.received.author)  # stable
        received = [waiting.received for waiting in taken]
        self._remember(received)
        return received

    def _draw_newcomers(self, newcomers: list[NodeId], limit: int, rng: random.Random) -> list[Waiting]:
        """First those who are about to pass probation, then the unknown."""
        if limit < 1:
            return []
        promising = [node for node in newcomers if self._accounts.promising(node)]
        drawn = self._draw(promising, limit, rng)
        if len(drawn) < limit:
            known = frozenset(promising)
            unknown = [node for node in newcomers if node not in known]
            drawn += self._draw(unknown, limit - len(drawn), rng)
        return drawn

    def _draw(self, among: list[NodeId], limit: int, rng: random.Random) -> list[Waiting]:
        """At most `limit` items: again and again an author by weight, then its newest item."""
        left = {node: len(self._waiting[node].items) for node in sorted(among)}
        if sum(left.values()) > limit:
            nodes = list(left)
            weights = [self._accounts.weight(node) for node in nodes]
            kept = dict(left)
            for _ in range(limit):
                place = rng.choices(range(len(nodes)), weights)[0]
                kept[nodes[place]] -= 1
                if not kept[nodes[place]]:
                    del nodes[place], weights[place]
        else:
            kept = dict.fromkeys(left, 0)
        return [
            waiting
            for node, count in left.items()
            if kept[node] < count
            for waiting in self._waiting[node].items[kept[node] :]
        ]

    def _was_handed_out(self, waiting: Waiting) -> bool:
        digest = waiting.received.digest
        if digest not in self._handed_out and digest not in self._handed_out_before:
            return False
        self._repeat(waiting.received.author)
        return True

    def _comes_first(self, waiting: Waiting) -> bool:
        """Whether no copy of it waits that goes before it; one that goes after it is dropped."""
        digest = waiting.received.digest
        other = self._by_content.get(digest)
        if other is not None:
            if precedence(waiting.received) >= precedence(other.received):
                self._repeat(waiting.received.author)
                return False
            self._remove(other, REPEATED)
            self.repeated += 1
        self._by_content[digest] = waiting
        return True

    def _repeat(self, author: NodeId) -> None:
        self.repeated += 1
        self._books.refuse(author, REPEATED)

    def _add(self, author: NodeId, waiting: Sequence[Waiting]) -> None:
        queue = self._waiting.get(author)
        if queue is None:
            queue = self._waiting[author] = Queue()
        before = queue.bytes
        queue.extend(waiting)
        self.items += len(waiting)
        self.bytes += queue.bytes - before
        self._books.of(author).waiting += len(waiting)
        settings = self._settings
        most_bytes = settings.inbox_bytes // AUTHORS_PART
        while len(queue.items) > settings.inbox_author_items or (
            queue.bytes > most_bytes and len(queue.items) > 1
        ):
            self._drop(author)
        if self.items > settings.inbox_items or self.bytes > settings.inbox_bytes:
            self._shrink()
        if self._established and author not in self._established:
            self._of_newcomers += len(waiting)
            if self._of_newcomers > settings.probation_share * settings.inbox_items:
                self._shrink_newcomers()

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

    def _remove(self, waiting: Waiting, reason: str = "") -> None:
        """Takes an item out, to be handed out or, for a reason, to be refused."""
        author = waiting.received.author
        account = self._books.of(author)
        account.waiting = max(0, account.waiting - 1)  # an account may have been closed meanwhile
        if reason:
            account.refuse(reason)
        else:
            account.received += 1
        queue = self._waiting[author]
        queue.remove(waiting)
        if not queue.items:
            del self._waiting[author]
        del self._by_content[waiting.received.digest]
        self.items -= 1
        self.bytes -= waiting.size

    def _drop(self, author: NodeId, reason: str = NO_ROOM) -> None:
        self._remove(self._waiting[author].items[0], reason)
        self.dropped += 1

    def _count(self, nodes: Iterable[NodeId]) -> int:
        return sum(len(self._waiting[node].items) for node in nodes)

    def _shrink(self) -> None:
        """Back to seven eighths of the bounds; see the laws above for who gives way."""
        settings = self._settings
        newcomers = [node for node in self._waiting if node not in self._established]
        for nodes, share in ((newcomers, settings.probation_share), (list(self._waiting), 0.0)):
            self._drop_largest(nodes, share * settings.inbox_items, self._is_full)

    def _shrink_newcomers(self) -> None:
        """Back to seven eighths of their part, if they are beyond it."""
        most = self._settings.probation_share * self._settings.inbox_items
        newcomers = [node for node in self._waiting if node not in self._established]
        if self._count(newcomers) > most:
            self._drop_largest(newcomers, most * 7 / 8, lambda: True)
        self._of_newcomers = self._count(node for node in newcomers if node in self._waiting)

    def _is_full(self) -> bool:
        settings = self._settings
        return 8 * self.items > 7 * settings.inbox_items or 8 * self.bytes > 7 * settings.inbox_bytes

    def _drop_largest(self, nodes: list[NodeId], floor: float, surplus: Callable[[], bool]) -> None:
        """Drops the oldest item of the author that has most waiting, while there is a surplus and these have
        more than `floor`."""
        largest = [(-len(self._waiting[node].items), node) for node in nodes if node in self._waiting]
        heapify(largest)
        count = -sum(size for size, _ in largest)
        while count > floor and surplus():
            size, node = largest[0]
            self._drop(node)
            count -= 1
            if size < -1:
                heapreplace(largest, (size + 1, node))
            else:
                heappop(largest)
