"""`shoal sweep`: the mixes of the SAPO paper and controls, at the same number of groups per step."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import experiments, options
from shoal.cli.options import option

if TYPE_CHECKING:
    from shoal.lab.sweep import SweepSettings
    from shoal.presets import Preset

IN_TERMINAL = ("held_out", "local_end", "largest_fall", "cumulative", "tokens", "foreign_used")
"""The metrics that the terminal has room for; the report has all."""


def sweep(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings of a run, as for train.")
    ] = None,
    mix: Annotated[
        str, option("--mix", "I/J,…", "Own and foreign groups of a step, all of one size.")
    ] = "8/0,6/2,4/4,2/6",
    seeds: Annotated[int, option("--seeds", "K", "Runs of each arm.", min=1, max=experiments.MOST_SEEDS)] = 5,
    nodes: Annotated[int | None, option("--nodes", "N", "Nodes of each run, by default 8.", min=2)] = None,
    models: Annotated[
        str | None, option("--models", "SPEC,…", "All nodes have the first; the others are for an arm.")
    ] = None,
    tasks: Annotated[
        str | None, option("--tasks", "NAME,…", "Tasks that nodes draw from, e.g. sums.")
    ] = None,
    steps: Annotated[int | None, option("--steps", "T", "Steps of each node.", min=1)] = None,
    out: Annotated[
        Path, option("--out", "DIR", "Folder of the experiment; an existing one is continued.")
    ] = Path("runs/sweep"),
    arms: Annotated[
        str | None,
        option(
            "--arms",
            "NAME,…",
            "Of mix, filtered, equal-completions, own-only, different-models, different-tasks, contributor.",
        ),
    ] = None,
    paper: options.Paper = False,
    preset: options.PresetName = None,
    changes: Annotated[
        list[str] | None, option("--set", "KEY=VALUE", "Any other setting; may be repeated.")
    ] = None,
    workers: experiments.Workers = None,
    dry_run: experiments.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train together with more and less sharing, at the same number of updates.

    Runs each mix of own and foreign groups, and its controls, with several seeds each, and writes
    DIR/report.html, DIR/results.md and DIR/results.json. Interrupted in any way, the same command goes on.
    More seeds or arms may be added later.

    \b
    Examples:
      shoal sweep --models table:small --steps 100
      shoal sweep --mix 8/0,4/4 --arms mix,filtered,own-only --seeds 10
      shoal sweep --paper --models tiny:qwen --dry-run
      shoal sweep training.toml --models tiny:llama,tiny:gpt2 --workers 1 --out runs/paper
    """
    from shoal.cli.output import note
    from shoal.lab.sweep import plan_sweep

    published = options.find_preset(paper, preset, "train")
    settings = settings_from(config, nodes, models, tasks, steps, changes, published)
    plan = plan_sweep(settings, seeds, options.names(mix), None if arms is None else options.names(arms))
    options.tell_departures(published, settings)
    for remark in settings.remarks():
        note(remark)
    if dry_run:
        columns = {name: itemgetter(name) for name in ("nodes", "steps", "local", "external")}
        experiments.show_plan(plan, columns, json)
        return
    experiments.carry_out(plan, out, workers, IN_TERMINAL, json=json, quiet=quiet)


def settings_from(
    config: Path | None,
    nodes: int | None,
    models: str | None,
    tasks: str | None,
    steps: int | None,
    more: list[str] | None,
    preset: Preset | None = None,
) -> SweepSettings:
    """Preset, file and options together; --set comes last."""
    from shoal.lab.sweep import SweepSettings
    from shoal.runs import load

    given: dict[str, object] = {
        "nodes": nodes,
        "models": None if models is None else options.names(models),
        "tasks": None if tasks is None else options.names(tasks),
        "steps": steps,
    }
    under = None if preset is None else preset.table
    return load(SweepSettings, config, options.overrides(given, more), under=under)
