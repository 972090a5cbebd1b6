"""Searches and training runs from Python: start one, go on with it, read its summary.

import shoal

summary = shoal.run_search("runs/first", models=["builtin:bomber", "builtin:scanner"], calls=200)
summary = shoal.run_training("runs/sums", models="tiny:llama", nodes=2, steps=20)
summary = shoal.resume_run("runs/first")
summary = shoal.read_summary("runs/first")
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.applications import APPLICATIONS, application_of, settings_of
from shoal.errors import RunError

if TYPE_CHECKING:
    from shoal.node.crew import Network
    from shoal.node.standing import Progress
    from shoal.runs.search import SearchSummary
    from shoal.runs.training import TrainSummary


def run_search(
    folder: str | Path,
    *,
    in_process: bool = False,
    progress: Callable[[Progress[Any]], None] | None = None,
    network: Network | None = None,
    preset: str | None = None,
    **settings: Any,
) -> SearchSummary:
    """Searches with these settings (docs/evolve.md) and returns the summary, or goes on with such a run in
    `folder`. They come on top of the `preset`, if one is named. `in_process` runs all nodes in this process,
    reproducibly; otherwise each has its own, and `network` names others to join. RunError tells why a run
    ended before it was done."""
    from shoal.evolve.settings import EvolveSettings

    chosen = _settings("evolve", EvolveSettings, preset, settings).settled(warnings.warn)
    found: SearchSummary = _run(chosen, Path(folder), in_process, progress, network)
    return found


def run_training(
    folder: str | Path,
    *,
    in_process: bool = False,
    progress: Callable[[Progress[Any]], None] | None = None,
    network: Network | None = None,
    preset: str | None = None,
    **settings: Any,
) -> TrainSummary:
    """Trains with these settings (docs/train.md) and returns the summary; the rest as in `run_search`."""
    from shoal.train.settings import TrainSettings

    chosen = _settings("train", TrainSettings, preset, settings)
    found: TrainSummary = _run(chosen, Path(folder), in_process, progress, network)
    return found


def resume_run(
    folder: str | Path,
    *,
    in_process: bool = False,
    progress: Callable[[Progress[Any]], None] | None = None,
    network: Network | None = None,
) -> SearchSummary | TrainSummary:
    """Goes on with a run that was stopped or killed, and returns its summary."""
    found: SearchSummary | TrainSummary = _run(
        settings_of(Path(folder)), Path(folder), in_process, progress, network
    )
    return found


def read_summary(folder: str | Path) -> SearchSummary | TrainSummary:
    """The summary of a run, finished or not."""
    found: SearchSummary | TrainSummary = application_of(Path(folder)).load("summarise")(Path(folder))
    return found


def _settings(application: str, struct: type[Any], preset: str | None, given: dict[str, Any]) -> Any:
    if preset is None:
        return struct(**given)
    from shoal.presets import find_preset

    return find_preset(preset, application).settings(struct, given)


def _run(settings: Any, folder: Path, in_process: bool, progress: Any, network: Network | None) -> Any:
    from shoal.node.running import run_crew

    application = APPLICATIONS[settings.application]
    settings.check()
    application.load("check_models")(settings)
    crew = application.load("crew")(settings)
    ended = run_crew(crew, folder, in_process=in_process, progress=progress, network=network)
    if ended != "finished":
        raise RunError(
            f"{folder}: the run ended early: {ended}. Go on with shoal.resume_run({str(folder)!r})."
        )
    return application.load("summarise")(folder)
