"""Runs the measurements, prints a table and writes bench/results.json.

python -m bench            all rooms
python -m bench corewar    one of them; the others' rows are kept
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from bench.row import Row

ROOMS = ("corewar", "swarm", "evolve", "train")
RESULTS = Path(__file__).with_name("results.json")


def commit() -> str:
    """The commit that was measured, with a mark where the tree has changes."""
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    done = subprocess.run(asked, cwd=RESULTS.parent, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def main(rooms: list[str]) -> int:
    unknown = [room for room in rooms if room not in ROOMS]
    if unknown:
        print(f"no such room: {', '.join(unknown)}; there are {', '.join(ROOMS)}", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 120)
    measured: list[Row] = []
    for room in rooms or ROOMS:
        console.print(f"measuring {room} …", style="dim")
        measured += importlib.import_module(f"bench.{room}").measure()
    table = Table(Column("name", no_wrap=True), "value", "unit", "against", "target", "")
    for row in measured:
        mark = {True: "met", False: "missed", None: ""}[row.met]
        table.add_row(
            row.name,
            f"{row.value:.3g}" if row.value < 1000 else f"{row.value:,.0f}",
            row.unit,
            row.peer,
            row.target,
            mark,
        )
    console.print(table)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    names = {row.name for row in measured}
    now = commit()
    rows = [old for old in kept if old["name"] not in names] + [
        {**asdict(row), "commit": now} for row in measured
    ]
    RESULTS.write_text(json.dumps(sorted(rows, key=lambda row: str(row["name"])), indent=1) + "\n")
    console.print(f"written to {RESULTS}", style="dim")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
