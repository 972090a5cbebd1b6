"""Printing: rich on a terminal, aligned lines in a pipe, JSON for programs.

Names and source lines come from strangers. `clean` takes out everything that a terminal could act upon,
and tables are built from `rich.text.Text`, which knows no markup.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from shoal.errors import Problem

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?"
)
LONGEST_NAME = 48


def clean(text: str, most: int = LONGEST_NAME) -> str:
    """One line of printable characters, at most `most` of them, without terminal escape sequences."""
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def problem_text(problem: Problem, file: str) -> str:
    """A problem behind the name of its file. Unprintable characters of the source become dots, one for
    one, so that the marker below stays in its column."""
    lines = str(problem).split("\n")
    shown = ["".join(c if c.isprintable() else "·" if c != "\t" else " " for c in line) for line in lines]
    return f"{clean(file, 300)}: " + "\n".join(shown)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """Names are given as they are: JSON escapes what is not ASCII."""
    print(json.dumps(value, indent=2))


def note(text: str) -> None:
    """A remark for people, on standard error."""
    print(clean(text, 2000), file=sys.stderr)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Numbers stand to the right, text to the left and cleaned. Floats have one digit after the point, and
    None, a number that there is none of, is a dash."""
    cells = [[_cell(value) for value in row] for row in rows]
    right = [
        all(isinstance(row[column], int | float | None) for row in rows) for column in range(len(headings))
    ]
    if on_terminal():
        _print_rich(headings, cells, right)
        return
    widths = [max(len(row[column]) for row in [list(headings), *cells]) for column in range(len(headings))]
    for row in [list(headings), *cells]:
        aligned = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        print("  ".join(aligned).rstrip())


def _print_rich(headings: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading, to_right in zip(headings, right, strict=True):
        table.add_column(Text(heading), justify="right" if to_right else "left", no_wrap=to_right)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value) if isinstance(value, int) else clean(str(value))
