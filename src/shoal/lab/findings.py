"""What a comparison found: from the summaries of its runs to `Results`.

The same summaries give the same findings. A half-done comparison has findings too; what is missing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.lab.experiment import Experiment
from shoal.lab.tables import (
    BySeed,
    Measure,
    Summaries,
    arm_results,
    best_group,
    best_of,
    common_settings,
    curve,
    difference,
    effort,
    mean_group,
    mean_of,
    mean_points,
    outcome,
    present,
    read_summaries,
    sentence,
    too_few,
    values_of,
)
from shoal.runs.results import (
    ArchiveMap,
    ArmResults,
    Chart,
    Curve,
    Difference,
    Exhibit,
    Group,
    Made,
    Metric,
    Results,
)
from shoal.runs.search import Placed, SearchPoint, SearchSummary

OURS = "heterogeneous"
BASELINES = ("solo", "homogeneous")
HEADLINES = ("coverage_common", "qd_score_common", "best_common", "generality", "coverage", "qd_score")
"""The metrics whose differences are told in sentences; those under common opponents first."""


def findings(experiment: Experiment) -> Results:
    """All that the finished runs of the comparison show."""
    plan = experiment.plan
    summaries, seconds = read_summaries(experiment, SearchSummary)
    measures = present(MEASURES, summaries)
    metrics = [one.metric for one in measures]
    arms = arm_results(plan, summaries, measures)
    differences, sentences = _compare(arms, metrics)
    curves = _curves(arms, summaries)
    named = {one.chart for one in curves}
    return Results(
        title=plan.title,
        seeds=list(plan.seeds),
        settings=common_settings(plan),
        metrics=metrics,
        arms=arms,
        groups=_groups(arms, metrics),
        differences=differences,
        sentences=sentences,
        charts=[chart for chart in _charts() if chart.name in named],
        curves=curves,
        maps=_maps(arms, summaries),
        best=_best(arms, summaries),
        failures=experiment.failures(),
        missing=len(experiment.unfinished()),
        made=Made(experiment.sessions(), seconds),
    )


def _family(arms: Sequence[ArmResults], family: str) -> list[ArmResults]:
    return [arm for arm in arms if arm.family == family]


def _groups(arms: Sequence[ArmResults], metrics: Sequence[Metric]) -> list[Group]:
    found = []
    for family in BASELINES:
        if members := _family(arms, family):
            found += [
                mean_group(f"mean-{family}", f"mean of the {family} arms", members, metrics),
                best_group(f"best-{family}", f"best {family} arm", members, metrics),
            ]
    return found


def _compare(arms: Sequence[ArmResults], metrics: Sequence[Metric]) -> tuple[list[Difference], list[str]]:
    """Heterogeneous less the mean and the best of each baseline family, and less each control."""
    ours = next((arm for arm in arms if arm.family == OURS), None)
    if ours is None:
        return [], []
    told_of = [metric for metric in metrics if metric.name in HEADLINES]
    references: dict[str, dict[str, BySeed]] = {}
    for family in BASELINES:
        if members := _family(arms, family):
            references[f"the mean of the {family} arms"] = {
                metric.name: mean_of([values_of(arm, metric.name) for arm in members]) for metric in told_of
            }
            references[f"the best {family} arm"] = {
                metric.name: values_of(best, metric.name)
                for metric in told_of
                if (best := best_of(members, metric)) is not None
            }
    for arm in arms:
        if arm.family not in (OURS, *BASELINES):
            references[arm.title] = {metric.name: values_of(arm, metric.name) for metric in told_of}
    by_name = {metric.name: metric for metric in metrics}
    found: list[Difference] = []
    sentences = []
    for against, theirs in references.items():
        compared = [
            difference(metric, ours.title, values_of(ours, metric), against, values)
            for metric, values in theirs.items()
        ]
        if told := [one for one in compared if one is not None]:
            found += told
            sentences.append(sentence(ours.title, against, told, by_name))
    if found and all(one.verdict == "too few seeds" for one in found):
        sentences = [too_few(found)]
    return found, sentences


def _charts() -> list[Chart]:
    titles = {"coverage": ("Coverage", "cells filled, %"), "qd_score": ("QD-score", "QD-score, raw")}
    return [
        Chart(f"{name}-{part}", f"{title}: {words}", "calls of all nodes", y_title)
        for part, words in (("baselines", "one model and many"), ("controls", "what sharing does"))
        for name, (title, y_title) in titles.items()
    ]


def _curves(arms: Sequence[ArmResults], summaries: Summaries[SearchSummary]) -> list[Curve]:
    """One line per family: baselines are averaged over their arms, and heterogeneous stands in both parts."""
    found = []
    for part in ("baselines", "controls"):
        for name, value in CURVES.items():
            # Ours first: it is drawn in the same way in both parts.
            for family in sorted(dict.fromkeys(arm.family for arm in arms), key=lambda one: one != OURS):
                if family != OURS and (family in BASELINES) != (part == "baselines"):
                    continue
                members = _family(arms, family)
                title = f"{family}, mean of {len(members)}" if len(members) > 1 else members[0].title
                seeds = set.intersection(*(set(summaries[arm.name]) for arm in members))
                # Averaged over arms first: what varies by chance is the seed, not the choice of models.
                runs = [
                    mean_points(
                        [
                            [(float(point.calls), value(point)) for point in summaries[arm.name][seed].curve]
                            for arm in members
                        ]
                    )
                    for seed in sorted(seeds)
                ]
                if one := curve(f"{name}-{part}", title, runs):
                    found.append(one)
    return found


def _maps(arms: Sequence[ArmResults], summaries: Summaries[SearchSummary]) -> list[ArchiveMap]:
    """The archives of the first seed that every arm has finished."""
    shared = set.intersection(*(set(by_seed) for by_seed in summaries.values()))
    if not shared:
        return []
    seed = min(shared)
    found = []
    for arm in arms:
        summary = summaries[arm.name][seed]
        models = [model.model for model in summary.models]
        for evaluation, cells in (("common", summary.cells_common), ("raw", summary.cells_raw)):
            shown = [Placed(one.cell, one.fitness, model=one.model) for one in cells]
            found.append(ArchiveMap(arm.name, arm.title, seed, evaluation, models, summary.axes, shown))
    return found


def _best(arms: Sequence[ArmResults], summaries: Summaries[SearchSummary]) -> Exhibit | None:
    """The fittest program of all runs against the common opponents."""
    runs = [(arm, seed, summary) for arm in arms for seed, summary in summaries[arm.name].items()]
    if not runs:
        return None
    arm, seed, summary = max(runs, key=lambda run: run[2].best_common)
    contest = summary.held_out and msgspec.structs.replace(summary.held_out, per_opponent=[])
    return Exhibit(arm.title, seed, summary.best_common, summary.best_source, contest)


def _generality(summary: SearchSummary) -> float | None:
    return None if summary.held_out is None else summary.held_out.points_percent


def _valid(summary: SearchSummary) -> float | None:
    answers = sum(node.proposals for node in summary.nodes)
    return 100 * sum(node.valid for node in summary.nodes) / answers if answers else None


def _cost(summary: SearchSummary) -> float | None:
    return None if summary.microdollars is None else summary.microdollars / 1e6


# fmt: off
MEASURES: tuple[Measure[SearchSummary], ...] = (
    outcome("coverage_common", "common coverage", unit="%", digits=1,
        of=lambda summary: 100 * summary.coverage_common,
        meaning="Share of the cells that are filled when every elite is evaluated anew, fitness and "
                "measures, against one set of opponents that is the same for all arms."),
    outcome("qd_score_common", "common QD-score", of=lambda summary: summary.qd_score_common,
        meaning="Sum of the elites' fitness, evaluated in the same way."),
    outcome("best_common", "best common fitness", of=lambda summary: summary.best_common, digits=3,
        meaning="Greatest fitness, evaluated in the same way."),
    outcome("generality", "generality", of=_generality, unit="%", digits=1,
        meaning="Points of the program that is best by common fitness, alone against each held-out "
                "program: three for a win, one for a tie, in percent of the most. Without a held-out "
                "folder these are the starters, which the common opponents are drawn from: then it is no "
                "test on unseen programs."),
    outcome("coverage", "raw coverage", of=lambda summary: 100 * summary.coverage, unit="%", digits=1,
        meaning="Share of the cells that are filled, by what each node measured. The paper's number."),
    outcome("qd_score", "raw QD-score", of=lambda summary: summary.qd_score,
        meaning="Sum of fitness as each node measured it. Fitness grows with the number of opponents, and "
                "nodes that share have more of them: arms do not compare by it. The paper's number."),
    outcome("best", "best raw fitness", of=lambda summary: summary.best, digits=3,
        meaning="Greatest fitness as its node measured it. It grows in the same way."),
    effort("valid", "valid", of=_valid, unit="%", digits=1,
        meaning="Share of the models' answers that are programs."),
    effort("calls", "calls", of=lambda summary: summary.calls,
        meaning="Calls of models, all nodes together."),
    effort("tokens", "tokens", of=lambda summary: summary.tokens,
        meaning="Tokens into and out of the models."),
    effort("simulations", "simulations", of=lambda summary: summary.simulations,
        meaning="Rounds that the search played to evaluate programs."),
    effort("shared", "shared", of=lambda summary: summary.shared_bytes / 1000, unit="kB", digits=1,
        meaning="What the nodes sent one another."),
    effort("cost", "cost", of=_cost, unit="USD", digits=4,
        meaning="Price of the calls, where it is known."),
)
# fmt: on

CURVES: dict[str, Callable[[SearchPoint], float]] = {
    "coverage": lambda point: 100 * point.coverage,
    "qd_score": lambda point: point.qd_score,
}
