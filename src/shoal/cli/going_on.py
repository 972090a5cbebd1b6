"""Where runs are put, and how one goes on with a run that was stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

NOBODY_HEARD = 1
NODE_FAILED = 2
INTERRUPTED = 130

Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors and where the result is.")]


def new_folder(application: str) -> Path:
    return Path("runs") / time.strftime(f"{application}-%Y%m%d-%H%M%S")


@contextmanager
def saying_how_to_go_on(folder: Path, *, json: bool) -> Iterator[None]:
    """What runs within says by itself how to go on, where it can. Here it is said on standard error where it
    could not: with `json` (or with --quiet), or when an impatient second Ctrl-C took it away."""
    try:
        yield
    except KeyboardInterrupt:
        _say(folder)
        raise
    except typer.Exit as ended:
        if json and ended.exit_code == INTERRUPTED:
            _say(folder)
        raise


def _say(folder: Path) -> None:
    from shoal.cli.output import note

    if (folder / "config.toml").is_file():
        note(f"shoal: stopped. Go on with: shoal resume {folder}")
