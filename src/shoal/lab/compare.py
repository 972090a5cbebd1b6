"""The conditions of the DEI paper: one model, many of one model, many models, at equal total calls. Solo and
homogeneous stand once per model. Beside these three stand controls that tell where a gain comes from; each
differs from the heterogeneous arm in one setting. The findings follow from the summaries of the finished
runs, and say how many runs are missing."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.evolve.common import STARTERS, read_programs
from shoal.evolve.settings import EvolveSettings
from shoal.lab.experiment import Arm, Experiment, Plan
from shoal.lab.published import PUBLISHED_CALLS as PUBLISHED_CALLS
from shoal.lab.search_tables import beside_dei, dei_curves
from shoal.lab.tables import (
    BySeed,
    Comparison,
    Finished,
    Measure,
    Summaries,
    best_of,
    curve,
    effort,
    estimates_of,
    mean_of,
    mean_points,
    outcome,
    read_finished,
    values_of,
)
from shoal.runs.results import ArchiveMap, ArmResults, Chart, Curve, Exhibit, Group, Metric, Results
from shoal.runs.search import Placed, SearchPoint, SearchSummary

CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "no-sharing": ("heterogeneous, no sharing", {"sharing": "off"}),
    "opponents-only": ("champions as opponents only", {"sharing": "opponents"}),
    "seeds-only": ("champions as seeds only", {"sharing": "seeds"}),
    "from-scratch": ("from scratch, nothing mutated", {"fresh_only": True}),
}
OURS = "heterogeneous"
BASELINES = ("solo", "homogeneous")
FAMILIES = (*BASELINES, OURS, *CONTROLS)


def plan_comparison(
    settings: EvolveSettings,
    seeds: int,
    families: Sequence[str] = FAMILIES,
    solo_calls_per_round: int | None = None,
    tell: Callable[[str], object] = lambda line: None,
) -> Plan:
    """The arms of these families with `seeds` seeds from the settings' own on. The node of a solo arm has
    `solo_calls_per_round`, by default as many calls as all nodes of another arm together. The plan has the
    content of files that the settings name; `tell` hears of those that are left out."""
    unknown = [family for family in families if family not in FAMILIES]
    if unknown:
        raise ConfigError(f"no arm is called {unknown[0]!r}: there are {', '.join(FAMILIES)}")
    models = list(dict.fromkeys(settings.models))
    if len(models) < 2:
        raise ConfigError(
            "a comparison needs two or more different models: --models builtin:bomber,builtin:replicator"
        )
    settings = settings.pinned(settings.open_domain())
    settings.check()
    settings = settings.pinned(settings.open_domain(), tell)
    nodes = len(settings.models)
    arms: list[Arm] = []

    def add(family: str, title: str, model: str = "", **changes: Any) -> None:
        changed = msgspec.to_builtins(msgspec.structs.replace(settings, **changes))
        del changed["seed"]
        arms.append(Arm(_arm_name(family, model, [arm.name for arm in arms]), title, family, changed))

    alone: dict[str, Any] = {}
    each = settings.calls_per_round
    if solo_calls_per_round is not None or each is not None:
        alone = {"calls": None, "calls_per_round": solo_calls_per_round or nodes * (each or 0)}
    for family in [family for family in FAMILIES if family in families]:
        if family in BASELINES:
            many, times = (1, "") if family == "solo" else (nodes, f"{nodes} × ")
            changes = alone if family == "solo" else {}
            for model in models:
                add(family, f"{family}, {times}{model}", model, models=(model,) * many, **changes)
        else:
            title, changes = CONTROLS.get(family, (family, {}))
            add(family, title, **changes)
    held_out = None if settings.held_out is None else read_programs(Path(settings.held_out))
    return Plan(
        f"{nodes} nodes, {settings.calls} calls in {settings.rounds} rounds: {', '.join(settings.models)}",
        tuple(arms),
        tuple(range(settings.seed, settings.seed + seeds)),
        {} if held_out is None else {"held-out programs": _digest(held_out)},
    )


def published_solo_calls(settings: EvolveSettings) -> int | None:
    """The calls per round that the paper gives a node alone, if these settings give the other arms theirs."""
    others = (len(settings.models), settings.calls_per_round)
    is_published = others == (PUBLISHED_CALLS["nodes"], PUBLISHED_CALLS["each"])
    return PUBLISHED_CALLS["solo"] if is_published else None


def _digest(programs: Mapping[str, str]) -> str:
    """The name of this set of programs: if it changes, the runs do not compare any more."""
    return hashlib.sha256(msgspec.json.encode(sorted(programs.items()))).hexdigest()[:16]


def _arm_name(family: str, model: str, taken: Sequence[str]) -> str:
    """The family, and the model in letters fit for a folder; a number tells equal names apart."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{family} {model}".lower()).strip("-")[:90]
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name


