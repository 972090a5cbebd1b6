"""Watchdog: notices that the push path from a living author is broken and asks for a new connection.

Only what was proven counts. An author is suspect when at least three of its frames had to be fetched since
the last one that came by itself, and by the author's own clock they span more than the waiting time. So a
single loss, a quiet author or a claim that nobody can back never closes a connection.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from shoal.swarm.authors import Author
from shoal.swarm.beacon import alive_within, watchdog_waits

FETCHED = 3
SHORTEST, LONGEST = 30.0, 120.0
HEALTHY = 60.0


class Watchdog:
    """When to reopen the transport of one node."""

    __slots__ = ("_backoff", "_fire_at", "_last_suspicion", "_not_before", "_rng")

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._fire_at = 0.0  # 0: nobody is suspect
        self._not_before = 0.0
        self._backoff = SHORTEST
        self._last_suspicion = 0.0

    def wait(self, until: float) -> None:
        """Does nothing before that time: this node itself was away."""
        self._fire_at = 0.0
        self._not_before = max(self._not_before, until)

    def check(self, authors: Iterable[Author], now: float, period: float) -> bool:
        """True when the connection should be opened anew, at once."""
        patience = watchdog_waits(period)
        recent = alive_within(period) if self._fire_at == 0.0 else patience
        if not any(suspect(author, now, patience, recent) for author in authors):
            self._fire_at = 0.0
            if now - self._last_suspicion > HEALTHY:
                self._backoff = SHORTEST
            return False
        self._last_suspicion = now
        if now < self._not_before:
            return False
        if self._fire_at == 0.0:
            # A random wait, so that not everyone who lost the same link reopens in the same moment.
            self._fire_at = now + self._rng.uniform(0.0, patience / 2)
            return False
        if now < self._fire_at:
            return False
        self._fire_at = 0.0
        self._not_before = now + self._backoff * self._rng.uniform(0.7, 1.3)
        self._backoff = min(2 * self._backoff, LONGEST)
        return True


def suspect(author: Author, now: float, patience: float, recent: float) -> bool:
    """Whether an author is alive, as fetched frames prove, but was not heard directly for too long."""
    return (
        author.pulled_since_push >= FETCHED
        and now - author.pushed_at > patience
        and author.pulled_made_at - author.pushed_made_at > patience * 1e6
        and now - author.pulled_at <= recent
    )
