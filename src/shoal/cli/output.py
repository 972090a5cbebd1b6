"""Printing: rich on a terminal, aligned lines in a pipe, JSON for programs.

Names and source lines come from strangers. `clean` takes out everything that a terminal could act upon,
and tables are built from `rich.text.Text`, which knows no markup.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from shoal.errors import Problem
from shoal.runs.foreign import STACKED, UNSEEN

if TYPE_CHECKING:
    from rich.table import Table

_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]?"
)
LONGEST_NAME = 48
LONGEST_LINE = 500
LONGEST_COMMAND = 4000


def clean(text: str, most: int = LONGEST_NAME) -> str:
    """One line of characters that can be seen, at most `most` of them, without terminal escape sequences."""
    text = _ESCAPE_SEQUENCE.sub("", text)
    text = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    text = STACKED.sub("", UNSEEN.sub("", text)).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def clean_lines(text: str, most_lines: int, most: int = LONGEST_LINE) -> list[str]:
    """A text of several lines for a terminal: each line cleaned and cut, its indentation kept. A last line
    counts the lines beyond `most_lines`. Text that cannot be shown is not processed."""
    lines = text[: 4 * most_lines * most].splitlines()
    shown = []
    for line in lines[:most_lines]:
        start = line[: 4 * most].expandtabs()
        indent = min(len(start) - len(start.lstrip(" ")), most // 2)
        shown.append((" " * indent + clean(start, most - indent)).rstrip())
        if len(line) > 4 * most and not shown[-1].endswith("…"):
            shown[-1] += "…"  # the beginning was mostly unprintable
    left = len(text.splitlines()) - len(shown)
    return shown if left <= 0 else [*shown, f"… {left} more lines"]


def problem_text(problem: Problem, file: str) -> str:
    """A problem behind the name of its file. Unprintable characters of the source become dots, one for
    one, so that the marker below stays in its column."""
    lines = str(problem).split("\n")
    shown = ["".join(c if c.isprintable() else "·" if c != "\t" else " " for c in line) for line in lines]
    return f"{clean(file, 300)}: " + "\n".join(shown)


def on_terminal() -> bool:
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """Names are not cleaned: JSON escapes all characters beyond ASCII."""
    print(json.dumps(value, indent=2))


def note(text: str) -> None:
    """A remark for people, on standard error."""
    print(clean(text, 2000), file=sys.stderr)


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], *, longest: int = LONGEST_NAME
) -> None:
    """Numbers stand to the right, text to the left and cleaned. Floats have one digit after the point, and
    None is a dash. On a terminal, up to `longest` characters of a text are shown. In a pipe the limit is
    LONGEST_NAME, and `longest` in the last column."""
    most = [longest if on_terminal() else LONGEST_NAME] * (len(headings) - 1) + [longest]
    cells = [[_cell(value, most[at]) for at, value in enumerate(row)] for row in rows]
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
    """A table where it fits the terminal, if need be with headings of several lines and small gaps; else a
    block per row."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(highlight=False)
    unbounded = console.options.update(max_width=10**6)
    folded = [_folded(one, column) for one, column in _columns(headings, cells)]
    for shown, padding in ((headings, 1), (folded, 1), (folded, 0)):
        table = _rich_table(shown, cells, right, padding)
        if Measurement.get(console, unbounded, table).maximum <= console.width:
            console.print(table)
            return
    for line in blocks(headings, cells, console.width):
        print(line)


def _rich_table(
    headings: Sequence[str], cells: Sequence[Sequence[str]], right: Sequence[bool], padding: int
) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, padding))
    for heading, to_right in zip(headings, right, strict=True):
        table.add_column(
            Text(heading), justify="right" if to_right else "left", no_wrap=True, vertical="bottom"
        )
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _columns(headings: Sequence[str], cells: Sequence[Sequence[str]]) -> list[tuple[str, list[str]]]:
    return [(heading, [row[at] for row in cells]) for at, heading in enumerate(headings)]


def _folded(heading: str, column: Sequence[str]) -> str:
    """The heading in lines no longer than its longest word or the longest cell below it."""
    width = max(map(len, [*heading.split(), *column]), default=1)
    return "\n".join(textwrap.wrap(heading, max(1, width), break_long_words=False)) or heading


def blocks(headings: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[str]:
    """A block of lines per row: its first cell as the title, below it heading and value of each other cell.
    No cell is cut or broken, so that a value of up to `width` characters can be copied as one line."""
    label = max((len(heading) for heading in headings[1:]), default=0)
    lines = [""]
    for row in cells:
        lines += _labelled(f"{headings[0]} ", row[0], width)
        for heading, value in zip(headings[1:], row[1:], strict=True):
            lines += _labelled(f"  {heading.ljust(label)}  ", value, width)
        lines.append("")
    return lines


def _labelled(label: str, value: str, width: int) -> list[str]:
    """The value behind its label, or below it where both together are too long."""
    from rich.cells import cell_len

    if cell_len(label + value) <= width:
        return [(label + value).rstrip()]
    return [label.rstrip(), "    " + value if cell_len(value) + 4 <= width else value]


def _cell(value: object, most: int) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return str(value) if isinstance(value, int) else clean(str(value), most)
