"""Foreign groups that wait to be drawn: bounded, and the same whatever order they came in.

Groups are verified when they are drawn, so a flood costs places in a queue and no more. When the pool is
full, the oldest group of the author that holds most goes first, by the author's own order and never by
arrival. A group leaves when it was used, is useless, or is stale, counted in the reader's own steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Generic, TypeVar

import msgspec

MOST_REMEMBERED = 1 << 15

Item = TypeVar("Item")
Order = tuple[str, int, int, int]
"""An author, and a place in its own order."""


class Pooled(msgspec.Struct, Generic[Item]):
    """A foreign group that came at this node's `step`. An author gets one group for each `task`; groups of
    one `topic` count as the same kind. `rewards` are set once it was verified."""

    order: Order
    task: str
    topic: str
    item: Item
    size: int
    step: int
    rewards: tuple[float, ...] | None = None

    @property
    def author(self) -> str:
        return self.order[0]


class PoolLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of the store of foreign groups; beyond them the oldest groups of the largest author go first."""

    groups: Annotated[int, msgspec.Meta(ge=1)] = 1024  # most groups
    author_groups: Annotated[int, msgspec.Meta(ge=1)] = 128  # most groups of one author
    bytes: Annotated[int, msgspec.Meta(ge=1)] = 32 << 20  # most bytes of all groups
    staleness: Annotated[int, msgspec.Meta(ge=0)] = 50  # most own steps that a group may wait


class PoolSnapshot(msgspec.Struct, Generic[Item]):
    """A pool in a checkpoint. `taken`: author and task of all groups that were taken in."""

    groups: list[Pooled[Item]] = []
    taken: list[tuple[str, str]] = []


class Pool(Generic[Item]):
    def __init__(self, limits: PoolLimits, snapshot: PoolSnapshot[Item] | None = None) -> None:
        self.limits = limits
        self._groups: dict[Order, Pooled[Item]] = {}
        self._taken: dict[tuple[str, str], None] = {}
        self._bytes = 0
        if snapshot is not None:
            self._groups = {group.order: group for group in snapshot.groups}
            self._bytes = sum(group.size for group in snapshot.groups)
            self._taken = dict.fromkeys(snapshot.taken)

    def __len__(self) -> int:
        return len(self._groups)

    def __iter__(self) -> Iterator[Pooled[Item]]:
        """In the authors' own order."""
        return iter(sorted(self._groups.values(), key=lambda group: group.order))

    def snapshot(self) -> PoolSnapshot[Item]:
        return PoolSnapshot(list(self), list(self._taken))

    def take_in(self, groups: Iterable[Pooled[Item]]) -> Counter[str]:
        """Adds groups; counts, by reason, those that were not kept."""
        dropped: Counter[str] = Counter()
        # Sorted, so that of two groups for one task it is always the same that stays.
        for group in sorted(groups, key=lambda group: group.order):
            name = (group.author, group.task)
            if name in self._taken:
                dropped["same task again"] += 1
                continue
            self._taken[name] = None
            self._groups[group.order] = group
            self._bytes += group.size
        while len(self._taken) > MOST_REMEMBERED:
            del self._taken[next(iter(self._taken))]
        if crowded := self._make_room():
            dropped["pool is full"] += crowded
        return dropped

    def remove(self, group: Pooled[Item]) -> None:
        if self._groups.pop(group.order, None) is not None:
            self._bytes -= group.size

    def forget(self, author: str) -> int:
        """Removes all groups of one author; returns how many."""
        return self._remove_all([group for group in self._groups.values() if group.author == author])

    def drop_stale(self, step: int) -> int:
        """Removes groups that have waited too long at `step`; returns how many."""
        oldest = step - self.limits.staleness
        return self._remove_all([group for group in self._groups.values() if group.step < oldest])

    def _remove_all(self, groups: list[Pooled[Item]]) -> int:
        for group in groups:
            self.remove(group)
        return len(groups)

    def _make_room(self) -> int:
        limits, removed = self.limits, 0
        held = Counter(group.author for group in self._groups.values())
        for author in sorted(author for author, count in held.items() if count > limits.author_groups):
            own = sorted(order for order in self._groups if order[0] == author)
            oldest = own[: held[author] - limits.author_groups]
            removed += self._remove_all([self._groups[order] for order in oldest])
            held[author] = limits.author_groups
        while len(self._groups) > limits.groups or self._bytes > limits.bytes:
            fullest = max(sorted(held), key=lambda author: held[author])
            self.remove(self._groups[min(order for order in self._groups if order[0] == fullest)])
            held[fullest] -= 1
            removed += 1
        return removed
