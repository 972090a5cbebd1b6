"""Whom a candidate meets in a round: the initial opponents and the newest champions, as room allows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from shoal.errors import ConfigError
from shoal.evolve.domain import Candidate


def choose_opponents(
    initial: Sequence[Candidate],
    own: Sequence[Candidate] = (),
    received: Sequence[Candidate] = (),
    *,
    history: int | None = None,
    limit: int | None = None,
) -> list[Candidate]:
    """The initial opponents, then own and received champions in turn, the newest first, each program once.

    `own` and `received` are given oldest first; of each at most the last `history` are considered (None:
    all). The list has at most `limit` entries, `limit` being the domain's `opponent_limit`.
    """
    if history is not None and history < 0:
        raise ConfigError(f"history {history}: give 0 (no champions), a positive number, or none for all")
    chosen = {candidate.digest: candidate for candidate in initial}
    if limit is not None and len(chosen) > limit:
        raise ConfigError(
            f"{len(chosen)} initial opponents: there is room for {limit}; give fewer, or a smaller distance"
        )
    newest_own, newest_received = (list(reversed(champions))[:history] for champions in (own, received))
    for pair in zip_longest(newest_own, newest_received):
        for champion in pair:
            if champion is not None and (limit is None or len(chosen) < limit):
                chosen.setdefault(champion.digest, champion)
    return list(chosen.values())
