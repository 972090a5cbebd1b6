"""What a sweep found: from the summaries of its runs to `Results`.

The same summaries give the same findings. A half-done sweep has findings too; what is missing is said.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec

from shoal.lab.experiment import Arm, Experiment, Plan
from shoal.lab.sweep import pairs
from shoal.lab.tables import (
    Measure,
    Points,
    Summaries,
    arm_results,
    common_settings,
    curve,
    difference,
    effort,
    mean_points,
    outcome,
    present,
    read_summaries,
    sentence,
    too_few,
    values_of,
)
from shoal.runs.results import ArmResults, Chart, Curve, Difference, Made, Metric, Results
from shoal.runs.training import TrainNodeSummary, TrainSummary
from shoal.train.settings import TrainSettings
from shoal.train.summary import LEVELS, smoothed

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


SMOOTHED_SHARE, LEAST_SMOOTHED = 20, 5
"""Local and batch rewards are drawn as moving means over a twentieth of the steps, at least five."""


def trained(summary: TrainSummary) -> list[TrainNodeSummary]:
    return [node for node in summary.nodes if node.trains]


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _rise(summary: TrainSummary) -> float | None:
    if summary.reward_held_out is None or summary.reward_held_out_first is None:
        return None
    return 100 * (summary.reward_held_out - summary.reward_held_out_first)


def _per_step(reward: Callable[[TrainNodeSummary], float]) -> Callable[[TrainSummary], float | None]:
    def mean(summary: TrainSummary) -> float | None:
        steps = sum(node.steps for node in trained(summary))
        return 100 * sum(map(reward, trained(summary))) / steps if steps else None

    return mean


def _share(
    part: Callable[[TrainNodeSummary], int], whole: Callable[[TrainNodeSummary], int]
) -> Callable[[TrainSummary], float | None]:
    def share(summary: TrainSummary) -> float | None:
        total = sum(map(whole, summary.nodes))
        return 100 * sum(map(part, summary.nodes)) / total if total else None

    return share


def _tokens_to(level: float) -> Callable[[TrainSummary], float | None]:
    def tokens(summary: TrainSummary) -> float | None:
        found = [[cost.tokens for cost in node.costs if cost.reward == level] for node in trained(summary)]
        return statistics.fmean(one[0] for one in found) if found and all(found) else None

    return tokens


# fmt: off
MEASURES: tuple[Measure[TrainSummary], ...] = (
    outcome("held_out", "held-out reward", unit="%", digits=1,
        of=lambda summary: _percent(summary.reward_held_out),
        meaning="Greedy answers to tasks that are the same for all nodes, steps and arms, at the end, mean "
                "over nodes. Nothing is trained on them: this is what arms compare by."),
    outcome("held_out_rise", "held-out rise", of=_rise, unit="%", digits=1,
        meaning="The same less what it was before the first step."),
    outcome("local_end", "final local reward", unit="%", digits=1,
        of=lambda summary: _percent(summary.reward_local),
        meaning="Mean over a node's own completions of its last 10 steps. No filter touches it."),
    outcome("local_mean", "mean local reward", unit="%", digits=1,
        of=_per_step(lambda node: node.reward_local_cumulative),
        meaning="The same over all steps of the run."),
    outcome("largest_fall", "largest fall", unit="points", digits=1, better="less",
        of=lambda summary: _percent(summary.largest_fall),
        meaning="How far the held-out reward of some node fell at most below what it had been: forgetting."),
    outcome("oscillation", "oscillation", unit="points", better="less",
        of=lambda summary: _percent(summary.oscillation),
        meaning="Standard deviation of the smoothed local reward over the second half of a run, mean over "
                "nodes. A mean over fewer own groups is noisier, so it grows as I falls: compare 4/4 with "
                "4/0."),
    outcome("cumulative", "cumulative reward (biased)", digits=1, better="",
        of=lambda summary: summary.reward_cumulative,
        meaning="The paper's number: over nodes and steps, the sum of the mean reward of own and foreign "
                "groups. Foreign groups are kept only if some of their completions are right and some "
                "wrong, which lifts it before anything is learnt, and it grows with the number of steps: "
                "more is not called better."),
    outcome("batch_mean", "mean batch reward (biased)", unit="%", digits=1, better="",
        of=_per_step(lambda node: node.reward_cumulative),
        meaning="The same per node and step."),
    outcome("cumulative_local", "cumulative local reward", digits=1,
        of=lambda summary: sum(node.reward_local_cumulative for node in trained(summary)),
        meaning="Over nodes and steps, the sum of the mean reward of own completions. It grows with the "
                "number of steps."),
    outcome("spreading_delay", "spreading delay", unit="steps", digits=1, better="less",
        of=lambda summary: summary.spreading.median_delay,
        meaning="Median of the steps from the first node that solved a held-out task to each other node "
                "that came to solve it. Those that never did are not in it."),
    outcome("spreading_reach", "spreading reach", unit="%", digits=1,
        of=lambda summary: _percent(summary.spreading.reached_all),
        meaning="Share of the held-out tasks that some node solved, and not all at once, which every node "
                "solved at some time."),
    effort("tokens", "tokens", of=lambda summary: summary.tokens,
        meaning="Tokens generated for training, all nodes together."),
    effort("own_groups", "own groups", of=lambda summary: sum(node.own_groups for node in summary.nodes),
        meaning="Groups of completions that the nodes sampled."),
    effort("own_informative", "informative own groups", unit="%", digits=1,
        of=_share(lambda node: node.own_informative, lambda node: node.own_groups),
        meaning="Share of own groups with both right and wrong completions; from others nothing can be "
                "learnt."),
    effort("foreign_used", "foreign groups used",
        of=lambda summary: sum(node.foreign_used for node in summary.nodes),
        meaning="Groups of others that were trained on."),
    effort("foreign_informative", "informative foreign groups", unit="%", digits=1,
        of=_share(lambda node: node.foreign_informative, lambda node: node.foreign_verified),
        meaning="Share of the foreign groups that were verified and could be learnt from."),
    effort("cpu", "processor time", of=lambda summary: summary.cpu, unit="s", digits=1,
        meaning="Of all nodes; as measured, so it differs from run to run."),
    *(
        effort(f"tokens_to_{100 * level:.0f}", f"tokens to {100 * level:.0f} %", better="less",
            of=_tokens_to(level),
            meaning="Tokens that a node had generated when an evaluation first showed this held-out "
                    "reward, mean over nodes; only of runs in which all nodes reached it, so few runs "
                    "count against an arm.")
        for level in LEVELS
    ),
)
# fmt: on


def over_nodes(
    summary: TrainSummary, points: Callable[[TrainNodeSummary], Sequence[tuple[int, float]]]
) -> Points:
    """A curve of all training nodes: the mean at each step, in percent."""
    runs = [[(float(step), 100 * value) for step, value in points(node)] for node in trained(summary)]
    return mean_points([run for run in runs if run])


def held_out_curve(summary: TrainSummary) -> Points:
    return over_nodes(summary, lambda node: node.curve_held_out)


def local_curve(summary: TrainSummary) -> Points:
    return _smooth(over_nodes(summary, lambda node: node.curve_local))


def batch_curve(summary: TrainSummary) -> Points:
    return _smooth(over_nodes(summary, lambda node: node.curve_batch))


def held_out_by_completions(summary: TrainSummary, group: int) -> Points:
    """The held-out curve along what was generated: the completions of all nodes up to each step."""
    steps = max((node.steps for node in summary.nodes), default=0)
    if not steps:
        return []
    per_step = sum(node.own_groups for node in summary.nodes) * group / steps
    return [(step * per_step, value) for step, value in held_out_curve(summary)]


def _smooth(points: Points) -> Points:
    window = max(LEAST_SMOOTHED, len(points) // SMOOTHED_SHARE)
    values = smoothed([value for _, value in points], window)
    return [(step, value) for (step, _), value in zip(points, values, strict=True)]
