"""`shoal sweep`: the SAPO paper's experiment as one command."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import experiments, options

if TYPE_CHECKING:
    from shoal.lab.sweep import SweepSettings

IN_TERMINAL = ("held_out", "local_end", "largest_fall", "cumulative", "tokens", "foreign_used")
"""The metrics that the terminal has room for; the report has all."""


def sweep(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings of a run, as for train.")
    ] = None,
    mix: Annotated[
        str,
        typer.Option("--mix", metavar="I/J,…", help="Own and foreign groups of a step, all of one size."),
    ] = "8/0,6/2,4/4,2/6",
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="K", min=1, max=experiments.MOST_SEEDS, help="Runs of each arm.")
    ] = 5,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=2, help="Nodes of each run, by default 8.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            "--models", metavar="SPEC,…", help="All nodes have the first; the others are for an arm."
        ),
    ] = None,
    tasks: Annotated[
        str | None, typer.Option("--tasks", metavar="NAME,…", help="Tasks that nodes draw from, e.g. sums.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="T", min=1, help="Steps of each node.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the experiment; there, it is gone on with."),
    ] = Path("runs/sweep"),
    arms: Annotated[
        str | None,
        typer.Option(
            "--arms",
            metavar="NAME,…",
            help="Of mix, filtered, equal-completions, own-only, different-models, different-tasks, "
            "contributor.",
        ),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; may be repeated."),
    ] = None,
    workers: experiments.Workers = None,
    dry_run: experiments.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train together with more and less sharing, at the same number of updates.

    Runs each mix of own and foreign groups, and its controls, with several seeds each, and writes
    DIR/report.html, DIR/results.md and DIR/results.json. Interrupted in any way, the same command goes on.
    More seeds or arms may be added to what is there.

    \b
    Examples:
      shoal sweep --models table:small --steps 100
      shoal sweep --mix 8/0,4/4 --arms mix,filtered,own-only --seeds 10
      shoal sweep training.toml --models tiny:llama,tiny:gpt2 --workers 1 --out runs/paper
    """
    from shoal.lab.sweep import plan_sweep

    settings = settings_from(config, nodes, models, tasks, steps, changes)
    plan = plan_sweep(settings, seeds, options.names(mix), None if arms is None else options.names(arms))
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
) -> SweepSettings:
    """File and options together; --set comes last."""
    from shoal.lab.sweep import SweepSettings
    from shoal.runs import load

    given: dict[str, object] = {
        "nodes": nodes,
        "models": None if models is None else options.names(models),
        "tasks": None if tasks is None else options.names(tasks),
        "steps": steps,
    }
    return load(SweepSettings, config, options.overrides(given, more))
