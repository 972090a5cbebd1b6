"""`shoal merge`: joins the archives of several runs under one evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.options import option


def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders.")],
    out: Annotated[Path | None, option("--out", "DIR", "Write archive and programs there.")] = None,
    json: options.Json = False,
) -> None:
    """Join the archives of several runs, of one machine or of many.

    Every elite is evaluated anew by one common evaluator, so that the numbers compare.

    \b
    Example:
      shoal merge runs/mine runs/theirs --out merged
    """
    import msgspec

    from shoal.applications import application_of
    from shoal.cli.output import print_json
    from shoal.cli.search_terminal import print_map
    from shoal.errors import ConfigError
    from shoal.evolve.summary import merge_runs

    for run in runs:
        if application_of(run).name != "evolve":
            raise ConfigError(f"{run} is no search, so it has no archive to merge")
    merged = merge_runs(runs, out)
    if json:
        print_json(msgspec.to_builtins(merged))
        return
    archives = "1 archive" if merged.archives == 1 else f"{merged.archives} archives"
    taken = "1 run" if len(merged.runs) == 1 else f"{len(merged.runs)} runs"
    print(
        f"{archives} of {taken}: {merged.cells} of {merged.capacity} cells, "
        f"QD-score {merged.qd_score_common:.2f}, best {merged.best_common:.2f} (common evaluator)"
    )
    print_map(merged.axes, merged.cells_common)
    if out is not None:
        print(f"\nwritten to {out}: archive.json, merged.json, programs/")
