"""Running a whole search: in this process, or with one process per node over the network."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.evolve.common import check_held_out
from shoal.evolve.crew import SearchCrew
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.standing import NodeProgress
from shoal.node import Stop
from shoal.node import running as node_running
from shoal.node.network import Network

__all__ = ["NodeProgress", "Progress", "load_settings", "run"]


class Progress(msgspec.Struct, frozen=True):
    """Where a run stands. `calls` of `budget` are spent."""

    calls: int
    budget: int
    seconds: float
    nodes: tuple[NodeProgress, ...]


def run(
    settings: EvolveSettings,
    folder: Path,
    *,
    in_process: bool,
    stop: Stop | None = None,
    progress: Callable[[Progress], None] | None = None,
    network: Network | None = None,
) -> str:
    """Runs a search into `folder`, or goes on with the one that is there, if its settings are the same.
    Nothing that was paid for is asked twice.

    Returns "finished", or why it ended before: the wish to stop, or what became of which node. With
    `in_process` and builtin models the same settings give the same archives. `network` is for the other
    mode: where to join others; without it the run's processes are a swarm of their own.
    """
    settings.check()
    began, stop = time.monotonic(), stop or Stop()

    def report(nodes: list[NodeProgress]) -> None:
        if progress is not None:
            calls = sum(node.spent for node in nodes)
            progress(Progress(calls, settings.calls, time.monotonic() - began, tuple(nodes)))

    if settings.held_out is not None:
        check_held_out(settings.open_domain(), Path(settings.held_out))
    with node_running.open_run(settings, folder) as opened:
        nodes = node_running.run_crew(
            SearchCrew(settings), opened, in_process=in_process, stop=stop, report=report, network=network
        )
    return node_running.how_it_ended(nodes, stop)


def load_settings(folder: Path) -> EvolveSettings:
    """The settings of a run; RunError where the folder is not a run of a search."""
    return node_running.load_settings(EvolveSettings, folder)
