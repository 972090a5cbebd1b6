"""The experiment of the SAPO paper (Swarm sAmpling Policy Optimization): how much to share. In the mix I/J a
node samples I groups of completions, shares them, and trains on these and on J groups of others. All mixes
train on the same number of groups per step, so updates are equal and generation is not: 4/4 generates half as
much as 8/0. Beside the paper's four mixes stand controls that tell where a gain comes from, and arms for open
questions. The findings follow from the runs' summaries alone."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from shoal.errors import ConfigError
from shoal.lab.experiment import Arm, Experiment, Plan
from shoal.lab.sweep_tables import beside_sapo, sapo_charts, sapo_curves, trained
from shoal.lab.tables import (
    Comparison,
    Measure,
    Points,
    Summaries,
    curve,
    effort,
    mean_points,
    outcome,
    read_finished,
    values_of,
)
from shoal.policy.specification import parse_policy
from shoal.runs.results import ArmResults, Chart, Curve, Metric, Results
from shoal.runs.training import TrainNodeSummary, TrainSummary
from shoal.tasks.registry import canonical_name
from shoal.train.settings import NOT_TRAINED, Nodes, TrainSettings
from shoal.train.summary import LEVELS, smoothed, window_of

MIXES = ("8/0", "6/2", "4/4", "2/6")
CONTROLS: dict[str, str] = {
    "filtered": "8/0 that leaves out its own groups without information: is it the filter that helps?",
    "equal-completions": "8/0 with as few completions as 4/4, and 4/4 with as many as 8/0, by other steps",
    "own-only": "4/0: as many own groups as 4/4 and none of others: do foreign groups help at all?",
    "different-models": "4/4 and 8/0 with different models in turn, where the mixes are copies of the first",
    "different-tasks": "4/4 and 8/0 with one task per node, where the mixes' nodes draw from all tasks",
    "contributor": "4/4 whose last node shares what it samples and does not learn",
}
"""The families of arms beside the mixes. "4/4" is the sharing mix nearest to one half, "8/0" has no
sharing."""
FAMILIES = ("mix", *CONTROLS)


class SweepSettings(TrainSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    nodes: Nodes = 8  # nodes of each run, as in the paper


class Mix(NamedTuple):
    """Own and foreign groups of one step."""

    local: int
    external: int

    def __str__(self) -> str:
        return f"{self.local}/{self.external}"


class Pair(NamedTuple):
    """Two arms, by name, whose difference answers a question."""

    ours: str
    against: str


def plan_sweep(
    settings: TrainSettings,
    seeds: int,
    mixes: Sequence[str] = MIXES,
    families: Sequence[str] | None = None,
) -> Plan:
    """The arms of these families with `seeds` seeds from the settings' own on. Without `families` all that
    the settings allow. The mixes set `local` and `external`; the mix without sharing is always among them."""
    found = _parse_mixes(mixes)
    alone, half = found[0], min(found[1:], key=lambda mix: abs(mix.local - mix.external), default=None)
    _check(settings)
    excuses = _excuses(settings, half)
    for family in families or ():
        if family not in FAMILIES:
            raise ConfigError(f"no arm is called {family!r}: there are {', '.join(FAMILIES)}")
        if family in excuses:
            raise ConfigError(f"{family}: {excuses[family]}")
    wanted = [family for family in families or FAMILIES if family not in excuses]
    arms: list[Arm] = []

    def add(family: str, title: str, mix: Mix, **changes: Any) -> None:
        # Nothing is taken from others in a mix without foreign groups, so nothing is sent either.
        sharing = settings.sharing if mix.external else "off"
        common = {"models": settings.models[:1], "specialists": False, "sharing": sharing}
        changed = msgspec.structs.replace(
            settings, **{**common, **changes, "local": mix.local, "external": mix.external}
        )
        changed.check()
        resolved = msgspec.to_builtins(changed)
        del resolved["seed"]
        arms.append(Arm(f"{family}-{mix.local}-{mix.external}", title, family, resolved))

    if "mix" in wanted:
        for mix in found:
            add("mix", str(mix), mix)
    if "filtered" in wanted:
        add("filtered", f"{alone} filtered", alone, filter_own=True)
    if half is not None:
        fewer = max(1, round(settings.steps * half.local / alone.local))
        more = max(1, round(settings.steps * alone.local / half.local))
        if "equal-completions" in wanted:
            add("equal-completions", f"{alone} with the completions of {half}", alone, steps=fewer)
            add("equal-completions", f"{half} with the completions of {alone}", half, steps=more)
        if "own-only" in wanted:
            add("own-only", str(Mix(half.local, 0)), Mix(half.local, 0))
        if "different-models" in wanted:
            for mix in (alone, half):
                add("different-models", f"different models {mix}", mix, models=settings.models)
        if "different-tasks" in wanted:
            for mix in (alone, half):
                add("different-tasks", f"different tasks {mix}", mix, specialists=True)
        if "contributor" in wanted:
            base = settings.models[0]
            models = (*(base,) * (settings.nodes - 1), NOT_TRAINED + base)
            add("contributor", f"{half}, one only contributes", half, models=models)
    return Plan(
        f"{settings.nodes} nodes of {settings.models[0]}, {settings.steps} steps of {alone.local} groups, "
        f"tasks {', '.join(settings.tasks)}: own and foreign groups {', '.join(map(str, found))}",
        tuple(arms),
        tuple(range(settings.seed, settings.seed + seeds)),
    )


def pairs(plan: Plan) -> list[Pair]:
    """The differences that are told: each mix less the one without sharing, the half mix less each control,
    and the arms of open questions less their counterparts."""
    by_family: dict[str, list[str]] = {family: [] for family in FAMILIES}
    mixes = {}
    for arm in plan.arms:
        by_family[arm.family].append(arm.name)
        if arm.family == "mix":
            mixes[arm.name] = Mix(arm.settings["local"], arm.settings["external"])
    alone = next((name for name, mix in mixes.items() if not mix.external), None)
    half = min(
        (name for name, mix in mixes.items() if mix.external),
        key=lambda name: abs(mixes[name].local - mixes[name].external),
        default=None,
    )
    found: list[tuple[str | None, str | None]] = [(name, alone) for name in mixes if name != alone]
    found += [(name, alone) for name in by_family["filtered"]]
    found += [(half, name) for name in by_family["filtered"]]
    if equal := by_family["equal-completions"]:
        found += [(half, equal[0]), (equal[1], alone)]
    found += [(half, name) for name in by_family["own-only"]]
    for family in ("different-models", "different-tasks"):
        if members := by_family[family]:
            found.append((members[1], members[0]))
    found += [(name, half) for name in by_family["contributor"]]
    return [Pair(ours, against) for ours, against in found if ours and against]


def _parse_mixes(texts: Sequence[str]) -> list[Mix]:
    """Mixes of the same size, without repetition, the one without sharing first."""
    mixes: list[Mix] = []
    for text in texts:
        local, slash, external = text.strip().partition("/")
        if not slash or not (
            local.isascii() and local.isdecimal() and external.isascii() and external.isdecimal()
        ):
            raise ConfigError(f"mix {text!r}: write own and foreign groups of a step like 4/4")
        if (mix := Mix(int(local), int(external))) not in mixes:
            mixes.append(mix)
    if not mixes:
        raise ConfigError("mix: name one or more, such as 8/0,4/4")
    size = sum(mixes[0])
    for mix in mixes:
        if mix.local < 1:
            raise ConfigError(f"mix {mix}: nobody would sample anything: give one own group or more")
        if sum(mix) != size:
            raise ConfigError(
                f"mix {mix} trains on {sum(mix)} groups and {mixes[0]} on {size}: only mixes of one size "
                "compare. The arm own-only is one without foreign groups"
            )
    alone = Mix(size, 0)
    return [alone, *(mix for mix in mixes if mix != alone)]


def _check(settings: TrainSettings) -> None:
    if settings.nodes < 2:
        raise ConfigError("nodes: sharing needs two or more")
    if settings.each:
        raise ConfigError("each: the nodes of a sweep all do the same: leave it out")
    if settings.adaptive:
        raise ConfigError("adaptive: it would change the mixes that are compared: leave it out")
    if settings.sharing == "off":
        raise ConfigError("sharing: off would make all mixes alike: leave it out")
    settings.check()
    for model in settings.models:
        if model.startswith(NOT_TRAINED):
            raise ConfigError(f"models: {model} does not learn: the arm contributor has one that does not")
        parse_policy(model)
    for task in settings.tasks:
        canonical_name(task)


def _excuses(settings: TrainSettings, half: Mix | None) -> dict[str, str]:
    """The families that these settings have no arms for, and why."""
    excuses = {}
    if half is None:
        why = "needs a mix with foreign groups, such as 4/4"
        excuses = {family: why for family in CONTROLS if family != "filtered"}
    if settings.filter_own:
        excuses["filtered"] = "filter_own is set, so all arms do that"
    if len(set(settings.models)) < 2:
        excuses["different-models"] = "needs two or more different models: --models table:small,table:wide"
    if len(set(settings.tasks)) < 2:
        excuses["different-tasks"] = "needs two or more tasks: --tasks sums,compare"
    return excuses


HEADLINES = ("held_out", "local_end", "local_mean", "largest_fall", "oscillation", "cumulative")
"""The metrics whose differences are told in sentences; those that compare first."""
SUMS = ("cumulative",)
"""Metrics that grow with the number of steps and of nodes that learn. They compare where these are equal."""


def sweep_findings(experiment: Experiment) -> Results:
    plan, runs = experiment.plan, read_finished(experiment, TrainSummary, MEASURES)
    curves = [*_curves(plan, runs.summaries), *sapo_curves(plan, runs.summaries)]
    more: dict[str, Any] = {"groups": [], "maps": [], "best": None, "application": "train"}
    beside = beside_sapo(plan, runs.summaries)
    return runs.results(
        _comparisons(plan, runs.arms, runs.metrics),
        [*_charts(), *sapo_charts()],
        curves,
        beside=beside,
        **more,
    )


def _comparisons(plan: Plan, arms: Sequence[ArmResults], metrics: Sequence[Metric]) -> Iterator[Comparison]:
    results = {arm.name: arm for arm in arms}
    sizes = {arm.name: _size(arm) for arm in plan.arms}
    for pair in pairs(plan):
        ours, against = results[pair.ours], results[pair.against]
        equal = sizes[pair.ours] == sizes[pair.against]
        told = [one.name for one in metrics if one.name in HEADLINES and (equal or one.name not in SUMS)]
        values = {name: (values_of(ours, name), values_of(against, name)) for name in told}
        yield Comparison(ours.title, against.title, values)


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
                "local": [_smooth(over_nodes(run, lambda node: node.curve_local)) for run in runs],
                "batch": [_smooth(over_nodes(run, lambda node: node.curve_batch)) for run in runs],
            }
            for kind, points in lines.items():
                drawn = curve(f"{kind}-{part}", arm.title, points)
                if drawn is not None and (kind != "batch" or part == "mixes"):
                    found.append(drawn)
    return found


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


def held_out_by_completions(summary: TrainSummary, group: int) -> Points:
    """The held-out curve along the completions of all nodes up to each step."""
    steps = max((node.steps for node in summary.nodes), default=0)
    if not steps:
        return []
    per_step = sum(node.own_groups for node in summary.nodes) * group / steps
    return [(step * per_step, value) for step, value in held_out_curve(summary)]


def _smooth(points: Points) -> Points:
    values = smoothed([value for _, value in points], window_of(len(points)))
    return [(step, value) for (step, _), value in zip(points, values, strict=True)]
