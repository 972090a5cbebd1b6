"""`shoal demo` with runs of a second: what it clears, what it writes, what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from shoal.cli import demo as demo_verb
from shoal.errors import ConfigError
from shoal.evolve.settings import EvolveSettings
from shoal.models import PRESETS
from shoal.node import running
from shoal.runs.folder import OWNER
from shoal.runs.lock import claim, release
from shoal.train.settings import TrainSettings
from tests.cli.conftest import Shoal
from tests.evolve.small import small as small_search
from tests.train.small import small as small_training


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight calls and two steps, in this process."""
    search = small_search(models=("builtin:bomber", "builtin:random"), calls=8, rounds=1)
    training = small_training(steps=2, evaluate_every=1)
    run_crew = running.run_crew

    def run_here(*given: Any, **more: Any) -> str:
        return run_crew(*given, **{**more, "in_process": True})

    monkeypatch.setattr(demo_verb, "settings_of", lambda llm, seed: (search, training))
    monkeypatch.setattr(running, "run_crew", run_here)


def test_the_plain_demo_needs_nothing() -> None:
    search, training = demo_verb.settings_of(False, 7)
    assert search == EvolveSettings(seed=7)
    assert training == TrainSettings(seed=7)
    assert all(model.startswith("builtin:") for model in search.models)
    assert all(model.startswith("tiny:") for model in training.models)
    search.check()
    training.check()


def test_with_language_models_it_takes_those_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    preset = type(PRESETS["smollm2"])
    monkeypatch.setattr(preset, "find", lambda self: None)
    with pytest.raises(ConfigError, match="--llm needs a model"):
        demo_verb.settings_of(True, 0)
    monkeypatch.setattr(preset, "find", lambda self: Path("/there"))
    search, training = demo_verb.settings_of(True, 3)
    assert search.models == ("local:smollm2", "local:gemma3-270m", "builtin:bomber")
    assert training.models == ("local:smollm2?lora=8", "local:gemma3-270m?lora=8")
    assert (search.seed, training.seed, training.nodes) == (3, 3, 2)
    search.check()
    training.check()
    monkeypatch.setattr(preset, "find", lambda self: Path("/there") if self.name == "smollm2" else None)
    _, training = demo_verb.settings_of(True, 0)
    assert training.nodes == 2, "one kind of model is a swarm too"


@pytest.mark.usefixtures("tiny")
def test_one_page_with_both_parts(shoal: Shoal, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    done = shoal("demo", "--out", out)
    assert done.code == 0, done.err
    assert "Search: " in done.out
    assert "Training: held-out reward" in done.out
    assert str(out / "report.html") in done.out
    assert sorted(path.name for path in out.iterdir()) == [".demo", "evolve", "report.html", "train"]
    page = (out / "report.html").read_text()
    assert page.count("<!doctype html>") + page.count("<!DOCTYPE html>") == 1
    assert "1-bomber" in page
    assert "1-table-small" in page
    for outside in ('src="http', "src='http", '<link rel="stylesheet"', "@import"):
        assert outside not in page, "the page is one file"

    (out / "evolve" / "mark").touch()
    again = shoal("demo", "--out", out, "--quiet")
    assert again.code == 0
    assert again.out == f"{out / 'report.html'}\n"
    assert again.err == ""
    assert not (out / "evolve" / "mark").exists(), "the earlier demo was replaced"


@pytest.mark.usefixtures("tiny")
def test_the_commands_that_it_ends_with_show_what_was_found(
    shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out = Path("my runs/demo")
    done = shoal("demo", "--out", out)
    assert "shoal show 'my runs/demo/evolve' --best > best.red && shoal watch best.red @paper" in done.out
    best = shoal("show", out / "evolve", "--best").out
    Path("best.red").write_text(best)
    assert best
    watched = shoal("watch", "best.red", "@paper", "--frames", 1)
    assert watched.code == 0, watched.err


@pytest.mark.parametrize("there", [True, False])
def test_the_dashboard_is_named_where_it_is_installed(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if there else None)
    lines = demo_verb.next_commands(Path("runs/demo"), ["evolve", "train"], has_program=False)
    browse = ["Browse:    shoal dashboard runs/demo/evolve runs/demo/train"] if there else []
    assert lines == ["Look in:   shoal show runs/demo/evolve", *browse]


@pytest.mark.usefixtures("tiny")
def test_as_json(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal("demo", "--out", tmp_path / "demo", "--json", "--quiet")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found.keys() == {"report", "evolve", "train"}
    assert found["report"] == str(tmp_path / "demo" / "report.html")
    assert found["evolve"]["calls"] == 8
    assert [node["steps"] for node in found["train"]["nodes"]] == [2, 2, 2]


@pytest.mark.usefixtures("tiny")
def test_nothing_but_a_demo_is_cleared(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "evolve").mkdir()
    (tmp_path / "thesis.tex").write_text("mine")
    done = shoal("demo", "--out", tmp_path)
    assert done.code == 2
    assert "holds thesis.tex, which no demo put there" in done.err
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    assert (tmp_path / "evolve").is_dir()
    done = shoal("demo", "--out", tmp_path / "thesis.tex")
    assert done.code == 2
    assert "is a file" in done.err
    (tmp_path / "thesis.tex").unlink()
    done = shoal("demo", "--out", tmp_path)
    assert done.code == 2
    assert "holds evolve, which no demo put there" in done.err
    assert (tmp_path / "evolve").is_dir(), "a run of one's own"


@pytest.mark.usefixtures("tiny")
def test_a_demo_that_goes_on_is_left_alone(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / ".demo").touch()
    owner = claim(tmp_path / "train" / OWNER, os.O_RDWR | os.O_CREAT, "")
    try:
        done = shoal("demo", "--out", tmp_path)
    finally:
        release(owner)
    assert done.code == 2
    assert "is going on" in done.err
    assert (tmp_path / "train" / OWNER).exists()


@pytest.mark.usefixtures("tiny")
def test_a_folder_that_is_called_evolve_and_is_no_run_is_not_cleared(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "evolve").mkdir()
    (tmp_path / "evolve" / "notes.txt").write_text("mine")
    done = shoal("demo", "--out", tmp_path, "--quiet")
    assert done.code == 2
    assert (tmp_path / "evolve" / "notes.txt").read_text() == "mine"
