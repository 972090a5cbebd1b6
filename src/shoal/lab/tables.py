"""From values by seed to rows with intervals, paired differences, sentences and curves. A value that a run
does not have is absent, and a row is made of the seeds that all of its parts have."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from shoal.lab.experiment import Experiment, Plan
from shoal.lab.statistics import FEWEST_RUNS, estimate, paired_difference, superiority, verdict
from shoal.runs.papers import Spread
from shoal.runs.results import (
    ArmResults,
    Chart,
    Curve,
    Difference,
    Estimate,
    Made,
    Metric,
    Results,
    RunValues,
)

BySeed = Mapping[int, float]
MOST_CURVE_POINTS = 60


def values_of(arm: ArmResults, metric: str) -> BySeed:
    """The metric's values by seed, without the runs that have none."""
    found = {run.seed: run.values.get(metric) for run in arm.runs}
    return {seed: value for seed, value in found.items() if value is not None}


def estimates_of(values: Mapping[str, BySeed]) -> dict[str, Estimate]:
    return {metric: estimate(list(seeds.values())) for metric, seeds in values.items() if seeds}


def spread(values: Iterable[float]) -> Spread | None:
    """Mean and deviation as papers print them; None without a value."""
    found = list(values)
    if not found:
        return None
    deviation = statistics.stdev(found) if len(found) > 1 else None
    return Spread(statistics.fmean(found), deviation, len(found))


def mean_of(rows: Sequence[BySeed]) -> BySeed:
    """Seed by seed the mean over rows, of the seeds that are in all of them."""
    if not rows:
        return {}
    common = [seed for seed in rows[0] if all(seed in row for row in rows)]
    return {seed: sum(row[seed] for row in rows) / len(rows) for seed in common}


def best_of(arms: Sequence[ArmResults], metric: Metric) -> ArmResults | None:
    """The arm with the best mean, the first of equals. Choosing it by the very values that it is then
    compared by favours it, which is the side to err on for a baseline."""
    ranked = [arm for arm in arms if metric.name in arm.estimates]
    if not ranked:
        return None
    sign = -1 if metric.better == "less" else 1
    return max(ranked, key=lambda arm: sign * arm.estimates[metric.name].value)


def difference(metric: str, ours: str, our: BySeed, against: str, their: BySeed) -> Difference | None:
    """Ours less theirs over the seeds that both have; None without any."""
    seeds = [seed for seed in our if seed in their]
    if not seeds:
        return None
    one, other = [our[seed] for seed in seeds], [their[seed] for seed in seeds]
    found = paired_difference(one, other)
    return Difference(metric, ours, against, found, superiority(one, other), verdict(found))


class Comparison(NamedTuple):
    """Two rows by their titles, and for each metric the values of both."""

    ours: str
    against: str
    values: Mapping[str, tuple[BySeed, BySeed]]


def compare(
    comparisons: Iterable[Comparison], metrics: Sequence[Metric]
) -> tuple[list[Difference], list[str]]:
    """The differences, and a sentence for each comparison; one for all where all have too few seeds."""
    by_name = {metric.name: metric for metric in metrics}
    found: list[Difference] = []
    sentences = []
    for ours, against, values in comparisons:
        compared = [difference(name, ours, one, against, other) for name, (one, other) in values.items()]
        if told := [one for one in compared if one is not None]:
            found += told
            sentences.append(sentence(ours, against, told, by_name))
    if found and all(one.verdict == "too few seeds" for one in found):
        sentences = [too_few(found)]
    return found, sentences


def sentence(
    ours: str, against: str, differences: Sequence[Difference], metrics: Mapping[str, Metric]
) -> str:
    """The claims that these differences allow, better things first, then those without a better side."""
    if any(one.verdict == "too few seeds" for one in differences):
        return f"{ours} against {against}: {too_few(differences)}"
    words = ("better", "worse", "greater", "less", "no difference can be shown")
    parts: dict[str, list[str]] = {word: [] for word in words}
    for one in differences:
        metric = metrics[one.metric]
        shown = f" ({in_words(one.difference, metric)})" if one.is_shown else ""
        parts[one.judgement(metric) or one.verdict].append(metric.title + shown)
    said = [f"{word} in {', '.join(named)}" for word, named in parts.items() if named]
    return f"{ours} against {against}: {'; '.join(said)}."


def too_few(differences: Sequence[Difference]) -> str:
    runs = min(one.difference.runs for one in differences)
    seeds = f"{runs} seeds are" if runs > 1 else "one seed is"
    return (
        f"{seeds} too few for a claim, which needs {FEWEST_RUNS} or more; the numbers are shown as they are."
    )


def in_words(difference: Estimate, metric: Metric) -> str:
    """Like "+3.2 points, 95 % interval +1.1 to +5.0"; a difference of percentages is in points."""
    unit = "points" if metric.unit == "%" else metric.unit
    shown = [
        "" if value is None else f"{value:+z,.{metric.digits}f}".replace("-", "−")
        for value in (difference.value, difference.low, difference.high)
    ]
    text = f"{shown[0]} {unit}".strip()
    return f"{text}, 95 % interval {shown[1]} to {shown[2]}" if shown[1] and shown[2] else text


