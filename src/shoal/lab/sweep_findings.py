"""What a sweep found: from the summaries of its runs to `Results`.

The same summaries give the same findings. A half-done sweep has findings too; what is missing is said.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.lab.experiment import Arm, Experiment, Plan
from shoal.lab.outcomes import Summaries, arm_results, common_settings, present, read_summaries
from shoal.lab.sweep import pairs
from shoal.lab.sweep_measures import (
    MEASURES,
    batch_curve,
    held_out_by_completions,
    held_out_curve,
    local_curve,
)
from shoal.lab.tables import curve, difference, sentence, too_few, values_of
from shoal.runs.results import ArmResults, Chart, Curve, Difference, Made, Metric, Results
from shoal.runs.training import TrainSummary
from shoal.train.settings import TrainSettings

HEADLINES = ("held_out", "local_end", "local_mean", "largest_fall", "oscillation", "cumulative")
"""The metrics whose differences are told in sentences; those that compare first."""
SUMS = ("cumulative",)
"""They grow with the number of steps and of nodes that learn, and compare where these are the same."""


def sweep_findings(experiment: Experiment) -> Results:
    """All that the finished runs of the sweep show."""
    plan = experiment.plan
    summaries, seconds = read_summaries(experiment, TrainSummary)
    measures = present(MEASURES, summaries)
    metrics = [one.metric for one in measures]
    arms = arm_results(plan, summaries, measures)
    differences, sentences = _compare(plan, arms, metrics)
    curves = _curves(plan, summaries)
    drawn = {one.chart for one in curves}
    return Results(
        title=plan.title,
        seeds=list(plan.seeds),
        settings=common_settings(plan),
        metrics=metrics,
        arms=arms,
        groups=[],
        differences=differences,
        sentences=sentences,
        charts=[chart for chart in _charts() if chart.name in drawn],
        curves=curves,
        maps=[],
        best=None,
        failures=experiment.failures(),
        missing=len(experiment.unfinished()),
        made=Made(experiment.sessions(), seconds),
        application="train",
    )


def _compare(
    plan: Plan, arms: Sequence[ArmResults], metrics: Sequence[Metric]
) -> tuple[list[Difference], list[str]]:
    results = {arm.name: arm for arm in arms}
    sizes = {arm.name: _size(arm) for arm in plan.arms}
    told_of = [metric for metric in metrics if metric.name in HEADLINES]
    by_name = {metric.name: metric for metric in metrics}
    found: list[Difference] = []
    sentences = []
    for pair in pairs(plan):
        ours, against = results[pair.ours], results[pair.against]
        compared = [
            difference(
                metric.name,
                ours.title,
                values_of(ours, metric.name),
                against.title,
                values_of(against, metric.name),
            )
            for metric in told_of
            if metric.name not in SUMS or sizes[pair.ours] == sizes[pair.against]
        ]
        if told := [one for one in compared if one is not None]:
            found += told
            sentences.append(sentence(ours.title, against.title, told, by_name))
    if found and all(one.verdict == "too few seeds" for one in found):
        sentences = [too_few(found)]
    return found, sentences


def _size(arm: Arm) -> tuple[int, int]:
    settings = msgspec.convert({**arm.settings, "seed": 0}, TrainSettings)
    learning = [index for index in range(settings.nodes) if not settings.of(index).is_frozen]
    return settings.steps, len(learning)


PARTS = {"mixes": "how much is shared", "controls": "controls", "open": "open questions"}
_CONTROLS = ("filtered", "equal-completions", "own-only")


def _charts() -> list[Chart]:
    steps = "steps"
    held_out = [
        chart
        for part, words in PARTS.items()
        for chart in (
            Chart(f"held_out-{part}", f"Held-out reward: {words}", steps, "%, mean over nodes"),
            Chart(
                f"completions-{part}",
                f"Held-out reward by what was generated: {words}",
                "completions of all nodes",
                "%, mean over nodes",
            ),
            Chart(f"local-{part}", f"Local reward: {words}", steps, "%, moving mean"),
        )
    ]
    biased = Chart("batch-mixes", "Batch reward, as the paper plots it: biased", steps, "%, moving mean")
    return [*held_out[:3], biased, *held_out[3:]]


def _curves(plan: Plan, summaries: Summaries[TrainSummary]) -> list[Curve]:
    """One line per arm. The mixes that other arms are held against stand in all parts."""
    families = {arm.name: arm.family for arm in plan.arms}
    mixed = [pair for pair in pairs(plan) if any(families[name] != "mix" for name in pair)]
    mixes = [arm for arm in plan.arms if arm.family == "mix"]
    references = [arm for arm in mixes if any(arm.name in pair for pair in mixed)]
    parts = {
        "mixes": mixes,
        "controls": [arm for arm in plan.arms if arm.family in _CONTROLS],
        "open": [arm for arm in plan.arms if arm.family not in ("mix", *_CONTROLS)],
    }
    found: list[Curve] = []
    for part, members in parts.items():
        for arm in [*references, *members] if members and part != "mixes" else members:
            runs = list(summaries[arm.name].values())
            lines = {
                "held_out": [held_out_curve(run) for run in runs],
                "completions": [held_out_by_completions(run, int(arm.settings["group"])) for run in runs],
                "local": [local_curve(run) for run in runs],
                "batch": [batch_curve(run) for run in runs] if part == "mixes" else [],
            }
            drawn = [curve(f"{kind}-{part}", arm.title, points) for kind, points in lines.items()]
            found += [one for one in drawn if one is not None]
    return found
