"""Files that are either as they were or as they were meant to be, whatever kills their writer."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_whole(path: Path, content: bytes) -> None:
    """Puts `content` at `path`, in a folder that is made if need be: written aside, forced to the disk,
    renamed. Only one process may write the same path at a time. OSError leaves what was there."""
    aside = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
        if os.name == "posix":
            sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise


def sync_folder(folder: Path) -> None:
    """Makes renames and new names in `folder` survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
