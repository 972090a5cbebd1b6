"""One node of a run, put together: search, model, workshop, journal. The same in every mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.evolve.asking import Asker
from shoal.evolve.champion import Champion
from shoal.evolve.domain import Domain
from shoal.evolve.search_state import SearchState
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.steps import Answer, Evidence, Request
from shoal.evolve.workshop import Workshop
from shoal.node import ExchangeLike, Node, NodeSettings
from shoal.runs import RunFolder
from shoal.swarm import ExchangeSettings

SearchNode = Node[SearchState, Request, Answer, Evidence]

AFTER_DEADLINE = 10.0
"""Seconds after which a call is missed even if the client has not given it up by itself."""


class NodeProgress(msgspec.Struct, frozen=True):
    """Where a node stands. `round` counts from 1; `best` is the best fitness in its present archive;
    `trouble` says why it stopped early."""

    name: str
    model: str
    round: int = 0
    calls: int = 0
    cells: int = 0
    best: float | None = None
    ended: bool = False
    trouble: str = ""


@dataclass
class Seat:
    """A node with its search. `close` frees the model."""

    node: SearchNode
    searcher: Searcher
    asker: Asker

    @property
    def name(self) -> str:
        return self.node.name

    def progress(self, *, ended: bool = False, trouble: str = "") -> NodeProgress:
        state = self.node.state
        best = state.archive.best if state.archive is not None else None
        return NodeProgress(
            self.name,
            self.searcher.model,
            min(state.course.round + 1, self.searcher.settings.rounds),
            self.node.ledger.spent.get("calls", 0),
            len(state.archive) if state.archive is not None else 0,
            None if best is None or state.archive is None else state.archive.fitness(best),
            ended,
            trouble,
        )

    def why_it_ended(self) -> str:
        """Nothing when it did what it was asked to."""
        return self.searcher.trouble(self.node.state)

    def share_again(self) -> None:
        """After a restart: the newest champion, in case that the others were restarted too."""
        state, exchange = self.node.state, self.node.exchange
        if exchange is not None and state.course.champions:
            champion = state.course.champions[-1]
            exchange.share(
                Champion(
                    self.searcher.domain.name, champion.source, champion.origin.round, champion.origin.model
                )
            )

    def close(self) -> None:
        self.asker.close()


def take_seat(
    settings: EvolveSettings,
    index: int,
    run: RunFolder,
    *,
    domain: Domain,
    now: float,
    exchange: ExchangeLike | None,
    real_time: bool,
) -> Seat:
    """The `index`-th node of the run, new or resumed. With `real_time` a call that hangs is missed by the
    node itself; in virtual time only the model's client can tell."""
    name = settings.node_names()[index]
    journal = run.open_journal(name)
    try:
        asker = Asker(settings, index, domain, run.node_folder(name))
        searcher = Searcher(settings, index, domain, asker.most)
        node: Node[Any, Any, Any, Any] = Node(
            searcher,
            Workshop(settings, domain, asker),
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
    searcher.attach(node.ledger, node.turns)
    seat = Seat(node, searcher, asker)
    seat.share_again()
    return seat


def private_swarm(swarm: str, members: tuple[str, ...]) -> ExchangeSettings:
    """A swarm of one run, closed to everybody else; its members need no probation."""
    return ExchangeSettings(
        swarm=swarm, allow=members, probation_items=1, newcomers_per_minute=60_000.0, flush_seconds=0.0
    )
