"""The nodes of a search as what drives them sees them."""

from __future__ import annotations

import math
from pathlib import Path

from shoal.evolve.champion import champion_kinds
from shoal.evolve.seat import SearchSeat, take_seat
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.standing import SearchWatcher
from shoal.node import ExchangeLike
from shoal.runs import RunFolder


class SearchCrew:
    """One node per model."""

    child_module = "shoal.evolve.child"
    linger = 0.0  # champions are registers, which others keep and pass on
    at_terminal = False

    def __init__(self, settings: EvolveSettings) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = champion_kinds()
        self.shares = settings.sharing != "off"
        self._domain = settings.open_domain()

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> SearchSeat:
        return take_seat(
            self.settings,
            index,
            run,
            domain=self._domain,
            now=now,
            exchange=exchange,
            real_time=real_time,
        )

    def watch(self, index: int, journal: Path) -> SearchWatcher:
        cells = math.prod(axis.bins for axis in self._domain.axes)
        return SearchWatcher(self.settings, index, cells, journal)
