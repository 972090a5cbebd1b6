"""A comparison of searches beside the DEI paper: its tables with our numbers in the same cells, and curves
by round. All values are first taken for each seed, as a mean over nodes or arms, and then told as the mean
and the deviation (n − 1) over seeds."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from shoal.evolve.settings import EvolveSettings
from shoal.lab.experiment import Arm, Plan
from shoal.lab.published import (
    DEI_CHANGES,
    DEI_FINAL,
    DEI_NODES,
    DEI_NOVELTY_RANGE,
    PUBLISHED_CALLS,
)
from shoal.lab.statistics import estimate
from shoal.lab.tables import BySeed, Points, Summaries, mean_of, spread
from shoal.models import parse_spec
from shoal.presets import find_preset
from shoal.runs.papers import (
    BesidePaper,
    PaperCell,
    PaperColumn,
    PaperRow,
    PaperTable,
    Published,
    Spread,
)
from shoal.runs.results import Chart, Curve
from shoal.runs.search import HeldOutSet, NodeRound, SearchNodeSummary, SearchSummary

PAPER = "DEI"
CONDITIONS = {"solo": "Solo", "homogeneous": "Homo", "heterogeneous": "Diverse"}
"""The paper's names of its three conditions."""
MOST_ROUNDS = 24
"""Rounds that a table has columns for; of more, some are left out, evenly."""

OfNode = Callable[[SearchNodeSummary], float | None]
OfRun = Callable[[SearchSummary], float]


class Node(NamedTuple):
    """One node of an arm: the arm, its place in the run, and its model."""

    arm: Arm
    place: int
    model: str


class Compared:
    """The plan of a comparison with the summaries of its finished runs."""

    def __init__(self, plan: Plan, summaries: Summaries[SearchSummary]) -> None:
        self.plan = plan
        self._summaries = summaries
        self.nodes = [
            Node(arm, place, model) for arm in plan.arms for place, model in enumerate(arm.settings["models"])
        ]
        self.models = list(dict.fromkeys(node.model for node in self.nodes))
        self.families = list(dict.fromkeys(arm.family for arm in plan.arms))

    @property
    def held_out(self) -> HeldOutSet | None:
        """The set that champions met, the same in all runs."""
        runs = (run for by_seed in self._summaries.values() for run in by_seed.values())
        return next((run.held_out_set for run in runs if run.held_out_set is not None), None)

    @property
    def rounds(self) -> int:
        return int(self.plan.arms[0].settings["rounds"])

    def of_runs(self, arm: Arm, of: OfRun) -> BySeed:
        return {seed: of(run) for seed, run in self._summaries[arm.name].items()}

    def of_node(self, node: Node, of: OfNode) -> BySeed:
        runs = self._summaries[node.arm.name].items()
        found = {seed: of(run.nodes[node.place]) for seed, run in runs}
        return {seed: value for seed, value in found.items() if value is not None}

    def points_of(self, node: Node, of: Callable[[NodeRound], float | None]) -> Mapping[int, Points]:
        """By seed, the node's values along rounds, counted from 1."""
        found = {}
        for seed, run in self._summaries[node.arm.name].items():
            values = [(one.round + 1.0, of(one)) for one in run.nodes[node.place].by_round]
            if points := [(x, value) for x, value in values if value is not None]:
                found[seed] = points
        return found

    def of_family(self, family: str, of: OfRun) -> BySeed:
        return mean_of([self.of_runs(arm, of) for arm in self.plan.arms if arm.family == family])

    def of_model(self, family: str, model: str, of: OfNode) -> BySeed:
        """The mean over the model's nodes in this family's arm."""
        nodes = [node for node in self.nodes if node.arm.family == family and node.model == model]
        return mean_of([values for node in nodes if (values := self.of_node(node, of))])

    def hears(self, node: Node) -> bool:
        """Whether anything could arrive at the node."""
        return node.arm.settings["sharing"] != "off" and len(node.arm.settings["models"]) > 1


# Numbers of a node.


def peak(node: SearchNodeSummary) -> float | None:
    """The best win rate of the champions of all rounds."""
    return max(_contests(node, lambda contest: contest.win_rate), default=None)


