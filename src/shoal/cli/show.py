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
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show what a run has found, finished or not.

    "Raw" merges the nodes' archives by the fitness that each node measured, as the DEI paper does; "common"
    evaluates every elite anew against one opponent set that is the same for all runs.

    \b
    Examples:
      shoal show runs/first
      shoal show runs/first --best > best.red && shoal battle best.red @paper
    """
    from shoal.cli.output import print_json
    from shoal.cli.run_output import as_json, print_summary
    from shoal.evolve.common import read_programs
    from shoal.evolve.summary import summarise

    summary = summarise(run, None if held_out is None else read_programs(held_out))
    if best:
        print(_for_a_terminal(summary.best_source) if sys.stdout.isatty() else summary.best_source, end="")
    elif json:
        print_json(as_json(summary))
    else:
        print_summary(summary, run)


def _for_a_terminal(source: str) -> str:
    """The source without what a terminal would obey; a stranger's model may have written it."""
    from shoal.cli.output import clean

    return "".join(f"{clean(line, len(line) + 1)}\n" for line in source.splitlines())
