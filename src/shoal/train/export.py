"""A run of training as tables and model folders, for other programs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from shoal.runs import RunFolder, load_settings, read
from shoal.runs.records import Answered, content_of, decode_payload, reads_run, refusing
from shoal.runs.tables import Rows
from shoal.runs.training import SampledGroups, TrainAnswer
from shoal.train.settings import TrainSettings
from shoal.train.summary import read_history

_ANSWER: Any = TrainAnswer
STEP_COLUMNS = (
    "step reward_local reward_external reward_batch own own_informative seen verified used oldest loss "
    "gradient_norm tokens trained_tokens cpu"
).split()


@reads_run
def export_training(run: Path, out: Path) -> dict[str, Rows]:
    """The tables `steps`, `evaluations` and `rollouts`; each node's newest policy is copied to out/models."""
    settings, folder = load_settings(TrainSettings, run), RunFolder.look(run)
    steps: list[dict[str, Any]] = []
    evaluations: list[dict[str, Any]] = []
    rollouts: list[dict[str, Any]] = []
    out.mkdir(parents=True, exist_ok=True)
    for name in settings.node_names():
        history = read_history(folder.journal_path(name))
        for turn in history.steps:
            steps.append({"node": name, **{column: getattr(turn, column) for column in STEP_COLUMNS}})
        for turn in history.evaluations:
            evaluations.append({"node": name, "step": turn.step, "reward_held_out": turn.reward_held_out})
        rollouts += _rollouts(name, folder.journal_path(name))
        checkpoints = sorted(folder.node_folder(name).glob("checkpoint-*/policy"))
        if checkpoints:
            shutil.copytree(checkpoints[-1], out / "models" / name)
    return {"steps": steps, "evaluations": evaluations, "rollouts": rollouts}


def _rollouts(node: str, journal: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for record in read(journal) if journal.exists() else ():
        with refusing(journal, record):
            content = content_of(record)
            if not isinstance(content, Answered):
                continue
            answer: TrainAnswer = decode_payload(content.answer, _ANSWER, "the answer")
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
                for group in (answer.groups if isinstance(answer, SampledGroups) else ())
                for completion, score in zip(group.completions, group.scores, strict=True)
            ]
    return rows
