"""The runs and experiments below a folder, and how each of them stands.

Nothing is decoded but configs and the last line of each journal, so a listing is quick however long the runs
are. An entry that cannot be read is listed as such and stops nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.errors import RunError
from shoal.files import refuse_irregular
from shoal.runs.folder import CONFIG, OWNER, RunFolder
from shoal.runs.journal import last_record
from shoal.runs.lock import is_in_use
from shoal.runs.records import Stopped, content_of
from shoal.runs.results import EXPERIMENT

DEPTH = 2
"""Folders in the folder are looked into too, as `shoal demo` puts its runs into one."""
MOST_PLAN_BYTES = 64 << 20

State = Literal["running", "finished", "stopped", "not started", "unreadable"]


class Listed(msgspec.Struct, frozen=True):
    """A run, or an experiment, `done` of `runs` finished; `age` in seconds since a write, `size` in bytes."""

    path: str
    kind: Literal["run", "experiment"]
    application: str
    state: State
    age: float
    size: int
    nodes: int = 0
    runs: int = 0
    done: int = 0
    problem: str = ""


def list_runs(folder: Path) -> list[Listed]:
    """The runs and experiments in `folder`, newest first; the folder itself if it is one."""
    found = [describe(path) for path in ([folder] if _is_listed(folder) else _inside(folder))]
    return sorted(found, key=lambda one: (one.age, one.path))


def find_runs(folder: Path) -> list[Path]:
    """The run folders in `folder`, the last one begun first. Those of an experiment lie below its own."""
    if (folder / EXPERIMENT).is_file():
        folder /= "runs"
    begun = []
    for path in _inside(folder) if folder.is_dir() else ():
        try:
            begun.append(((path / CONFIG).stat().st_mtime, path))
        except OSError:  # an experiment, or a run that was just removed
            continue
    return [path for _, path in sorted(begun, reverse=True)]


def describe(path: Path) -> Listed:
    size, newest = _size_and_time(path)
    age = round(max(0.0, time.time() - newest), 3)
    kind: Literal["run", "experiment"] = "run"
    try:
        if (path / EXPERIMENT).exists():
            kind = "experiment"
        found = _run(path) if kind == "run" else _experiment(path)
    except (RunError, OSError) as error:
        found = {"application": "", "state": "unreadable", "problem": str(error)[:500]}
    return Listed(path=str(path), kind=kind, age=age, size=size, **found)


def ago(seconds: float) -> str:
    """A time for people, in its largest unit."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _run(path: Path) -> dict[str, Any]:
    refuse_irregular(path / CONFIG)
    folder = RunFolder.look(path)
    config = folder.config_table()
    names, models, planned = folder.node_names(), config.get("models"), config.get("nodes")
    if not isinstance(planned, int):
        planned = len(models) if isinstance(models, list) else 0
    last = [last_record(folder.journal_path(name)) for name in names]
    ends = [None if record is None else content_of(record) for record in last]
    state: State = "stopped"
    if is_in_use(path / OWNER):
        state = "running"
    elif not any(last):
        state = "not started"
    elif len(ends) >= planned and all(isinstance(end, Stopped) and end.finished for end in ends):
        state = "finished"
    return {"application": str(config.get("application", "evolve"))[:40], "state": state, "nodes": len(names)}


def _experiment(path: Path) -> dict[str, Any]:
    file = path / EXPERIMENT
    refuse_irregular(file)
    if file.stat().st_size > MOST_PLAN_BYTES:
        raise RunError(f"{file}: this is too large to be the plan of an experiment.")
    try:
        plan = msgspec.json.decode(file.read_bytes())["plan"]
        runs = len(plan["arms"]) * len(plan["seeds"])
        application = str(plan["arms"][0]["settings"].get("application", "evolve"))[:40]
    except (msgspec.MsgspecError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise RunError(f"{file}: this is not the plan of an experiment: {error}.") from error
    done = sum(1 for _ in (path / "outcomes").glob("*/*.json"))
    state: State = "finished" if done >= runs else "stopped" if done else "not started"
    if is_in_use(path / OWNER):
        state = "running"
    return {"application": application, "state": state, "runs": runs, "done": done}


def _is_listed(path: Path) -> bool:
    return (path / EXPERIMENT).exists() or ((path / CONFIG).exists() and (path / "nodes").exists())


def _inside(folder: Path, depth: int = DEPTH) -> Iterator[Path]:
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())
    except OSError as error:
        if depth == DEPTH:
            raise RunError(f"{folder}: this folder cannot be read: {error.strerror}.") from error
        return
    for path in inside:
        try:
            is_listed = _is_listed(path)
        except OSError:  # a folder that is closed to us
            is_listed = True
        if is_listed:
            yield path
        elif depth > 1:
            yield from _inside(path, depth - 1)


def _size_and_time(folder: Path) -> tuple[int, float]:
    """The bytes of all files, and when the newest was written; links are not followed."""
    size, newest = 0, 0.0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:
                continue
            size += status.st_size
            newest = max(newest, status.st_mtime)
    return size, newest
