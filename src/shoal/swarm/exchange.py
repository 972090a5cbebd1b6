"""The exchange: the non-blocking collective of a swarm. `share`, `gather`, `latest`, `peers`.

A state machine without threads or a clock: `tick(now)` does everything that happens by itself.
`live.LiveExchange` drives it in the field, the simulator drives it in virtual time, and both run this code.

Guarantees. Nothing here waits for anyone. Whatever arrives, no exception leaves `tick`. Within the bounds of
the settings every log frame of a followed author reaches every node that stays connected, and `gather`
depends on the items that arrived, never on their order.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec

from shoal.errors import ShareRefused
from shoal.swarm.accounts import KNOWN_BEFORE, Accounts, Credit
from shoal.swarm.authors import Authors, Peer, Place, Received
from shoal.swarm.body import content_digest
from shoal.swarm.codec import Codec
from shoal.swarm.context import Context
from shoal.swarm.frame import encode
from shoal.swarm.identity import Identity, NodeId
from shoal.swarm.inbox import Inbox
from shoal.swarm.intake import Intake
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.outbox import Sender
from shoal.swarm.rejection import Tally
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import Following
from shoal.swarm.transport.base import Transport
from shoal.swarm.upkeep import STALL, Upkeep

FULL_WAITS = 0.02  # seconds that full frames wait for others to share a signature with
WORDS = {"inbox_items": 2048, "inbox_bytes": 8 << 20, "inbox_author_items": 16}
"""The bounds of the inbox for words to this node."""


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """An item was taken for sharing: the hash of its content, its size, and how many items wait before it."""

    kind: str
    digest: bytes
    size: int
    waiting: int


class Exchange:
    """One node's part in a swarm."""

    def __init__(
        self,
        identity: Identity,
        transport: Transport,
        kinds: Kinds,
        settings: ExchangeSettings,
        *,
        now: float,
        rng: random.Random,
        accounts: Accounts | None = None,
        codec: Codec | None = None,
        meter: Callable[[], float] | None = None,
    ) -> None:
        """`meter` tells the processor time of the thread that ticks, for `intake_share`. `codec` is for the
        simulator, whose nodes share one so that a frame is checked once for all."""
        settings.check()
        self.identity = identity
        self.transport = transport
        self.settings = settings
        self.accounts = accounts if accounts is not None else Accounts(settings.authors)
        self.accounts.expect(settings.probation_items)
        self.tally = Tally()
        if codec is None:
            membership = Membership(settings.swarm, settings.secret, settings.allow)
            codec = Codec(membership, kinds, settings.compress)
        authors = Authors(identity.node_id, settings, self.accounts.established)
        following = Following(identity.node_id, settings, rng)
        self._context = Context(
            identity, transport, codec, settings, self.accounts, authors, following, self.tally, rng, meter
        )
        self.accounts.begin(now)
        self._now = self._due = now
        self._salt = rng.randbytes(16)
        self._inbox = Inbox(settings, self.accounts)
        self._words = Inbox(msgspec.structs.replace(settings, **WORDS), Accounts(1), books=self.accounts)
        self._words_rng = random.Random(self._salt)  # words change no draw of the items
        self._sender = Sender(self._context, self.accounts.epoch, now)
        self._upkeep = Upkeep(self._context, self._sender, self._inbox, now)
        self._intake = Intake(self._context, self._inbox, self._words, self._upkeep, now)

    # For applications.

    def share(self, item: msgspec.Struct) -> Receipt:
        """Takes an item for sharing and returns at once. Raises `ShareRefused`, with its reason, if its kind
        is not registered, if receivers would refuse it (it is over its kind's limit, or a field is over its
        own), or if too much waits to be sent already."""
        kind = self._context.codec.kinds.of(item)
        payload = encode(item)
        if len(payload) > kind.max_bytes:
            raise ShareRefused(
                f"this {kind.name} has {len(payload)} bytes; the limit of its kind is {kind.max_bytes}",
                "size",
            )
        decode = self._context.codec.kinds.decoder(kind.name)
        assert decode is not None, kind
        try:
            decode(payload)
        except Exception as error:  # as in `Codec.contents`: a struct may check itself and raise anything
            raise ShareRefused(f"receivers would refuse this {kind.name}: {error}", "mistyped") from error
        digest = content_digest(kind.name, payload)
        waiting = self._sender.outbox.add(kind, payload, digest, self._now)
        self._due = min(self._due, self._sender.outbox.since + self.settings.flush_seconds)
        return Receipt(kind.name, digest, len(payload), waiting)

    def gather(self, limit: int | None = None) -> list[Received[Any]]:
        """Log items and changed registers that arrived since the last call, each content once. With a limit,
        authors are drawn by the worth of their items so far; the rest waits, within bounds. Words to this
        node follow, as many at most."""
        found = self._inbox.gather(limit, self._context.rng, self._now)
        return (
            [*found, *self._words.gather(limit, self._words_rng, self._now)] if self._words.items else found
        )

    def latest(self, kind: str) -> dict[NodeId, Received[Any]]:
        """The newest item of a kind by each other author. If anyone is established, only a few newcomers."""
        found = {
            author.node_id: author.registers[kind].received
            for author in self._context.authors
            if kind in author.registers and author is not self._sender.own
        }
        newcomers = [node for node in found if node not in self.accounts.established]
        if self.accounts.established:
            share = self.settings.probation_share
            most = max(8, int((len(found) - len(newcomers)) * share / (1 - share)))
            # Salted, so that nobody can find an id that always comes first.
            newcomers.sort(key=lambda node: blake2b(self._salt + node.encode("ascii")).digest())
            for node in newcomers[most:]:
                del found[node]
        return dict(sorted(found.items()))

    def peers(self) -> dict[NodeId, Peer]:
        """The present nodes: authors with a verified frame within the last four beacon periods."""
        established = self.accounts.established
        return {
            author.node_id: Peer(
                author.node_id, author.epoch, author.heard_at, author.endpoints, author.node_id in established
            )
            for author in sorted(self._upkeep.present(self._now), key=lambda author: author.node_id)
        }

    def credit(self, author: NodeId, place: Place, credit: Credit, reason: str = "") -> None:
        """Books the fate of the author's item at `place`: its verdict, then that it was used, and useful."""
        self.accounts.credit(author, credit, reason)

    def hand_back(self, author: NodeId) -> None:
        """Books an item that was handed out as one that the application had before this start."""
        account = self.accounts.of(author)
        account.received = max(0, account.received - 1)
        account.refuse(KNOWN_BEFORE)

    # For drivers.

    def next_due(self) -> float:
        """The time of the next `tick` if nothing arrives."""
        return self._due

    def tick(self, now: float) -> bool:
        """Does the work that is due. True if more messages wait than one tick takes in."""
        if now < self._now:
            self._upkeep.set_back(now, self._now)
        elif now - max(self._due, self._now) > STALL:
            self._upkeep.stalled(now)
        self._now = now
        backlog = self._intake.collect(now)
        outbox, flush_seconds = self._sender.outbox, self.settings.flush_seconds
        if outbox and now >= outbox.since + (FULL_WAITS if outbox.fills_a_frame else flush_seconds):
            self._sender.flush(now)
        self._upkeep.perform(now)
        self._due = self._upkeep.due
        if outbox:
            self._due = min(self._due, max(outbox.since, now) + flush_seconds)
        return backlog

    def flush(self, now: float) -> None:
        """Sends waiting items, as far as the quota goes, without waiting for frames to fill."""
        self._sender.flush(max(self._now, now))

    def leave(self, now: float) -> None:
        """The last words: waiting items, and a beacon that tells how many there were."""
        self.flush(now)
        self._sender.beacon(max(self._now, now))

    def waiting(self, author: NodeId) -> int:
        """The items of an author that wait for `gather`."""
        return self._inbox.waiting(author) + self._words.waiting(author)

    def figures(self) -> dict[str, int]:
        """Counters for records and displays."""
        inbox, repair, serving = self._inbox, self._upkeep.repair, self._intake.serving
        return {
            **self.tally.as_dict(),
            "authors": len(self._context.authors),
            "held bytes": self._context.authors.bytes,
            "waiting items": inbox.items,
            "waiting bytes": inbox.bytes,
            "waiting words": self._words.items,
            "unsent items": len(self._sender.outbox),
            "dropped items": inbox.dropped,
            "repeated items": inbox.repeated,
            "pulls asked": repair.asked,
            "pulls answered": repair.answered,
            "pulls timed out": repair.timed_out,
            "pulls served": serving.served,
            "pulls refused": serving.refused,
            "reopened": self._upkeep.reopened,
            "stalls": self._upkeep.stalls,
        }

    @property
    def epoch(self) -> int:
        """The start of this node in microseconds, a part of the name of everything that it sends."""
        return self._sender.epoch
