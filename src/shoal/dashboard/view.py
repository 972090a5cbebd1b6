"""The part of a node's page that belongs to its application, and the nodes behind the authors of items."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from shoal.dashboard.bounds import Curves, Tally
from shoal.runs.records import Arrived, VerdictGiven

MOST_AUTHORS = 512
MOST_MADE = 4096
MOST_UNMATCHED = 32
ENOUGH = 8  # items of an author that are looked at once its node is known


class View:
    """A fold over the payloads of one node's journal, in bounded memory. Applications subclass it and name
    the subclass in their manifest; everything has a default. `tabs` are its tabs on the page, `used` counts
    the used items of each author, `rollouts_version` grows when `rollouts` change."""

    tabs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, model: str, authors: Authors) -> None:
        self.name = name
        self.model = model
        self.authors = authors
        self.curves = Curves()
        self.grids: dict[str, Grid] = {}
        self.used = Tally(64, 128)
        self.rollouts_version = 0

    def asked(self, turn: int, request: msgspec.Raw) -> None: ...

    def answered(self, turn: int, answer: msgspec.Raw) -> None: ...

    def arrived(self, item: Arrived) -> None: ...

    def judged(self, verdict: VerdictGiven) -> None: ...

    def noted(self, note: msgspec.Raw, version: int) -> str:
        """Takes in a turn's note at this `version` of the node. Returns a line for people, or nothing."""
        return ""

    def head(self, turn: int) -> dict[str, Any]:
        """Small figures: `progress` and `result` in words, and others that the application's tabs show."""
        return {"progress": f"turn {turn:,}", "result": "–"}

    def rollouts(self) -> list[dict[str, Any]]:
        return []

    def program(self, digest: str) -> Kept | None:
        return None


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell and its elite, which took it in `turn`, at this `version` of the node."""

    cell: tuple[int, ...]
    fitness: float
    digest: str
    model: str
    node: str
    turn: int
    version: int


@dataclass(slots=True, eq=False)
class Grid:
    """The cells of one archive. `generation` counts the archives: a new round begins an empty one."""

    generation: int = 0
    round: int = 0
    cells: dict[tuple[int, ...], CellView] = field(default_factory=dict)

    def replace(self, round_number: int, cells: dict[tuple[int, ...], CellView]) -> None:
        self.generation += 1
        self.round = round_number
        self.cells = dict(cells)


@dataclass(frozen=True, slots=True)
class Kept:
    """A program. `whole`: its source was not cut. `turn` is 0 for programs that came from elsewhere."""

    digest: str
    source: str
    model: str
    node: str
    round: int
    parent: str | None
    turn: int
    fitness: float | None = None
    whole: bool = True


class Authors:
    """Tells which node of a run an author is. Journals name authors by their keys and nodes by their names.
    They are matched by their writings: if an author's items are the items that a node made, it is that node.
    Nothing that an author says about itself is used. An author from outside the run matches no node."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, set[str]] = OrderedDict()
        self._came: dict[str, dict[str, set[str]]] = {}
        self._votes: dict[str, Counter[str]] = {}

    def made(self, node: str, mark: str) -> None:
        """`node` shared an item with this mark."""
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
