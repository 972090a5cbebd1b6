"""A crew whose nodes fail when they start, in ways that a file beside the run folder lists for each start."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from shoal.errors import DefectError, RunError
from shoal.evolve.crew import SearchCrew
from shoal.node.crew import Seat
from shoal.runs import RunFolder
from tests.evolve.small import small


def mistake() -> NoReturn:
    raise ZeroDivisionError("a mistake\nin two lines")


def defect() -> NoReturn:
    raise DefectError("the exchange has stopped: KeyError('x')")


def failure() -> NoReturn:
    raise RunError("the disk is gone: bring it back")


def full_disk() -> None:
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("journal.jsonl"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    os.write = write  # type: ignore[assignment]


def ends_with(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


FAULTS: dict[str, Callable[[], object]] = {
    "mistake": mistake,
    "defect": defect,
    "failure": failure,
    "full disk": full_disk,
    "code 7": lambda: os._exit(7),
    "SIGKILL": ends_with(signal.SIGKILL),
    "SIGSEGV": ends_with(signal.SIGSEGV),
    "signal 35": ends_with(35),  # a real-time signal, which has no name
}


class FaultyCrew(SearchCrew):
    """`{"1-bomber": ["mistake"]}` in `faults.json`: the first start of this node fails, the second does not."""

    def take_seat(self, index: int, run: RunFolder, **here: Any) -> Seat:  # type: ignore[override]
        name = self.names[index]
        faults = json.loads((run.path.parent / "faults.json").read_text()).get(name, [])
        starts = starts_of(run.path, name)
        note_start(run.path, name)
        if starts < len(faults):
            FAULTS[faults[starts]]()
        return super().take_seat(index, run, **here)


def crew_with(folder: Path, faults: dict[str, list[str]], **changes: Any) -> FaultyCrew:
    """For a run in `folder`, with its faults."""
    (folder.parent / "faults.json").write_text(json.dumps(faults))
    given = {"models": ("builtin:bomber", "builtin:scanner"), "calls": 24, "sharing": "off", **changes}
    return FaultyCrew(small(**given))


def note_start(run: Path, name: str) -> None:
    with (run.parent / f"starts-{name}").open("ab") as file:
        file.write(b".")


def starts_of(run: Path, name: str) -> int:
    path = run.parent / f"starts-{name}"
    return path.stat().st_size if path.exists() else 0
