"""Commands as processes of their own: started, watched by their journals, killed. All of them end with the
test."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.runs import Follower
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


class Watched:
    """A journal that is being written: the payloads of some kinds of its records so far, each read once, as plain
    values, so that nothing is seen but what stands there."""

    def __init__(self, journal: Path, *kinds: str) -> None:
        self.path = journal
        self._follower = Follower(journal)
        self._found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}

    def contents(self, kind: str) -> list[dict[str, Any]]:
        for record in self._follower.poll():
            if record.kind in self._found:
                self._found[record.kind].append(msgspec.json.decode(record.payload))
        return self._found[kind]


def children_of(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def process_of(parent: int, journal: Path, patience: float = 0.0, but: Sequence[int] = ()) -> int:
    """The child that writes this journal, and is none of `but`."""
    until = time.monotonic() + patience
    while True:
        for pid in children_of(parent):
            with contextlib.suppress(OSError):
                for file in Path(f"/proc/{pid}/fd").iterdir():
                    with contextlib.suppress(OSError):
                        if file.readlink() == journal and pid not in but:
                            return pid
        assert time.monotonic() < until, f"no child has {journal} open"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z")


class Family:
    """All processes that a command starts, and those that they start, for as long as the command runs."""

    def __init__(self, parent: int) -> None:
        self.parent = parent
        self._seen: dict[int, str] = {}  # with the time of its start, as a number may be given again
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def nodes(self) -> list[int]:
        """The processes of nodes that live at this moment."""
        found = []
        for pid in children_of(self.parent):
            with contextlib.suppress(OSError):
                if b"shoal.node.child" in Path(f"/proc/{pid}/cmdline").read_bytes() and is_alive(pid):
                    found.append(pid)
        return found

    def has_ended(self, patience: float = 10.0) -> None:
        """Asserts that none of them is left; those of an ended command may take a moment to go."""
        self._thread.join(patience)
        assert not self._thread.is_alive(), "the command itself still runs"
        wait_until(lambda: not self._left(), f"the end of all processes: {self._left()}", patience)

    def _left(self) -> list[int]:
        return [pid for pid, start in self._seen.items() if _stat(pid)[1] == start and state_of(pid) != "Z"]

    def _watch(self) -> None:
        while is_alive(self.parent):
            found = [self.parent]
            for pid in found:
                with contextlib.suppress(OSError):
                    threads = list(Path(f"/proc/{pid}/task").iterdir())
                    found += [
                        int(one) for place in threads for one in (place / "children").read_text().split()
                    ]
            for pid in found[1:]:
                self._seen.setdefault(pid, _stat(pid)[1])
            time.sleep(0.05)


def state_of(pid: int) -> str:
    """Its letter in /proc, e.g. T for stopped; empty if there is no such process."""
    return _stat(pid)[0]


def _stat(pid: int) -> tuple[str, str]:
    """State and time of the start."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]


def starts_of(journal: Path) -> int:
    return sum(record.kind == "started" for record in read(journal)) if journal.exists() else 0


def turns_of(journal: Path) -> int:
    return sum(record.kind == "turn" for record in read(journal)) if journal.exists() else 0
