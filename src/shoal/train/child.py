"""One node of a training run as a process: `python -m shoal.train.child`."""

from __future__ import annotations

from pathlib import Path

from shoal.node.child import main
from shoal.train.crew import TrainCrew
from shoal.train.running import load_settings


def read_crew(folder: Path) -> TrainCrew:
    return TrainCrew(load_settings(folder))


if __name__ == "__main__":
    main(read_crew)
