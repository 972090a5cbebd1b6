"""`shoal export`: a run as files that other programs read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.options import option


def export(
    run: options.Run,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="A new or empty folder.")],
    format: Annotated[str, option("--format", "NAME", "Of tables: csv, jsonl or parquet.")] = "csv",
) -> None:
    """Write a run's tables, programs and models as files.

    A search gives `events`, `elites` (the archive under common opponents) and its programs in
    programs/. Training gives `steps`, `evaluations` and `rollouts` (what each node wrote, with its
    scores), and the newest checkpoint of each node as a model folder that transformers opens. In CSV, text
    that begins like a formula (= + - @) has an apostrophe in front; jsonl and parquet have it as it is.

    \b
    Examples:
      shoal export runs/first -o exported
      shoal export runs/sums -o exported --format jsonl
    """
    from shoal.applications import application_of
    from shoal.errors import ConfigError
    from shoal.runs.tables import write_table

    if format not in ("csv", "jsonl", "parquet"):
        raise ConfigError(f"--format is {format!r}: choose csv, jsonl or parquet")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigError(f"{out} is not empty: name a new folder")
    tables = application_of(run).load("export")(run, out)
    for name, rows in tables.items():
        write_table(out / f"{name}.{format}", rows, format)
    for path in sorted(path for path in out.iterdir()):
        print(path)
