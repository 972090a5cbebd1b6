"""A training node with real weights is killed while a step learns and while a checkpoint is being written, and
frozen for 15 seconds. Nothing that it accepted is lost and no step is trained twice: its weights are those of a
replay of its whole journal in this process, which no kill and no checkpoint disturbs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.cli import main
from shoal.node import parent
from shoal.node.fold import rebuild
from shoal.runs import read, to_toml
from shoal.runs.journal import MemoryJournal, last_record
from shoal.runs.records import Started, content_of
from shoal.tasks.unconfined import DirectVerifier
from shoal.train.crew import open_policy
from shoal.train.settings import TrainSettings
from shoal.train.state import TrainState
from shoal.train.trainer import Trainer
from tests.processes import process_of, starts_of, state_of, wait_until
from tests.train.small import last_checkpoint, small

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

PATIENCE = 120.0
FREEZE = 15.0
VICTIM = "1-tiny-llama"
IN_A_STEP = ("turn", "verdict")


def settings_of(steps: int) -> TrainSettings:
    return small(
        nodes=2, models=("tiny:llama",), local=2, external=2, group=4, max_new_tokens=16, steps=steps,
        evaluate_every=0, checkpoint_every=2, linger=2.0,
    )  # fmt: skip


class Disturber(threading.Thread):
    """Kills or freezes the victim's process at the points that are named, one after another, each after one
    step more. `kept` is its journal at each kill."""

    def __init__(self, folder: Path, points: list[str]) -> None:
        super().__init__(daemon=True)
        self.node = folder / "nodes" / VICTIM
        self.journal = self.node / "journal.jsonl"
        self.points = points
        self.done: list[str] = []
        self.kept: list[bytes] = []

    def run(self) -> None:
        for number, point in enumerate(self.points):
            is_there = self._learns if point != "checkpoint" else self._writes_a_checkpoint
            starts, steps = 1 + self.done.count("learning") + self.done.count("checkpoint"), number + 2
            wait_until(lambda: starts_of(self.journal) == starts, f"start {starts}", PATIENCE)  # noqa: B023
            pid = process_of(os.getpid(), self.journal, PATIENCE)
            wait_until(lambda: notes(self.journal) >= steps, f"{steps} steps", PATIENCE)  # noqa: B023
            self._stop_there(pid, is_there)
            if point == "freeze":
                time.sleep(FREEZE)
                os.kill(pid, signal.SIGCONT)
            else:
                self.kept.append(self.journal.read_bytes())
                os.kill(pid, signal.SIGKILL)
            self.done.append(point)

    def _stop_there(self, pid: int, is_there: Callable[[], bool]) -> None:
        """Leaves the process standing still at the point."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if is_there():
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: state_of(pid) == "T", "that it stands still", PATIENCE)
                if is_there():
                    return
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.001)
        raise AssertionError("the point never came")

    def _learns(self) -> bool:
        """All is gathered and verified, and for a while nothing more is journaled: the weights change."""
        for _ in range(3):
            record = last_record(self.journal)
            if record is None or record.kind not in IN_A_STEP:
                return False
            time.sleep(0.01)
        return last_record(self.journal) == record

    def _writes_a_checkpoint(self) -> bool:
        return any(self.node.glob(".checkpoint-*.partial"))


def notes(journal: Path) -> int:
    return sum(record.kind == "note" for record in read(journal))


def replayed(settings: TrainSettings, journal: Path) -> TrainState:
    """The state after all records of the journal, from the untrained weights on, with no checkpoint."""
    memory = MemoryJournal()
    memory.lines = journal.read_bytes().splitlines(keepends=True)
    memory.last_number = len(memory.lines)
    plan, verifier = settings.of(0), DirectVerifier()
    trainer: Any = Trainer(
        settings,
        0,
        author="",
        epoch=0,
        verifier=verifier,
        open_policy=lambda: open_policy(settings, plan, verifier),
        processor_time=lambda: 0.0,
    )
    fold, _ = rebuild(trainer, memory, None, seed=settings.seed, node=plan.name, budget={})
    state: TrainState = fold.state
    return state


def weights(folder: Path) -> dict[str, bytes]:
    """Weights and optimiser."""
    found = {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".safetensors"}
    assert len(found) == 2
    return found


@pytest.mark.parametrize(
    ("steps", "points"),
    [
        (24, ["learning", "checkpoint", "freeze"]),
        pytest.param(90, ["learning", "checkpoint", "freeze"] * 5, marks=pytest.mark.soak),
    ],
)
def test_a_step_is_learnt_once_whatever_kills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, points: list[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(parent, "DELAYS", (0.1,) * len(points))
    settings, folder = settings_of(steps), tmp_path / "run"
    (tmp_path / "config.toml").write_text(to_toml(settings))
    disturber = Disturber(folder, points)
    disturber.start()
    code = main(["train", str(tmp_path / "config.toml"), "--out", str(folder), "--quiet"])
    disturber.join(10)
    assert disturber.done == points
    assert code == 0

    content = disturber.journal.read_bytes()
    assert all(content.startswith(kept[: kept.rfind(b"\n") + 1]) for kept in disturber.kept)
    records = list(read(disturber.journal))
    counts = Counter(record.kind for record in records)
    assert counts["turn"] == counts["note"] == steps, "no step is there twice"
    assert counts["verdict"] > 0, "it learns from the other node, too"
    starts = [begun for record in records if isinstance(begun := content_of(record), Started)]
    kills = len(points) - points.count("freeze")
    assert len(starts) == kills + 1
    assert any(begun.from_checkpoint for begun in starts), "a real checkpoint was taken up"
    assert not list(disturber.node.glob(".checkpoint-*")), "nothing half-written is left"

    state = replayed(settings, disturber.journal)
    assert state.figures.step == steps
    state.policy.save(tmp_path / "replayed")
    last = last_checkpoint(disturber.node)
    assert last.name == f"checkpoint-{steps:08d}"
    assert weights(tmp_path / "replayed") == weights(last / "policy")
    before = disturber.node / f"checkpoint-{steps - 2:08d}" / "policy"
    assert weights(before) != weights(last / "policy"), "the last steps did change them"
