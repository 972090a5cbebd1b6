"""Columns of figures that fit the terminal, whatever its width.

Where there is room, everything is shown under full headings. Where there is less, first the gaps and the
headings become shorter, then the least important columns are left out, then long names are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

LEAST_NAME = 8
"""Characters that are left of the first column, however narrow the terminal is."""


class Column(NamedTuple):
    """A figure of a node. `short` stands in the heading where there is little room, `words` is the figure in
    a line of text, with `{}` for it. Columns of the greatest `rank` are left out first; 0 always stays."""

    heading: str
    short: str
    words: str | Callable[[str], str]
    rank: int
    value: Callable[[Any], str]

    def phrase(self, node: Any) -> str:
        value = self.value(node)
        return self.words.format(value) if isinstance(self.words, str) else self.words(value)


def fitted(
    first: str, names: Sequence[str], columns: Sequence[Column], nodes: Sequence[Any], width: int
) -> list[str]:
    """Lines of at most `width` characters: a heading, and one line per node. `names` stand under `first`, to
    the left; figures to the right. Texts are taken as they are: clean them before."""
    cells = [[column.value(node) for column in columns] for node in nodes]
    wanted = list(range(len(columns)))
    longest = max([len(first), *map(len, names)])
    for gap, short in ((2, False), (1, True)):
        headings = [column.short if short else column.heading for column in columns]
        widths = [
            max([len(heading), *(len(row[at]) for row in cells)]) for at, heading in enumerate(headings)
        ]
        if _total(longest, widths, wanted, gap) <= width:
            break
    while _total(longest, widths, wanted, gap) > width:
        least = max(wanted, key=lambda at: (columns[at].rank, at), default=None)
        if least is None or columns[least].rank == 0:
            break
        wanted.remove(least)
    longest = max(LEAST_NAME, min(longest, width - _total(0, widths, wanted, gap)))
    lines = []
    for name, row in [(first, headings), *zip(names, cells, strict=True)]:
        name = name if len(name) <= longest else name[: longest - 1] + "…"
        figures = (row[at].rjust(widths[at]) for at in wanted)
        lines.append((" " * gap).join([name.ljust(longest), *figures])[:width].rstrip())
    return lines


def _total(longest: int, widths: Sequence[int], wanted: Sequence[int], gap: int) -> int:
    return longest + sum(widths[at] + gap for at in wanted)


def number(value: float | None, digits: int = 2) -> str:
    """A dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def rate(value: float | None) -> str:
    """With about three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def amount(value: int) -> str:
    """12345 as 12.3k: a column keeps its width."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if value >= size:
            scaled = value / (1000 if letter == "k" else size)
            return f"{scaled:.1f}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return str(value)


def share_of(spent: int, allowed: int | None) -> str:
    return amount(spent) if allowed is None else f"{amount(spent)}/{amount(allowed)}"


def clock(seconds: float | None) -> str:
    """Minutes and seconds, hours and minutes where there are hours."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
