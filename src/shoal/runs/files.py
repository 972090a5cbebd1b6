"""Files of runs, written whole."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import RunError
from shoal.files import replace_whole


def refuse_irregular(path: Path) -> None:
    """RunError where there is something else than a regular file: a pipe would be waited for without end."""
    if path.exists() and not path.is_file():
        raise RunError(f"{path}: this is not a regular file. Restore it from a copy of the run.")


def write_whole(path: Path, content: bytes) -> None:
    """Puts `content` at `path` in one step. What is there and is no regular file (a folder, a device) is left
    alone."""
    if not path.name or (path.exists() and not path.is_file()):
        raise RunError(f"{path}: this is not a regular file: name another one.")
    try:
        replace_whole(path, content)
    except OSError as error:
        raise RunError(f"{path}: this cannot be written: {error.strerror or error}.") from error
