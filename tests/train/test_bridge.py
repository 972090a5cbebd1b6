"""The two systems meet: what a search tried becomes rollouts, and a trained policy becomes a search's model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.evolve.crew import run as search
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.summary import summarise as summarise_search
from shoal.models import parse_spec
from shoal.models.registry import local_settings
from shoal.train.crew import run as train
from shoal.train.prepared import read_prepared
from shoal.train.summary import summarise
from tests.train.small import small


def first_search(folder: Path) -> Path:
    settings = EvolveSettings(models=("builtin:bomber", "builtin:replicator"), rounds=2, calls=120, repeats=5)
    assert search(settings, folder, in_process=True) == "finished"
    return folder


def test_a_file_of_rollouts_is_as_the_page_says(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "train.md"
    (example,) = re.findall(r"```jsonl\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "rollouts.jsonl"
    path.write_text(example)
    (group,) = read_prepared(path)
    assert [one.text for one in group.completions] == ["7", "12"]
    assert [one.finished for one in group.completions] == [True, False]
    path.write_text('{"family": "sums", "parameters": {}, "completions": ["7", "12"]}')
    with pytest.raises(ConfigError, match=r'line 1: .*completions.*an object: {"text": "…"}'):
        read_prepared(path)


def test_what_a_search_tried_becomes_groups(tmp_path: Path) -> None:
    groups = read_prepared(first_search(tmp_path / "search"))
    assert groups
    for group in groups:
        assert group.family == "corewar:beat"
        assert len(group.completions) >= 2
        assert len({one.text for one in group.completions}) == len(group.completions)
        assert group.parameters["parent"]
        assert group.parameters["opponents"]


def test_one_turn_of_the_loop(tmp_path: Path) -> None:
    """Search → rollouts → a policy that trains on them → a checkpoint → a model of the next search."""
    pytest.importorskip("torch")
    run = first_search(tmp_path / "search")
    settings = small(
        nodes=2, models=("tiny:llama", f"rollouts:{run}"), tasks=("corewar:beat",), local=1, external=2, group=2,
        steps=8, evaluate_every=0, max_new_tokens=4, checkpoint_every=8, verify_budget=16,
    )  # fmt: skip
    assert train(settings, tmp_path / "train", in_process=True) == "finished"
    learner, contributor = summarise(tmp_path / "train").nodes
    assert contributor.shared_groups > 0
    assert learner.foreign_seen > 0
    assert learner.foreign_verified > 0
    assert learner.foreign_used > 0, learner
    assert not learner.refused

    spec = f"local:{tmp_path / 'train'}"
    assert (local_settings(parse_spec(spec)) / "model.safetensors").is_file()  # type: ignore[operator]
    rules = {"brief": True}
    next_search = EvolveSettings(
        models=(spec,), rounds=1, calls=2, repeats=2, max_tokens=8, options=rules, look_ahead=1
    )
    assert search(next_search, tmp_path / "next", in_process=True) == "finished"
    summary = summarise_search(tmp_path / "next")
    assert summary.calls == 2
    assert summary.nodes[0].failed == 0, summary.nodes[0].last_failure
