"""One node of a run, put together: search, model, workshop, journal. The same in every mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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

SearchNode = Node[SearchState, Request, Answer, Evidence]

AFTER_DEADLINE = 10.0
"""Seconds after which a call is missed even if the client has not given it up by itself."""


@dataclass
class SearchSeat:
    """A node with its search. `close` frees the model."""

    node: SearchNode
    searcher: Searcher
    asker: Asker

    @property
    def name(self) -> str:
        return self.node.name

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
) -> SearchSeat:
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
    seat = SearchSeat(node, searcher, asker)
    seat.share_again()
    return seat
