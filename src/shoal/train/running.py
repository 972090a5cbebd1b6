"""Running a whole training swarm: in this process, or with one process per node over the network."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.node import Stop
from shoal.node import running as node_running
from shoal.node.network import Network
from shoal.train.crew import TrainCrew
from shoal.train.making import make_models, models_to_make
from shoal.train.settings import TrainSettings
from shoal.train.standing import NodeProgress

__all__ = ["NodeProgress", "Progress", "load_settings", "run"]


class Progress(msgspec.Struct, frozen=True):
    """Where a run stands. `steps` of `budget` are taken, over all nodes. While there are no nodes yet,
    `making` says how much of each model that is made on first use is there, from 0 to 1."""

    steps: int
    budget: int
    seconds: float
    nodes: tuple[NodeProgress, ...]
    making: dict[str, float] = {}


def run(
    settings: TrainSettings,
    folder: Path,
    *,
    in_process: bool,
    stop: Stop | None = None,
    progress: Callable[[Progress], None] | None = None,
    network: Network | None = None,
) -> str:
    """Runs a training swarm into `folder`, or goes on with the one that is there, if its settings are the
    same. What was sampled is not sampled again.

    Models that are made on first use are made before any node starts, so that the nodes begin together.
    Returns "finished", or why it ended before: the wish to stop, or what became of which node. With
    `in_process` the same settings give the same weights on the same machine. `network` is for the other mode:
    where to join others; without it the run's processes are a swarm of their own.
    """
    settings.check()
    began, stop = time.monotonic(), stop or Stop()
    budget = settings.steps * settings.nodes

    def report(nodes: list[NodeProgress]) -> None:
        if progress is not None:
            steps = sum(node.step for node in nodes)
            progress(Progress(steps, budget, time.monotonic() - began, tuple(nodes)))

    def tell_making(shares: dict[str, float]) -> None:
        if progress is not None:
            progress(Progress(0, budget, time.monotonic() - began, (), shares))

    with node_running.open_run(settings, folder) as opened:
        if to_make := models_to_make(settings):
            make_models(to_make, stop, tell_making)
            if stop.requested:
                return stop.reason
        nodes = node_running.run_crew(
            TrainCrew(settings), opened, in_process=in_process, stop=stop, report=report, network=network
        )
    return node_running.how_it_ended(nodes, stop)


def load_settings(folder: Path) -> TrainSettings:
    """The settings of a run; RunError where the folder is not a run of a training swarm."""
    return node_running.load_settings(TrainSettings, folder)
