"""The report of a judge's run, from its summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from shoal.report.page import bullets, facts, figures, header, how_it_was_run, note, section
from shoal.report.plots import chart_figure
from shoal.runs.judging import Entrant, JudgeSummary, ModelComparison, RoundTest, count_families
from shoal.runs.markup import Markup, element, number, table
from shoal.runs.results import Chart, Curve

MOST_LINES = 8  # nodes that have a line of their own
MOST_POINTS = 200
MOST_NODES = 200
MOST_TESTS = 12


def judging_parts(
    name: str, summary: JudgeSummary, settings: Mapping[str, Any], versions: Mapping[str, str]
) -> list[Markup | None]:
    """The parts of a page about the run that is called `name`."""
    state = "finished" if summary.finished else "not finished"
    told = f"{len(summary.entrants)} nodes, {summary.asked:,} questions asked, {state}."
    curves = _curves(summary.entrants)
    return [
        header("Shoal judge", name, told),
        section("Result", _numbers(summary)),
        section("The board", note(_BOARD), _board(summary.entrants)),
        section("By rounds that a node took part in", note(_CURVES), curves) if curves else None,
        section("In the swarm and alone", note(_COMPARED), *map(_comparison, summary.comparisons))
        if summary.comparisons
        else None,
        section("Passed over, by reason", _counts(summary.refused)) if summary.refused else None,
        how_it_was_run(settings, versions),
    ]


_BOARD = (
    "Each node was asked one fresh question after a round of its own. Pass@1 is the share of right answers; "
    "a question without an answer in time counts as a wrong one. A node's model, and whether it trains in "
    "the swarm or alone, are its own claims."
)
_CURVES = (
    "Rounds are normalised: a node's first round here is the first one that it was asked about, and so on, "
    "whenever that was."
)
_COMPARED = (
    "As in the SAPO paper's open demonstration (Swarm sAmpling Policy Optimization): cumulative rewards of "
    "nodes that claim the same model, at the same number of rounds. p is of the two-sided test of Mann, "
    "Whitney and Wilcoxon, adjusted for all tests of the board by Benjamini and Hochberg. The paper found a "
    "difference from about round 175 on for Qwen2.5-0.5B, and none for Qwen3-0.6B."
)


def _numbers(summary: JudgeSummary) -> Markup:
    counted = sum(one.rounds for one in summary.entrants)
    families = count_families(summary.entrants)
    return facts(
        {
            "judge": summary.judge or "–",
            "families": ", ".join(f"{name} ({count:,})" for name, count in families.most_common())
            or ", ".join(summary.tasks),
            "questions asked": f"{summary.asked:,}",
            "answered": f"{summary.answered:,}",
            "right": f"{summary.right:,}",
            "right of all that count": _percent(summary.right / counted if counted else None),
            "without an answer yet": f"{summary.open:,}",
            "ended": summary.ended or "not yet",
        }
    )


def _board(entrants: Sequence[Entrant]) -> Markup:
    headings = (
        "node", "model (claimed)", "trains (claimed)", "rounds", "answered", "right", "pass@1, %",
        "cumulative reward", "",
    )  # fmt: skip
    rows = [
        (
            one.author[:8],
            one.model or "–",
            "alone" if one.alone else "in the swarm",
            f"{one.rounds:,}",
            f"{one.answered:,}",
            f"{one.right:,}",
            _percent(one.pass_at_1),
            number(one.reward, 2),
            "left" if one.left else "",
        )
        for one in entrants[:MOST_NODES]
    ]
    more = len(entrants) - MOST_NODES
    shown = table(headings, rows)
    return element("div", shown, note(f"and {more:,} more nodes")) if more > 0 else shown


def _curves(entrants: Sequence[Entrant]) -> Markup | None:
    """The cumulative reward of the nodes that took part most often."""
    busiest = sorted((one for one in entrants if one.rewards), key=lambda one: -one.rounds)[:MOST_LINES]
    if not busiest:
        return None
    lines = [_line(f"{one.name} ({'alone' if one.alone else 'swarm'})", one.rewards) for one in busiest]
    chart = Chart("Cumulative reward", "Cumulative reward", "rounds taken part in", "sum of rewards")
    titles = {one.title: index for index, one in enumerate(lines)}
    return figures([chart_figure(chart, lines, titles)])


def _line(title: str, rewards: Sequence[float]) -> Curve:
    sums = list(accumulate(rewards))
    count = min(len(sums), MOST_POINTS)
    places = sorted({round(len(sums) * place / count) for place in range(1, count + 1)})
    return Curve("", title, [float(place) for place in places], [sums[place - 1] for place in places], [], [])


def _comparison(found: ModelComparison) -> Markup:
    chosen = _some(found.tests)
    rows = [
        (
            f"{test.round:,}",
            f"{test.nodes_swarm:,}",
            f"{test.nodes_alone:,}",
            number(test.mean_swarm, 2),
            number(test.mean_alone, 2),
            number(test.mean_swarm - test.mean_alone, 2),
            "too few" if test.adjusted is None else f"{test.adjusted:.2g}",
        )
        for test in chosen
    ]
    headings = ("round", "in the swarm", "alone", "mean reward", "alone", "difference", "adjusted p")
    parts: list[Markup] = [bullets([f"{found.model or 'no model'}: {found.found}"])]
    if rows:
        sides = [
            Curve("", title, [float(test.round) for test in found.tests], values, [], [])
            for title, values in (
                ("in the swarm", [test.mean_swarm for test in found.tests]),
                ("alone", [test.mean_alone for test in found.tests]),
            )
        ]
        chart = Chart("Mean", f"Mean cumulative reward, {found.model}", "rounds taken part in", "reward")
        parts += [
            figures([chart_figure(chart, sides, {"in the swarm": 0, "alone": 1})]),
            table(headings, rows),
        ]
    return element("div", *parts)


def _some(tests: Sequence[RoundTest]) -> list[RoundTest]:
    """A few of them, evenly spaced, the last one included."""
    count = min(len(tests), MOST_TESTS)
    return [tests[round(len(tests) * place / count) - 1] for place in range(1, count + 1)]


def _counts(counts: Mapping[str, int]) -> Markup:
    return table(("reason", "words"), [(reason, f"{count:,}") for reason, count in counts.items()])


def _percent(value: float | None) -> str:
    return "–" if value is None else number(100 * value, 1)
