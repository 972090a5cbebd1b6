"""`shoal show`: what a run has found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    held_out: Annotated[
        Path | None,
        typer.Option("--held-out", metavar="DIR", help="Programs that took no part, to test the best one."),
    ] = None,
    best: Annotated[bool, typer.Option("--best", help="Print only the best program's source.")] = False,
    cell: Annotated[
        str | None, typer.Option("--cell", metavar="X,Y", help="The program in a cell of the common archive.")
    ] = None,
    lineage: Annotated[
        str | None,
        typer.Option("--lineage", metavar="DIGEST", help="A program's ancestors and what changed."),
    ] = None,
    rollout: Annotated[
        str | None,
        typer.Option("--rollout", metavar="NODE:TURN", help="Of training: questions, answers and scores."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show what a run has found, finished or not.

    "Raw" merges the nodes' archives by the fitness that each node measured, as the DEI paper does; "common"
    evaluates every elite anew against one opponent set that is the same for all runs.

    \b
    Examples:
      shoal show runs/first
      shoal show runs/first --best > best.red && shoal battle best.red @paper
      shoal show runs/first --cell 2,5
      shoal show runs/sums --rollout 1:3
    """
    from shoal.cli.applications import application_of
    from shoal.errors import ConfigError

    searching = {"--best": best, "--held-out": held_out, "--cell": cell, "--lineage": lineage}
    given = [
        name for name, value in {**searching, "--rollout": rollout}.items() if value not in (None, False)
    ]
    if len(given) > 1:
        raise ConfigError(f"{given[0]} and {given[1]}: give one of them")
    if application_of(run) == "train":
        if given and given != ["--rollout"]:
            raise ConfigError(f"{run} is a run of training: {given[0]} is for runs of a search")
        _show_training(run, rollout, json=json)
        return
    if rollout is not None:
        raise ConfigError(f"{run} is a search: --rollout is for runs of training")
    if cell is not None or lineage is not None:
        from shoal.cli.show_details import show_cell, show_lineage

        if cell is not None:
            show_cell(run, cell, json=json)
        elif lineage is not None:
            show_lineage(run, lineage, json=json)
        return
    from shoal.cli.output import print_json
    from shoal.cli.run_output import as_json, print_summary
    from shoal.evolve.summary import summarise

    summary = summarise(run, held_out)
    if best:
        print(_for_a_terminal(summary.best_source) if sys.stdout.isatty() else summary.best_source, end="")
    elif json:
        print_json(as_json(summary))
    else:
        print_summary(summary, run)


def _show_training(run: Path, rollout: str | None, *, json: bool) -> None:
    if rollout is not None:
        from shoal.cli.show_details import show_rollout

        show_rollout(run, rollout, json=json)
        return
    import msgspec

    from shoal.cli.output import print_json
    from shoal.cli.train_output import print_summary
    from shoal.train.summary import summarise

    summary = summarise(run)
    if json:
        print_json(msgspec.to_builtins(summary))
    else:
        print_summary(summary, run)


def _for_a_terminal(source: str) -> str:
    """The source without what a terminal would obey; a stranger's model may have written it."""
    from shoal.cli.output import clean

    return "".join(f"{clean(line, len(line) + 1)}\n" for line in source.splitlines())
