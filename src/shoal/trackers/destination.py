"""Where curves go, as people write it: a kind, a colon, and a folder, file or project."""

from __future__ import annotations

from shoal.errors import ConfigError
from shoal.trackers.base import Tracker

FORMS = "tensorboard:DIR, jsonl:FILE, wandb:PROJECT or trackio:PROJECT"


def open_tracker(destination: str) -> Tracker:
    """The tracker; ConfigError where there is no such kind, its package is missing, or the place is taken."""
    kind, _, place = destination.partition(":")
    if not place:
        raise ConfigError(f"--to {destination}: write it as {FORMS}")
    if kind == "jsonl":
        from shoal.trackers.lines import LinesTracker

        return LinesTracker(place)
    if kind == "tensorboard":
        from shoal.trackers.tensorboard import TensorBoardTracker

        return TensorBoardTracker(place)
    if kind == "wandb" or kind == "trackio":
        from shoal.trackers.hosted import HostedTracker

        return HostedTracker("wandb" if kind == "wandb" else "trackio", place)
    raise ConfigError(f"--to {destination}: there is no tracker {kind!r}: write {FORMS}")
