"""Running a crew into a folder: in this process, or with one process per node over the network.

A run that was stopped or killed is resumed by running it again with the same folder: journals say what is
done. One node's failure is told in one line and stops nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from shoal.errors import RunError
from shoal.node.crew import Crew
from shoal.node.drive import Stop
from shoal.node.lockstep import Lockstep
from shoal.node.network import Network
from shoal.node.pace import Pace
from shoal.node.standing import StandingOf
from shoal.runs import RunFolder, parse, to_toml

REPORT_EVERY = 0.2

SettingsOf = TypeVar("SettingsOf", bound=msgspec.Struct)


def run_crew(
    crew: Crew[StandingOf],
    run: RunFolder,
    *,
    in_process: bool,
    stop: Stop,
    report: Callable[[list[StandingOf]], None] | None,
    network: Network | None,
) -> list[StandingOf]:
    """Runs all nodes until they have ended or `stop` is requested; where each of them stands then. `report`
    is called a few times a second, and once at the end."""
    last_report, began, pace = 0.0, time.monotonic(), Pace()

    def tell(standings: list[StandingOf]) -> None:
        if report is not None:
            report(pace.of(standings, time.monotonic() - began))

    def report_at_times(standings: Callable[[], list[StandingOf]]) -> None:
        nonlocal last_report
        if report is not None and time.monotonic() - last_report >= REPORT_EVERY:
            last_report = time.monotonic()
            tell(standings())

    if in_process:
        standings = Lockstep(crew, run).run(stop, report_at_times)
    elif crew.at_terminal:
        from shoal.node.processes import run_here

        standings = run_here(crew, run, stop, report_at_times, network or Network())
    else:
        from shoal.node.processes import run_processes

        standings = run_processes(crew, run, stop, report_at_times, network or Network())
    tell(standings)
    return standings


def how_it_ended(standings: list[StandingOf], stop: Stop) -> str:
    """ "finished", or why it ended before: the wish to stop, or what became of which node."""
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


def load_settings(settings: type[SettingsOf], folder: Path) -> SettingsOf:
    """The settings of a run; RunError or ConfigError where the folder is not a run of that kind."""
    opened = RunFolder.look(folder)
    return parse(settings, opened.config_toml, source=str(folder / "config.toml"))