HEADLINES = ("coverage_common", "qd_score_common", "best_common", "generality", "coverage", "qd_score")
"""The metrics whose differences are told in sentences; those under common opponents first."""


def findings(experiment: Experiment) -> Results:
    runs = _named(read_finished(experiment, SearchSummary, MEASURES))
    baselines = _baselines(runs.arms, runs.metrics)
    charts, curves = dei_curves(experiment.plan, runs.summaries)
    return runs.results(
        _comparisons(runs.arms, baselines),
        [*_charts(), *charts],
        [*_curves(runs.arms, runs.summaries), *curves],
        groups=[group for group, _ in baselines],
        maps=_maps(runs.arms, runs.summaries),
        best=_best(runs.arms, runs.summaries),
        beside=beside_dei(experiment.plan, runs.summaries),
    )


def _named(runs: Finished[SearchSummary]) -> Finished[SearchSummary]:
    """The same, where the column of generality says that the programs were starters, if they were."""
    met = {run.held_out.name for one in runs.summaries.values() for run in one.values() if run.held_out}
    if met != {STARTERS}:
        return runs
    metrics = [
        msgspec.structs.replace(one, title=f"{one.title} (starters)") if one.name == "generality" else one
        for one in runs.metrics
    ]
    return dataclasses.replace(runs, metrics=metrics)


def _family(arms: Sequence[ArmResults], family: str) -> list[ArmResults]:
    return [arm for arm in arms if arm.family == family]


def _baselines(
    arms: Sequence[ArmResults], metrics: Sequence[Metric]
) -> list[tuple[Group, dict[str, BySeed]]]:
    """The mean and the best of each baseline family with their values; the best one for each metric."""
    found = []
    for family in BASELINES:
        if members := _family(arms, family):
            names = [metric.name for metric in metrics]
            means = {name: mean_of([values_of(arm, name) for arm in members]) for name in names}
            found.append((Group(f"mean-{family}", f"mean of the {family} arms", estimates_of(means)), means))
            chosen = {one.name: best for one in metrics if one.better and (best := best_of(members, one))}
            group = Group(
                f"best-{family}",
                f"best {family} arm",
                {name: arm.estimates[name] for name, arm in chosen.items()},
                {name: arm.name for name, arm in chosen.items()},
            )
            found.append((group, {name: values_of(arm, name) for name, arm in chosen.items()}))
    return found


def _comparisons(
    arms: Sequence[ArmResults], baselines: Sequence[tuple[Group, Mapping[str, BySeed]]]
) -> list[Comparison]:
    """Heterogeneous less the mean and the best of each baseline family, and less each control."""
    references = {f"the {group.title}": values for group, values in baselines}
    for arm in arms:
        if arm.family not in (OURS, *BASELINES):
            references[arm.title] = {name: values_of(arm, name) for name in arm.estimates}
    return [
        Comparison(
            ours.title,
            against,
            {name: (values_of(ours, name), theirs[name]) for name in HEADLINES if name in theirs},
        )
        for ours in _family(arms, OURS)
        for against, theirs in references.items()
    ]


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
