"""Without foreign groups training is plain GRPO on one node, bit for bit.

The plain loop below imports neither the node, the exchange nor the trainer: it draws tasks, samples, scores,
takes group advantages and updates, as one would write it down from the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.policy.base import LearningGroup, Policy, Sampling
from shoal.policy.table import TablePolicy
from shoal.runs import RunFolder, derive, derive_integer
from shoal.swarm import Identity
from shoal.tasks.registry import open_task
from shoal.train.crew import run
from shoal.train.settings import TrainSettings
from tests.train.small import last_checkpoint

FIRST_EPOCH = 1_000_000
"""A run in one process begins at second 1 of virtual time."""


def plain_grpo(settings: TrainSettings, name: str, policy: Policy) -> list[float]:
    """Trains for all steps; the mean reward of each step."""
    author = Identity(derive_integer(settings.seed, name, "identity", bits=256).to_bytes(32, "big")).node_id
    families = {task: open_task(task, {}) for task in settings.tasks}
    rewards_of_steps, counter = [], 0
    for turn in range(1, settings.steps + 1):
        tasks = derive(settings.seed, name, "tasks", turn).choices(settings.tasks, k=settings.local)
        seed = derive(settings.seed, name, "sampling", turn).getrandbits(62)
        puzzles = []
        for task in tasks:
            puzzles.append(families[task].pose(derive_integer(FIRST_EPOCH, "task", author, counter, bits=62)))
            counter += 1
        sampling = Sampling(settings.max_new_tokens, settings.temperature)
        groups = policy.sample([one.question for one in puzzles], settings.group, sampling, seed)
        batch, all_rewards = [], []
        for task, puzzle, completions in zip(tasks, puzzles, groups, strict=True):
            answers = [one.text.strip().partition("\n")[0] for one in completions]
            rewards = [1.0 if families[task].score(puzzle, answer) >= 0.99 else 0.0 for answer in answers]
            mean = sum(rewards) / len(rewards)
            deviation = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1))
            same = len(set(rewards)) == 1
            advantages = [0.0 if same else (reward - mean) / (deviation + 1e-4) for reward in rewards]
            batch.append(LearningGroup(puzzle.question, tuple(completions), advantages))
            all_rewards += rewards
        policy.learn(batch, settings.learning, settings.temperature)
        rewards_of_steps.append(sum(all_rewards) / len(all_rewards))
    return rewards_of_steps


def tiny_language_model() -> Policy:
    from shoal.policy.specification import open_policy

    return open_policy("tiny:llama")


@pytest.mark.parametrize(
    ("model", "make", "sharing"),
    [
        ("table:small", lambda: TablePolicy("small"), "off"),
        ("table:small", lambda: TablePolicy("small"), "all"),
        ("tiny:llama", tiny_language_model, "all"),
    ],
)
def test_no_foreign_groups_is_plain_grpo(
    tmp_path: Path, model: str, make: Callable[[], Policy], sharing: Any
) -> None:
    """Sharing or not, alone or beside another node: with J = 0 the weights are those of the plain loop."""
    settings = TrainSettings(
        nodes=2, models=(model,), tasks=("sums",), local=3, external=0, steps=5, group=4, evaluate_every=0,
        seed=3, sharing=sharing, checkpoint_every=5, max_new_tokens=6,
    )  # fmt: skip
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    folder = RunFolder.look(tmp_path / "run")
    for name in settings.node_names():
        policy = make()
        plain_grpo(settings, name, policy)
        policy.save(tmp_path / name)
        trained = last_checkpoint(folder.node_folder(name)) / "policy"
        files = sorted(path.name for path in trained.iterdir() if path.is_file())
        assert files
        for file in files:
            assert (trained / file).read_bytes() == (tmp_path / name / file).read_bytes(), file
