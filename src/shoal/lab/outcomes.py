"""From the outcomes of an experiment to its table: what is measured is given, nothing here knows it.

A measure is a metric with the function that takes it from the summary of a run. `read_summaries` and
`arm_results` turn finished runs into rows with intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from shoal.lab.experiment import Experiment, Plan
from shoal.lab.tables import estimates_of, values_of
from shoal.runs.results import ArmResults, Metric, RunValues

SummaryOf = TypeVar("SummaryOf", bound=msgspec.Struct)
Summaries = Mapping[str, Mapping[int, SummaryOf]]
"""By arm and seed. Every arm is there, with the seeds that are finished."""


class Measure(NamedTuple, Generic[SummaryOf]):
    """A metric, and how a run's summary gives it; None where the run has none."""

    metric: Metric
    of: Callable[[SummaryOf], float | None]


def outcome(
    name: str, title: str, meaning: str, unit: str = "", digits: int = 2, better: str = "greater"
) -> Metric:
    """Something that came out of a run."""
    return Metric(name, title, meaning, unit, digits, better, "outcome")


def effort(name: str, title: str, meaning: str, unit: str = "", digits: int = 0, better: str = "") -> Metric:
    """Something that went into a run."""
    return Metric(name, title, meaning, unit, digits, better, "effort")


def present(
    measures: Iterable[Measure[SummaryOf]], summaries: Summaries[SummaryOf]
) -> list[Measure[SummaryOf]]:
    """Those that some run has."""
    runs = [summary for by_seed in summaries.values() for summary in by_seed.values()]
    return [one for one in measures if any(one.of(summary) is not None for summary in runs)]


def read_summaries(
    experiment: Experiment, kind: type[SummaryOf]
) -> tuple[dict[str, dict[int, SummaryOf]], float]:
    """The summaries of the finished runs, and the seconds of work that are in them."""
    summaries: dict[str, dict[int, SummaryOf]] = {arm.name: {} for arm in experiment.plan.arms}
    seconds = 0.0
    for trial in experiment.trials():
        if found := experiment.outcome(trial.arm, trial.seed):
            summaries[trial.arm][trial.seed] = msgspec.json.decode(found.result, type=kind)
            seconds += found.seconds
    return summaries, round(seconds, 1)


def arm_results(
    plan: Plan, summaries: Summaries[SummaryOf], measures: Sequence[Measure[SummaryOf]]
) -> list[ArmResults]:
    """Every arm of the plan, with the values of its runs and their estimates."""
    arms = []
    for arm in plan.arms:
        runs = [
            RunValues(seed, {one.metric.name: one.of(summary) for one in measures})
            for seed, summary in summaries[arm.name].items()
        ]
        bare = ArmResults(arm.name, arm.title, arm.family, runs, {})
        values = {one.metric.name: values_of(bare, one.metric.name) for one in measures}
        arms.append(msgspec.structs.replace(bare, estimates=estimates_of(values)))
    return arms


def common_settings(plan: Plan) -> dict[str, Any]:
    """The settings that are the same in all arms."""
    return {
        key: value
        for key, value in plan.arms[0].settings.items()
        if all(arm.settings.get(key) == value for arm in plan.arms)
    }
