"""Files that are either as they were or as they were meant to be, whatever kills their writer."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from shoal.errors import RunError
from shoal.runs.lock import sync_folder


def write_whole(path: Path, content: bytes) -> None:
    """Puts `content` at `path`, in a folder that is made if need be: written aside, forced to the disk,
    renamed. Only one process may write the same path at a time. What is there and is no regular file (a
    folder, a device) is left alone."""
    if not path.name or (path.exists() and not path.is_file()):
        raise RunError(f"{path}: this is not a regular file: name another one.")
    aside = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise RunError(f"{path}: this cannot be written: {error.strerror or error}.") from error
