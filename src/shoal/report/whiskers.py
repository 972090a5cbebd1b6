"""Dots with whiskers: one row per arm or per difference, its name above, its numbers to the right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.report.drawing import WIDTH, Scale, drawing, figure, label, number, span, ticks
from shoal.report.markup import Markup, element
from shoal.report.tables import signed
from shoal.runs.results import ArmResults, Difference, Estimate, Group, Metric

LEFT, RIGHT, TOP, ROW, BOTTOM = 12, 12, 6, 34, 26
NAME = 17
"""The upper part of a row, for its name and numbers."""
MOST_LABEL = 44


@dataclass(frozen=True, slots=True)
class Row:
    """`strong` draws a full dot, otherwise it is hollow."""

    name: str
    numbers: str
    estimate: Estimate
    class_: str = ""
    strong: bool = True


def arms_figure(
    metric: Metric, arms: Sequence[ArmResults], groups: Sequence[Group], ours: str = ""
) -> Markup | None:
    """How the arms did by one metric; the rows made of several arms stand at the end. The arm with the title
    `ours`, which the others are compared with, stands out."""
    rows = [
        Row(
            one.title,
            _numbers(one.estimates[metric.name], metric),
            one.estimates[metric.name],
            "ours" if one.title == ours else class_,
        )
        for members, class_ in ((arms, "arm"), (groups, "group"))
        for one in members
        if metric.name in one.estimates
    ]
    return _plot(rows, _heading(metric)) if rows else None


def differences_figure(metric: Metric, differences: Sequence[Difference]) -> Markup | None:
    """Ours less others, with a line at no difference. Full dots are differences that can be shown."""
    if not differences:
        return None
    one_is_ours = len({one.ours for one in differences}) == 1
    rows = [
        Row(
            f"− {one.against}" if one_is_ours else f"{one.ours} − {one.against}",
            signed(one.difference, metric),
            one.difference,
            _judgement(one, metric),
            one.verdict in ("greater", "less"),
        )
        for one in differences
    ]
    whose = f"{differences[0].ours} in " if one_is_ours else "Differences in "
    return _plot(rows, f"{whose}{_heading(metric)}", zero=True)


def _judgement(one: Difference, metric: Metric) -> str:
    if not metric.better or one.verdict not in ("greater", "less"):
        return ""
    return "better" if one.verdict == metric.better else "worse"


def _heading(metric: Metric) -> str:
    return f"{metric.title}{f' ({metric.unit})' if metric.unit else ''}"


def _numbers(estimate: Estimate, metric: Metric) -> str:
    text = number(estimate.value, metric.digits)
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{number(estimate.low, metric.digits)}, {number(estimate.high, metric.digits)}]"


def _plot(rows: Sequence[Row], heading: str, *, zero: bool = False) -> Markup:
    ends = [
        end
        for row in rows
        for end in (row.estimate.value, row.estimate.low, row.estimate.high)
        if end is not None
    ]
    levels = ticks(*span([*ends, 0.0] if zero else ends), most=5)
    across = Scale(levels[0], levels[-1], LEFT, WIDTH - RIGHT)
    height = TOP + ROW * len(rows) + BOTTOM
    parts = []
    for index, level in enumerate(levels):
        x = across(level)
        at_zero = "zero" if zero and level == 0 else "grid"
        anchor = "start" if index == 0 else "end" if index == len(levels) - 1 else "middle"
        for place in range(len(rows)):  # beside the whiskers only: no line runs through a name or a number
            above = TOP + ROW * place
            parts.append(element("line", x1=x, y1=above + NAME, x2=x, y2=above + ROW, class_=at_zero))
        parts.append(label(number(level), x, height - BOTTOM + 16, anchor=anchor, class_="tick"))
    for index, row in enumerate(rows):
        parts += _row(row, TOP + ROW * index, across)
    return figure(drawing(height, parts, heading), heading)


def _row(row: Row, top: float, across: Scale) -> list[Markup]:
    y = top + 24
    name = row.name if len(row.name) <= MOST_LABEL else row.name[: MOST_LABEL - 1] + "…"
    parts = [
        label(name, LEFT, top + 13, class_=f"row {row.class_}".strip()),
        label(row.numbers, WIDTH - RIGHT, top + 13, anchor="end", class_="tick"),
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