Points = Sequence[tuple[float, float]]
"""A run's values along x, in the order of x. Its value at x is that of its last point up to x."""


def mean_points(runs: Sequence[Points]) -> Points:
    """The mean over runs, where all have begun and none has ended."""
    return [(x, sum(values) / len(values)) for x, values in _aligned(runs)]


def curve(chart: str, title: str, runs: Sequence[Points]) -> Curve | None:
    """The same with an interval, at no more than about MOST_CURVE_POINTS places; None if there are none."""
    aligned = _aligned(runs)
    if not aligned:
        return None
    step = -(-len(aligned) // MOST_CURVE_POINTS)
    aligned = [*aligned[:-1:step], aligned[-1]]
    found = [estimate(values) for _, values in aligned]
    return Curve(
        chart,
        title,
        [x for x, _ in aligned],
        [one.value for one in found],
        [one.low for one in found if one.low is not None],
        [one.high for one in found if one.high is not None],
    )


def _aligned(runs: Sequence[Points]) -> list[tuple[float, list[float]]]:
    """At each x that some run has a point at, the values of all runs."""
    if not runs or not all(runs):
        return []
    first, last = max(run[0][0] for run in runs), min(run[-1][0] for run in runs)
    places = [[x for x, _ in run] for run in runs]
    grid = sorted({x for xs in places for x in xs if first <= x <= last})
    return [
        (x, [run[bisect_right(xs, x) - 1][1] for run, xs in zip(runs, places, strict=True)]) for x in grid
    ]


SummaryOf = TypeVar("SummaryOf", bound=msgspec.Struct)
Summaries = Mapping[str, Mapping[int, SummaryOf]]
"""By arm and seed. Every arm is there, with the seeds that are finished."""


class Measure(NamedTuple, Generic[SummaryOf]):
    """A metric, and how a run's summary gives it; None where the run has none."""

    metric: Metric
    of: Callable[[SummaryOf], float | None]


def outcome(
    name: str, title: str, of: Callable[[Any], float | None], meaning: str, **more: Any
) -> Measure[Any]:
    """A result of a run, better if greater unless `more`, fields of `Metric`, says otherwise."""
    return Measure(Metric(name, title, meaning, **{"better": "greater", **more}), of)


def effort(
    name: str, title: str, of: Callable[[Any], float | None], meaning: str, **more: Any
) -> Measure[Any]:
    """A cost of a run, in whole numbers unless `more` says otherwise."""
    return Measure(Metric(name, title, meaning, kind="effort", **{"digits": 0, **more}), of)


@dataclass(frozen=True)
class Finished(Generic[SummaryOf]):
    """The finished runs, `seconds` of work, with the metrics that some of them have."""

    experiment: Experiment
    summaries: Summaries[SummaryOf]
    seconds: float
    metrics: list[Metric]
    arms: list[ArmResults]

    def results(
        self, comparisons: Iterable[Comparison], charts: Iterable[Chart], curves: list[Curve], **more: Any
    ) -> Results:
        """The results, with `more` of their fields. Charts without a curve are left out."""
        plan, drawn = self.experiment.plan, {one.chart for one in curves}
        differences, sentences = compare(comparisons, self.metrics)
        return Results(
            title=plan.title,
            seeds=list(plan.seeds),
            settings=common_settings(plan),
            metrics=self.metrics,
            arms=self.arms,
            differences=differences,
            sentences=sentences,
            charts=[chart for chart in charts if chart.name in drawn],
            curves=curves,
            failures=self.experiment.failures(),
            missing=len(self.experiment.unfinished()),
            made=Made(self.experiment.sessions(), self.seconds),
            **more,
        )


def read_finished(
    experiment: Experiment, kind: type[SummaryOf], measures: Iterable[Measure[SummaryOf]]
) -> Finished[SummaryOf]:
    summaries: dict[str, dict[int, SummaryOf]] = {arm.name: {} for arm in experiment.plan.arms}
    seconds = 0.0
    for trial in experiment.trials():
        if found := experiment.outcome(trial.arm, trial.seed):
            summaries[trial.arm][trial.seed] = msgspec.json.decode(found.result, type=kind)
            seconds += found.seconds
    runs = [summary for by_seed in summaries.values() for summary in by_seed.values()]
    present = [one for one in measures if any(one.of(summary) is not None for summary in runs)]
    arms = []
    for arm in experiment.plan.arms:
        values = [
            RunValues(seed, {one.metric.name: one.of(summary) for one in present})
            for seed, summary in summaries[arm.name].items()
        ]
        bare = ArmResults(arm.name, arm.title, arm.family, values, {})
        by_metric = {one.metric.name: values_of(bare, one.metric.name) for one in present}
        arms.append(msgspec.structs.replace(bare, estimates=estimates_of(by_metric)))
    return Finished(experiment, summaries, round(seconds, 1), [one.metric for one in present], arms)


def common_settings(plan: Plan) -> dict[str, Any]:
    return {
        key: value
        for key, value in plan.arms[0].settings.items()
        if all(arm.settings.get(key) == value for arm in plan.arms)
    }
