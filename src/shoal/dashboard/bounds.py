"""Bounds of a page about a journal, which may hold anything: cut text, short curves, few names.

The page shows foreign text as text only (`textContent`); the cleaning is for people's eyes and the memory.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from shoal.runs.foreign import visible

LINE = 300  # most characters of a line for people
SOURCE = 64 << 10  # most characters of a program
NAME, DIGEST = 120, 128  # most characters of names, and of digests and keys
MOST_POINTS = 1000
MOST_WHOLE = 2**53 - 1


def shown(text: str, most: int = LINE) -> str:
    """At most `most` characters of `text`, all of them visible, then the number of those left out."""
    extra = len(text) - most
    cut = visible(text[:most] if extra > 0 else text)
    return f"{cut}… ({extra} more characters)" if extra > 0 else cut


def shown_line(text: str, most: int = LINE) -> str:
    """The same on one line."""
    return shown(text[: most + 1].replace("\n", "⏎").replace("\t", " ") + text[most + 1 :], most)


def plain(value: Any) -> Any:
    """The value with numbers that JavaScript can hold: a journal may have any."""
    if isinstance(value, int) and not -MOST_WHOLE <= value <= MOST_WHOLE:
        return MOST_WHOLE if value > 0 else -MOST_WHOLE
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value


class Tally(Counter[str]):
    """Counts by name, of at most `most` names; all further ones count as "others"."""

    def __init__(self, most: int = 32, longest: int = 60) -> None:
        super().__init__()
        self.most = most
        self.longest = longest

    def add(self, name: str, amount: int = 1) -> None:
        name = shown_line(name[: self.longest], self.longest)
        self[name if name in self or len(self) < self.most else "others"] += amount


@dataclass(slots=True, eq=False)
class Series:
    """A curve of any length in fewer than `MOST_POINTS` points. Each stands for `stride` samples: their mean,
    or the last of them for sums that only grow. When the points are used up, neighbours are put together and
    the stride doubles. `generation` counts these times: within one, points are only ever added. Where `x`
    decreases (a run that went on from a checkpoint), the curve goes back."""

    kind: Literal["mean", "last"] = "mean"
    points: list[tuple[float, float]] = field(default_factory=list)
    stride: int = 1
    generation: int = 0
    _x: float = 0.0
    _sum: float = 0.0
    _count: int = 0

    def add(self, x: float, y: float) -> None:
        """Numbers that are not finite are left out: a page cannot draw them."""
        if not (math.isfinite(x) and math.isfinite(y)):
            return
        self._x = x
        self._sum = y if self.kind == "last" else self._sum + y
        self._count += 1
        if self._count >= self.stride:
            self.points.append(self._tip())
            self._sum, self._count = 0.0, 0
            if len(self.points) >= MOST_POINTS:
                self._halve()

    @property
    def tip(self) -> tuple[float, float] | None:
        """The samples since the last point."""
        return self._tip() if self._count else None

    def _tip(self) -> tuple[float, float]:
        return self._x, self._sum if self.kind == "last" else self._sum / self._count

    def _halve(self) -> None:
        pairs = zip(self.points[::2], self.points[1::2], strict=True)
        if self.kind == "last":
            self.points = [second for _, second in pairs]
        else:
            self.points = [(second[0], (first[1] + second[1]) / 2) for first, second in pairs]
        self.stride *= 2
        self.generation += 1


class Curves:
    """The curves of one node, by the titles under which they are drawn. At most `most` are kept."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self.by_title: dict[str, Series] = {}

    def add(self, title: str, x: float, y: float | None, kind: Literal["mean", "last"] = "mean") -> None:
        """Without a value the title only gets its place among the others."""
        if title not in self.by_title and len(self.by_title) < self.most:
            self.by_title[title] = Series(kind)
        if y is not None and title in self.by_title:
            self.by_title[title].add(x, y)
