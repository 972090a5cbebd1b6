"""Foreign groups that wait to be drawn: bounded, and the same whatever order they came in.

Nothing in here was verified when it came in, so that a flood costs a place in a queue and no more: groups
are verified when they are drawn. What goes first when it is full follows from (author, epoch, seq, index),
the author's own order: the oldest of the author that holds most. A group leaves when it was used, when it
turned out to be useless, or when it has grown stale, counted in the reader's own steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec

from shoal.swarm import Received
from shoal.train.rollouts import RolloutGroup

MOST_REMEMBERED = 1 << 15

Order = tuple[str, int, int, int]


def order_of(received: Received) -> Order:
    """Its place in its author's own order."""
    return (received.author, received.epoch, received.seq, received.index)


class Entry(msgspec.Struct):
    """A foreign group in the pool. `step`: when it came, in steps of this node. `rewards` are there once it
    was verified."""

    author: str
    epoch: int
    seq: int
    index: int
    kind: str
    made_at: float
    arrived_at: float
    digest: bytes
    group: RolloutGroup
    size: int
    step: int
    rewards: tuple[float, ...] | None = None

    @property
    def order(self) -> Order:
        return (self.author, self.epoch, self.seq, self.index)

    @property
    def name(self) -> tuple[str, int, str, str, int]:
        """What the task is; an author gets one group for it."""
        task = self.group.task
        return (self.author, self.epoch, task.family, task.parameters, task.counter)

    def received(self) -> Received:
        return Received(
            author=self.author,
            kind=self.kind,
            item=self.group,
            epoch=self.epoch,
            seq=self.seq,
            index=self.index,
            made_at=self.made_at,
            arrived_at=self.arrived_at,
            digest=self.digest,
        )


class PoolLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`staleness`: most steps that a group may wait here."""

    groups: Annotated[int, msgspec.Meta(ge=1)] = 1024
    author_groups: Annotated[int, msgspec.Meta(ge=1)] = 128
    bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 << 20
    staleness: Annotated[int, msgspec.Meta(ge=0)] = 50


class Kept(msgspec.Struct):
    """What a checkpoint holds of a pool. `used` are the names of tasks whose group was taken in before."""

    entries: list[Entry] = []
    used: list[tuple[str, int, str, str, int]] = []


class Pool:
    """The groups of others. Only the trainer's `gather` and `absorb` change it."""

    def __init__(self, limits: PoolLimits, kept: Kept | None = None) -> None:
        self.limits = limits
        self._entries: dict[Order, Entry] = {}
        self._names: dict[tuple[str, int, str, str, int], None] = {}
        self._bytes = 0
        if kept is not None:
            for entry in kept.entries:
                self._entries[entry.order] = entry
                self._bytes += entry.size
            self._names = dict.fromkeys(kept.used)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """In the authors' own order."""
        return iter(sorted(self._entries.values(), key=lambda entry: entry.order))

    def keep(self) -> Kept:
        return Kept(list(self), list(self._names))

    def take_in(self, arrived: Iterable[Received], step: int) -> Counter[str]:
        """Adds what has arrived; counts, by reason, what was not kept."""
        dropped: Counter[str] = Counter()
        # Sorted, so that of two groups for one task it is always the same that stays.
        for received in sorted(arrived, key=order_of):
            group = received.item
            assert isinstance(group, RolloutGroup)
            if len(group.completions) < 2:
                dropped["single completion"] += 1
                continue
            entry = Entry(
                author=received.author,
                epoch=received.epoch,
                seq=received.seq,
                index=received.index,
                kind=received.kind,
                made_at=received.made_at,
                arrived_at=received.arrived_at,
                digest=received.digest,
                group=group,
                size=_size(group),
                step=step,
            )
            if entry.name in self._names:
                dropped["same task again"] += 1
                continue
            self._names[entry.name] = None
            self._entries[entry.order] = entry
            self._bytes += entry.size
        while len(self._names) > MOST_REMEMBERED:
            del self._names[next(iter(self._names))]
        if crowded := self._make_room():
            dropped["pool is full"] += crowded
        return dropped

    def remove(self, entry: Entry) -> None:
        if self._entries.pop(entry.order, None) is not None:
            self._bytes -= entry.size

    def forget(self, author: str) -> int:
        """Removes everything of one author; says how much that was."""
        theirs = [entry for entry in self._entries.values() if entry.author == author]
        for entry in theirs:
            self.remove(entry)
        return len(theirs)

    def drop_stale(self, step: int) -> int:
        """Removes what has waited too long at `step`; says how much that was."""
        stale = [entry for entry in self._entries.values() if step - entry.step > self.limits.staleness]
        for entry in stale:
            self.remove(entry)
        return len(stale)

    def _make_room(self) -> int:
        limits, removed = self.limits, 0
        held = Counter(entry.author for entry in self._entries.values())
        for author in sorted(author for author, count in held.items() if count > limits.author_groups):
            own = sorted(entry.order for entry in self._entries.values() if entry.author == author)
            for order in own[: held[author] - limits.author_groups]:
                self.remove(self._entries[order])
                removed += 1
            held[author] = limits.author_groups
        while len(self._entries) > limits.groups or self._bytes > limits.bytes:
            fullest = max(sorted(held), key=lambda author: held[author])
            self.remove(self._entries[min(order for order in self._entries if order[0] == fullest)])
            held[fullest] -= 1
            removed += 1
        return removed


def _size(group: RolloutGroup) -> int:
    texts = sum(len(one.text.encode()) + 8 * len(one.log_probs) for one in group.completions)
    return texts + len(group.question.encode()) + len(group.task.parameters) + 512
