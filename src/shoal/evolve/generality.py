"""Generality: how a champion does against programs that took no part in its evolution.

A duel is one candidate against one opponent alone, over some rounds. Who has the higher mean score wins;
ties are counted on their own, because the two papers count them differently.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

TOLERANCE = 1e-9
"""Mean scores this close are a tie: less than one cycle of one round, more than rounding."""


class Duel(NamedTuple):
    """`own` and `other` are mean scores over `rounds` rounds; `opponent` is a digest."""

    opponent: str
    own: float
    other: float
    rounds: int

    @property
    def outcome(self) -> Literal["win", "tie", "loss"]:
        if abs(self.own - self.other) <= TOLERANCE:
            return "tie"
        return "win" if self.own > self.other else "loss"


class Generality(NamedTuple):
    """Opponents won against, tied with and lost to."""

    wins: int
    ties: int
    losses: int

    @property
    def opponents(self) -> int:
        return self.wins + self.ties + self.losses

    @property
    def win_rate(self) -> float:
        """DEI's: the share of opponents defeated."""
        return self.wins / self.opponents if self.opponents else 0.0

    @property
    def defeated_or_tied(self) -> float:
        """DRQ's: the share of opponents defeated or tied with."""
        return (self.wins + self.ties) / self.opponents if self.opponents else 0.0


def generality(duels: Iterable[Duel]) -> Generality:
    outcomes = [duel.outcome for duel in duels]
    return Generality(*(outcomes.count(kind) for kind in ("win", "tie", "loss")))


def collective(duels: Sequence[Sequence[Duel]]) -> Generality:
    """What several candidates reach together: each opponent counts with the best result of any of them."""
    best: dict[str, int] = {}
    for duel in (duel for one in duels for duel in one):
        rank = ("loss", "tie", "win").index(duel.outcome)
        best[duel.opponent] = max(rank, best.get(duel.opponent, 0))
    ranks = list(best.values())
    return Generality(ranks.count(2), ranks.count(1), ranks.count(0))


def peak(rounds: Iterable[Generality]) -> Generality:
    """The best over rounds by win rate, ties second, the earliest of equals."""
    found = list(rounds)
    return max(found, key=lambda one: (one.win_rate, one.defeated_or_tied)) if found else Generality(0, 0, 0)
