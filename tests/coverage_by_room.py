"""`python -m tests.coverage_by_room`: the lines that the last tests with `--cov` reached, by room.

Processes that tests start are counted too, unless they are killed or may not write files (confined workers).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coverage import Coverage
from coverage.exceptions import CoverageException


def room_of(file: str) -> str:
    """The room of a file; modules that stand in no room are together in `shoal`."""
    parts = Path(file).parts
    inside = parts[len(parts) - parts[::-1].index("shoal") :]
    return inside[0] if len(inside) > 1 else "shoal"


def table(files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line for each room and one for all, from the `files` of a report in JSON."""
    rooms: dict[str, tuple[int, int]] = {}
    for file, report in files.items():
        reached, all_lines = rooms.get(room := room_of(file), (0, 0))
        summary = report["summary"]
        rooms[room] = (reached + summary["covered_lines"], all_lines + summary["num_statements"])
    total = tuple(map(sum, zip(*rooms.values(), strict=True))) if rooms else (0, 0)
    lines = [f"{'room':<12} {'lines':>7} {'reached':>8} {'%':>6}"]
    for name, (reached, count) in [*sorted(rooms.items()), ("total", total)]:
        lines.append(f"{name:<12} {count:>7} {reached:>8} {100 * reached / max(1, count):>6.1f}")
    return lines


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        try:
            coverage = Coverage()
            coverage.load()
            coverage.json_report(outfile=str(report))
        except CoverageException as error:
            print(f"there is no coverage to show ({error}): run `make coverage`", file=sys.stderr)
            return 1
        print("\n".join(table(json.loads(report.read_text())["files"])))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
