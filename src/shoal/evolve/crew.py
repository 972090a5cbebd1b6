"""The nodes of a search, put together, run and watched in the same way in every mode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.evolve.asking import Asker
from shoal.evolve.common import check_held_out
from shoal.evolve.outside import SearchOutside
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.models import parse_spec
from shoal.node import ExchangeLike, Node, NodeSettings, Stop
from shoal.node.crew import Seat, Tell
from shoal.node.running import run_crew
from shoal.node.standing import Standing, Tally
from shoal.runs import RunFolder
from shoal.runs.search import SearchNote

AFTER_DEADLINE = 10.0
"""Seconds after its deadline at which a call is missed even if the client has not given it up."""


class SearchCrew:
    settings_type = EvolveSettings
    unit = "calls"
    linger = 0.0  # champions are registers, which others keep and pass on
    at_terminal = False

    def __init__(self, settings: EvolveSettings) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = Searcher.kinds
        self.shares = settings.sharing != "off"
        self.total = settings.calls
        self.is_free = all(parse_spec(model).scheme == "builtin" for model in settings.models)
        self._domain = settings.open_domain()

    def done(self, standings: Sequence[SearchStanding]) -> int:
        return sum(node.spent for node in standings)

    def check(self) -> None:
        self.settings.check()
        if self.settings.held_out is not None:
            check_held_out(self._domain, Path(self.settings.held_out))

    def prepare(self, stop: Stop, tell: Tell) -> None:
        pass

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> Seat:
        settings, domain, name = self.settings, self._domain, self.names[index]
        journal = run.open_journal(name)
        try:
            asker = Asker(settings, index, domain, run.node_folder(name))
            node: Node[Any, Any, Any, Any] = Node(
                Searcher(settings, index, domain, asker.most),
                SearchOutside(settings, domain, asker),
                name=name,
                seed=settings.seed,
                journal=journal,
                now=now,
                exchange=exchange,
                settings=NodeSettings(
                    look_ahead=settings.look_ahead_of(index),
                    deadline=settings.deadline + AFTER_DEADLINE if real_time else None,
                    budget=settings.budget_of(index),
                    checkpoint_every=settings.checkpoint_every,
                ),
                checkpoints=run.checkpoints(name),
            )
        except BaseException:
            journal.close()
            raise
        return Seat(node, asker.close)

    def watch(self, index: int, journal: Path) -> SearchWatcher:
        cells = math.prod(axis.bins for axis in self._domain.axes)
        return SearchWatcher(self.settings, index, cells, journal)


def run(settings: EvolveSettings, folder: Path, **options: Any) -> str:
    return run_crew(SearchCrew(settings.pinned(settings.open_domain())), folder, **options)


class SearchStanding(Standing, frozen=True, kw_only=True):
    """`work` are evaluations, `spent` calls; `round` counts from 1; the other figures are of the archive."""

    round: int = 0
    rounds: int = 0
    coverage: float = 0.0
    qd_score: float = 0.0
    best: float | None = None

    def figures(self) -> Mapping[str, object]:
        return {
            "round": self.round,
            "rounds": self.rounds,
            "evaluations": self.work,
            "evaluations_per_second": self.per_second,
            "coverage": self.coverage,
            "qd_score": self.qd_score,
            "best": self.best,
            "calls": self.spent,
            "calls_allowed": self.allowed,
        }


class SearchWatcher:
    """Follows the `index`-th node of the run from its journal alone. Its archive has room for `cells`."""

    def __init__(self, settings: EvolveSettings, index: int, cells: int, journal: Path) -> None:
        allowed, name = settings.share_of_calls(index), settings.node_names()[index]
        self._cells = cells
        self._tally = Tally(journal)
        self._used = 0
        self._standing = SearchStanding(
            name=name, model=settings.models[index], allowed=allowed, rounds=settings.rounds
        )

    def look(self, *, ended: bool = False, trouble: str = "") -> SearchStanding:
        last = self._standing
        for note in self._tally.notes(SearchNote):
            new: dict[str, Any] = {"work": last.work + note.evaluations}
            if note.opponents is not None:
                new |= {"coverage": note.cells / self._cells, "qd_score": note.qd_score, "best": note.best}
            last = msgspec.structs.replace(last, round=min(note.round + 1, last.rounds), **new)
            self._used += note.used
        self._standing = last
        calls = self._tally.ledger.booked.get("calls", 0)
        return msgspec.structs.replace(
            last,
            done=1.0 if ended and not trouble else min(1.0, calls / (last.allowed or 1)),
            spent=calls,
            traffic=self._tally.traffic(self._used),
            ended=ended,
            trouble=trouble or self._tally.trouble,
        )
