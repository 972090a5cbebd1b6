"""A judge's run on the terminal: the columns of its progress, and its board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.output import clean, print_table
from shoal.cli.progress import Column, amount, number
from shoal.cli.running import NOBODY, NOBODY_HEARD, TRAFFIC, Terminal

if TYPE_CHECKING:
    from shoal.runs.judging import JudgeSummary

MOST_SHOWN = 50

COLUMNS = (
    Column("nodes", "nodes", "{} nodes", 0, lambda node: amount(node.entrants)),
    Column("asked", "asked", "{} asked", 1, lambda node: amount(node.asked)),
    Column("open", "open", "{} open", 2, lambda node: amount(node.open)),
    Column("answered", "answ", "{} answered", 1, lambda node: amount(node.answered)),
    Column("right", "right", "{} right", 1, lambda node: amount(node.right)),
    Column(
        "pass@1",
        "pass@1",
        "pass@1 {}",
        0,
        lambda node: number(node.right / node.counted if node.counted else None),
    ),
    *(column for column in TRAFFIC if column.heading in ("peers", "received")),
)


def print_summary(summary: JudgeSummary, folder: Path) -> None:
    state = "finished" if summary.finished else "not finished"
    counts = f"{summary.asked} questions asked, {summary.answered} answered, {summary.right} right"
    print(f"{folder}: {state}; judge {summary.judge or '-'}; {counts}, {summary.open} open")
    print()
    print_table(
        ("node", "model", "trains", "rounds", "asked", "answered", "right", "pass@1", "cumulative"),
        [
            (
                one.author[:8] + (" (left)" if one.left else ""),
                one.model or "-",
                "alone" if one.alone else "in the swarm",
                one.rounds,
                one.asked,
                one.answered,
                one.right,
                number(one.pass_at_1, 3),
                f"{one.reward:.2f}",
            )
            for one in summary.entrants[:MOST_SHOWN]
        ],
    )
    if len(summary.entrants) > MOST_SHOWN:
        print(f"and {len(summary.entrants) - MOST_SHOWN} more nodes: --json shows all")
    print("\nRounds are those that a node took part in. Pass@1 counts a question without an answer as wrong.")
    print("Model and manner of training are the nodes' own claims.")
    for one in summary.comparisons:
        print(f"\n{clean(one.model or 'no model')}: {one.found}")
    if summary.refused:
        listed = ", ".join(f"{count} {reason}" for reason, count in summary.refused.items())
        print(f"\npassed over: {clean(listed, 600)}")


def _remarks(summary: JudgeSummary, unheard: bool) -> list[tuple[str, int]]:
    return [(NOBODY, NOBODY_HEARD)] if unheard and not summary.entrants else []


JUDGE = Terminal(COLUMNS, print_summary, lambda summary: bool(summary.entrants), _remarks)
