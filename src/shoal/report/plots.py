"""Plots as SVG: curves with bands, dots with whiskers, and archives as grids.

Colours are names of CSS variables, so that one drawing fits light, dark and paper. Series differ by dashes
too, and cells by letters: nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.runs.markup import Markup, element, number
from shoal.runs.results import ArchiveMap, ArmResults, Chart, Curve, Difference, Estimate, Group, Metric
from shoal.runs.search import Axis, Placed

COLOURS = 8
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 4", "1 3", "12 4", "6 2 1 2")
WIDTH, RIGHT = 420, 10  # near a phone's width, so that text is as large there as the page's
CURVES_HEIGHT, CURVES_LEFT, CURVES_TOP, CURVES_BOTTOM = 260, 46, 12, 40
ROWS_SIDE, ROWS_TOP, ROW, ROWS_BOTTOM = 12, 6, 34, 26
ROW_NAME = 17  # the upper part of a row with a dot, for its name and numbers
MOST_LABEL = 44
GRID_WIDTH, GRID_LEFT, GRID_TOP, GRID_RIGHT, GRID_BOTTOM, GRID_ROW = 330, 74, 6, 6, 50, 32
FAINTEST = 0.10
DARK_FROM = 0.55  # the share of full colour from which text on it is drawn in the colour of the page


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` onto places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(values: Iterable[float], most: int = 6, *, whole: bool = False) -> list[float]:
    """About `most` round numbers, evenly spaced, from below the least value to above the greatest; whole ones
    if asked for."""
    found = list(values) or [0.0, 1.0]
    low, high = min(found), max(found)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-6):
        low, high = low - (abs(low) * 0.1 or 1), high + (abs(high) * 0.1 or 1)
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next((factor * power for factor in factors if factor * power >= rough), 10 * power)
    step = max(1.0, step) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{count * step:.12g}") for count in range(first, last + 1)]


def _colour(index: int) -> str:
    return f"var(--series-{index % COLOURS + 1})"


def _dashes(index: int) -> str | None:
    """Shifted by one after each round of colours: series of the same colour have other dashes."""
    return DASHES[(index + index // COLOURS) % len(DASHES)] or None


def _letter(index: int) -> str:
    return chr(ord("A") + index % 26)


def _label(text: str, x: float, y: float, *, anchor: str = "start", class_: str = "") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_ or None)


def _figure(
    heading: str, parts: Sequence[Markup], height: float, title: str, *below: Markup, width: float = WIDTH
) -> Markup:
    """An SVG that fills the width it is given; `title` is for screen readers."""
    space = {"viewBox": f"0 0 {width:g} {height:g}", "xmlns": "http://www.w3.org/2000/svg"}
    drawing = element("svg", element("title", title), *parts, role="img", **space)
    return element("figure", element("figcaption", heading), drawing, *below)


def _legend(entries: Sequence[tuple[str, int]], *, letters: bool = False) -> Markup:
    """Names with the line (or the lettered square) that stands for them, as text that wraps."""
    items = []
    for name, index in entries:
        if letters:
            key = element("i", _letter(index), class_="square", style=f"background:{_colour(index)}")
        else:
            look = {"stroke_dasharray": _dashes(index), "style": f"stroke:{_colour(index)}"}
            line = element("line", x1=0, y1=5, x2=28, y2=5, **look)
            key = element("svg", line, viewBox="0 0 28 10", class_="key", aria_hidden="true")
        items.append(element("li", key, " ", name))
    return element("ul", *items, class_="legend")


# Curves


def chart_figure(
    chart: Chart, curves: Sequence[Curve], series: Mapping[str, int], *, source: str = ""
) -> Markup:
    """Lines with their bands, and a legend. `series` numbers the lines, `source` stands below the heading."""
    levels = ticks(value for one in curves for value in (*one.value, *one.low, *one.high))
    places = [x for one in curves for x in one.x]
    marks = ticks(places, most=5, whole=all(x.is_integer() for x in places))
    left, right, floor = CURVES_LEFT, WIDTH - RIGHT, CURVES_HEIGHT - CURVES_BOTTOM
    across = Scale(marks[0], marks[-1], left, right)
    upward = Scale(levels[0], levels[-1], floor, CURVES_TOP)
    parts = []
    for level in levels:
        y = upward(level)
        parts.append(element("line", x1=left, y1=y, x2=right, y2=y, class_="grid"))
        parts.append(_label(number(level), left - 6, y + 4, anchor="end", class_="tick"))
    for index, mark in enumerate(marks):
        anchor = "end" if index == len(marks) - 1 else "middle"  # the last one must not leave the picture
        parts.append(_label(number(mark), across(mark), floor + 16, anchor=anchor, class_="tick"))
    middle = (left + right) / 2
    parts.append(_label(chart.x_title, middle, CURVES_HEIGHT - 6, anchor="middle", class_="axis"))

    def points(xs: Sequence[float], ys: Sequence[float]) -> list[str]:
        return [f"{across(x):.1f},{upward(y):.1f}" for x, y in zip(xs, ys, strict=True)]

    for one in curves:
        if one.low:
            band = " ".join([*points(one.x, one.high), *reversed(points(one.x, one.low))])
            parts.append(
                element("polygon", points=band, class_="band", style=f"fill:{_colour(series[one.title])}")
            )
    for one in curves:
        index, line = series[one.title], " ".join(points(one.x, one.value))
        look = {"stroke_dasharray": _dashes(index), "style": f"stroke:{_colour(index)}"}
        parts.append(element("polyline", points=line, class_="curve", **look))
        if len(one.x) == 1:  # a line of one point would not be seen
            x, y = across(one.x[0]), upward(one.value[0])
            parts.append(element("circle", cx=x, cy=y, r=3.5, style=f"fill:{_colour(index)}"))
    names = [
        (f"{one.title}: {number(one.value[-1], chart.digits)} at the end", series[one.title])
        for one in curves
    ]
    title = f"{chart.title}: {chart.y_title} by {chart.x_title}"
    below = [element("p", source, class_="source")] if source else []
    return _figure(f"{chart.title} ({chart.y_title})", parts, CURVES_HEIGHT, title, _legend(names), *below)


# Dots with whiskers: one row per arm or per difference, its name above, its numbers to the right.


@dataclass(frozen=True, slots=True)
class _Row:
    """`strong` draws a full dot, otherwise it is hollow."""

    name: str
    numbers: str
    estimate: Estimate
    class_: str = ""
    strong: bool = True


def arms_figure(
    metric: Metric, arms: Sequence[ArmResults], groups: Sequence[Group], ours: str = ""
) -> Markup | None:
    """The arms by one metric, then the groups. The arm with the title `ours` stands out."""
    rows = [
        _Row(one.title, found.shown(metric.digits), found, "ours" if one.title == ours else class_)
        for members, class_ in ((arms, "arm"), (groups, "group"))
        for one in members
        if (found := one.estimates.get(metric.name)) is not None
    ]
    return _rows_figure(rows, metric.heading) if rows else None


def differences_figure(metric: Metric, differences: Sequence[Difference]) -> Markup | None:
    """Ours less others, with a line at no difference. Full dots are differences that can be shown."""
    chosen = [one for one in differences if one.metric == metric.name]
    if not chosen:
        return None
    one_is_ours = len({one.ours for one in chosen}) == 1
    rows = [
        _Row(
            f"− {one.against}" if one_is_ours else f"{one.ours} − {one.against}",
            one.difference.shown(metric.digits, signed=True),
            one.difference,
            one.judgement(metric),
            one.is_shown,
        )
        for one in chosen
    ]
    whose = f"{chosen[0].ours} in " if one_is_ours else "Differences in "
    return _rows_figure(rows, f"{whose}{metric.heading}", zero=True)


def _rows_figure(rows: Sequence[_Row], heading: str, *, zero: bool = False) -> Markup:
    ends = [
        end
        for row in rows
        for end in (row.estimate.value, row.estimate.low, row.estimate.high)
        if end is not None
    ]
    levels = ticks([*ends, 0.0] if zero else ends, most=5)
    across = Scale(levels[0], levels[-1], ROWS_SIDE, WIDTH - ROWS_SIDE)
    height = ROWS_TOP + ROW * len(rows) + ROWS_BOTTOM
    parts = []
    for index, level in enumerate(levels):
        x = across(level)
        at_zero = "zero" if zero and level == 0 else "grid"
        anchor = "start" if index == 0 else "end" if index == len(levels) - 1 else "middle"
        for place in range(len(rows)):  # beside the whiskers only: no line runs through a name or a number
            above = ROWS_TOP + ROW * place
            parts.append(element("line", x1=x, y1=above + ROW_NAME, x2=x, y2=above + ROW, class_=at_zero))
        parts.append(_label(number(level), x, height - ROWS_BOTTOM + 16, anchor=anchor, class_="tick"))
    for index, row in enumerate(rows):
        parts += _row(row, ROWS_TOP + ROW * index, across)
    return _figure(heading, parts, height, heading)


def _row(row: _Row, top: float, across: Scale) -> list[Markup]:
    y = top + 24
    name = row.name if len(row.name) <= MOST_LABEL else row.name[: MOST_LABEL - 1] + "…"
    parts = [
        _label(name, ROWS_SIDE, top + 13, class_=f"row {row.class_}".strip()),
        _label(row.numbers, WIDTH - ROWS_SIDE, top + 13, anchor="end", class_="tick"),
    ]
    low, high = row.estimate.low, row.estimate.high
    class_ = f"mark {row.class_}".strip()
    if low is not None and high is not None:
        parts.append(element("line", x1=across(low), y1=y, x2=across(high), y2=y, class_=class_))
        for end in (low, high):
            parts.append(element("line", x1=across(end), y1=y - 4, x2=across(end), y2=y + 4, class_=class_))
    dot = class_ if row.strong else f"{class_} hollow"
    parts.append(element("circle", cx=across(row.estimate.value), cy=y, r=4.5, class_=dot))
    return parts


# Archives as grids: the first axis upward, the second across. One with other than two axes is told in words.


def fitness_figure(archive: ArchiveMap, greatest: float) -> Markup:
    """The fitness of the elites: colour from 0 to `greatest`, which maps side by side have in common."""
    scale = Scale(0.0, max(greatest, 1e-9), FAINTEST, 1.0)

    def paint(cell: Placed) -> tuple[str, str, float]:
        return number(cell.fitness, 2), "var(--heat)", min(1.0, max(FAINTEST, scale(cell.fitness)))

    capacity = math.prod(axis.bins for axis in archive.axes)
    return _grid(archive, paint, f"{archive.title}: {len(archive.cells)} of {capacity} cells")


def models_figure(archive: ArchiveMap, models: Mapping[str, int]) -> Markup:
    """The model behind each cell's program; `models` numbers them."""

    def paint(cell: Placed) -> tuple[str, str, float]:
        return _letter(models[cell.model]), _colour(models[cell.model]), 1.0

    counts = {model: sum(cell.model == model for cell in archive.cells) for model in models}
    entries = [(f"{model or 'unknown'}: {count}", models[model]) for model, count in counts.items() if count]
    return _grid(archive, paint, f"{archive.title}: who filled which cell", _legend(entries, letters=True))


