"""Weights & Biases, and Trackio, which has the same functions: each series is a run of one project.

Whether anything leaves the machine is up to their own settings (WANDB_MODE, TRACKIO_SPACE_ID).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from shoal.errors import ConfigError
from shoal.trackers.base import import_for


class HostedTracker:
    """Runs are begun as series appear. Of "run/node", "run" is the group. Each run has its own steps, so a
    slow node's numbers are not refused because a fast one is ahead."""

    def __init__(self, name: Literal["wandb", "trackio"], project: str) -> None:
        self.name: str = name
        self._project = project
        self._module = import_for(name, name)
        self._open: dict[str, Any] = {}

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        run = self._open.get(series)
        if run is None:
            run = self._open[series] = self._begin(series)
        run.log(dict(values), step=step)

    def close(self) -> None:
        for run in self._open.values():
            run.finish()
        self._open.clear()

    def _begin(self, series: str) -> Any:
        group = series.rpartition("/")[0] or None
        # Without it, wandb ends the run before when another is begun. Trackio does not, and has no such word.
        more = {"reinit": "create_new"} if self.name == "wandb" else {}
        try:
            return self._module.init(project=self._project, name=series, group=group, **more)
        except Exception as error:  # these packages have families of errors of their own
            said = str(error).strip().partition("\n")[0] or type(error).__name__
            raise ConfigError(f"--to {self.name}:{self._project}: it did not begin: {said}") from error
