"""The report of one run of a training swarm, from its summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.report.page import facts, figures, header, how_it_was_run, note, section
from shoal.report.plots import chart_figure
from shoal.runs.markup import Markup, element, number, table
from shoal.runs.results import Chart, Curve
from shoal.runs.training import Spreading, TrainNodeSummary, TrainPoint, TrainSummary

MOST_LINES = 8  # nodes that have a line of their own; more are drawn as their mean and their range
SMOOTHED_SHARE, LEAST_SMOOTHED = 20, 5  # moving means over a twentieth of the steps, at least five


def training_parts(
    name: str, summary: TrainSummary, settings: Mapping[str, Any], versions: Mapping[str, str]
) -> list[Markup | None]:
    """The parts of a page about the run that is called `name`."""
    nodes = summary.nodes
    steps = max((node.steps for node in nodes), default=0)
    state = "finished" if summary.finished else "not finished"
    drawn = [figure for figure in _figures(nodes) if figure is not None]
    told = f"{len(nodes)} nodes, {steps} steps, seed {summary.seed}, {state}."
    return [
        header("Shoal training run", name, told),
        section("Result", _numbers(summary), element("p", _spreading(summary.spreading))),
        section("Along the way", note(_CURVES), figures(drawn)) if drawn else None,
        section("Nodes", _table(_NODE_COLUMNS, nodes)),
        section("What was shared and used", note(_SHARED), _table(_SHARING_COLUMNS, nodes)),
        _by_key("Left out, by reason", nodes, lambda node: {**node.dropped, **node.refused}, _DROPPED),
        _by_key(
            "Held-out reward by task, %",
            nodes,
            lambda node: {family: 100 * reward for family, reward in node.families.items()},
        ),
        _by_key(
            "Tokens until a held-out reward was reached",
            nodes,
            lambda node: {f"{100 * cost.reward:.0f} %": cost.tokens for cost in node.costs},
            _COSTS,
        ),
        how_it_was_run(settings, versions),
    ]


_CURVES = (
    "Local: the mean over a node's own completions. Held-out: greedy answers to tasks of seeds that no "
    "training task has; small families repeat their questions. Batch: over own and foreign groups, as the "
    "SAPO paper (Swarm sAmpling Policy Optimization) plots it; foreign groups without a right answer are "
    "left out, which lifts it. Local and batch are moving means over a twentieth of the steps, and over at "
    "least five."
)
_SHARED = (
    "A group is informative if some of its completions are right and some wrong; from one that is not, "
    "nothing can be learnt. Foreign groups are verified as they are drawn, until there are enough."
)
_DROPPED = "Groups of others that were dropped unread, and those, own or foreign, that were refused."
_COSTS = "Tokens that the node had generated for training at the evaluation that first showed it."


def _numbers(summary: TrainSummary) -> Markup:
    return facts(
        {
            "held-out reward": f"{_percent(summary.reward_held_out)} %, before the first step "
            f"{_percent(summary.reward_held_out_first)} %",
            "local reward, last 10 steps": f"{_percent(summary.reward_local)} %",
            "largest fall of the held-out reward": f"{_percent(summary.largest_fall)} points",
            "oscillation of the local reward": f"{_percent(summary.oscillation)} points",
            "cumulative reward, as in the paper (biased)": number(summary.reward_cumulative, 1),
            "tokens generated": f"{summary.tokens:,}",
            "processor time": f"{summary.cpu:,.1f} s",
        }
    )


def _spreading(found: Spreading) -> str:
    if not found.tasks:
        return "No held-out task was solved by one node before the others."
    told = f"{found.tasks} held-out tasks were solved by some node and not by all at once"
    if found.reached_all is not None:
        told += f"; {_percent(found.reached_all)} % of them by every node at some time"
    if found.median_delay is not None:
        told += f"; the median delay to the next nodes was {number(found.median_delay)} steps"
    return f"{told}."


_Column = Callable[[TrainNodeSummary], str]

_NODE_COLUMNS: dict[str, _Column] = {
    "model": lambda node: node.model if node.trains else f"{node.model}, only contributes",
    "tasks": lambda node: ", ".join(node.tasks),
    "steps": lambda node: str(node.steps),
    "held-out, %": lambda node: _percent(node.reward_held_out),
    "at first, %": lambda node: _percent(node.reward_held_out_first),
    "local, %": lambda node: _percent(node.reward_local),
    "largest fall": lambda node: _percent(node.largest_fall),
    "oscillation": lambda node: _percent(node.oscillation),
    "tokens": lambda node: f"{node.tokens:,}",
    "processor, s": lambda node: f"{node.cpu:,.1f}",
    "ended": lambda node: node.ended or "not yet",
}
_SHARING_COLUMNS: dict[str, _Column] = {
    "own groups": lambda node: f"{node.own_groups:,}",
    "informative, %": lambda node: _share(node.own_informative, node.own_groups),
    "shared": lambda node: f"{node.shared_groups:,}",
    "foreign seen": lambda node: f"{node.foreign_seen:,}",
    "verified": lambda node: f"{node.foreign_verified:,}",
    "informative of these, %": lambda node: _share(node.foreign_informative, node.foreign_verified),
    "trained on": lambda node: f"{node.foreign_used:,}",
}


def _table(columns: Mapping[str, _Column], nodes: Sequence[TrainNodeSummary]) -> Markup:
    rows = [[node.name, *(column(node) for column in columns.values())] for node in nodes]
    return table(["node", *columns], rows)


def _by_key(
    heading: str,
    nodes: Sequence[TrainNodeSummary],
    values: Callable[[TrainNodeSummary], Mapping[str, float]],
    told: str = "",
) -> Markup | None:
    """A table of the values that nodes have under names of their own, one column per name."""
    found = {node.name: values(node) for node in nodes}
    keys = list(dict.fromkeys(key for one in found.values() for key in one))
    if not keys:
        return None
    rows = [[node.name, *(_count(found[node.name].get(key)) for key in keys)] for node in nodes]
    return section(heading, note(told) if told else None, table(["node", *keys], rows))


def _figures(nodes: Sequence[TrainNodeSummary]) -> list[Markup | None]:
    learning = [node for node in nodes if node.trains]
    series = {node.name: index for index, node in enumerate(nodes)}
    return [
        _figure("Held-out reward", {node.name: node.curve_held_out for node in learning}, series),
        _figure("Local reward", {node.name: _smooth(node.curve_local) for node in nodes}, series),
        _figure("Batch reward (biased)", {node.name: _smooth(node.curve_batch) for node in learning}, series),
    ]


def _figure(title: str, lines: Mapping[str, list[TrainPoint]], series: Mapping[str, int]) -> Markup | None:
    drawn = [(name, points) for name, points in lines.items() if points]
    if not drawn:
        return None
    chart = Chart(title, title, "steps", "%")
    if len(drawn) > MOST_LINES:
        merged = _range(title, [points for _, points in drawn])
        return chart_figure(chart, [merged], {merged.title: 0})
    curves = [
        Curve(title, name, [float(x) for x, _ in points], [100 * y for _, y in points], [], [])
        for name, points in drawn
    ]
    return chart_figure(chart, curves, series)


def _range(title: str, lines: Sequence[list[TrainPoint]]) -> Curve:
    """The mean over nodes; the band is from the least to the greatest of them."""
    at: dict[int, list[float]] = {}
    for points in lines:
        for step, value in points:
            at.setdefault(step, []).append(100 * value)
    steps = sorted(at)
    return Curve(
        title,
        f"mean and range of {len(lines)} nodes",
        [float(step) for step in steps],
        [sum(at[step]) / len(at[step]) for step in steps],
        [min(at[step]) for step in steps],
        [max(at[step]) for step in steps],
    )


def _smooth(points: list[TrainPoint]) -> list[TrainPoint]:
    window = max(LEAST_SMOOTHED, len(points) // SMOOTHED_SHARE)
    found = []
    for place, (step, _) in enumerate(points):
        recent = [value for _, value in points[max(0, place - window + 1) : place + 1]]
        found.append((step, sum(recent) / len(recent)))
    return found


def _percent(value: float | None) -> str:
    return "–" if value is None else number(100 * value, 1)


def _share(part: int, whole: int) -> str:
    return _percent(part / whole) if whole else "–"


def _count(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else number(value, 1)
