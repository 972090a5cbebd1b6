"""A sweep beside the SAPO paper: totals, smoothed curves, oscillation and swings, with the paper's numbers in
the same cells. The paper's reward counts filtered foreign groups, which lifts it, so every number of it has a
twin from local reward, which no filter touches."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from shoal.lab.experiment import Arm, Plan
from shoal.lab.published import SAPO_MIXES, SAPO_SMOOTHED, SAPO_STEPS, SAPO_TOTALS
from shoal.lab.tables import MOST_CURVE_POINTS, Summaries, spread
from shoal.presets import find_preset
from shoal.runs.papers import BesidePaper, PaperCell, PaperColumn, PaperRow, PaperTable, Published
from shoal.runs.results import Chart, Curve
from shoal.runs.training import TrainNodeSummary, TrainPoint, TrainSummary
from shoal.train.settings import TrainSettings
from shoal.train.summary import LEAST_SWING, SWING, oscillation, smoothed, swings

PAPER = "SAPO"
WINDOW = 100
"""Steps of the paper's moving average."""

CurveOf = Callable[[TrainNodeSummary], Sequence[TrainPoint]]


def batch(node: TrainNodeSummary) -> Sequence[TrainPoint]:
    """The paper's reward: the mean over own and foreign groups of a step."""
    return node.curve_batch


def local(node: TrainNodeSummary) -> Sequence[TrainPoint]:
    return node.curve_local


def trained(run: TrainSummary) -> list[TrainNodeSummary]:
    return [node for node in run.nodes if node.trains]


def numbers(run: TrainSummary, of: CurveOf) -> dict[str, float | None]:
    """A run in the paper's numbers, from the rewards that `of` takes: `batch` or `local`. `spike` is the
    highest of one node in one step; oscillation and swings are means over nodes, `size` over all swings."""
    curves = [[value for _, value in of(node)] for node in trained(run)]
    values = [value for curve in curves for value in curve]
    steps = _size(run)
    moved = [one for curve in curves if (one := oscillation(curve)) is not None]
    falls = [swings(curve) for curve in curves]
    sizes = [fall for one in falls for fall in one]
    return {
        "total": sum(values),
        "mean": sum(values) / steps if steps else None,
        "spike": max(values, default=None),
        "oscillation": statistics.fmean(moved) if moved else None,
        "swings": statistics.fmean(map(len, falls)) if falls else None,
        "size": statistics.fmean(sizes) if sizes else None,
    }


# Tables.


def beside_sapo(plan: Plan, summaries: Summaries[TrainSummary]) -> BesidePaper:
    tables = [
        _totals(plan, summaries, batch),
        _smoothed(plan, summaries),
        _totals(plan, summaries, local),
    ]
    return BesidePaper(PAPER, _departures(plan), tables)


def _departures(plan: Plan) -> list[str]:
    """Of the arm that is nearest to 4/4, which the preset has."""
    mixes = [arm for arm in plan.arms if arm.family == "mix" and arm.settings["external"]]
    arm = min(
        mixes, key=lambda one: abs(one.settings["local"] - one.settings["external"]), default=plan.arms[0]
    )
    settings = msgspec.convert({**arm.settings, "seed": plan.seeds[0]}, TrainSettings)
    return find_preset("sapo").departures(settings)


COLUMNS: Mapping[str, PaperColumn] = {
    "total": PaperColumn("total", "", 2),
    "gain": PaperColumn("total against {alone}", "%", 0, True),
    "mean": PaperColumn("mean of a node and step", "", 4),
    "spike": PaperColumn("highest of a node and step", "", 2),
    "oscillation": PaperColumn("oscillation", "", 4),
    "swings": PaperColumn("swings of a node", "", 1),
    "size": PaperColumn("size of a swing", "", 3),
}


def _totals(plan: Plan, summaries: Summaries[TrainSummary], of: CurveOf) -> PaperTable:
    found = {
        arm.name: {seed: numbers(run, of) for seed, run in summaries[arm.name].items()} for arm in plan.arms
    }
    alone = next((arm for arm in plan.arms if arm.family == "mix" and not arm.settings["external"]), None)
    if alone is not None:
        for arm in plan.arms:
            for seed, values in found[arm.name].items() if arm is not alone else ():
                other = found[alone.name].get(seed, {}).get("total")
                equal = other and _size(summaries[arm.name][seed]) == _size(summaries[alone.name][seed])
                values["gain"] = 100 * ((values["total"] or 0.0) / other - 1) if other and equal else None
    rows = []
    for arm in plan.arms:
        published = SAPO_TOTALS.get(arm.title, {}) if of is batch else {}
        cells = []
        for name in COLUMNS:
            known = [values.get(name) for values in found[arm.name].values()]
            cells.append(PaperCell(spread(one for one in known if one is not None), published.get(name)))
        rows.append(PaperRow(arm.title, cells))
    title = "8/0" if alone is None else alone.title
    columns = [
        msgspec.structs.replace(column, title=column.title.format(alone=title)) for column in COLUMNS.values()
    ]
    if of is local:
        notes = ["Local reward is the mean over a node's own completions: what it can do, without a filter."]
        return PaperTable("local", "The same by local reward", "", columns, rows, notes)
    titles = {arm.title for arm in plan.arms}
    rows += [
        PaperRow(mix, [PaperCell(paper=published.get(name)) for name in COLUMNS], of_paper=True)
        for mix, published in SAPO_TOTALS.items()
        if mix not in titles
    ]
    return PaperTable("totals", "Total reward", "table of total rewards", columns, rows, [_TOTALS, _SWINGS])


