"""`shoal merge`: joins the archives of several runs under one evaluator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders.")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write archive and programs there.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Join the archives of several runs, of one machine or of many.

    Every elite is evaluated anew by one common evaluator, so that the numbers compare.

    \b
    Example:
      shoal merge runs/mine runs/theirs --out merged
    """
    from shoal.cli.applications import application_of
    from shoal.cli.archive_map import print_map
    from shoal.cli.output import print_json
    from shoal.cli.run_output import as_json
    from shoal.errors import ConfigError
    from shoal.evolve.merging import merge_runs

    for run in runs:
        if application_of(run) == "train":
            raise ConfigError(f"{run} is a training run, which has no archive: merging is for searches")
    merged = merge_runs(runs, out)
    if json:
        print_json(as_json(merged))
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