def last(node: SearchNodeSummary) -> float | None:
    """The win rate of the champion of the last round that has one."""
    rates = _contests(node, lambda contest: contest.win_rate)
    return rates[-1] if rates else None


def peak_with_ties(node: SearchNodeSummary) -> float | None:
    return max(_contests(node, lambda contest: contest.defeated_or_tied), default=None)


def peak_points(node: SearchNodeSummary) -> float | None:
    return max(_contests(node, lambda contest: contest.points_percent), default=None)


def _contests(node: SearchNodeSummary, of: Callable[..., float]) -> list[float]:
    return [of(one.contest) for one in node.by_round if one.contest is not None]


def novelty(node: SearchNodeSummary) -> float | None:
    """The mean over the rounds in which something had arrived."""
    return node.novelty


def novelty_of_all_rounds(node: SearchNodeSummary) -> float | None:
    """The mean over all rounds after the first; one without an arrival counts as 0."""
    later = [one.novelty or 0.0 for one in node.by_round if one.round > 0]
    return statistics.fmean(later) if later else None


def made_by_itself(node: SearchNodeSummary) -> float | None:
    """The share of the champions that the node's own model made, in percent."""
    own = [one.maker == node.model for one in node.by_round if one.champion]
    return 100 * statistics.fmean(own) if own else None


# Tables.


def beside_dei(plan: Plan, summaries: Summaries[SearchSummary]) -> BesidePaper:
    compared = Compared(plan, summaries)
    tables = [
        _final(compared),
        _changes(compared),
        _by_model(compared),
        _by_node(compared),
        _by_round(compared, "generality", "Generality by node and round", _win_rate, lambda node: True),
        _by_round(
            compared, "novelty", "Niche novelty by node and round", lambda one: one.novelty, compared.hears
        ),
    ]
    held_out = compared.held_out
    return BesidePaper(PAPER, _departures(compared), [one for one in tables if one.rows], held_out)


def _departures(compared: Compared) -> list[str]:
    arms = {arm.family: arm for arm in reversed(compared.plan.arms)}
    arm = arms.get("heterogeneous") or compared.plan.arms[-1]
    settings = msgspec.convert({**arm.settings, "seed": compared.plan.seeds[0]}, EvolveSettings)
    lines = find_preset("dei").departures(settings.settled())
    if "solo" in arms:
        alone = arms["solo"].settings
        calls = alone["calls"] / alone["rounds"]
        if calls != PUBLISHED_CALLS["solo"]:
            lines.append(f"solo arms have {calls:g} calls a round (published: {PUBLISHED_CALLS['solo']})")
    if (held_out := compared.held_out) is not None:
        chosen = f"{len(held_out.programs)} of {held_out.available} programs of {held_out.name}"
        if held_out.is_starters:
            chosen = f"the {len(held_out.programs)} starters"
        lines.append(
            f"champions met {chosen} (published: warriors that people wrote, not named, most likely 20)"
        )
    return lines


FINAL: Mapping[str, OfRun] = {
    "coverage": lambda run: 100 * run.coverage,
    "qd_score": lambda run: run.qd_score,
    "per_cell": lambda run: run.qd_score / run.cells if run.cells else 0.0,
    "coverage_common": lambda run: 100 * run.coverage_common,
    "qd_score_common": lambda run: run.qd_score_common,
}


def _final(compared: Compared) -> PaperTable:
    rows = []
    for family in _ordered(compared.families):
        published = DEI_FINAL.get(family, {})
        cells = [
            PaperCell(spread(compared.of_family(family, of).values()), published.get(name))
            for name, of in FINAL.items()
        ]
        rows.append(PaperRow(_family_title(compared, family), cells))
    rows += [
        PaperRow(CONDITIONS[family], [PaperCell(paper=published.get(name)) for name in FINAL], of_paper=True)
        for family, published in DEI_FINAL.items()
        if family not in compared.families
    ]
    return PaperTable(
        "final",
        "Coverage and QD-score of the last round",
        "Table 3 and Figure 3",
        [
            PaperColumn("raw coverage", "%", 1),
            PaperColumn("raw QD-score", "", 2),
            PaperColumn("raw QD-score per filled cell", "", 2),
            PaperColumn("common coverage", "%", 1),
            PaperColumn("common QD-score", "", 2),
        ],
        rows,
        [
            "The archives of each node's last complete round, merged. Raw: the greatest fitness of each cell "
            "as its node measured it, which is the paper's number. In Core War fitness is a share of N "
            "points among N warriors, so it grows with the number of opponents, and nodes that share have "
            "more of them. Common: every elite evaluated anew against the same opponents in all arms; the "
            "paper has no such number.",
            "Solo, Homo and Diverse are the paper's names of the arms solo, homogeneous and heterogeneous. "
            "Solo and Homo are means over the arms of all models; which runs enter the paper's rows is not "
            "known. Its number per filled cell is computed here from the other two, with 36 cells.",
        ],
    )


