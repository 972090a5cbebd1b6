"""A curve of any length in at most `MOST_POINTS` points.

Each point stands for `stride` samples: their mean, or the last of them for sums that only grow. When the
points are used up, neighbours are put together and the stride doubles, so a million samples cost about as
much as a thousand. `generation` counts these times: within one, points are only ever added.
"""

from __future__ import annotations

import math
from typing import Literal

MOST_POINTS = 1000


class Series:
    """`x` must not decrease; where it does (a run that went on from a checkpoint), the curve goes back."""

    __slots__ = ("_count", "_sum", "_x", "generation", "kind", "points", "stride")

    def __init__(self, kind: Literal["mean", "last"] = "mean") -> None:
        self.kind = kind
        self.points: list[tuple[float, float]] = []
        self.stride = 1
        self.generation = 0
        self._x = 0.0
        self._sum = 0.0
        self._count = 0

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
    """The named curves of one node; names beyond `most` are left out, as journals may hold any."""

    def __init__(self, most: int = 32) -> None:
        self.most = most
        self.by_name: dict[str, Series] = {}

    def add(self, name: str, x: float, y: float | None, kind: Literal["mean", "last"] = "mean") -> None:
        if y is None:
            return
        series = self.by_name.get(name)
        if series is None:
            if len(self.by_name) >= self.most:
                return
            series = self.by_name[name] = Series(kind)
        series.add(x, y)
