"""Destinations of curves: TensorBoard, Weights & Biases, Trackio, a file of lines, or memory for tests."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import msgspec

from shoal.errors import ConfigError, how_to_install

FORMS = "tensorboard:DIR, jsonl:FILE, wandb:PROJECT or trackio:PROJECT"
STANDARD_OUTPUT = "-"
WRITER = "tensorboard.summary.writer.event_file_writer"
FLUSH_SECONDS = 1.0
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


class Tracker(Protocol):
    """`series` is a node, as "node" or "run/node". Steps of a series do not decrease, except where
    a journal's do. All values are finite. After `close` everything is written, and nothing may be logged."""

    @property
    def name(self) -> str: ...
    def log(self, series: str, step: int, values: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


def open_tracker(destination: str) -> Tracker:
    """The tracker of a kind, a colon and a place; ConfigError if there is none or the place is taken."""
    kind, _, place = destination.partition(":")
    if not place:
        raise ConfigError(f"--to {destination}: write it as {FORMS}")
    if kind == "jsonl":
        return LinesTracker(place)
    if kind == "tensorboard":
        return TensorBoardTracker(place)
    if kind in ("wandb", "trackio"):
        return HostedTracker(kind, place)
    raise ConfigError(f"--to {destination}: there is no tracker {kind!r}: write {FORMS}")


class MemoryTracker:
    """Keeps all points, for tests."""

    name = "memory"

    def __init__(self) -> None:
        self.logged: list[tuple[str, int, dict[str, float]]] = []
        self.closed = False

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        self.logged.append((series, step, dict(values)))

    def close(self) -> None:
        self.closed = True


class LinesTracker:
    """One JSON object per line: {"series":"1-bomber","step":7,"cells":4.0,"best":1.5}. A new file at `place`,
    or standard output. A line is with the operating system once `log` returns, so others may read the file as
    it grows. A file with content is never written over or added to."""

    name = "jsonl"

    def __init__(self, place: str) -> None:
        self._owned = place != STANDARD_OUTPUT
        if not self._owned:
            self._file = sys.stdout.buffer
            return
        path = Path(place)
        if path.is_dir() or (path.is_file() and path.stat().st_size):
            raise ConfigError(f"--to jsonl:{place}: this exists already: name a new file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise ConfigError(f"--to jsonl:{place}: this cannot be written: {error.strerror}") from error

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        rest = memoryview(msgspec.json.encode({"series": series, "step": step, **values}) + b"\n")
        while rest:  # an unbuffered file may take a part only
            rest = rest[self._file.write(rest) :]
        if not self._owned:
            self._file.flush()

    def close(self) -> None:
        if self._owned:
            self._file.close()


class HostedTracker:
    """Weights & Biases, or Trackio, which has the same functions. Their own settings decide if anything
    leaves the machine (WANDB_MODE, TRACKIO_SPACE_ID). Each series is a run with its own steps, so a slow
    node's numbers are not refused because a fast one is ahead. Of "run/node", "run" is the group."""

    def __init__(self, name: str, project: str) -> None:
        self.name = name
        self._project = project
        self._module = _import_for(name, name)
        self._open: dict[str, Any] = {}

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        run = self._open.get(series)
        if run is None:
            run = self._open[series] = self._begin(series)
        run.log(dict(values), step=step)

    def close(self) -> None:
        for run in self._open.values():
            run.finish()
        self._open.clear()

    def _begin(self, series: str) -> Any:
        group = series.rpartition("/")[0] or None
        # Without it, wandb ends the run before when another is begun. Trackio does not, and has no such word.
        more = {"reinit": "create_new"} if self.name == "wandb" else {}
        try:
            return self._module.init(project=self._project, name=series, group=group, **more)
        except Exception as error:  # these packages have families of errors of their own
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            raise ConfigError(f"--to {self.name}:{self._project}: it did not begin: {said}") from error


class TensorBoardTracker:
    """Event files of TensorBoard, written with its own writer and without torch. Series become folders below
    `place`, which TensorBoard shows as runs with their values as tags. A folder that already has event files
    is refused: TensorBoard would draw both on top of each other."""

    name = "tensorboard"

    def __init__(self, place: str) -> None:
        self._folder = Path(place)
        self._writer = _import_for(self.name, WRITER).EventFileWriter
        self._event = _import_for(self.name, "tensorboard.compat.proto.event_pb2").Event
        self._summary = _import_for(self.name, "tensorboard.compat.proto.summary_pb2").Summary
        self._open: dict[str, Any] = {}
        self._hook = threading.excepthook
        threading.excepthook = self._end_of_a_thread

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        writer = self._open.get(series)
        if writer is None:
            writer = self._open[series] = self._begin(series)
        found = [self._summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        summary = self._summary(value=found)
        writer.add_event(self._event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        try:
            for writer in self._open.values():
                writer.close()
        finally:
            self._open.clear()
            threading.excepthook = self._hook

    def _end_of_a_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """A full disk ends the library's own thread; the next write raises it again, in one line."""
        is_theirs = type(arguments.thread).__module__ == WRITER
        if not (is_theirs and isinstance(arguments.exc_value, OSError)):
            self._hook(arguments)

    def _begin(self, series: str) -> Any:
        folder = self._folder.joinpath(*(folder_name(part) for part in series.split("/")))
        if any(folder.glob("events.out.tfevents.*")):
            raise ConfigError(f"--to tensorboard:{self._folder}: {folder} has curves already: name another")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return self._writer(str(folder), flush_secs=FLUSH_SECONDS)
        except OSError as error:
            raise ConfigError(f"--to tensorboard: {folder} cannot be made: {error.strerror}") from error


def folder_name(part: str) -> str:
    """`part` as one step of a path: never empty, never one that leads upwards or hides."""
    return _UNUSUAL.sub("-", part).lstrip(".") or "-"


def _import_for(tracker: str, module: str) -> Any:
    """A module of an optional package, or a ConfigError that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
    raise ConfigError(f"--to {tracker} needs the package {missing}: {how_to_install(tracker)}")