def _changes(compared: Compared) -> PaperTable:
    rows = []
    for (ours, against), published in DEI_CHANGES.items():
        if ours not in compared.families or against not in compared.families:
            continue
        cells = []
        for kind in ("", "_common"):
            for name in ("coverage", "qd_score"):
                of = FINAL[name + kind]
                mine, other = compared.of_family(ours, of), compared.of_family(against, of)
                change = _points if name == "coverage" else _percent_more
                changes = [change(mine[seed], other[seed]) for seed in mine if seed in other]
                known = [one for one in changes if one is not None]
                cells.append(PaperCell(spread(known), None if kind else published.get(name)))
        rows.append(PaperRow(f"{CONDITIONS[ours]} against {CONDITIONS[against]}", cells))
    return PaperTable(
        "changes",
        "The same as differences",
        "Table 3",
        [
            PaperColumn("raw coverage", "points", 1, True),
            PaperColumn("raw QD-score", "%", 0, True),
            PaperColumn("common coverage", "points", 1, True),
            PaperColumn("common QD-score", "%", 0, True),
        ],
        rows,
        ["Seed by seed, then the mean and the deviation over seeds."],
    )


def _points(ours: float, other: float) -> float | None:
    return ours - other


def _percent_more(ours: float, other: float) -> float | None:
    return 100 * (ours / other - 1) if other > 0 else None


BY_MODEL: Mapping[str, tuple[str, OfNode]] = {
    "solo": ("solo", peak),
    "homogeneous": ("homogeneous", peak),
    "homogeneous_novelty": ("homogeneous", novelty),
    "heterogeneous": ("heterogeneous", peak),
    "heterogeneous_novelty": ("heterogeneous", novelty),
}


def _by_model(compared: Compared) -> PaperTable:
    rows, found = [], set()
    for model in compared.models:
        name = paper_model(model)
        found.add(name)
        published = DEI_NODES.get(name or "", {})
        cells = [
            _beside(spread(compared.of_model(family, model, of).values()), published.get(column))
            for column, (family, of) in BY_MODEL.items()
        ]
        rows.append(PaperRow(model, cells))
    over_all = []
    for column, (family, of) in BY_MODEL.items():
        by_model = [values for model in compared.models if (values := compared.of_model(family, model, of))]
        over_all.append(PaperCell(spread(mean_of(by_model).values()), DEI_NOVELTY_RANGE.get(column)))
    rows.append(PaperRow("all models; the paper's range", over_all))
    rows += [
        PaperRow(name, [_beside(None, published[column]) for column in BY_MODEL], of_paper=True)
        for name, published in DEI_NODES.items()
        if name not in found
    ]
    held_out = compared.held_out
    met = " (starters)" if held_out is not None and held_out.is_starters else ""
    return PaperTable(
        "models",
        "Generality and niche novelty by model",
        "results by model",
        [
            PaperColumn(f"Solo generality{met}"),
            PaperColumn(f"Homo generality{met}"),
            PaperColumn("Homo η"),
            PaperColumn(f"Diverse generality{met}"),
            PaperColumn("Diverse η"),
        ],
        rows,
        [
            "Generality: the share of the held-out programs that a node's champion defeats, the best of its "
            "rounds, mean over the model's nodes. A tie is no win. A best of several rounds is higher than a "
            "single round's, and higher for more rounds.",
            "Niche novelty η: the share of the champions that arrived whose cell was empty in the node's "
            "archive of the round before; mean over the rounds in which something had arrived.",
            "The champion of a node that shares can be a program that it received.",
            _said_of(held_out),
        ],
    )


