"""Small training runs, without torch, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.node import Inline, Node, NodeSettings
from shoal.policy.pool import Pooled
from shoal.policy.table import TablePolicy
from shoal.runs.journal import MemoryJournal
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.swarm import Place, Received
from shoal.tasks.unconfined import DirectVerifier
from shoal.tasks.verifier import Posed, Problem
from shoal.train.outside import TrainOutside
from shoal.train.rollouts import ReceivedGroup, pooled, task_seed
from shoal.train.settings import TrainSettings
from shoal.train.trainer import Trainer

AUTHOR = "author"
EPOCH = 1_000_000


def small(**changes: Any) -> TrainSettings:
    settings: dict[str, Any] = {
        "nodes": 3,
        "models": ("table:small", "table:even", "table:wide"),
        "steps": 6,
        "evaluate_every": 3,
        "held_out": 8,
        "group": 4,
    }
    return TrainSettings(**{**settings, **changes})


class Mailbox:
    """An exchange that hands out what a test puts into it, and keeps what is shared."""

    epoch = EPOCH

    def __init__(self) -> None:
        self.waiting: list[Received] = []
        self.shared: list[Any] = []
        self.credits: list[tuple[str, str, str]] = []

    def share(self, item: Any) -> None:
        self.shared.append(item)

    def gather(self, limit: int | None = None) -> list[Received]:
        taken, self.waiting = self.waiting[:limit], self.waiting[limit or len(self.waiting) :]
        return taken

    def credit(self, author: str, place: Place, outcome: str, reason: str = "") -> None:
        self.credits.append((author, outcome, reason))

    def hand_back(self, author: str) -> None:
        raise AssertionError(f"nothing of {author} was handed out before this start")


def make_node(
    settings: TrainSettings,
    mailbox: Mailbox | None = None,
    journal: MemoryJournal | None = None,
    index: int = 0,
    policy: Any = None,
) -> Node[Any, Any, Any, Any]:
    plan, verifier = settings.of(index), DirectVerifier()
    trainer = Trainer(
        settings,
        index,
        author=AUTHOR,
        epoch=EPOCH,
        verifier=verifier,
        open_policy=policy or (lambda: TablePolicy(plan.model.partition(":")[2])),
        processor_time=lambda: 0.0,
    )
    return Node(
        trainer,
        Inline(TrainOutside(settings, plan, AUTHOR, verifier, (), lambda: 0.0).answer),
        name=plan.name,
        seed=settings.seed,
        journal=journal or MemoryJournal(),
        now=1.0,
        exchange=mailbox,  # type: ignore[arg-type]
        settings=NodeSettings(),
    )


def run_to_end(node: Node[Any, Any, Any, Any]) -> None:
    now = 1.0
    while node.step(now) != "finished":
        now += 0.01


def true_question(author: str, counter: int, family: str = "sums", parameters: str = "{}") -> Posed:
    posed = DirectVerifier().pose(Problem(family, "", parameters, task_seed(author, EPOCH, counter)))
    assert isinstance(posed, Posed)
    return posed


def honest_group(author: str, counter: int, right: int = 1, wrong: int = 3, **changes: Any) -> RolloutGroup:
    """`right` right completions of the author's task, then wrong ones."""
    posed = true_question(author, counter)
    texts = [posed.answer] * right + [f"not {number}" for number in range(wrong)]
    task = TaskName("sums", posed.version, posed.parameters, counter)
    group = {
        "task": task,
        "question": posed.question,
        "completions": tuple(Completion(text, True) for text in texts),
        "model": "table:small",
        **changes,
    }
    return RolloutGroup(**group)


def received(group: RolloutGroup, author: str, seq: int, index: int = 0) -> Received:
    return Received(
        author=author,
        kind="rollouts",
        item=group,
        epoch=EPOCH,
        seq=seq,
        index=index,
        made_at=1.0,
        arrived_at=1.0,
        digest=seq.to_bytes(32, "big"),
    )


def entry(
    author: str, seq: int, rewards: Sequence[float] | None = None, step: int = 0
) -> Pooled[ReceivedGroup]:
    """An honest group as it waits in a pool."""
    made = pooled(received(honest_group(author, seq), author, seq), step)
    made.size = 1000
    made.rewards = None if rewards is None else tuple(rewards)
    return made


def last_checkpoint(folder: Path) -> Path:
    return sorted(folder.glob("checkpoint-*"))[-1]
