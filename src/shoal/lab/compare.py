"""The DEI paper's experiment as arms: one model, many of one model, many models, at equal total calls.

Beside the paper's three conditions, solo and homogeneous once per model, stand the controls that tell where a
gain comes from: no sharing, champions as opponents only or as seeds only, and nothing but fresh programs.
Each control differs from the heterogeneous arm in exactly one setting.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.evolve.common import read_programs
from shoal.evolve.settings import EvolveSettings
from shoal.lab.experiment import Arm, Plan

CONTROLS: dict[str, tuple[str, dict[str, Any]]] = {
    "no-sharing": ("heterogeneous, no sharing", {"sharing": "off"}),
    "opponents-only": ("champions as opponents only", {"sharing": "opponents"}),
    "seeds-only": ("champions as seeds only", {"sharing": "seeds"}),
    "from-scratch": ("from scratch, nothing mutated", {"fresh_only": True}),
}
FAMILIES = ("solo", "homogeneous", "heterogeneous", *CONTROLS)


def plan_comparison(settings: EvolveSettings, seeds: int, families: Sequence[str] = FAMILIES) -> Plan:
    """The arms of these families with `seeds` seeds from the settings' own on."""
    unknown = [family for family in families if family not in FAMILIES]
    if unknown:
        raise ConfigError(f"no arm is called {unknown[0]!r}: there are {', '.join(FAMILIES)}")
    models = list(dict.fromkeys(settings.models))
    if len(models) < 2:
        raise ConfigError(
            "a comparison needs two or more different models: --models builtin:bomber,builtin:replicator"
        )
    settings.check()
    nodes = len(settings.models)
    arms: list[Arm] = []

    def add(family: str, title: str, **changes: Any) -> None:
        changed = msgspec.to_builtins(msgspec.structs.replace(settings, **changes))
        del changed["seed"]
        model = changes["models"][0] if family in ("solo", "homogeneous") else ""
        arms.append(Arm(_arm_name(family, model, [arm.name for arm in arms]), title, family, changed))

    for family in FAMILIES:
        if family not in families:
            continue
        if family == "solo":
            for model in models:
                add(family, f"solo, {model}", models=(model,))
        elif family == "homogeneous":
            for model in models:
                add(family, f"homogeneous, {nodes} × {model}", models=(model,) * nodes)
        elif family == "heterogeneous":
            add(family, "heterogeneous", models=settings.models)
        else:
            title, changes = CONTROLS[family]
            add(family, title, models=settings.models, **changes)
    held_out = None if settings.held_out is None else read_programs(Path(settings.held_out))
    return Plan(
        f"{nodes} nodes, {settings.calls} calls in {settings.rounds} rounds: {', '.join(settings.models)}",
        tuple(arms),
        tuple(range(settings.seed, settings.seed + seeds)),
        {} if held_out is None else {"held-out programs": _digest(held_out)},
    )


def _digest(programs: Mapping[str, str]) -> str:
    """The name of this set of programs: if it changes, the runs do not compare any more."""
    return hashlib.sha256(msgspec.json.encode(sorted(programs.items()))).hexdigest()[:16]


def _arm_name(family: str, model: str, taken: Sequence[str]) -> str:
    """The family, and the model in letters fit for a folder; a number tells apart what then looks alike."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"{family} {model}".lower()).strip("-")[:90]
    name, number = slug, 1
    while name in taken:
        number += 1
        name = f"{slug}-{number}"
    return name