def _said_of(held_out: HeldOutSet | None) -> str:
    if held_out is None:
        return "No champion has met held-out programs: these runs were finished by an earlier release."
    tie_rule = f"over {held_out.rounds} battles from one seed; the higher mean share defeats the other"
    if held_out.is_starters:
        return (
            f"There was no --held-out: champions met the {len(held_out.programs)} starters, {tie_rule}. The "
            "search may have met them too, so this is no test on unseen programs."
        )
    return (
        f"Held-out set {held_out.digest[:8]}: {len(held_out.programs)} of {held_out.available} programs of "
        f"{held_out.name}, {tie_rule}."
    )


BY_NODE: Sequence[tuple[PaperColumn, OfNode]] = (
    (PaperColumn("defeats, peak"), peak),
    (PaperColumn("defeats, last round"), last),
    (PaperColumn("defeats or ties, peak"), peak_with_ties),
    (PaperColumn("points, peak", "%", 1), peak_points),
    (PaperColumn("own champions", "%", 0), made_by_itself),
)
HEARING: Sequence[tuple[PaperColumn, OfNode]] = (
    (PaperColumn("η"), novelty),
    (PaperColumn("η, all rounds"), novelty_of_all_rounds),
    (PaperColumn("rounds heard", "", 1), lambda node: float(node.rounds_heard)),
)


def _by_node(compared: Compared) -> PaperTable:
    rows = [
        PaperRow(
            node_title(node),
            [PaperCell(spread(compared.of_node(node, of).values())) for _, of in BY_NODE]
            + [
                PaperCell(spread(compared.of_node(node, of).values()) if compared.hears(node) else None)
                for _, of in HEARING
            ],
        )
        for node in compared.nodes
    ]
    return PaperTable(
        "nodes",
        "Generality and niche novelty of each node",
        "",
        [column for column, _ in (*BY_NODE, *HEARING)],
        rows,
        [
            "Peak: the best of the champions of all rounds. Points: three for each program defeated, one for "
            "each tie, in percent of the most. Own champions: those that the node's own model made.",
            f"η: over the rounds in which something had arrived; their number is in the last column, of "
            f"{compared.rounds - 1} rounds after the first. η, all rounds: a round without an arrival counts "
            "as 0.",
        ],
        folded=True,
    )


def _by_round(
    compared: Compared,
    name: str,
    title: str,
    of: Callable[[NodeRound], float | None],
    wanted: Callable[[Node], bool],
) -> PaperTable:
    first = 1 if name == "generality" else 2  # nothing was there before the first round
    shown = _evenly(range(first, compared.rounds + 1), MOST_ROUNDS)
    rows = []
    for node in filter(wanted, compared.nodes):
        runs = [dict(points) for points in compared.points_of(node, of).values()]
        cells = [PaperCell(spread([run[float(x)] for run in runs if float(x) in run])) for x in shown]
        if any(cell.ours for cell in cells):
            rows.append(PaperRow(node_title(node), cells))
    told = "" if len(shown) == compared.rounds + 1 - first else " Some rounds are left out."
    told_of = (
        "The win rate of the champion of each round."
        if name == "generality"
        else "Seeds for which nothing had arrived in a round are not in its mean."
    )
    columns = [PaperColumn(f"round {x}") for x in shown]
    return PaperTable(f"{name}-rounds", title, "", columns, rows, [told_of + told], folded=True)


def _evenly(places: range, most: int) -> list[int]:
    if len(places) <= most:
        return list(places)
    step = (len(places) - 1) / (most - 1)
    return [places[round(number * step)] for number in range(most)]


def _beside(ours: Spread | None, paper: Published | str | None) -> PaperCell:
    return PaperCell(ours, None, paper) if isinstance(paper, str) else PaperCell(ours, paper)


def _win_rate(one: NodeRound) -> float | None:
    return None if one.contest is None else one.contest.win_rate


def _ordered(families: Iterable[str]) -> list[str]:
    """The paper's three conditions in its order, then our controls."""
    found = list(families)
    return [*(one for one in CONDITIONS if one in found), *(one for one in found if one not in CONDITIONS)]


