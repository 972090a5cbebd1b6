"""`shoal compare`: the conditions of the DEI paper and controls, at the same number of calls."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import experiments, options
from shoal.cli.evolve import CallsPerRound, settings_from
from shoal.cli.options import option

IN_TERMINAL = ("coverage_common", "qd_score_common", "generality", "qd_score", "valid", "calls")
"""The metrics that the terminal has room for; the report has all."""


def compare(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings of the search, as for evolve.")
    ] = None,
    models: Annotated[
        str | None, option("--models", "SPEC,…", "One node per model; two or more differ.")
    ] = None,
    seeds: Annotated[int, option("--seeds", "K", "Runs of each arm.", min=1, max=experiments.MOST_SEEDS)] = 5,
    calls: Annotated[
        int | None, option("--calls", "N", "Calls of each run, over all its nodes.", min=1)
    ] = None,
    calls_per_round: CallsPerRound = None,
    solo_calls_per_round: Annotated[
        int | None,
        option("--solo-calls-per-round", "N", "Of a solo arm; else as many as all nodes together.", min=1),
    ] = None,
    rounds: Annotated[int | None, option("--rounds", "R", "Rounds of each run.", min=1)] = None,
    out: Annotated[
        Path, option("--out", "DIR", "Folder of the experiment; an existing one is continued.")
    ] = Path("runs/compare"),
    arms: Annotated[
        str | None,
        option(
            "--arms",
            "NAME,…",
            "Of solo, homogeneous, heterogeneous, no-sharing, opponents-only, seeds-only, from-scratch.",
        ),
    ] = None,
    held_out: Annotated[
        Path | None, option("--held-out", "DIR", "Programs that take no part, to test the best on.")
    ] = None,
    held_out_size: Annotated[
        str | None, option("--held-out-size", "N|all", "Programs of it for the champions of each round.")
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
    """Compare many models with one, at the same number of calls.

    Runs solo and homogeneous once per model, heterogeneous, and its controls, with several seeds each,
    and writes DIR/report.html, DIR/results.md and DIR/results.json. Interrupted in any way, the same
    command goes on. More seeds or arms may be added later.

    \b
    Examples:
      shoal compare --calls 400 --seeds 5
      shoal compare --models builtin:bomber,builtin:scanner --arms solo,homogeneous,heterogeneous
      shoal compare --paper --models builtin:bomber,builtin:scanner --rounds 3 --dry-run
      shoal compare search.toml --held-out warriors/ --out runs/paper
    """
    from shoal.cli.output import note
    from shoal.lab.compare import FAMILIES, PUBLISHED_CALLS, plan_comparison, published_solo_calls

    if held_out_size is not None:
        changes = [f"held_out_size={held_out_size}", *(changes or [])]
    published = options.find_preset(paper, preset, "evolve")
    settings = settings_from(
        config, models, rounds, calls, calls_per_round, None, held_out, changes, published
    )
    solo = solo_calls_per_round
    if solo is None and paper:
        solo = published_solo_calls(settings)
    families = FAMILIES if arms is None else options.names(arms)
    plan = plan_comparison(settings, seeds, families, solo, tell=note)
    options.tell_departures(published, settings)
    if paper and solo != PUBLISHED_CALLS["solo"]:
        now = (
            "as many calls as the nodes of another arm together" if solo is None else f"{solo} calls a round"
        )
        note(f"solo arms have {now} (published: {PUBLISHED_CALLS['solo']} a round)")
    if dry_run:
        experiments.show_plan(
            plan, {"nodes": lambda of: len(of["models"]), "calls": lambda of: of["calls"]}, json
        )
        return
    experiments.carry_out(plan, out, workers, IN_TERMINAL, json=json, quiet=quiet)
