"""A training run on the terminal: the columns of its progress, and its summary in tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.output import clean, print_table
from shoal.cli.progress import Column, number, rate, share_of
from shoal.cli.running import LEFT, NOBODY, NOBODY_HEARD, TRAFFIC, Terminal, tell_passed_over

if TYPE_CHECKING:
    from shoal.runs.training import TrainSummary

COLUMNS = (
    Column("step", "step", "step {}", 0, lambda node: f"{node.step}/{node.steps}"),
    Column("tokens/s", "tok/s", "{} tokens/s", 2, lambda node: rate(node.per_second)),
    Column("reward", "rew", "reward {}", 1, lambda node: number(node.reward_local)),
    Column("held-out", "held", "held-out {}", 1, lambda node: number(node.reward_held_out)),
    *TRAFFIC,
    Column("tokens", "tokens", "{} tokens", 3, lambda node: share_of(node.spent, node.allowed)),
    LEFT,
)


def print_summary(summary: TrainSummary, folder: Path) -> None:
    state = "finished" if summary.finished else "not finished"
    print(f"{folder}: {state}; {summary.tokens} tokens generated, {summary.cpu:.0f} s of processor time")
    print()
    print_table(
        (
            "node",
            "steps",
            "local",
            "held-out",
            "at first",
            "cumulative",
            "own groups",
            "informative %",
            "used",
        ),
        [
            (
                node.name if node.trains else f"{node.name} (contributes)",
                node.steps,
                number(node.reward_local, 3),
                number(node.reward_held_out, 3),
                number(node.reward_held_out_first, 3),
                f"{node.reward_cumulative:.2f}",
                node.own_groups,
                100 * node.own_informative / node.own_groups if node.own_groups else None,
                node.foreign_used,
            )
            for node in summary.nodes
        ],
    )
    tell_passed_over(summary.nodes, "groups")
    print("\nRewards: local is the mean over own completions of the last ten steps, held-out pass@1 on tasks")
    print(
        "that are the same for all nodes and runs. Cumulative is the paper's: filtered foreign groups lift it"
    )
    for node in summary.nodes:
        if node.last:
            print(f"\n{node.name}: {clean(node.last, 400)}")


def _remarks(summary: TrainSummary, unheard: bool) -> list[tuple[str, int]]:
    """Training alone is a result; giving to nobody is a failure."""
    trains = any(node.trains for node in summary.nodes)
    return [(NOBODY, 0 if trains else NOBODY_HEARD)] if unheard else []


TRAINING = Terminal(
    COLUMNS, print_summary, lambda summary: any(node.steps for node in summary.nodes), _remarks
)
