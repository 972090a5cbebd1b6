"""Counts: how many items an author says that it has shared, and how many of them are accounted for here.

Each frame with items, and each beacon, names the number of items that its author has shared in that stream so
far. So the difference between two frames tells the items of all frames between them, also of those that never
came. The number is the author's claim. Whatever it claims, this holds at any moment:

    shared = received + waiting + refused, by reason + missing

`accounts.py` keeps these; a stream tells by how much `shared` grows.
"""

from __future__ import annotations


class Stream:
    """The items of one stream, from the earliest frame that came here to the latest that its author names."""

    __slots__ = ("_first", "_given_up", "_last", "_seen")

    def __init__(self) -> None:
        self._seen = self._given_up = 0
        self._first = self._last = -1

    @property
    def shared(self) -> int:
        return max(self._last - self._first, self._seen)

    def note(self, shared: int, items: int = 0) -> int:
        """Takes in a frame with that many items, and the number that its author tells (0: it tells none).
        Returns by how much that makes `shared` larger."""
        before = self.shared
        self._seen += items
        if shared >= max(1, items):
            first = shared - items
            self._first = first if self._first < 0 else min(self._first, first)
            self._last = max(self._last, shared)
        return self.shared - before

    def give_up(self) -> int:
        """Expects the items that did not come no longer. Returns by how many more they are than last time."""
        more = self.shared - self._seen - self._given_up
        self._given_up += more
        return more
