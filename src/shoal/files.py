"""Files that are written whole: after any kill of the writer they hold the old content or the new one."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from shoal.errors import RunError


def replace_whole(path: Path, content: bytes) -> None:
    """Puts `content` at `path`, in a folder that is made if need be: written aside, forced to the disk,
    renamed. Only one process may write the same path at a time. OSError leaves the old content."""
    aside = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        if os.name == "posix":
            force_to_disk(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def write_whole(path: Path, content: bytes) -> None:
    """`replace_whole` for a file of a run: RunError if it fails, or if a folder or device is in its place."""
    if not path.name or (path.exists() and not path.is_file()):
        raise RunError(f"{path}: this is not a regular file: name another one.")
    try:
        replace_whole(path, content)
    except OSError as error:
        raise RunError(f"{path}: this cannot be written: {error.strerror or error}.") from error


def refuse_irregular(path: Path) -> None:
    """RunError for anything but a regular file: reading a pipe would never end."""
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: this is not a regular file. Restore it from a copy of the run.")


def force_to_disk(path: Path) -> None:
    """Makes a file, or the names in a folder, survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
