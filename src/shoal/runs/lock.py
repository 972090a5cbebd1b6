"""One owner at a time, by `flock`. The lock belongs to an open file, so the kernel drops it the moment its
owner dies: a killed run can be resumed at once, and nothing stale is left to clean up."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from shoal.errors import RunError
from shoal.files import refuse_irregular

_held: set[int] = set()


class Owner:
    """Holds a claimed descriptor, if any, until `close` or the end of a `with` block."""

    _owned: int | None = None

    def close(self) -> None:
        if self._owned is not None:
            release(self._owned)
            self._owned = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def claim(path: Path, flags: int, refusal: str) -> int:
    """Opens and locks `path`; `release` takes the descriptor. RunError(`refusal`) if another holds it."""
    refuse_irregular(path)
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise RunError(f"{path}: cannot be opened: {error.strerror}.") from error
    for pause in (0.01, 0.01, None):  # `is_in_use` holds the lock for a moment
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if pause is None:
                os.close(descriptor)
                raise RunError(refusal) from error
            time.sleep(pause)
    _held.add(descriptor)
    return descriptor


def is_in_use(path: Path) -> bool:
    """Whether somebody holds it at this moment; False where there is no such file."""
    if not path.is_file():
        return False
    try:
        release(claim(path, os.O_RDONLY, ""))
    except RunError:
        return True
    return False


def release(descriptor: int) -> None:
    """Closes a claimed descriptor and thereby drops its lock; a second call does nothing."""
    if descriptor in _held:
        _held.discard(descriptor)
        os.close(descriptor)


def _forget_in_child() -> None:
    # A forked child shares the open file, so it would hold the lock on after its parent was killed.
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_in_child)
