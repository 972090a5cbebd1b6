"""Tables of an experiment beside those of its paper: our number and the published one in the same cell."""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.runs.markup import number, with_sign
from shoal.runs.search import HeldOutSet


class Spread(msgspec.Struct, frozen=True):
    """The mean of `count` values and their standard deviation (n − 1), as papers print them. One value has no
    deviation."""

    mean: float
    deviation: float | None
    count: int

    def shown(self, digits: int, *, signed: bool = False) -> str:
        return _with_deviation(self.mean, self.deviation, digits, signed)


How = Literal["stated", "second-hand", "read off", "computed"]
"""Where a published number is from: the paper itself; full readings of it by others; its figure, by eye; or
its other numbers."""


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number of a paper; with `highest` it is a range."""

    value: float
    deviation: float | None = None
    highest: float | None = None
    how: How = "stated"

    def shown(self, digits: int, *, signed: bool = False) -> str:
        about = "≈ " if self.how == "read off" else ""
        if self.highest is not None:
            return f"{about}{number(self.value, digits)} to {number(self.highest, digits)}"
        return about + _with_deviation(self.value, self.deviation, digits, signed)


class PaperCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """Our number and the paper's, side by side. `note` stands for the paper's where that is missing."""

    ours: Spread | None = None
    paper: Published | None = None
    note: str = ""


class PaperColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    title: str
    unit: str = ""
    digits: int = 3
    signed: bool = False


class PaperRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cell per column. `of_paper`: a row of the paper alone, which no run of ours belongs to."""

    title: str
    cells: list[PaperCell]
    of_paper: bool = False


class PaperTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table beside the paper's. `source` is the paper's table, "" where it has none; `notes` say what the
    numbers are. `folded`: it is long, and shown when asked for."""

    name: str
    title: str
    source: str
    columns: list[PaperColumn]
    rows: list[PaperRow]
    notes: list[str] = []
    folded: bool = False


class BesidePaper(msgspec.Struct, frozen=True):
    """An experiment beside the published one: the `paper`'s short name, the published choices that these runs
    do not follow (`departures`), and tables with both numbers. `held_out` is the set that champions met."""

    paper: str
    departures: list[str]
    tables: list[PaperTable]
    held_out: HeldOutSet | None = None


def _with_deviation(value: float, deviation: float | None, digits: int, signed: bool) -> str:
    text = with_sign(value, digits) if signed else number(value, digits)
    return text if deviation is None else f"{text} ± {number(deviation, digits)}"
