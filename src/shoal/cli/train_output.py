"""What the verbs of training have in common: running with progress, and the summary in tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from shoal.cli.going_on import INTERRUPTED, NOBODY_HEARD, NODE_FAILED
from shoal.cli.output import clean, note, print_json, print_table
from shoal.cli.progress import ProgressDisplay, manner_of
from shoal.cli.stopping import saying_that_it_stops
from shoal.cli.views import train_view

if TYPE_CHECKING:
    from shoal.node.network import Network
    from shoal.train.settings import TrainSettings
    from shoal.train.summary import Summary

NOBODY = "nobody was heard (0 peers seen), so nobody received anything: try `shoal doctor --join ADDRESS`"


def run_and_report(
    settings: TrainSettings, folder: Path, network: Network, *, in_process: bool, json: bool, quiet: bool
) -> None:
    """Runs a training swarm with progress on standard error, and prints its summary, or with `quiet` its
    folder. Exits with 2 if a node failed, with 130 if it was stopped, and with 1 if it only gave to others
    and heard none of them."""
    from shoal.node import Stop
    from shoal.train.running import run
    from shoal.train.summary import summarise

    shown = ProgressDisplay(train_view(), manner_of(json=json, quiet=quiet), live=not settings.at_terminal)
    with Stop() as stop, shown as display, saying_that_it_stops(stop, display.say):
        ended = run(
            settings, folder, in_process=in_process, stop=stop, progress=display.show, network=network
        )
    display.tell_troubles()
    summary = summarise(folder)
    if json:
        print_json(msgspec.to_builtins(summary))
    elif quiet:
        print(folder)
    else:
        # Where no node took a step, the lines above have said all that there is to say.
        if ended == "finished" or any(node.steps for node in summary.nodes):
            print_summary(summary, folder)
        if stop.requested:
            print(f"\nstopped; go on with: shoal resume {folder}")
    only_gives = not (network.is_private or in_process or any(node.trains for node in summary.nodes))
    unheard = only_gives and display.peers == 0
    if unheard and (ended == "finished" or stop.requested):
        note(f"shoal: {NOBODY}")
    if ended != "finished":
        raise typer.Exit(INTERRUPTED if stop.requested else NODE_FAILED)
    if unheard:
        raise typer.Exit(NOBODY_HEARD)


def print_summary(summary: Summary, folder: Path) -> None:
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
                _number(node.reward_local),
                _number(node.reward_held_out),
                _number(node.reward_held_out_first),
                f"{node.reward_cumulative:.2f}",
                node.own_groups,
                100 * node.own_informative / node.own_groups if node.own_groups else None,
                node.foreign_used,
            )
            for node in summary.nodes
        ],
    )
    print("\nRewards: local is the mean over own completions of the last ten steps, held-out pass@1 on tasks")
    print(
        "that are the same for all nodes and runs. Cumulative is the paper's: filtered foreign groups lift it"
    )
    for node in summary.nodes:
        if node.last:
            print(f"\n{node.name}: {clean(node.last, 400)}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
