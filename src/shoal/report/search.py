"""The report of one run of a search, from its summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.report.page import figures, header, how_it_was_run, note, program, section
from shoal.report.plots import chart_figure, fitness_figure, greatest_fitness, models_figure
from shoal.runs.markup import Markup, element, number, table
from shoal.runs.results import ArchiveMap, Chart, Curve
from shoal.runs.search import SearchNodeSummary, SearchPoint, SearchSummary

NODE_COLUMNS = (
    "model rounds calls tokens proposals valid duplicates accepted champions_received cells rounds_heard"
).split()
_HEADINGS = [field.removeprefix("champions_").replace("_", " ") for field in NODE_COLUMNS]
_EVALUATORS = (
    "Common: every elite evaluated anew against one set of opponents, the same for all runs. Raw: as each "
    "node measured, against its own opponents, whose number raises fitness."
)
_NOVELTY = (
    "η, niche novelty: of the received champions, the share whose cell was empty in the archive of the round "
    "before; the mean over the rounds heard, those for which champions had arrived."
)
_FALLS = (
    "Both curves fall when a round opens: archives begin afresh against one more opponent, so that raw "
    "numbers of different rounds cannot be compared. The common numbers above can."
)


def search_parts(
    name: str, summary: SearchSummary, settings: Mapping[str, Any], versions: Mapping[str, str]
) -> list[Markup | None]:
    """The parts of a page about the run that is called `name`."""
    common = ArchiveMap("", "common opponents", 0, "common", [], summary.axes, summary.cells_common)
    raw = ArchiveMap("", "as each node measured", 0, "raw", [], summary.axes, summary.cells_raw)
    names = sorted({cell.model for one in (common, raw) for cell in one.cells})
    models = {model: index for index, model in enumerate(names)}
    maps = [fitness_figure(one, greatest_fitness([one])) for one in (common, raw)]
    state = "finished" if summary.finished else "not finished"
    numbers = [
        ("coverage, %", 100 * summary.coverage_common, 100 * summary.coverage),
        ("QD-score", summary.qd_score_common, summary.qd_score),
        ("best fitness", summary.best_common, summary.best),
    ]
    effort = (
        f"{summary.tokens:,} tokens, {summary.simulations:,} {summary.words.plays}, "
        f"{summary.shared_bytes:,} bytes shared."
    )
    return [
        header("Shoal run", name, f"{len(summary.nodes)} nodes, {summary.calls} calls, {state}."),
        section(
            "Result",
            table(
                ["", "common", "raw"],
                [[name, *(number(value, 2) for value in values)] for name, *values in numbers],
            ),
            note(_EVALUATORS),
            element("p", effort),
        ),
        section(
            "Nodes",
            table(
                ["node", *_HEADINGS, "η, %"],
                [
                    [node.name, *(str(getattr(node, field)) for field in NODE_COLUMNS), _novelty(node)]
                    for node in summary.nodes
                ],
            ),
            note(_NOVELTY),
        ),
        section("Along the way", figures(_curves(summary.curve)), element("p", _FALLS))
        if summary.curve
        else None,
        section("Archive", figures([*maps, models_figure(common, models)], "figures small")),
        _best(summary) if summary.best_source else None,
        how_it_was_run(settings, versions),
    ]


def _novelty(node: SearchNodeSummary) -> str:
    return "–" if node.novelty is None else number(100 * node.novelty, 0)


def _curves(points: list[SearchPoint]) -> list[Markup]:
    calls = [float(point.calls) for point in points]
    values = {
        "Coverage, %": [100 * point.coverage for point in points],
        "QD-score, raw": [point.qd_score for point in points],
    }
    return [
        chart_figure(
            Chart(title, title, "calls of all nodes", "all nodes merged"),
            [Curve(title, "merged", calls, found, [], [])],
            {"merged": 0},
        )
        for title, found in values.items()
    ]


def _best(summary: SearchSummary) -> Markup:
    contest = summary.held_out
    told = contest and (
        f"Against {contest.opponents} {summary.words.programs} ({contest.name}): {contest.wins} won, "
        f"{contest.ties} tied, {contest.losses} lost; {contest.points_percent:.1f} % of all points."
    )
    heading = f"The best {summary.words.program}"
    return section(heading, element("p", told) if told else None, program(summary.best_source))
