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


VENDORS = (
    "torch",
    "transformers",
    "peft",
    "openai",
    "anthropic",
    "xllamacpp",
    "genai_prices",
    "reasoning_gym",
)


@pytest.mark.parametrize(
    "name", ["shoal.models", "shoal.policy.base", "shoal.policy.pool", "shoal.tasks", "shoal.confine"]
)
def test_importing_a_room_loads_neither_torch_nor_a_vendors_package(name: str) -> None:
    code = f"import sys, {name}; print([name for name in {VENDORS!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


PUBLIC = ["corewar", "corewar.redcode", "evolve", "models", "policy", "tasks", "confine"]


@pytest.mark.parametrize("name", [f"shoal.{room}" for room in PUBLIC])
def test_public_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(module.__all__, key=str.lower)
    for public in module.__all__:
        assert getattr(module, public) is not None