_TOTALS = (
    "The reward of a node and step is the mean over own and foreign groups. It is the paper's number, and "
    "biased: foreign groups without a right answer are left out, which lifts it before anything is learnt. "
    "Totals are sums over nodes and steps, so they compare only between equally many of both; the paper has "
    f"8 × {SAPO_STEPS:,}. Its mean of a node and step is computed here from its totals."
)
_SWINGS = (
    "Oscillation: the standard deviation of a node's smoothed reward over the second half of the run. A "
    f"swing: the smoothed reward of a node falls by more than {100 * SWING:.0f} % of its running peak and by "
    f"more than {LEAST_SWING:g}, and then regains at least half of the fall; its size is the fall. Both "
    "smooth over a twentieth of the steps and at least five, which is the paper's 100 at its 2,000 steps. "
    "Means over fewer groups or fewer steps are noisier, and swing more even where nothing moves."
)


def _size(run: TrainSummary) -> int:
    return sum(node.steps for node in trained(run))


def _smoothed(plan: Plan, summaries: Summaries[TrainSummary]) -> PaperTable:
    arms = {arm.title: arm for arm in plan.arms if arm.family == "mix"}
    mixes = [*arms, *(mix for mix in SAPO_MIXES if mix not in arms)]
    steps = int(next(iter(arms.values())).settings["steps"]) if arms else 0
    curves = {
        mix: [_by_step(run, batch) for run in summaries[arm.name].values()] for mix, arm in arms.items()
    }
    rows = []
    for published_step, published in SAPO_SMOOTHED.items():
        step = min(steps, round(published_step / SAPO_STEPS * steps) + 1)
        cells = []
        for mix in mixes:
            values = [statistics.fmean(run[step]) for run in curves.get(mix, ()) if run.get(step)]
            cells.append(PaperCell(spread(values), published.get(mix)))
        rows.append(PaperRow(f"step {step:,}; the paper's {published_step:,}", cells))
    told = (
        f"Moving average over the last {WINDOW} steps, or over as many as there are, mean over nodes. Ours "
        "and the paper's are at the same parts of the run."
    )
    if 0 < steps < WINDOW:
        told += f" With {steps} steps this is the mean of all steps so far."
    told += " After its peak the paper's 2/6 falls to 0.07 by step 1,900."
    columns = [PaperColumn(mix) for mix in mixes]
    return PaperTable(
        "smoothed", "Smoothed reward by step", "figure of smoothed rewards", columns, rows, [told]
    )


def _by_step(run: TrainSummary, of: CurveOf) -> dict[int, list[float]]:
    """By step, the smoothed values of all nodes that learn."""
    found: dict[int, list[float]] = {}
    for node in trained(run):
        points = of(node)
        for (step, _), value in zip(points, smoothed([value for _, value in points], WINDOW), strict=True):
            found.setdefault(step, []).append(value)
    return found


# Curves.

_BAND = (
    f"Smoothed rewards are moving averages over {WINDOW} steps, mean over nodes and seeds. Bands are from "
    "the least to the greatest node of any seed, as in the paper's figure."
)


def sapo_charts() -> list[Chart]:
    def chart(name: str, title: str, source: str) -> Chart:
        return Chart(
            name, title, "steps", "reward", beside_paper=True, source=source, told=_BAND, digits=3
        )  # fmt: skip

    figure = "figure of smoothed rewards"
    return [
        chart("smoothed-batch", "Smoothed reward, own and foreign groups", figure),
        chart("smoothed-paper", "The paper's curves, read off at six steps", figure),
        chart("smoothed-local", "Smoothed local reward", ""),
    ]


def sapo_curves(plan: Plan, summaries: Summaries[TrainSummary]) -> list[Curve]:
    found = []
    for name, of in (("smoothed-batch", batch), ("smoothed-local", local)):
        for arm in plan.arms:
            if arm.family == "mix" and (drawn := _curve(name, arm, summaries, of)):
                found.append(drawn)
    steps = [float(step) for step in SAPO_SMOOTHED]
    for mix in SAPO_MIXES if found else ():
        values = [_middle(published[mix]) for published in SAPO_SMOOTHED.values()]
        found.append(Curve("smoothed-paper", mix, steps, values, [], []))
    return found


def _middle(published: Published) -> float:
    return published.value if published.highest is None else (published.value + published.highest) / 2


def _curve(name: str, arm: Arm, summaries: Summaries[TrainSummary], of: CurveOf) -> Curve | None:
    runs = [_by_step(run, of) for run in summaries[arm.name].values()]
    steps = sorted(set.intersection(*(set(run) for run in runs))) if runs else []
    if not steps:
        return None
    every = -(-len(steps) // MOST_CURVE_POINTS)
    shown = [*steps[:-1:every], steps[-1]]
    values = [[value for run in runs for value in run[step]] for step in shown]
    return Curve(
        name,
        arm.title,
        [float(step) for step in shown],
        [statistics.fmean(one) for one in values],
        [min(one) for one in values],
        [max(one) for one in values],
    )