def greatest_fitness(archives: Sequence[ArchiveMap]) -> float:
    return max((cell.fitness for archive in archives for cell in archive.cells), default=0.0)


def _grid(
    archive: ArchiveMap,
    paint: Callable[[Placed], tuple[str, str, float]],
    heading: str,
    *below: Markup,
) -> Markup:
    if len(archive.axes) != 2:
        told = element("p", f"An archive with {len(archive.axes)} axes is not drawn.")
        return element("figure", element("figcaption", heading), told, *below)
    upward, across = archive.axes
    wide, high = (GRID_WIDTH - GRID_LEFT - GRID_RIGHT) / across.bins, GRID_ROW
    floor = GRID_TOP + high * upward.bins

    def corner(row: int, column: int) -> tuple[float, float]:
        return GRID_LEFT + wide * column, floor - high * (row + 1)

    def square(row: int, column: int, **look: str) -> Markup:
        x, y = corner(row, column)
        return element("rect", x=x, y=y, width=wide - 1.5, height=high - 1.5, **look)

    parts = []
    for row in range(upward.bins):
        y = corner(row, 0)[1] + high / 2 + 4
        parts.append(_label(bin_label(upward, row), GRID_LEFT - 6, y, anchor="end", class_="tick"))
        parts += [square(row, column, class_="empty") for column in range(across.bins)]
    for column in range(across.bins):
        x = GRID_LEFT + wide * (column + 0.5)
        parts.append(_label(bin_label(across, column), x, floor + 14, anchor="middle", class_="bin"))
    for cell in archive.cells:
        text, fill, strength = paint(cell)
        row, column = cell.cell
        x, y = corner(row, column)
        parts.append(square(row, column, style=f"fill:{fill};fill-opacity:{strength:.2f}"))
        class_ = "on-dark" if strength >= DARK_FROM else "value"
        parts.append(_label(text, x + wide / 2 - 1, y + high / 2 + 4, anchor="middle", class_=class_))
    height, centre = floor + GRID_BOTTOM, (GRID_TOP + floor) / 2
    middle = GRID_LEFT + wide * across.bins / 2
    parts.append(_label(across.measure, middle, height - 14, anchor="middle", class_="axis"))
    turned = {"text_anchor": "middle", "transform": f"rotate(-90 12 {centre:g})", "class_": "axis"}
    parts.append(element("text", upward.measure, x=12, y=centre, **turned))
    title = f"{archive.title}: {upward.measure} by {across.measure}"
    return _figure(heading, parts, height, title, *below, width=GRID_WIDTH)


def bin_label(axis: Axis, index: int) -> str:
    """The values of a bin, short: "<1", "1–10", "≥10k"."""
    edges = [f"{edge / 1000:g}k" if edge >= 1000 else f"{edge:g}" for edge in axis.edges]
    if index == 0:
        return f"<{edges[0]}"
    return f"≥{edges[-1]}" if index == len(edges) else f"{edges[index - 1]}–{edges[index]}"
