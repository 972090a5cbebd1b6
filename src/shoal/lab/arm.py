"""One run of one arm, all its nodes in this process, in virtual time."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from shoal.applications import APPLICATIONS
from shoal.errors import RunError
from shoal.lab.experiment import Trial
from shoal.lab.running import Advance
from shoal.node.drive import Stop
from shoal.node.running import run_crew
from shoal.node.standing import Progress


def run_arm(trial: Trial, stop: Stop, advance: Advance) -> bytes | None:
    """The summary of the run as JSON; None if it was asked to stop before. An interrupted run that costs
    nothing is done anew, so that an interruption never changes a result. One that is paid for goes on from
    where it was: calls without a recorded answer are lost."""
    application = APPLICATIONS[trial.settings["application"]]
    crew_type = application.load("crew")
    settings = msgspec.convert({**trial.settings, "seed": trial.seed}, crew_type.settings_type)
    crew, folder = crew_type(settings), Path(trial.folder)
    if crew.is_free and folder.exists():
        shutil.rmtree(folder)

    def tell(progress: Progress[Any]) -> None:
        advance(progress.done / progress.total)

    reason = run_crew(crew, folder, in_process=True, stop=stop, progress=tell)
    if reason == "finished":
        return msgspec.json.encode(application.load("summarise")(folder))
    if stop.requested:
        return None
    raise RunError(f"{folder}: the run ended before all its {crew.unit} were done: {reason}")
