"""Help comes quickly because nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import Shoal

HEAVY = (
    "numpy",
    "rich",
    "pygments",
    "shoal.corewar",
    "torch",
    "markdown_it",
    "ctypes",
    "starlette",
    "uvicorn",
)
VERBS = (
    "evolve",
    "resume",
    "show",
    "merge",
    "compare",
    "sweep",
    "report",
    "dashboard",
    "export",
    "track",
    "models",
    "presets",
    "battle",
    "assemble",
    "tournament",
    "watch",
    "info",
)


def loaded_by(code: str) -> set[str]:
    report = "import sys; print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import shoal",
        "from shoal.cli import main; main(['--help'])",
        *(f"from shoal.cli import main; main(['{verb}', '--help'])" for verb in VERBS),
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    loaded = loaded_by(code)
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb: str, shoal: Shoal) -> None:
    done = shoal(verb, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: shoal {verb}")
    assert verb == "info" or f"    shoal {verb} " in done.out, "an example is missing"


def test_an_unknown_verb_is_exit_code_2(shoal: Shoal) -> None:
    assert shoal("fly").code == 2
