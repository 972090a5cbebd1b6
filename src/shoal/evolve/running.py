"""Running a whole search: in this process, or with one process per node over the network.

A run that was stopped or killed is resumed by running it again with the same folder: journals say what is
done, and nothing that was paid for is asked twice. One node's failure is told in one line and stops nobody
else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.evolve.common import check_held_out
from shoal.evolve.lockstep import Lockstep
from shoal.evolve.network import Network
from shoal.evolve.seat import NodeProgress
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop
from shoal.runs import RunFolder, parse, to_toml

__all__ = ["NodeProgress", "Progress", "load_settings", "run"]

REPORT_EVERY = 0.2


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

    Returns "finished", or why it ended before: the wish to stop, or what became of which node. With
    `in_process` and builtin models the same settings give the same archives. `network` is for the other
    mode: where to join others; without it the run's processes are a swarm of their own.
    """
    settings.check()
    began, stop = time.monotonic(), stop or Stop()
    last_report = 0.0

    def report(nodes: list[NodeProgress], *, at_once: bool = False) -> None:
        nonlocal last_report
        if progress is None or (not at_once and time.monotonic() - last_report < REPORT_EVERY):
            return
        last_report = time.monotonic()
        calls = sum(node.calls for node in nodes)
        progress(Progress(calls, settings.calls, time.monotonic() - began, tuple(nodes)))

    if settings.held_out is not None:
        check_held_out(settings.open_domain(), Path(settings.held_out))
    with _open(settings, folder) as opened:
        if in_process:
            nodes = Lockstep(settings, opened).run(stop, report)
        else:
            from shoal.evolve.processes import run_processes

            nodes = run_processes(settings, opened, stop, report, network or Network())
        report(nodes, at_once=True)
    troubles = [f"{node.name} ({node.model}): {node.trouble}" for node in nodes if node.trouble]
    if troubles:
        return "; ".join(troubles)
    if all(node.ended for node in nodes):
        return "finished"
    return stop.reason or "stopped"


def load_settings(folder: Path) -> EvolveSettings:
    """The settings of a run; RunError where the folder is not a run of a search."""
    opened = RunFolder.look(folder)
    return parse(EvolveSettings, opened.config_toml, source=str(folder / "config.toml"))


def _open(settings: EvolveSettings, folder: Path) -> RunFolder:
    if not (folder / "config.toml").exists():
        return RunFolder.create(folder, to_toml(settings))
    known = load_settings(folder)
    if known != settings:
        changed = [
            name for name in settings.__struct_fields__ if getattr(known, name) != getattr(settings, name)
        ]
        raise RunError(
            f"{folder}: there is a run with other settings here ({', '.join(changed)}). Resume it as it is "
            "with `shoal resume`, or name another folder."
        )
    return RunFolder.resume(folder)