def _family_title(compared: Compared, family: str) -> str:
    arms = [arm for arm in compared.plan.arms if arm.family == family]
    if family not in CONDITIONS:
        return arms[0].title
    merged = "" if family == "solo" else ", merged"
    return f"{CONDITIONS[family]}{merged}" + (f": mean of {len(arms)} arms" if len(arms) > 1 else "")


def node_title(node: Node) -> str:
    """The arm, and which of its nodes if it has several; the model where the arm's title does not tell it."""
    models = node.arm.settings["models"]
    if len(models) == 1:
        return node.arm.title
    model = f" ({node.model})" if len(set(models)) > 1 else ""
    return f"{node.arm.title}, node {node.place + 1}{model}"


def paper_model(spec: str) -> str | None:
    """The paper's name of a model, if this is one of its four, of whatever endpoint and date."""
    name = _letters(parse_spec(spec).name.rpartition("/")[2])
    for known in DEI_NODES:
        if re.fullmatch(rf"{_letters(known)}(\d{{8}})?", name):
            return known
    return None


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


# Curves by round.


def dei_charts(compared: Compared) -> list[Chart]:
    def chart(name: str, title: str, y_title: str, told: str) -> Chart:
        return Chart(name, title, "round", y_title, beside_paper=True, told=told, digits=3)

    held_out = compared.held_out
    starters = held_out is not None and held_out.is_starters
    rate = "share of starters defeated" if starters else "share defeated"
    title = "Champions' generality by round"
    lines = (
        "A line is the mean over the nodes of an arm, or over the arms of a family; bands are 95 % intervals "
        "over seeds."
    )
    arrived = "Niche novelty is the mean over the nodes for which something had arrived."
    return [
        chart("champions-baselines", f"{title}: one model and many", rate, lines),
        chart("champions-controls", f"{title}: what sharing does", rate, lines),
        *(
            chart(f"champions-{number}", f"{title}: {model}", rate, lines)
            for number, model in enumerate(compared.models)
        ),
        chart("arrivals", "Niche novelty by round", "η", arrived),
    ]


def dei_curves(plan: Plan, summaries: Summaries[SearchSummary]) -> tuple[list[Chart], list[Curve]]:
    compared = Compared(plan, summaries)
    found: list[Curve | None] = []
    # The heterogeneous arm first: it is drawn in the same way in all charts.
    families = sorted(compared.families, key=lambda one: one != "heterogeneous")
    for family in families:
        title = family if family in CONDITIONS else _family_title(compared, family)
        nodes = [node for node in compared.nodes if node.arm.family == family]
        parts = ["baselines"] if family in CONDITIONS else ["controls"]
        if family == "heterogeneous" and not set(families) <= set(CONDITIONS):
            parts.append("controls")
        for part in parts:
            found.append(_curve(compared, f"champions-{part}", title, nodes, _win_rate))
        hearing = [node for node in nodes if compared.hears(node)]
        found.append(_curve(compared, "arrivals", title, hearing, lambda one: one.novelty))
    for number, model in enumerate(compared.models):
        for family in families:
            if family in CONDITIONS:
                nodes = [one for one in compared.nodes if one.arm.family == family and one.model == model]
                found.append(_curve(compared, f"champions-{number}", family, nodes, _win_rate))
    return dei_charts(compared), [one for one in found if one is not None]


def _curve(
    compared: Compared,
    chart: str,
    title: str,
    nodes: Sequence[Node],
    of: Callable[[NodeRound], float | None],
) -> Curve | None:
    """Round by round and seed by seed the mean over the nodes that have a value, then over seeds."""
    values: dict[float, dict[int, list[float]]] = {}
    for node in nodes:
        for seed, points in compared.points_of(node, of).items():
            for x, value in points:
                values.setdefault(x, {}).setdefault(seed, []).append(value)
    if not values:
        return None
    means = {x: [statistics.fmean(one) for one in values[x].values()] for x in sorted(values)}
    found = [estimate(one) for one in means.values()]
    return Curve(
        chart,
        title,
        list(means),
        [one.value for one in found],
        [one.value if one.low is None else one.low for one in found],
        [one.value if one.high is None else one.high for one in found],
    )
