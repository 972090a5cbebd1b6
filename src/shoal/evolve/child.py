"""One node of a search as a process: `python -m shoal.evolve.child`."""

from __future__ import annotations

from pathlib import Path

from shoal.evolve.crew import SearchCrew
from shoal.evolve.running import load_settings
from shoal.node.child import main


def read_crew(folder: Path) -> SearchCrew:
    return SearchCrew(load_settings(folder))


if __name__ == "__main__":
    main(read_crew)
