"""The nodes of a search: how they are put together, run and watched. The same in every mode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.evolve.asking import Asker
from shoal.evolve.common import check_held_out
from shoal.evolve.domain import Domain
from shoal.evolve.outside import SearchOutside
from shoal.evolve.searcher import Searcher, champion_kinds
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import SearchState
from shoal.models import parse_spec
from shoal.node import ExchangeLike, Node, NodeSettings, Stop
from shoal.node.crew import Tell
from shoal.node.running import run_crew
from shoal.node.standing import Standing, Tally
from shoal.runs import RunFolder
from shoal.runs.search import SearchAnswer, SearchEvidence, SearchNote, SearchRequest

AFTER_DEADLINE = 10.0
"""Seconds after which a call is missed even if the client has not given it up by itself."""

SearchNode = Node[SearchState, SearchRequest, SearchAnswer, SearchEvidence]


@dataclass
class SearchSeat:
    """A node with its model, which `close` frees."""

    node: SearchNode
    asker: Asker

    def close(self) -> None:
        self.asker.close()


class SearchCrew:
    """One node per model."""

    settings_type = EvolveSettings
    unit = "calls"
    linger = 0.0  # champions are registers, which others keep and pass on
    at_terminal = False

    def __init__(self, settings: EvolveSettings) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = champion_kinds()
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
        """There is nothing to do."""

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
            self.settings, index, run, domain=self._domain, now=now, exchange=exchange, real_time=real_time
        )

    def watch(self, index: int, journal: Path) -> SearchWatcher:
        cells = math.prod(axis.bins for axis in self._domain.axes)
        return SearchWatcher(self.settings, index, cells, journal)


def run(settings: EvolveSettings, folder: Path, **options: Any) -> str:
    """Runs the nodes of these settings into `folder`, or goes on with the run that is there. The options, and
    the text that is returned, are those of `shoal.node.running.run_crew`."""
    return run_crew(SearchCrew(settings), folder, **options)


def take_seat(
    settings: EvolveSettings,
    index: int,
    run: RunFolder,
    *,
    domain: Domain,
    now: float,
    exchange: ExchangeLike | None,
    real_time: bool,
) -> SearchSeat:
    """The `index`-th node of the run, new or resumed. With `real_time` the node itself gives up a call that
    hangs; in virtual time only the model's client can tell."""
    name = settings.node_names()[index]
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
    return SearchSeat(node, asker)


class SearchStanding(Standing, frozen=True, kw_only=True):
    """`work` are evaluations, `spent` of `allowed` are calls. `round` of `rounds` counts from 1; `coverage`,
    `qd_score` and `best` are of the node's present archive."""

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
    """Follows one node, the `index`-th of the run, from its journal alone. Its archive has room for
    `cells`."""

    def __init__(self, settings: EvolveSettings, index: int, cells: int, journal: Path) -> None:
        self._rounds = settings.rounds
        self._allowed = settings.share_of_calls(index)
        self._name = settings.node_names()[index]
        self._model = settings.models[index]
        self._cells = cells
        self._tally = Tally(journal)
        self._round = 0
        self._evaluations = 0
        self._used = 0
        self._archive: SearchNote | None = None

    def look(self, *, ended: bool = False, trouble: str = "") -> SearchStanding:
        for note in self._tally.notes(SearchNote):
            self._round = min(note.round + 1, self._rounds)
            self._evaluations += note.evaluations
            self._used += note.used
            if note.opponents is not None:
                self._archive = note
        calls, archive = self._tally.ledger.booked.get("calls", 0), self._archive
        return SearchStanding(
            name=self._name,
            model=self._model,
            done=1.0 if ended and not trouble else min(1.0, calls / self._allowed),
            work=self._evaluations,
            spent=calls,
            allowed=self._allowed,
            traffic=self._tally.traffic(self._used),
            ended=ended,
            trouble=trouble or self._tally.trouble,
            round=self._round,
            rounds=self._rounds,
            coverage=archive.cells / self._cells if archive is not None else 0.0,
            qd_score=archive.qd_score if archive is not None else 0.0,
            best=archive.best if archive is not None else None,
        )
