"""One JSON object per line: {"series":"1-bomber","step":7,"cells":4.0,"best":1.5}."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from shoal.errors import ConfigError

STANDARD_OUTPUT = "-"


class LinesTracker:
    """A new file at `place`, or standard output. A line is with the operating system once `log` returns, so
    others may read the file as it grows. What is there already is never written over or added to."""

    name = "jsonl"

    def __init__(self, place: str) -> None:
        if place == STANDARD_OUTPUT:
            self._file = sys.stdout.buffer
            self._owned = False
            return
        path = Path(place)
        if path.is_dir() or (path.is_file() and path.stat().st_size):
            raise ConfigError(f"--to jsonl:{place}: this exists already: name a new file")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise ConfigError(f"--to jsonl:{place}: this cannot be written: {error.strerror}") from error
        self._owned = True

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        rest = memoryview(msgspec.json.encode({"series": series, "step": step, **values}) + b"\n")
        while rest:  # an unbuffered file may take a part only
            rest = rest[self._file.write(rest) :]
        if not self._owned:
            self._file.flush()

    def close(self) -> None:
        if self._owned:
            self._file.close()
