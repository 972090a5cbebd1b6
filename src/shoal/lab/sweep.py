"""The experiment of the SAPO paper (Swarm sAmpling Policy Optimization) as arms: how much to share.

In the mix I/J a node samples I groups of completions, shares them, and trains on these and on J groups of
others. All mixes train on the same number of groups per step, so updates are equal and what is generated is
not: 4/4 generates half of what 8/0 does. Beside the paper's four mixes stand controls that tell where a gain
comes from, and arms for the questions that the paper leaves open. `CONTROLS` says what each of them is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from shoal.errors import ConfigError
from shoal.lab.experiment import Arm, Plan
from shoal.policy.specification import parse_policy
from shoal.tasks.registry import canonical_name
from shoal.train.settings import NOT_TRAINED, Nodes, TrainSettings

MIXES = ("8/0", "6/2", "4/4", "2/6")
CONTROLS: dict[str, str] = {
    "filtered": "8/0 that leaves out its own groups without information: is it the filter that helps?",
    "equal-completions": "8/0 with as few completions as 4/4, and 4/4 with as many as 8/0, by other steps",
    "own-only": "4/0: as many own groups as 4/4 and none of others: do foreign groups help at all?",
    "different-models": "4/4 and 8/0 with different models in turn, where the mixes are copies of the first",
    "different-tasks": "4/4 and 8/0 with one task per node, where the mixes' nodes draw from all tasks",
    "contributor": "4/4 whose last node shares what it samples and does not learn",
}
"""What each family of arms beside the mixes is, with the paper's mixes as examples. "4/4" stands for the
sharing mix that is nearest to one half, "8/0" for the one without sharing."""
FAMILIES = ("mix", *CONTROLS)


class SweepSettings(TrainSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a training run with the paper's number of nodes as default."""

    nodes: Nodes = 8


class Mix(NamedTuple):
    """Own and foreign groups of one step."""

    local: int
    external: int

    def __str__(self) -> str:
        return f"{self.local}/{self.external}"

    @property
    def slug(self) -> str:
        return f"{self.local}-{self.external}"


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
    the settings allow: different models and tasks need two or more of them.

    The mixes set `local` and `external`; the mix without sharing is always among them.
    """
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
        arms.append(Arm(f"{family}-{mix.slug}", title, family, resolved))

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
    and the arms of open questions less what they vary."""
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
