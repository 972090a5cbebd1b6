"""A run of training as tables and model folders, for other programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from shoal.runs import RunFolder, read
from shoal.runs.records import Answered, content_of
from shoal.runs.tables import Rows
from shoal.train.history import read_history
from shoal.train.running import load_settings
from shoal.train.steps import Answer, SampledGroups
from shoal.train.summary import held_out_reward


def export_training(run: Path, out: Path) -> dict[str, Rows]:
    """The tables `steps`, `evaluations` and `rollouts`; each node's newest policy is copied to out/models."""
    settings, folder = load_settings(run), RunFolder.look(run)
    steps: list[dict[str, Any]] = []
    evaluations: list[dict[str, Any]] = []
    rollouts: list[dict[str, Any]] = []
    out.mkdir(parents=True, exist_ok=True)
    for name in settings.node_names():
        history = read_history(folder.journal_path(name))
        for turn in history.steps:
            steps.append(
                {
                    "node": name,
                    "step": turn.step,
                    "reward_local": turn.reward_local,
                    "reward_external": turn.reward_external,
                    "reward_batch": turn.reward_batch,
                    "own": turn.own,
                    "own_informative": turn.own_informative,
                    "seen": turn.seen,
                    "verified": turn.verified,
                    "used": turn.used,
                    "oldest": turn.oldest,
                    "loss": turn.loss,
                    "gradient_norm": turn.gradient_norm,
                    "tokens": turn.tokens,
                    "trained_tokens": turn.trained_tokens,
                    "cpu": turn.cpu,
                }
            )
        evaluations += [
            {"node": name, "step": turn.step, "reward_held_out": held_out_reward(turn)}
            for turn in history.evaluations
        ]
        rollouts += _rollouts(name, folder.journal_path(name))
        checkpoints = sorted(folder.node_folder(name).glob("checkpoint-*/policy"))
        if checkpoints:
            shutil.copytree(checkpoints[-1], out / "models" / name)
    return {"steps": steps, "evaluations": evaluations, "rollouts": rollouts}


def _rollouts(node: str, journal: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    decode = msgspec.json.Decoder(Answer).decode
    for record in read(journal) if journal.exists() else ():
        content = content_of(record)
        if not isinstance(content, Answered):
            continue
        answer = decode(content.answer)
        if isinstance(answer, SampledGroups):
            rows += [
                {
                    "node": node,
                    "turn": content.turn,
                    "family": group.task.family,
                    "parameters": group.task.parameters,
                    "question": group.question,
                    "completion": completion.text,
                    "finished": completion.finished,
                    "score": score,
                }
                for group in answer.groups
                for completion, score in zip(group.completions, group.scores, strict=True)
            ]
    return rows
