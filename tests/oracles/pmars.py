"""Where the reference simulator is, and how to ask it for a load file.

It is looked for in the folder that SHOAL_PMARS names, else in `.oracles/pmars` of the repository
(`build_pmars.sh` makes it). Tests that need it are skipped without it, but fail where CI=true.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from shoal.corewar.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("SHOAL_PMARS") or REPOSITORY / ".oracles" / "pmars")
PMARS = FOLDER / "pmars"
PMARS_DEBUG = FOLDER / "pmars-debug"
WARRIORS = FOLDER / "warriors"
CORPUS = Path(os.environ.get("SHOAL_CORPUS") or REPOSITORY.parent / "shared" / "data")
"""Published warriors: `warriors/<hill>/*` and `fights/*.red`."""

REFUSED = 3
"""pMARS's exit code for a source with errors."""


_HERE = PMARS.is_file() and PMARS_DEBUG.is_file() and WARRIORS.is_dir()

needs_pmars = pytest.mark.skipif(
    not _HERE and os.environ.get("CI") != "true",
    reason=f"no pMARS in {FOLDER}: run `make oracles`, or name its folder in SHOAL_PMARS",
)
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no published warriors in {CORPUS}: name their folder in SHOAL_CORPUS"
)


def need_pmars() -> None:
    """Skips the calling test, or fails it in CI, when pMARS is not there."""
    if not _HERE:
        reason = f"no pMARS in {FOLDER}: run `make oracles`, or name its folder in SHOAL_PMARS"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def options(settings: Settings) -> list[str]:
    """The command line options that stand for the settings."""
    chosen = [
        "-s", str(settings.core_size), "-c", str(settings.cycles), "-p", str(settings.processes),
        "-l", str(settings.length), "-d", str(settings.distance),
    ]  # fmt: skip
    if settings.pspace is not None:
        chosen += ["-S", str(settings.pspace)]
    return [*chosen, "-8"] if settings.standard == "88" else chosen


class PmarsCrash(Exception):
    """pMARS neither assembled nor refused the source: it crashed or did not end."""


def pmars_listing(source: bytes, settings: Settings) -> bytes | None:
    """What pMARS prints for a source, None when it refuses. ROUNDS is 0 for it."""
    command = [str(PMARS), "-r", "0", *options(settings), "-"]
    try:
        result = subprocess.run(command, input=source, capture_output=True, timeout=5, check=False)
    except subprocess.TimeoutExpired:
        raise PmarsCrash("pMARS does not end") from None
    if result.returncode not in (0, REFUSED):
        raise PmarsCrash(f"pMARS ended with {result.returncode}")
    if b"Too many errors or warnings" in result.stderr and b"Error" not in result.stderr:
        raise PmarsCrash("pMARS gave up because of warnings alone")
    return result.stdout if result.returncode == 0 else None
