"""A search on the terminal: the columns of its progress, and its summary in tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.output import clean, on_terminal, print_table
from shoal.cli.progress import Column, number, rate, share_of
from shoal.cli.running import LEFT, NOBODY, NODE_FAILED, TRAFFIC, Terminal, tell_passed_over

if TYPE_CHECKING:
    from shoal.runs.search import Axis, Placed, SearchSummary

COLUMNS = (
    Column("round", "rnd", "round {}", 0, lambda node: f"{node.round}/{node.rounds}"),
    Column("evaluations/s", "ev/s", "{} evaluations/s", 2, lambda node: rate(node.per_second)),
    Column("coverage", "cover", "coverage {}", 1, lambda node: f"{100 * node.coverage:.0f}%"),
    Column("QD-score", "QD", "QD-score {}", 1, lambda node: number(node.qd_score)),
    Column("best", "best", "best {}", 7, lambda node: number(node.best)),
    *TRAFFIC,
    Column("calls", "calls", "{} calls", 1, lambda node: share_of(node.spent, node.allowed)),
    LEFT,
)


def print_summary(summary: SearchSummary, folder: Path) -> None:
    state = "finished" if summary.finished else "not finished"
    money = "unpriced" if summary.microdollars is None else f"${summary.microdollars / 1e6:.4f}"
    print(
        f"{folder}: {state}; {summary.calls} calls, {summary.tokens} tokens, {money}, "
        f"{summary.simulations} {summary.words.plays}, {summary.shared_bytes} bytes shared"
    )
    print()
    print_table(
        ("merged archive", "cells", "coverage %", "QD-score", "best"),
        [
            ("raw", summary.cells, 100 * summary.coverage, f"{summary.qd_score:.2f}", f"{summary.best:.2f}"),
            (
                "common",
                len(summary.cells_common),
                100 * summary.coverage_common,
                f"{summary.qd_score_common:.2f}",
                f"{summary.best_common:.2f}",
            ),
        ],
    )
    print()
    print_table(
        (
            "node",
            "rounds",
            "calls",
            "failed",
            "valid %",
            "placed",
            "received",
            "rounds heard",
            "novel %",
            "cells",
        ),
        [
            (
                node.name,
                f"{node.rounds}+{node.gather_rounds}" if node.gather_rounds else node.rounds,
                node.calls,
                node.failed,
                100 * node.valid / node.proposals if node.proposals else None,
                node.accepted,
                node.champions_received,
                node.rounds_heard,
                None if node.novelty is None else 100 * node.novelty,
                node.cells,
            )
            for node in summary.nodes
        ],
    )
    tell_passed_over(summary.nodes, summary.words.programs)
    print()
    print_table(
        ("model", "filled first", "holds last", "alone"),
        [(one.model, one.first_cells, one.last_cells, one.unique_cells) for one in summary.models],
    )
    print("\nCommon archive: fitness and model of each cell")
    print_map(summary.axes, summary.cells_common)
    held = summary.held_out
    if held is not None:
        print(
            f"\nThe best program ({clean(summary.best_model)}) against {clean(held.name)}, {held.opponents}:"
        )
        if held.refused:
            print(f"({held.refused} more could not be read)")
        points = f"{held.points_percent:.0f} % of the points"
        print(f"{held.wins} wins, {held.ties} ties, {held.losses} losses, {points}")
    if summary.best_source:
        print(f"See it:    shoal show {folder} --best")
        if summary.words.command:
            print(f"Try it:    {summary.words.command.format(run=folder)}")


def _remarks(summary: SearchSummary, unheard: bool) -> list[tuple[str, int]]:
    """Nodes whose model never answered, and a swarm that was silent."""
    return [(NOBODY, 0)] * unheard + [
        (f"{node.name}: no call was answered; the last: {clean(node.last_failure, 300)}", NODE_FAILED)
        for node in summary.nodes
        if node.failed and node.failed == node.proposals
    ]


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


SEARCH = Terminal(COLUMNS, print_summary, lambda summary: bool(summary.calls), _remarks)
