"""What the package promises from outside: light to import, and its public names exist."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from shoal.errors import ShoalError

HEAVY = ("numpy", "torch", "zenoh", "typer", "rich", "cryptography", "msgspec")


def test_importing_shoal_loads_nothing_heavy() -> None:
    code = f"import sys, shoal; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
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
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


ROOMS = [
    "confine",
    "corewar",
    "corewar.redcode",
    "evolve",
    "lab",
    "models",
    "node",
    "policy",
    "runs",
    "swarm",
]
ROOMS += ["tasks"]


@pytest.mark.parametrize("name", ["shoal", *(f"shoal.{room}" for room in ROOMS)])
def test_public_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    assert sorted(module.__all__, key=str.lower)
    beside = {path.stem for path in Path(str(module.__file__)).parent.iterdir()}
    if "__init__.pyi" in {path.name for path in Path(str(module.__file__)).parent.iterdir()}:
        assert not beside & set(module.__all__), "a module of this name would hide it once it is imported"
    for public in module.__all__:
        assert getattr(module, public) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = module.nonsense


def test_the_names_that_people_begin_with() -> None:
    """A name in here is a promise to users: docs/api.md documents it."""
    assert shoal.__all__ == [
        "EvolveSettings",
        "ShoalError",
        "TrainSettings",
        "open_domain",
        "open_model",
        "open_policy",
        "open_task",
        "read_summary",
        "resume_run",
        "run_search",
        "run_training",
    ]


def test_a_search_and_a_training_run_from_python(tmp_path: Path) -> None:
    options = {"core_size": 800, "cycles": 800, "processes": 100, "length": 20, "distance": 20}
    found = shoal.run_search(
        tmp_path / "search",
        models="builtin:bomber",
        calls=6,
        rounds=1,
        repeats=2,
        options=options,
        in_process=True,
    )
    assert (found.finished, found.calls) == (True, 6)
    assert [node.model for node in found.nodes] == ["builtin:bomber"], "a bare string is one model"
    assert shoal.read_summary(tmp_path / "search") == found
    trained = shoal.run_training(tmp_path / "train", models="table:small", nodes=1, steps=2, in_process=True)
    assert trained.finished
    assert shoal.resume_run(tmp_path / "train", in_process=True) == trained
    with pytest.raises(ShoalError, match="other settings"):
        shoal.run_training(tmp_path / "train", models="table:small", nodes=1, steps=3, in_process=True)
    with pytest.raises(ShoalError, match="there is no such run folder"):
        shoal.read_summary(tmp_path / "none")
    with pytest.raises(ShoalError, match=r"ended early: .*fails as it was asked to"):
        shoal.run_search(
            tmp_path / "bad", models=("fake:error=authentication",), calls=2, rounds=1, in_process=True
        )


def test_doors_to_domain_task_model_and_policy() -> None:
    assert shoal.open_domain("corewar").name == "corewar"
    assert shoal.open_task("sums").name == "sums"
    assert shoal.open_model("fake:echo").spec == "fake:echo"
    assert shoal.open_policy("table:small").model == "table:small"
