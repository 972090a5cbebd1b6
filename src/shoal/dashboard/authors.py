"""Which node of a run an author is. Journals name authors by their keys and nodes by their names.

They are matched by what they wrote: an author whose items are what a node made is that node. Nothing that an
author says about itself is used. An author from outside of the run matches none.
"""

from __future__ import annotations

from collections import Counter, OrderedDict

MOST_AUTHORS = 512
MOST_MADE = 4096
MOST_UNMATCHED = 32
ENOUGH = 8
"""Items of an author that are looked at once its node is known."""


class Authors:
    def __init__(self) -> None:
        self.version = 0
        self._made: OrderedDict[str, set[str]] = OrderedDict()
        self._came: dict[str, dict[str, set[str]]] = {}
        self._votes: dict[str, Counter[str]] = {}

    def made(self, node: str, mark: str) -> None:
        """`node` shared something with this mark."""
        self._made.setdefault(mark, set()).add(node)
        if len(self._made) > MOST_MADE:
            self._made.popitem(last=False)

    def wants(self, author: str) -> bool:
        """Whether more items of this author would help."""
        if author not in self._came:
            return len(self._came) < MOST_AUTHORS
        return len(self._came[author]) < MOST_UNMATCHED and self._votes[author].total() < ENOUGH

    def came(self, author: str, receiver: str, mark: str) -> None:
        """An item of `author` with this mark came to `receiver`, which is therefore not the author."""
        if self.wants(author):
            self._votes.setdefault(author, Counter())
            self._came.setdefault(author, {}).setdefault(mark, set()).add(receiver)

    def names(self) -> dict[str, str]:
        """Author → node, for those that are known by now."""
        for author, marks in self._came.items():
            for mark in [mark for mark in marks if mark in self._made]:
                receivers = marks.pop(mark)
                for node in self._made[mark] - receivers:
                    self._votes[author][node] += 1
        found = {}
        for author, votes in self._votes.items():
            ranked = votes.most_common(2)
            if ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]):
                found[author] = ranked[0][0]
        return found
