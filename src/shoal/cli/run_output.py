"""What the verbs of a search have in common: running with progress, and the summary in tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from shoal.cli.archive_map import print_map
from shoal.cli.going_on import INTERRUPTED, NODE_FAILED
from shoal.cli.output import clean, note, print_json, print_table
from shoal.cli.progress import ProgressDisplay, manner_of
from shoal.cli.stopping import saying_that_it_stops
from shoal.cli.views import search_view

if TYPE_CHECKING:
    from shoal.evolve.settings import EvolveSettings
    from shoal.evolve.summary import Summary
    from shoal.node.network import Network


def run_and_report(
    settings: EvolveSettings, folder: Path, network: Network, *, in_process: bool, json: bool, quiet: bool
) -> None:
    """Runs a search with progress on standard error, and prints its summary, or with `quiet` its folder.
    Exits with 2 if a node failed and with 130 if it was stopped."""
    from shoal.evolve.running import run
    from shoal.evolve.summary import summarise
    from shoal.node import Stop

    shown = ProgressDisplay(search_view(), manner_of(json=json, quiet=quiet))
    with Stop() as stop, shown as display, saying_that_it_stops(stop, display.say):
        ended = run(
            settings, folder, in_process=in_process, stop=stop, progress=display.show, network=network
        )
    display.tell_troubles()
    summary = summarise(folder)
    if json:
        print_json(as_json(summary))
    elif quiet:
        print(folder)
    else:
        # Where no call was made, the lines above have said all that there is to say.
        if ended == "finished" or summary.calls:
            print_summary(summary, folder)
        if stop.requested:
            print(f"\nstopped; go on with: shoal resume {folder}")
    unanswered = [node for node in summary.nodes if node.failed and node.failed == node.proposals]
    for silent in unanswered if ended == "finished" else ():
        note(f"shoal: {silent.name}: no call was answered; the last: {clean(silent.last_failure, 300)}")
    if ended != "finished" or unanswered:
        raise typer.Exit(INTERRUPTED if stop.requested else NODE_FAILED)


def as_json(value: msgspec.Struct) -> Any:
    return msgspec.to_builtins(value)


def print_summary(summary: Summary, folder: Path) -> None:
    state = "finished" if summary.finished else "not finished"
    money = "unpriced" if summary.microdollars is None else f"${summary.microdollars / 1e6:.4f}"
    print(
        f"{folder}: {state}; {summary.calls} calls, {summary.tokens} tokens, {money}, "
        f"{summary.simulations} battles, {summary.shared_bytes} bytes shared"
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
        ("node", "rounds", "calls", "failed", "valid %", "placed", "received", "novel %", "cells"),
        [
            (
                node.name,
                node.rounds,
                node.calls,
                node.failed,
                100 * node.valid / node.proposals if node.proposals else None,
                node.accepted,
                node.champions_received,
                _mean_percent(node.niche_novelty),
                node.cells,
            )
            for node in summary.nodes
        ],
    )
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
            f"\nThe best program ({clean(summary.best_model)}) against {clean(held.name)}, {held.warriors}:"
        )
        if held.refused:
            print(f"({held.refused} more could not be read)")
        points = f"{held.points_percent:.0f} % of the points"
        print(f"{held.wins} wins, {held.ties} ties, {held.losses} losses, {points}")
    if summary.best_source:
        print(f"See it:    shoal show {folder} --best")
        if summary.domain == "corewar":  # else `shoal battle` cannot read it
            print(f"Fight it:  shoal show {folder} --best > best.red && shoal battle best.red @paper -r 100")


def _mean_percent(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return 100 * sum(known) / len(known) if known else None
