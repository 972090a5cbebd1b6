"""Lines along calls, each with the band of its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.report.drawing import (
    WIDTH,
    Scale,
    colour,
    dashes,
    drawing,
    figure,
    label,
    legend,
    number,
    span,
    ticks,
)
from shoal.report.markup import Markup, element
from shoal.runs.results import Chart, Curve

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 260, 46, 10, 12, 40


def chart_figure(chart: Chart, curves: Sequence[Curve], series: Mapping[str, int]) -> Markup:
    """The chart with its legend below. `series` numbers the lines: one arm looks the same everywhere."""
    levels = ticks(*span(value for one in curves for value in (*one.value, *one.low, *one.high)))
    marks = ticks(*span(x for one in curves for x in one.x), most=5)
    across = Scale(marks[0], marks[-1], LEFT, WIDTH - RIGHT)
    upward = Scale(levels[0], levels[-1], HEIGHT - BOTTOM, TOP)
    parts = []
    for level in levels:
        y = upward(level)
        parts.append(element("line", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, class_="grid"))
        parts.append(label(number(level), LEFT - 6, y + 4, anchor="end", class_="tick"))
    for index, mark in enumerate(marks):
        anchor = "end" if index == len(marks) - 1 else "middle"  # the last one must not leave the picture
        parts.append(label(number(mark), across(mark), HEIGHT - BOTTOM + 16, anchor=anchor, class_="tick"))
    parts.append(label(chart.x_title, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, anchor="middle", class_="axis"))
    bands = [_band(one, across, upward, series[one.title]) for one in curves if one.low]
    lines = [_line(one, across, upward, series[one.title]) for one in curves]
    names = [(_entry(one), series[one.title]) for one in curves]
    picture = drawing(HEIGHT, [*parts, *bands, *lines], f"{chart.title}: {chart.y_title} by {chart.x_title}")
    return figure(picture, f"{chart.title} ({chart.y_title})", legend(names))


def _entry(one: Curve) -> str:
    return f"{one.title}: {number(one.value[-1], 1)} at the end"


def _band(one: Curve, across: Scale, upward: Scale, index: int) -> Markup:
    upper = [(across(x), upward(y)) for x, y in zip(one.x, one.high, strict=True)]
    lower = [(across(x), upward(y)) for x, y in zip(one.x, one.low, strict=True)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*upper, *reversed(lower)])
    return element("polygon", points=points, class_="band", style=f"fill:{colour(index)}")


def _line(one: Curve, across: Scale, upward: Scale, index: int) -> Markup:
    points = " ".join(f"{across(x):.1f},{upward(y):.1f}" for x, y in zip(one.x, one.value, strict=True))
    return element(
        "polyline",
        points=points,
        class_="curve",
        stroke_dasharray=dashes(index),
        style=f"stroke:{colour(index)}",
    )
