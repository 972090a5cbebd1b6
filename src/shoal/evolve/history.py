"""The history of a run's nodes, from their journals alone, while the run goes on and after it was killed. A
journal is replayed through the very `absorb` that wrote it, so the archives are those that the nodes had.
Nothing is played and no model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from shoal.evolve.archive import MIXED, Archive
from shoal.evolve.common import merge_in_common
from shoal.evolve.domain import Domain
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import SearchState
from shoal.node import Judged, Own, Turn
from shoal.node.fold import Fold
from shoal.runs import Ledger, load_settings, read
from shoal.runs.records import Stopped, content_of, refusing
from shoal.runs.search import (
    Closed,
    NodeRound,
    Opened,
    Placed,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchEvidence,
    SearchNote,
    SearchRequest,
)


@dataclass(frozen=True, slots=True)
class Event:
    """One turn. The node has spent `calls` by then; `fills` are the programs that took a cell."""

    time: float
    node: str
    note: SearchNote
    calls: int
    fills: tuple[Placed, ...]


@dataclass
class NodeHistory:
    """One node's part of a run. `archive` is that of its last complete round, else of its first. `spent` are
    calls, tokens and microdollars; `champions` are by digest; `ended` is the reason why the last
    process stopped."""

    name: str
    model: str
    events: list[Event] = field(default_factory=list)
    archive: Archive | None = None
    state: SearchState = field(default_factory=SearchState)
    spent: dict[str, int] = field(default_factory=dict)
    made: dict[str, float] = field(default_factory=dict)
    proposals: int = 0
    valid: int = 0
    duplicates: int = 0
    timeouts: int = 0
    failed: int = 0
    last_failure: str = ""
    accepted: int = 0
    repaired: int = 0
    held_to_grammar: int = 0
    champions_received: int = 0
    passed_over: dict[str, int] = field(default_factory=dict)
    plays: int = 0
    shared_bytes: int = 0
    niche_novelty: list[float | None] = field(default_factory=list)
    by_round: list[NodeRound] = field(default_factory=list)
    champions: dict[str, Program] = field(default_factory=dict)
    ended: str = ""

    @property
    def done(self) -> bool:
        return self.state.course.phase == "done"


class _Observed(Searcher):
    """A search that also keeps a history of its turns."""

    def __init__(self, settings: EvolveSettings, index: int, domain: Domain, history: NodeHistory) -> None:
        super().__init__(settings, index, domain, lambda request: {})
        self._history = history
        self.ledger = Ledger()
        self._complete: Archive | None = None

    def absorb(
        self,
        state: SearchState,
        turn: Turn,
        own: Own[SearchRequest, SearchAnswer],
        judged: Sequence[Judged[SearchEvidence]],
    ) -> SearchState:
        state = super().absorb(state, turn, own, judged)
        history, note = self._history, state.course.last
        assert note is not None
        for one in judged:
            history.champions_received += one.verdict.accepted
            if one.verdict.passed_over:
                reason = one.verdict.reason
                history.passed_over[reason] = history.passed_over.get(reason, 0) + 1
        if isinstance(own.request, Propose):
            self._count_proposal(own, note, turn.now)
        if isinstance(own.answer, Opened):
            history.niche_novelty.append(note.novelty)
            history.by_round.append(NodeRound(note.round, note.visitors, note.novelty))
        if isinstance(own.answer, Opened | Closed):
            rounds = self.settings.repeats if isinstance(own.answer, Opened) else self.settings.retest_repeats
            history.plays += rounds * len(own.answer.evaluations)
        if isinstance(own.answer, Closed):
            self._complete = state.archive
            if note.digest:
                history.by_round[-1] = msgspec.structs.replace(history.by_round[-1], champion=note.digest)
                history.champions[note.digest] = state.course.champions[-1]
            shared = self.share(state, turn, None) if self.settings.sharing != "off" else ()
            history.shared_bytes += sum(len(msgspec.msgpack.encode(item)) for item in shared)
        history.archive = self._complete if self._complete is not None else state.archive
        calls = self.ledger.spent.get("calls", 0)
        history.events.append(Event(turn.now, history.name, note, calls, self._fills(note)))
        return state

    def _count_proposal(self, own: Own[SearchRequest, SearchAnswer], note: SearchNote, now: float) -> None:
        history, answer = self._history, own.answer
        history.proposals += 1
        history.accepted += note.result in ("new", "improved")
        history.duplicates += note.result == "duplicate"
        if isinstance(answer, Proposed):
            history.valid += bool(answer.digest)
            history.repaired += answer.repaired and bool(answer.digest)
            history.held_to_grammar += answer.grammar
            history.timeouts += answer.failed == "time-out"
            if answer.failed and answer.failed != "budget":
                history.failed += 1
                history.last_failure = answer.failure
            history.plays += self.settings.repeats if answer.evaluation is not None else 0
            if answer.digest:
                history.made.setdefault(answer.digest, now)
        else:
            history.timeouts += own.missed == "deadline"
            history.failed += 1
            history.last_failure = own.missed

    def _fills(self, note: SearchNote) -> tuple[Placed, ...]:
        if note.result in ("new", "improved") and note.cell is not None:
            fitness = note.fitness or 0.0
            return (Placed(note.cell, fitness, note.digest, self.model, self._history.name),)
        return note.placed


@dataclass(frozen=True)
class SearchRun:
    """A search as its folder tells it. `histories` are in the order of the settings."""

    folder: Path
    settings: EvolveSettings
    domain: Domain
    histories: list[NodeHistory]

    @cached_property
    def archives(self) -> list[Archive]:
        """Those of the nodes that have begun a round."""
        return [history.archive for history in self.histories if history.archive is not None]

    @cached_property
    def common(self) -> Archive:
        """All archives merged under the common evaluator."""
        return merge_in_common(self.domain, self.archives or [Archive(self.domain.axes, MIXED)])


def read_run(folder: Path) -> SearchRun:
    """The search in `folder`, finished or not; its domain may use all cores."""
    settings = load_settings(EvolveSettings, folder)
    domain = settings.open_domain(threads=None)
    histories = []
    for index, name in enumerate(settings.node_names()):
        history = NodeHistory(name, settings.models[index])
        path = folder / "nodes" / name / "journal.jsonl"
        if path.exists():
            _replay(settings, index, domain, path, history)
        histories.append(history)
    return SearchRun(folder, settings, domain, histories)


def _replay(settings: EvolveSettings, index: int, domain: Domain, path: Path, history: NodeHistory) -> None:
    searcher = _Observed(settings, index, domain, history)
    fold = Fold(
        searcher, searcher.initial_state(), seed=settings.seed, node=history.name, ledger=searcher.ledger
    )
    for record in read(path):
        with refusing(path, record):
            fold.feed(record)
        if record.kind in ("started", "stopped"):
            content = content_of(record)
            history.ended = content.reason if isinstance(content, Stopped) else ""
    history.state = fold.state
    if fold.state.course.failed and not history.done:
        history.ended = fold.state.course.trouble
    history.spent = searcher.ledger.booked
