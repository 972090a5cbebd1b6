"""Models that are made on first use are there before any node starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ShoalError
from shoal.node import Stop
from shoal.node.standing import Progress
from shoal.policy.first_use import make_models, models_to_make
from shoal.policy.tiny import tiny_path
from shoal.train import crew
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
    assert models_to_make(models) == ["tiny:llama", "tiny:gpt2"]
    tiny_path("llama").mkdir(parents=True)
    assert models_to_make(models) == ["tiny:gpt2"]


@pytest.mark.usefixtures("cache")
def test_nodes_start_when_all_models_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    seen: list[dict[str, float]] = []

    def make(specs: list[str], stop: Stop, tell: Any) -> None:
        done.extend(specs)
        tell(dict.fromkeys(specs, 0.5))

    def take_seat(*_: object, **__: object) -> None:
        done.append("node")
        raise ShoalError("that is all")

    monkeypatch.setattr(crew, "make_models", make)
    monkeypatch.setattr(crew.TrainCrew, "take_seat", take_seat)
    settings = small(models=("tiny:llama", "tiny:gpt2", "table:small", "frozen:fake:7"), nodes=4)
    crew.run(settings, tmp_path / "run", in_process=True, progress=lambda one: seen.append(one.making))
    assert done == ["tiny:llama", "tiny:gpt2", *["node"] * 4]
    assert seen == [{"tiny:llama": 0.5, "tiny:gpt2": 0.5}, {}]


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
    stop = Stop()

    def tell(one: Progress[Any]) -> None:
        if one.making.get("tiny:qwen", 0.0) > 0:
            stop.request("enough")

    settings = small(nodes=1, models=("tiny:qwen",))
    assert crew.run(settings, tmp_path / "run", in_process=False, stop=stop, progress=tell) == "enough"
    assert not list((cache / "policies").iterdir()), "nothing half made is left"
    assert not list((tmp_path / "run" / "nodes").iterdir()), "no node was started"
