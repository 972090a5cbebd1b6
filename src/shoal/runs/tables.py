"""Tables for other programs: CSV, JSON lines, Parquet, data frames."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError, how_to_install

Rows = Sequence[Mapping[str, Any]]

MOST_ROWS = 50
"""Rows of a table in a notebook."""

FORMULA_SIGNS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""With which a formula can begin in a spreadsheet; some take the wide forms for the same."""


def write_table(path: Path, rows: Rows, format: str) -> None:
    """One table; the first row's keys are its columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if format == "parquet":
        try:
            import pyarrow  # type: ignore[import-untyped]
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError:
            raise ConfigError(f"parquet needs a package: {how_to_install('export')}, or take csv") from None
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif format == "jsonl":
        with path.open("wb") as file:
            for row in rows:
                file.write(msgspec.json.encode(row) + b"\n")
    else:
        with path.open("w", encoding="utf-8", newline="") as text:
            if rows:
                writer = csv.DictWriter(text, list(rows[0]))
                writer.writeheader()
                writer.writerows({name: as_cell(value) for name, value in row.items()} for row in rows)


def data_frame(rows: Rows, columns: Sequence[str]) -> Any:
    """The rows as a `pandas.DataFrame`, with these columns also where there are no rows."""
    try:
        import pandas  # type: ignore[import-untyped]
    except ImportError:
        raise ConfigError("to_pandas needs pandas, which is not installed: pip install pandas") from None
    return pandas.DataFrame([dict(row) for row in rows], columns=list(columns))


def as_cell(value: object) -> object:
    """Puts an apostrophe before text that a spreadsheet would take for a formula; numbers stay."""
    if isinstance(value, str) and value.lstrip().startswith(FORMULA_SIGNS):
        return f"'{value}"
    return value
