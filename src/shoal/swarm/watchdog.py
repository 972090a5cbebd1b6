"""Watchdog: notices by proofs that the connection is half dead, and asks for a new one. Either sign counts:

- The push path from a living author is broken: at least three of its frames had to be fetched since the last
  one that came by itself, and by the author's own clock they span more than the waiting time. So a single
  loss, a quiet author or a claim without proof never closes a connection.
- Nobody answers: for the waiting time none of at least six pulls brought an answer. Some of them are probes
  of random nodes, those in good standing first, for frames that an honest holder has. One honest answer
  clears the connection, so all drawn nodes would have to be liars.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from shoal.swarm.authors import Author
from shoal.swarm.beacon import ALIVE_PERIODS, watchdog_waits
from shoal.swarm.identity import NodeId

FETCHED = 3
HOLDERS = 2
DOUBTFUL, UNANSWERED = 3, 6  # failed pulls after which probes are sent, and after which nobody answers
SHORTEST, LONGEST = 30.0, 120.0
HEALTHY = 60.0


@dataclass(slots=True)
class Watchdog:
    """Decides when to reopen the transport of one node."""

    _rng: random.Random
    _fire_at: float = 0.0  # 0: nobody is suspect
    _not_before: float = 0.0
    _backoff: float = SHORTEST
    _last_suspicion: float = 0.0

    def wait(self, until: float) -> None:
        """Suspects nobody before that time, because this node itself was away."""
        self._fire_at = 0.0
        self._not_before = max(self._not_before, until)

    def check(self, authors: Iterable[Author], unanswered: bool, now: float, period: float) -> bool:
        """Whether to open the connection anew at once. `unanswered`: see `Unanswered.broken`."""
        patience = watchdog_waits(period)
        recent = ALIVE_PERIODS * period if self._fire_at == 0.0 else patience
        if not unanswered and not any(suspect(author, now, patience, recent) for author in authors):
            self._fire_at = 0.0
            if now - self._last_suspicion > HEALTHY:
                self._backoff = SHORTEST
            return False
        self._last_suspicion = now
        if now < self._not_before:
            return False
        if self._fire_at == 0.0:
            # A random wait, so that not all who lost the same link reopen at the same moment.
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


@dataclass(slots=True)
class Unanswered:
    """The pulls that failed since the last answer; each answer, also a useless one, starts a new object."""

    failed: int = 0
    since: float = inf
    probed: bool = False
    vouched: bool = False  # a node in good standing did not answer
    not_before: float = 0.0  # of the next probes
    holders: set[NodeId] = field(default_factory=set)

    def fail(self, holder: NodeId, established: bool, asked_at: float, probe: bool) -> None:
        """A pull got no answer in time."""
        self.since = min(self.since, asked_at)
        self.failed += 1
        self.probed = self.probed or probe
        self.vouched = self.vouched or established
        if len(self.holders) < HOLDERS:
            self.holders.add(holder)

    def doubtful(self, now: float, period: float) -> bool:
        """Whether it is time to probe: two nodes did not answer, or one in good standing."""
        return (
            self.failed >= DOUBTFUL
            and (self.vouched or len(self.holders) >= HOLDERS)
            and now - self.since > watchdog_waits(period) / 2
            and now >= self.not_before
        )

    def broken(self, now: float, period: float) -> bool:
        """Whether nobody answers, not even the probed nodes."""
        return self.probed and self.failed >= UNANSWERED and now - self.since > watchdog_waits(period)
