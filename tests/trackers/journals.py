"""Run folders with journals that a test writes itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.runs import Journal, RunFolder


def make_run(path: Path, names: Sequence[str], application: str = "evolve") -> Path:
    """A run whose nodes have begun."""
    with RunFolder.create(path, f'application = "{application}"\n') as folder:
        for name in names:
            with folder.open_journal(name) as journal:
                start(journal, name, application)
    return path


def start(journal: Journal, name: str, application: str) -> None:
    journal.append(
        "started",
        1.0,
        {"seed": 0, "node": name, "application": application, "shoal": "0", "look_ahead": 1},
    )


def add(path: Path, name: str, *notes: dict[str, Any], ended: bool = False) -> None:
    with RunFolder.look(path).open_journal(name) as journal:
        for note in notes:
            journal.append("note", 2.0, {"turn": note.get("turn", 0), "note": note})
        if ended:
            journal.append("stopped", 3.0, {"turn": 9, "reason": "finished"})
