"""The report of one run of a search, from its summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.report.curves import chart_figure
from shoal.report.drawing import number
from shoal.report.heatmap import fitness_figure, greatest_fitness, models_figure
from shoal.report.markup import Markup, element
from shoal.report.page import facts, folded, program, section, side_by_side
from shoal.runs.results import ArchiveMap, Chart, Curve
from shoal.runs.search import SearchNodeSummary, SearchPoint, SearchSummary


def search_parts(
    name: str, summary: SearchSummary, settings: Mapping[str, Any], versions: Mapping[str, str]
) -> list[Markup]:
    """The parts of a page about the run that is called `name`."""
    maps = {
        evaluation: ArchiveMap("", title, 0, evaluation, [], summary.axes, cells)
        for evaluation, title, cells in (
            ("common", "common opponents", summary.cells_common),
            ("raw", "as each node measured", summary.cells_raw),
        )
    }
    models = {
        model: index
        for index, model in enumerate(sorted({cell.model for one in maps.values() for cell in one.cells}))
    }
    state = "finished" if summary.finished else "not finished"
    return [
        element(
            "header",
            element("h1", "Shoal run"),
            element("p", name, class_="lead"),
            element("p", f"{len(summary.nodes)} nodes, {summary.calls} calls, {state}."),
        ),
        section("Result", _numbers(summary)),
        section("Nodes", _nodes(summary.nodes)),
        _along_the_way(summary.curve) if summary.curve else Markup(""),
        section(
            "Archive",
            side_by_side(
                [
                    *(fitness_figure(one, greatest_fitness([one])) for one in maps.values()),
                    models_figure(maps["common"], models),
                ],
                "figures small",
            ),
        ),
        *_best(summary),
        section(
            "How it was run",
            folded("All settings", facts(settings)),
            folded("Versions of what was installed", facts(versions)),
        ),
    ]


def _numbers(summary: SearchSummary) -> Markup:
    rows = [
        ("coverage, %", 100 * summary.coverage_common, 100 * summary.coverage),
        ("QD-score", summary.qd_score_common, summary.qd_score),
        ("best fitness", summary.best_common, summary.best),
    ]
    head = element("tr", *(element("th", text, scope="col") for text in ("", "common", "raw")))
    body = [
        element(
            "tr", element("th", name, scope="row"), *(element("td", number(value, 2)) for value in values)
        )
        for name, *values in rows
    ]
    told = (
        "Common: every elite evaluated anew against one set of opponents, the same for all runs. Raw: as "
        "each node measured, against its own opponents, whose number raises fitness."
    )
    effort = (
        f"{summary.tokens:,} tokens, {summary.simulations:,} {summary.words.plays}, "
        f"{summary.shared_bytes:,} bytes shared."
    )
    table = element("table", element("thead", head), element("tbody", *body))
    return element(
        "div", element("div", table, class_="wide"), element("p", told, class_="note"), element("p", effort)
    )


def _nodes(nodes: list[SearchNodeSummary]) -> Markup:
    titles = {
        "model": "model",
        "calls": "calls",
        "tokens": "tokens",
        "proposals": "proposals",
        "valid": "valid",
        "duplicates": "duplicates",
        "accepted": "accepted",
        "champions_received": "received",
        "cells": "cells",
    }
    head = element("tr", *(element("th", text, scope="col") for text in ("node", *titles.values())))
    body = [
        element(
            "tr",
            element("th", node.name, scope="row"),
            *(element("td", str(getattr(node, field))) for field in titles),
        )
        for node in nodes
    ]
    table = element("table", element("thead", head), element("tbody", *body))
    return element("div", table, class_="wide", tabindex=0)


def _along_the_way(points: list[SearchPoint]) -> Markup:
    falls = (
        "Both curves fall when a round opens: archives begin afresh against one more opponent, so that raw "
        "numbers of different rounds cannot be compared. The common numbers above can."
    )
    return section("Along the way", side_by_side(_curves(points)), element("p", falls))


def _curves(points: list[SearchPoint]) -> list[Markup]:
    calls = [float(point.calls) for point in points]
    drawn = []
    for title, values in (
        ("Coverage, %", [100 * point.coverage for point in points]),
        ("QD-score, raw", [point.qd_score for point in points]),
    ):
        chart = Chart(title, title, "calls of all nodes", "all nodes merged")
        drawn.append(chart_figure(chart, [Curve(title, "merged", calls, values, [], [])], {"merged": 0}))
    return drawn


def _best(summary: SearchSummary) -> list[Markup]:
    if not summary.best_source:
        return []
    contest = summary.held_out
    told = contest and (
        f"Against {contest.opponents} programs ({contest.name}): {contest.wins} won, {contest.ties} tied, "
        f"{contest.losses} lost; {contest.points_percent:.1f} % of all points."
    )
    return [
        section("The best program", element("p", told) if told else None, program(summary.best_source)),
    ]
