"""`shoal show`: the results of a run."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.options import option


def show(
    run: options.Run,
    held_out: options.HeldOut = None,
    best: Annotated[bool, typer.Option("--best", help="Print only the best program's source.")] = False,
    cell: Annotated[
        str | None, option("--cell", "X,Y", "The program in a cell of the common archive.")
    ] = None,
    lineage: Annotated[
        str | None, option("--lineage", "DIGEST", "A program's ancestors and what changed.")
    ] = None,
    rollout: Annotated[
        str | None, option("--rollout", "NODE:TURN", "Of training: questions, answers and scores.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Show the results of a run, finished or not.

    "Raw" merges the nodes' archives by the fitness that each node measured, as the DEI paper does; "common"
    evaluates every elite anew against one opponent set that is the same for all runs.

    \b
    Examples:
      shoal show runs/first
      shoal show runs/first --best > best.red && shoal battle best.red @paper
      shoal show runs/first --cell 2,5
      shoal show runs/sums --rollout 1:3
    """
    from shoal.applications import application_of
    from shoal.errors import ConfigError

    views = {
        "--best": best,
        "--held-out": held_out,
        "--cell": cell,
        "--lineage": lineage,
        "--rollout": rollout,
    }
    given = [name for name, value in views.items() if value not in (None, False)]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]}: give one of them")
    application = application_of(run)
    for name in given:
        if (name == "--rollout") != (application.name == "train"):
            raise ConfigError(f"{run} is a {application.title} run, which has no {name}")
    if cell is not None or lineage is not None or rollout is not None:
        from shoal.cli.show_details import show_cell, show_lineage, show_rollout

        if cell is not None:
            show_cell(run, cell, json=json)
        elif lineage is not None:
            show_lineage(run, lineage, json=json)
        elif rollout is not None:
            show_rollout(run, rollout, json=json)
        return
    import msgspec

    from shoal.cli.item_counts import item_counts, print_items_of
    from shoal.cli.output import print_json

    summarise = application.load("summarise")
    summary = summarise(run) if held_out is None else summarise(run, held_out)
    if best:
        print(_for_a_terminal(summary.best_source) if sys.stdout.isatty() else summary.best_source, end="")
    elif json:
        print_json({**msgspec.to_builtins(summary), "items": item_counts(run)})
    else:
        application.load("terminal").print_summary(summary, run)
        print_items_of(run)


def _for_a_terminal(source: str) -> str:
    """The source without anything that a terminal would obey; a stranger's model may have written it."""
    from shoal.cli.output import clean

    return "".join(f"{clean(line, len(line) + 1)}\n" for line in source.splitlines())
