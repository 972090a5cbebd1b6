"""TensorBoard event files, one folder per series, written with tensorboard's own writer and without torch."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError
from shoal.trackers.base import import_for

WRITER = "tensorboard.summary.writer.event_file_writer"
FLUSH_SECONDS = 1.0
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")


class TensorBoardTracker:
    """Series become folders below `place`, which TensorBoard shows as runs with their values as tags. A
    folder that already has event files is refused: TensorBoard would draw both on top of each other."""

    name = "tensorboard"

    def __init__(self, place: str) -> None:
        self._folder = Path(place)
        self._writer = import_for(self.name, WRITER).EventFileWriter
        self._event = import_for(self.name, "tensorboard.compat.proto.event_pb2").Event
        self._summary = import_for(self.name, "tensorboard.compat.proto.summary_pb2").Summary
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
        """A disk that is full ends the library's own thread, and is then raised to whoever writes next: that
        one says so, in one line."""
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
