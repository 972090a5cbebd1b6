"""Where nodes of a training run stand, from their journals: the figures are those of the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.node.standing import Progress
from shoal.train.crew import TrainStanding, TrainWatcher, run
from shoal.train.summary import read_history, summarise
from tests.train.small import small


def test_the_figures_are_those_of_the_summary(tmp_path: Path) -> None:
    settings = small(models=("table:small", "table:even", "frozen:table:wide"))
    folder, seen = tmp_path / "run", list[Progress[TrainStanding]]()
    assert run(settings, folder, in_process=True, progress=seen.append) == "finished"
    summary = summarise(folder)
    assert seen[-1].done == seen[-1].total == 18
    for node, told in zip(seen[-1].nodes, summary.nodes, strict=True):
        history = read_history(folder / "nodes" / node.name / "journal.jsonl")
        assert (node.name, node.step, node.steps, node.done) == (told.name, 6, 6, 1.0)
        assert node.reward_held_out == told.reward_held_out
        assert node.reward_local == history.steps[-1].reward_local
        assert node.spent == node.work == sum(turn.tokens for turn in history.steps) > 0
        assert node.traffic.shared == history.shared == 24
        assert node.traffic.received == sum(turn.seen for turn in history.turns) > 0
        assert node.traffic.used == told.foreign_used
        assert node.traffic.rejected == 0
        assert node.traffic.peers == 2
        assert node.allowed is None


def test_tokens_that_run_out_are_progress_too(tmp_path: Path) -> None:
    settings = small(nodes=1, steps=1000, tokens=2000, evaluate_every=0)
    folder = tmp_path / "run"
    run(settings, folder, in_process=True)
    standing = TrainWatcher(settings, 0, folder / "nodes" / "1-table-small" / "journal.jsonl").look()
    assert standing.allowed == 2000
    assert standing.done == pytest.approx(standing.spent / 2000)
    assert standing.done > standing.step / 1000
