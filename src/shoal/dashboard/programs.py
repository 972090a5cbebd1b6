"""The programs that a page may be asked for: those that took a cell, within a budget of characters.

What holds a cell is kept; the rest makes room, oldest first. A parent was an elite when it was drawn, so a
lineage is complete for as long as its programs fit.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from shoal.dashboard.text import SOURCE

BUDGET = 8 << 20
ENTRY = 400
"""What one entry costs besides its text."""


@dataclass(frozen=True, slots=True)
class Kept:
    """`whole`: the source was not cut. `turn` is 0 for programs that came from elsewhere."""

    digest: str
    source: str
    model: str
    node: str
    round: int
    parent: str | None
    turn: int
    fitness: float | None = None
    whole: bool = True


class Programs:
    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.size = 0
        self._kept: dict[str, Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, digest: str) -> Kept | None:
        return self._kept.get(digest)

    def add(self, one: Kept, held: Container[str]) -> None:
        """Keeps a program; `held` are the digests that must stay. One that was made here is not replaced by
        what is told about it later."""
        old = self._kept.get(one.digest)
        if old is not None and (old.turn or not one.turn):
            return
        if len(one.source) > SOURCE:
            one = Kept(
                one.digest, one.source[:SOURCE], one.model, one.node, one.round, one.parent, one.turn,
                one.fitness, whole=False,
            )  # fmt: skip
        if old is not None:
            self._remove(one.digest)
        self._kept[one.digest] = one
        self.size += len(one.source) + ENTRY
        if self.size > self.budget:
            self._make_room(held)

    def _make_room(self, held: Container[str]) -> None:
        # To three quarters, so that not every program costs a search. If all of it is held, all of it stays:
        # an archive has few cells.
        for digest in [digest for digest in self._kept if digest not in held]:
            if self.size <= self.budget * 3 // 4:
                break
            self._remove(digest)

    def _remove(self, digest: str) -> None:
        self.size -= len(self._kept.pop(digest).source) + ENTRY


def lineage(
    find: Callable[[str], Kept | None], digest: str, *, most: int = 20, characters: int = 256 << 10
) -> list[Kept]:
    """A program, its parent, and so on as far as they are known, within bounds. Never goes in circles."""
    found: list[Kept] = []
    seen: set[str] = set()
    wanted: str | None = digest
    while wanted and wanted not in seen and len(found) < most:
        seen.add(wanted)
        one = find(wanted)
        if one is None:
            break
        characters -= len(one.source)
        if found and characters < 0:
            break
        found.append(one)
        wanted = one.parent
    return found
