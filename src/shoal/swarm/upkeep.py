"""Upkeep: the work that keeps an exchange's log whole and its memory bounded, each part when it is due.

It sends beacons, pulls missing frames, renews a half-dead connection, expires, and chooses the shards.
"""

from __future__ import annotations

from shoal.swarm.authors import Author
from shoal.swarm.beacon import ALIVE_PERIODS, JITTER, beacon_period, nodes_counted
from shoal.swarm.context import Context
from shoal.swarm.inbox import Inbox
from shoal.swarm.outbox import Sender
from shoal.swarm.repair import Repair
from shoal.swarm.watchdog import Watchdog

STALL = 3.0
QUIET_AFTER_STALL = 8.0
HOUSEKEEPING = 10.0
NEIGHBOURS = 16
NEWCOMERS_PART = 1 / 6  # of the time that frames are kept


class Upkeep:
    """The upkeep of one node."""

    def __init__(self, context: Context, sender: Sender, inbox: Inbox, now: float) -> None:
        rng = context.rng
        self._inbox = inbox
        self.repair = Repair(context)
        self.stalls = 0
        self.reopened = 0
        self._context = context
        self._sender = sender
        self._watchdog = Watchdog(rng)
        self._period = 1.0
        self._redraw_due = now + context.settings.redraw_seconds * rng.uniform(0.5, 1.5)
        self._beacon_due = now + rng.uniform(0.0, 0.2)
        self._repair_due = now + rng.uniform(0.4, 0.6)
        self._housekeeping_due = now + HOUSEKEEPING
        self._subscribe()

    @property
    def due(self) -> float:
        """The time of the next part."""
        return min(self._beacon_due, self._repair_due, self._housekeeping_due)

    def present(self, now: float) -> list[Author]:
        """The other authors with a verified frame within the last four beacon periods."""
        oldest, own = now - ALIVE_PERIODS * self._period, self._sender.own
        return [author for author in self._context.authors if author.heard_at >= oldest and author is not own]

    def perform(self, now: float) -> None:
        """Does the parts that are due."""
        if now >= self._beacon_due:
            self._period = beacon_period(self._nodes(now))
            self._beacon_due = now + self._period * self._jitter()
            self._sender.beacon(now)
        if now >= self._repair_due:
            self._mend(now)
        if now >= self._housekeeping_due:
            self._keep_house(now)

    def settle(self, nonce: bytes, delivered: int, size: int, now: float) -> None:
        """Closes a pull that was answered; if more is missing, the next one goes out soon."""
        self.repair.settle(nonce, delivered, size, now)
        if self.repair.waiting():
            self._repair_due = min(self._repair_due, now + 0.1 * self._period)

    def set_back(self, now: float, before: float) -> None:
        """This node's clock was set back from `before`: all parts are due now, not when it gets there."""
        self._beacon_due = self._repair_due = self._housekeeping_due = now
        self._sender.outbox.since = min(self._sender.outbox.since, now)
        for author in self._context.authors:
            author.heard_at = min(author.heard_at, now)
        if before - now > STALL:
            self.stalled(now)  # pulls under way have deadlines of another time

    def stalled(self, now: float) -> None:
        """This node itself was away, so the others' silence means nothing."""
        self.stalls += 1
        self.repair.forget()
        self._watchdog.wait(now + QUIET_AFTER_STALL)
        for author in self._context.authors:
            author.pushed_at = now if author.pushed_at else 0.0
            author.pulled_since_push = 0

    def _jitter(self) -> float:
        return self._context.rng.uniform(1 - JITTER, 1 + JITTER)

    def _nodes(self, now: float) -> int:
        present, established = self.present(now), self._context.accounts.established
        known = sum(author.node_id in established for author in present)
        return nodes_counted(known, len(present) - known, bool(established))

    def _mend(self, now: float) -> None:
        self._repair_due = now + 0.5 * self._period * self._jitter()
        for holder, pull in self.repair.plan(now, self._period, self._sender.pulls_left(now)):
            self._sender.pull(holder, pull, now)
        if self.repair.open:
            deadline = min(pull.deadline for pull in self.repair.open.values())
            self._repair_due = min(self._repair_due, max(deadline, now + 0.1))
        unanswered = self.repair.unanswered(now, self._period)
        if self._watchdog.check(self._context.authors, unanswered, now, self._period):
            endpoints = [endpoint for author in self.present(now) for endpoint in author.endpoints]
            self._context.rng.shuffle(endpoints)
            self.reopened += 1
            self.repair.forgive()
            self._context.transport.reopen(endpoints[:NEIGHBOURS])

    def _keep_house(self, now: float) -> None:
        authors, following, settings = self._context.authors, self._context.following, self._context.settings
        self._housekeeping_due = now + HOUSEKEEPING
        ttl = settings.ttl_seconds
        authors.expire(int((now - ttl) * 1e6), int((now - ttl * NEWCOMERS_PART) * 1e6))
        self._inbox.expire(now)
        self._context.accounts.expire(now - ttl)
        self._sender.refresh(now)
        changed = following.adjust(self._nodes(now))
        if now >= self._redraw_due and not following.everything:
            self._redraw_due = now + settings.redraw_seconds * self._context.rng.uniform(0.5, 1.5)
            changed = following.redraw() or changed
        if changed:
            for author in authors:
                if author.shard not in following.shards and author is not self._sender.own:
                    authors.forget_log(author)
            self._subscribe()

    def _subscribe(self) -> None:
        topics = {f"to/{self._context.me}"}
        topics |= {f"latest/{shard}" for shard in range(self._context.settings.shards)}
        for shard in self._context.following.shards:
            topics |= {f"log/{shard}", f"beacon/{shard}"}
        self._context.transport.subscribe(frozenset(topics))
