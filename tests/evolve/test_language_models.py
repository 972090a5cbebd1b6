"""Real language models as mutation operators of one swarm, in process and behind llama.cpp's own server."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.evolve.crew import run
from shoal.evolve.summary import summarise
from shoal.models import PRESETS, LlamaServer, local_settings, parse_spec
from tests.evolve.small import small

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
INSTALLED = [name for name, preset in PRESETS.items() if preset.find() is not None]
if not INSTALLED:
    pytest.skip(f"no model: {PRESETS['smollm2'].command()}", allow_module_level=True)

OPTIONS = "threads=1&context=4096"
BRIEF = "tests.evolve.small:Brief"


def searched(folder: Path, models: tuple[str, ...], domain: str, calls_each: int) -> None:
    """Every model takes part with its share of the calls, and what it writes are programs."""
    settings = small(
        models=models, calls=calls_each * len(models), rounds=1, look_ahead=1, max_tokens=80, domain=domain,
        options={},
    )  # fmt: skip
    assert run(settings, folder, in_process=True) == "finished"
    summary = summarise(folder)
    assert [node.calls for node in summary.nodes] == [calls_each] * len(models)
    for model in summary.models:
        assert model.tokens > 20 * model.calls
        assert model.valid_rate == 1.0, f"{model.model}: {model.valid_rate}"
    assert all(node.held_to_grammar == calls_each for node in summary.nodes)
    assert summary.tokens == sum(model.tokens for model in summary.models)


def test_one_model_in_process_and_behind_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = local_settings(parse_spec(f"local:smollm2?{OPTIONS}"))
    assert not isinstance(settings, Path)
    with LlamaServer(settings) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        searched(tmp_path / "run", (f"local:smollm2?{OPTIONS}", server.spec), BRIEF, 1)


@pytest.mark.skipif(len(INSTALLED) < 2, reason="needs two of the presets installed")
def test_really_different_models_take_part_in_one_swarm(tmp_path: Path) -> None:
    searched(tmp_path / "run", tuple(f"local:{name}?{OPTIONS}" for name in INSTALLED), BRIEF, 1)


@pytest.mark.soak
def test_the_whole_prompt_fits_into_a_small_model(tmp_path: Path) -> None:
    searched(tmp_path / "run", (f"local:smollm2?{OPTIONS}",), "corewar", 3)
