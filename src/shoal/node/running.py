"""Running a crew into a folder, in this process or with one process per node over the network. A run that was
stopped or killed is resumed by running it again. One node's failure stops nobody else."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from shoal.errors import ConfigError, RunError
from shoal.node.crew import Crew, Network
from shoal.node.drive import Stop
from shoal.node.lockstep import Lockstep
from shoal.node.standing import Pace, Progress, StandingOf
from shoal.runs import RunFolder, load_settings, to_toml
from shoal.runs.moments import span_of

REPORT_EVERY = 0.2

SettingsOf = TypeVar("SettingsOf", bound=msgspec.Struct)


def run_crew(
    crew: Crew[StandingOf],
    folder: Path,
    *,
    in_process: bool = False,
    stop: Stop | None = None,
    progress: Callable[[Progress[StandingOf]], None] | None = None,
    network: Network | None = None,
) -> str:
    """Runs all nodes into `folder`, or goes on with a run of the same settings there; paid calls are not made
    twice. Returns "finished", or the reason of an early end. With `in_process` all nodes share this process
    and a virtual clock, and the same settings give the same run. Otherwise `network` names others to join, if
    any. `progress` is called a few times a second, and once at the end."""
    began, stop, pace, last_report = time.monotonic(), stop or Stop(), Pace(), 0.0

    def tell(standings: list[StandingOf], making: dict[str, float] | None = None) -> None:
        if progress is not None:
            seconds = time.monotonic() - began
            nodes = tuple(pace.of(standings, seconds))
            progress(Progress(crew.done(standings), crew.total, crew.unit, seconds, nodes, making or {}))

    def report(standings: Callable[[], list[StandingOf]]) -> None:
        nonlocal last_report
        if progress is not None and time.monotonic() - last_report >= REPORT_EVERY:
            last_report = time.monotonic()
            tell(standings())

    crew.check()
    until = getattr(crew.settings, "until", "")
    if in_process and until and span_of(until) is None:
        raise ConfigError(
            f"until: {until} is a time of the world's clock, and a run in one process has its own: give a "
            "span such as 90s"
        )
    with open_run(crew.settings, folder) as run:
        crew.prepare(stop, lambda shares: tell([], shares))
        if stop.requested:
            return stop.reason
        if in_process:
            standings = Lockstep(crew, run).run(stop, report)
        else:
            from shoal.node.processes import run_here, run_processes

            run_nodes = run_here if crew.at_terminal else run_processes
            standings = run_nodes(crew, run, stop, report, network or Network())
        tell(standings)
    troubles = [f"{node.name} ({node.model}): {node.trouble}" for node in standings if node.trouble]
    if troubles:
        return "; ".join(troubles)
    if all(node.ended for node in standings):
        return "finished"
    return stop.reason or "stopped"


def open_run(settings: SettingsOf, folder: Path) -> RunFolder:
    """The run at `folder`, new, or the one that is there if its settings are the same."""
    if not (folder / "config.toml").exists():
        return RunFolder.create(folder, to_toml(settings))
    known = load_settings(type(settings), folder)
    if known != settings:
        changed = [
            name for name in settings.__struct_fields__ if getattr(known, name) != getattr(settings, name)
        ]
        raise RunError(
            f"{folder}: there is a run with other settings here ({', '.join(changed)}). Resume it as it is "
            "with `shoal resume`, or name another folder."
        )
    return RunFolder.resume(folder)
