"""Where a node of a search stands, from its journal alone."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.evolve.search_state import Happened
from shoal.evolve.settings import EvolveSettings
from shoal.node.standing import Standing, Tally


class NodeProgress(Standing, frozen=True, kw_only=True):
    """`work` are evaluations, `spent` of `allowed` are calls. `round` of `rounds` counts from 1; `coverage`,
    `qd_score` and `best` are of the node's present archive."""

    round: int = 0
    rounds: int = 0
    coverage: float = 0.0
    qd_score: float = 0.0
    best: float | None = None


class SearchWatcher:
    """Follows one node, the `index`-th of the run; `cells` is how many its archive has room for."""

    def __init__(self, settings: EvolveSettings, index: int, cells: int, journal: Path) -> None:
        self._rounds = settings.rounds
        self._allowed = settings.share_of_calls(index)
        self._name = settings.node_names()[index]
        self._model = settings.models[index]
        self._cells = cells
        self._tally = Tally(journal)
        self._decode = msgspec.json.Decoder(Happened).decode
        self._round = 0
        self._evaluations = 0
        self._used = 0
        self._archive: Happened | None = None

    def look(self, *, ended: bool = False, trouble: str = "") -> NodeProgress:
        for note in self._tally.read():
            self._add(self._decode(note))
        calls, archive = self._tally.ledger.spent.get("calls", 0), self._archive
        return NodeProgress(
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

    def _add(self, happened: Happened) -> None:
        self._round = min(happened.round + 1, self._rounds)
        self._evaluations += happened.evaluations
        self._used += happened.used
        if happened.warriors:  # else the turn had nothing to do with the archive
            self._archive = happened
