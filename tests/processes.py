"""Commands as processes of their own: started, watched by their journals, killed. All of them end with the
test."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.runs.journal import read

PATIENCE = 90.0


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait(30)


def wait_until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, f"not within {patience} s: {what}"
        time.sleep(0.02)


def shoal(started: list[subprocess.Popen[str]], *arguments: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    return process


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def process_of(parent: int, journal: Path) -> int:
    """The child that writes this journal."""
    for pid in children_of(parent):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if file.readlink() == journal:
                    return pid
    raise AssertionError(f"no child has {journal} open")


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def starts_of(journal: Path) -> int:
    return sum(record.kind == "started" for record in read(journal)) if journal.exists() else 0


def turns_of(journal: Path) -> int:
    return sum(record.kind == "turn" for record in read(journal)) if journal.exists() else 0
