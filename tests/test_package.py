"""What the package promises from outside: light to import, and its public names exist."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

HEAVY = ("numpy", "torch", "zenoh", "typer", "rich", "cryptography", "msgspec")


def test_importing_shoal_loads_nothing_heavy() -> None:
    code = f"import sys, shoal; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["shoal.corewar", "shoal.corewar.redcode", "shoal.evolve", "shoal.models"])
def test_public_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(module.__all__, key=str.lower)
    for public in module.__all__:
        assert getattr(module, public) is not None
