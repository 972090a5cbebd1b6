"""Models that are made on first use are there before any node starts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from shoal.node import Stop
from shoal.node import running as node_running
from shoal.policy.first_use import make_models, models_to_make
from shoal.policy.tiny import tiny_path
from shoal.train import running
from tests.train.small import small


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.usefixtures("cache")
def test_what_is_missing_is_named_once() -> None:
    models = (
        "tiny:llama",
        "table:small",
        "tiny:llama",
        "tiny:gpt2",
        "tiny:nothing",
        "frozen:fake:7",
        "nonsense",
    )
    settings = small(nodes=7, models=models)
    assert models_to_make(settings) == ["tiny:llama", "tiny:gpt2"]
    tiny_path("llama").mkdir(parents=True)
    assert models_to_make(settings) == ["tiny:gpt2"]


@pytest.mark.usefixtures("cache")
def test_nodes_start_when_all_models_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    seen: list[dict[str, float]] = []

    def make(specs: list[str], stop: Stop, tell: Any) -> None:
        done.extend(specs)
        tell(dict.fromkeys(specs, 0.5))

    def run_crew(*_: object, **__: object) -> list[Any]:
        done.append("nodes")
        return []

    monkeypatch.setattr(running, "make_models", make)
    monkeypatch.setattr(node_running, "run_crew", run_crew)
    settings = small(models=("tiny:llama", "tiny:gpt2", "table:small"))
    running.run(settings, tmp_path / "run", in_process=False, progress=lambda one: seen.append(one.making))
    assert done == ["tiny:llama", "tiny:gpt2", "nodes"]
    assert seen == [{"tiny:llama": 0.5, "tiny:gpt2": 0.5}]


def test_a_model_is_made_from_nothing_with_progress(cache: Path) -> None:
    pytest.importorskip("torch")
    shares: list[float] = []
    make_models(["tiny:qwen"], Stop(), lambda found: shares.append(found["tiny:qwen"]))
    assert (tiny_path("qwen") / "model.safetensors").is_file()
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert any(0 < share < 1 for share in shares)
    assert [path.name for path in (cache / "policies").iterdir()] == [tiny_path("qwen").name]


def test_making_can_be_interrupted(cache: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    stop, began = Stop(), time.monotonic()

    def tell(one: running.Progress) -> None:
        if one.making.get("tiny:qwen", 0.0) > 0:
            stop.request("enough")

    settings = small(nodes=1, models=("tiny:qwen",))
    assert running.run(settings, tmp_path / "run", in_process=False, stop=stop, progress=tell) == "enough"
    assert not list((cache / "policies").iterdir()), "nothing half made is left"
    assert time.monotonic() - began < 60
    assert not list((tmp_path / "run" / "nodes").iterdir()), "no node was started"
