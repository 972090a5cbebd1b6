"""What the swarm costs a training node: sharing, gathering and verifying, as a part of all processor time.

Four nodes with embedded policies in one process, with the defaults: evaluations and checkpoints are part of
the whole. Counted are the loop's own steps of sharing, gathering and
verifying, the exchange's work for them, and what the verifier's processes did for foreign groups; of their
time for own tasks, which a node alone needs too, nothing.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from bench.row import Row
from shoal.node.node import Node
from shoal.node.running import run_crew
from shoal.swarm.exchange import Exchange
from shoal.train.crew import TrainCrew
from shoal.train.settings import TrainSettings
from shoal.train.trainer import Trainer

STEPS = 60
REPEATS = 5


class Counter:
    """Processor seconds within the calls that it watches."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    @contextmanager
    def watching(self, kind: type, name: str) -> Iterator[None]:
        real = getattr(kind, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            began, self._depth = time.process_time(), self._depth + 1
            try:
                return real(*arguments, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.process_time() - began

        with patch.object(kind, name, timed):
            yield

    @contextmanager
    def leaving_out(self, kind: type, name: str) -> Iterator[None]:
        """What happens within the watched calls and is not meant: the verdict that was awaited lets the loop
        go on with learning."""
        real = getattr(kind, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            began = time.process_time()
            try:
                return real(*arguments, **named)
            finally:
                if self._depth:
                    self.seconds -= time.process_time() - began

        with patch.object(kind, name, timed):
            yield


def spent(external: int) -> tuple[float, float, float]:
    """Processor seconds of all, of the swarm in this process, and of the verifiers."""
    settings = TrainSettings(nodes=4, steps=STEPS, external=external)
    counter, began = Counter(), time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench") as place,
        counter.watching(Node, "_share"),
        counter.watching(Node, "_gather"),
        counter.watching(Node, "_verify"),
        counter.watching(Exchange, "tick"),
        counter.leaving_out(Trainer, "absorb"),
    ):
        assert run_crew(TrainCrew(settings), Path(place) / "run", in_process=True) == "finished"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    workers = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return time.process_time() - began, counter.seconds, workers


def measure() -> list[Row]:
    """Medians of several runs: what the verifiers do for others is a small difference of two figures."""
    spent(4)  # makes the policies and imports everything
    together = [spent(4) for _ in range(REPEATS)]
    all_of_it, swarm, workers = (median(column) for column in zip(*together, strict=True))
    alone = median(spent(0)[2] for _ in range(REPEATS))
    for_others = max(workers - alone, 0.0)
    share = (swarm + for_others) / (all_of_it + workers)
    print(
        f"  {all_of_it:.2f} s, {swarm:.2f} of it for the swarm; verifiers {workers:.2f} s, alone {alone:.2f}"
    )
    unit = "of the processor time (4 nodes, the defaults)"
    return [Row("train.sharing_share", share, unit, "", "<= 0.05")]
