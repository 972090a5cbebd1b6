"""The run folder: everything a run was and is.

    config.toml                       the resolved settings
    versions.json                     the versions of Shoal, Python and packages
    nodes/<name>/journal.jsonl        everything that came from outside (journal.py)
    nodes/<name>/checkpoint-<n>/      the state of a turn, which need not be replayed (checkpoint.py)
    report.html                       written by `shoal report`
    .owner                            locked by the process that runs it

It appears complete or not at all, and one process owns it at a time. Readers need no lock.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.errors import DISTRIBUTION, RunError
from shoal.files import force_to_disk
from shoal.runs.checkpoint import Checkpoints
from shoal.runs.config import Config, parse
from shoal.runs.journal import Journal, Sync
from shoal.runs.lock import Owner, claim, release

CONFIG = "config.toml"
VERSIONS = "versions.json"
OWNER = ".owner"
MOST_NAMED = 5
"""Runs that a message about another folder names."""
_NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunFolder(Owner):
    """Made by `create`, `resume` or `look`; the first two own the folder until `close`."""

    def __init__(self, path: Path, owned: int | None) -> None:
        self.path = path
        self._owned = owned

    @classmethod
    def create(cls, path: Path, config_toml: str) -> RunFolder:
        """Makes a new run at `path`, which must not exist or be empty."""
        path = path.absolute()
        _refuse_taken(path)
        aside = path.parent / f".{path.name}.partial-{os.getpid()}"
        lock = None
        try:
            shutil.rmtree(aside, ignore_errors=True)
            (aside / "nodes").mkdir(parents=True)
            (aside / CONFIG).write_bytes(config_toml.encode())
            (aside / VERSIONS).write_bytes(msgspec.json.format(msgspec.json.encode(versions())) + b"\n")
            for name in (CONFIG, VERSIONS):
                force_to_disk(aside / name)
            # Locked before it has its name, so nobody can get in between.
            lock = _claim(aside)
            force_to_disk(aside)
            os.rename(aside, path)
            force_to_disk(path.parent)
        except OSError as error:
            if lock is not None:
                release(lock)
            shutil.rmtree(aside, ignore_errors=True)
            _refuse_taken(path)
            raise RunError(f"{path}: the run folder cannot be made: {error.strerror or error}.") from error
        return cls(path, lock)

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Takes ownership of an existing run; RunError if it is not one or another process owns it."""
        _require_run(path)
        path = path.absolute()
        return cls(path, _claim(path))

    @classmethod
    def look(cls, path: Path) -> RunFolder:
        """The same folder for reading only, also while another process owns it."""
        _require_run(path)
        return cls(path.absolute(), None)

    @property
    def config_toml(self) -> str:
        try:
            return (self.path / CONFIG).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"{self.path / CONFIG}: cannot be read: {error}.") from error

    def config_table(self) -> dict[str, Any]:
        """The config as plain values, for any application."""
        try:
            table = tomllib.loads(self.config_toml)
        except (ValueError, RecursionError) as error:
            raise RunError(f"{self.path / CONFIG}: this is not the config of a run: {error}.") from error
        if not table:  # a run writes all of its settings; an empty file must not pass for the defaults
            raise RunError(f"{self.path / CONFIG}: it is empty. Restore it from a copy of the run.")
        return table

    def node_names(self) -> list[str]:
        return sorted(path.name for path in (self.path / "nodes").iterdir() if path.is_dir())

    def node_folder(self, name: str) -> Path:
        """The folder of a node. Any name that could lead elsewhere is refused."""
        if not _NODE_NAME.fullmatch(name):
            raise RunError(
                f"node name {name!r}: use 1 to 64 letters, digits, '-', '_' or '.', a letter or digit first."
            )
        return self.path / "nodes" / name

    def journal_path(self, name: str) -> Path:
        return self.node_folder(name) / "journal.jsonl"

    def open_journal(self, name: str, sync: Sync | None = None) -> Journal:
        """The node's journal for appending. Its own lock guards it, so a child process may open it too."""
        folder = self.node_folder(name)
        if not folder.is_dir():
            folder.mkdir()
            force_to_disk(folder.parent)
        return Journal(folder / "journal.jsonl", sync)

    def checkpoints(self, name: str, *, keep: int = 2) -> Checkpoints:
        return Checkpoints(self.node_folder(name), keep=keep)


def load_settings(settings: type[Config], folder: Path) -> Config:
    """The settings of a run; RunError or ConfigError where the folder is not a run of that kind."""
    return parse(settings, RunFolder.look(folder).config_toml, source=str(folder / CONFIG))


def versions() -> dict[str, str]:
    """The versions of Shoal, Python, the platform, and each installed direct dependency."""
    found = {
        "shoal": shoal.__version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
    }
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    for requirement in requirements:
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        if match and match[0] != DISTRIBUTION:
            try:
                found[match[0]] = importlib.metadata.version(match[0])
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _claim(path: Path) -> int:
    return claim(
        path / OWNER,
        os.O_RDWR | os.O_CREAT,
        f"{path}: another process is running this run. Stop it first; reading needs no lock.",
    )


def _is_run(path: Path) -> bool:
    return (path / CONFIG).is_file() and (path / "nodes").is_dir()


def _require_run(path: Path) -> None:
    if not path.is_dir():
        raise RunError(f"{path}: there is no such run folder. `shoal runs` lists the runs in a folder.")
    if not _is_run(path):
        raise RunError(f"{path}: this is not a run folder{_instead(path)}.")


def _instead(path: Path) -> str:
    """Names the runs in a folder that is no run itself, or the files that it lacks."""
    from shoal.runs.listing import ago, list_runs  # which imports this module

    try:
        inside = list_runs(path)
    except (RunError, RecursionError):
        inside = []
    if not inside or inside[0].path == str(path):
        is_experiment = inside and inside[0].kind == "experiment"
        lacking = f" (no {CONFIG} and nodes/ in it)"
        return f" but an experiment: `shoal report {path}` makes its page" if is_experiment else lacking
    named = [
        f"{one.path} ({one.application or one.kind}, {one.state}, {ago(one.age)} old)"
        for one in inside[:MOST_NAMED]
    ]
    if len(inside) > MOST_NAMED:
        named.append(f"and {len(inside) - MOST_NAMED} more")
    return f"; there are runs in it: {', '.join(named)}. Name one of them; `shoal runs {path}` lists all"


def _refuse_taken(path: Path) -> None:
    if _is_run(path):
        raise RunError(f"{path}: there is a run in this folder. Resume it, or name another folder.")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise RunError(f"{path}: this is not empty and not a run. Name a folder that does not exist yet.")
