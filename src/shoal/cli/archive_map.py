"""An archive as a map: a grid of cells on a terminal or in a pipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.cli.output import clean, on_terminal, print_table

if TYPE_CHECKING:
    from shoal.runs.search import Axis, Placed

SHADES = ("white on color(236)", "white on color(24)", "white on color(30)", "black on color(35)",
          "black on color(148)", "black on color(220)")  # fmt: skip
"""From low to high fitness; the numbers stand in the cells, so that colour alone says nothing."""


def print_map(axes: Sequence[Axis], cells: Sequence[Placed]) -> None:
    """The grid as in a plot, the first axis upward and the second one across; a letter says whose program it
    is. An archive of other than two axes is listed."""
    if len(axes) != 2:
        rows = [(str(one.cell), f"{one.fitness:.2f}", one.model) for one in cells]
        print_table(("cell", "fitness", "model"), rows)
        return
    letters: dict[str, str] = {}
    for cell in sorted(cells, key=lambda one: one.model):
        letters.setdefault(cell.model, chr(ord("A") + len(letters) % 26))
    by_cell = {cell.cell: cell for cell in cells}
    most = max((cell.fitness for cell in cells), default=0.0)
    upward, across = axes
    width = max(8, *(len(across.label(column)) for column in range(across.bins))) + 1
    margin = max(len(upward.label(row)) for row in range(upward.bins))
    for row in reversed(range(upward.bins)):
        line = [(f"{upward.label(row):>{margin}}", "")]
        for column in range(across.bins):
            found = by_cell.get((row, column))
            if found is None:
                line.append((f"{'·':>{width}}", ""))
            else:
                text = f"{found.fitness:.2f} {letters[found.model]}"
                line.append((f"{text:>{width}}", _shade(found.fitness, most)))
        _print_line(line)
    _print_line([(" " * margin, "")] + [(f"{across.label(i):>{width}}", "") for i in range(across.bins)])
    named = ", ".join(f"{letter} {clean(model)}" for model, letter in letters.items())
    print(f"upward: {upward.measure}, across: {across.measure}" + (f"; {named}" if named else ""))


def _shade(fitness: float, most: float) -> str:
    share = fitness / most if most > 0 else 0.0
    return SHADES[min(len(SHADES) - 1, int(len(SHADES) * share))]


def _print_line(parts: Sequence[tuple[str, str]]) -> None:
    if not on_terminal():
        print("".join(text for text, _ in parts))
        return
    from rich.console import Console
    from rich.text import Text

    line = Text()
    for text, style in parts:
        line.append(text, style=style)
    Console(highlight=False).print(line, no_wrap=True, overflow="ignore", crop=False)
