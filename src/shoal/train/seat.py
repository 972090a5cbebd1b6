"""One node of a training run, put together: policy, verifier, trainer, journal. The same in every mode."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.node import ExchangeLike, Inline, Node, NodeSettings
from shoal.policy.base import Policy
from shoal.runs import RunFolder
from shoal.tasks.verifier import Verifier
from shoal.train.prepared import read_prepared
from shoal.train.sampling import Workshop
from shoal.train.settings import TrainSettings
from shoal.train.steps import Answer, Evidence, Request
from shoal.train.train_state import TrainState
from shoal.train.trainer import Trainer

TrainNode = Node[TrainState, Request, Answer, Evidence]

GATHER_LIMIT = 256


@dataclass
class TrainSeat:
    """A node with its trainer. `close` ends the verifier."""

    node: TrainNode
    trainer: Trainer
    verifier: Verifier

    def why_it_ended(self) -> str:
        return self.trainer.trouble(self.node.state)

    def close(self) -> None:
        self.verifier.close()


def take_seat(
    settings: TrainSettings,
    index: int,
    run: RunFolder,
    *,
    author: str,
    now: float,
    exchange: ExchangeLike | None,
    verifier: Verifier,
    open_policy: Callable[[], Policy],
    processor_time: Callable[[], float] = time.process_time,
) -> TrainSeat:
    """The `index`-th node of the run, new or resumed. A virtual `processor_time` makes its journal the same
    in every run."""
    plan = settings.of(index)
    # The epoch of an exchange that is made at the same time: sharing or not, the tasks are the same.
    epoch = int(getattr(exchange, "epoch", int(now * 1e6)))
    prepared = read_prepared(Path(plan.prepared)) if plan.prepared else []
    trainer = Trainer(
        settings,
        index,
        author=author,
        epoch=epoch,
        verifier=verifier,
        open_policy=open_policy,
        prepared=len(prepared) if plan.prepared else None,
        processor_time=processor_time,
    )
    journal = run.open_journal(plan.name)
    try:
        workshop = Workshop(settings, plan, author, verifier, prepared, processor_time)
        node: Node[Any, Any, Any, Any] = Node(
            trainer,
            Inline(workshop.answer),
            name=plan.name,
            seed=settings.seed,
            journal=journal,
            now=now,
            exchange=exchange,
            settings=NodeSettings(
                budget={} if settings.tokens is None else {"tokens": settings.tokens},
                checkpoint_every=settings.checkpoint_every,
                gather_limit=GATHER_LIMIT,
            ),
            checkpoints=run.checkpoints(plan.name),
        )
    except BaseException:
        journal.close()
        verifier.close()
        raise
    trainer.attach(node.ledger)
    return TrainSeat(node, trainer, verifier)
