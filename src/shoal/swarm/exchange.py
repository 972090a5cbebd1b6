"""The exchange: the non-blocking collective of a swarm. `share`, `gather`, `latest`, `peers`.

A state machine without threads or a clock of its own: `tick(now)` does everything that happens by itself
(taking in what arrived, sending what was shared, beacons, repair, expiry). `live.LiveExchange` drives it in
the field, the simulator drives it in virtual time, and both run this code.

Guarantees. Nothing here waits for anyone. Whatever arrives, no exception leaves `tick`. Within the bounds of
the settings every log frame of a followed author reaches every node that stays connected, and what
`gather` hands out depends on what arrived, never on the order.
"""

from __future__ import annotations

import random
from hashlib import blake2b
from typing import Any

import msgspec

from shoal.errors import ShareRefused
from shoal.swarm.accounts import Accounts, Credit
from shoal.swarm.authors import Author, Authors, Peer, Place, Received, Register
from shoal.swarm.beacon import (
    BEACON_KIND,
    JITTER,
    Beacon,
    alive_within,
    beacon_period,
    nodes_counted,
)
from shoal.swarm.body import MOST_ITEMS, content_digest
from shoal.swarm.frame import Bundle, Codec, Frame, encode
from shoal.swarm.identity import Identity, NodeId
from shoal.swarm.intake import Intake
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.pool import Pool, Waiting
from shoal.swarm.pull import MOST_IDS, PULL_KIND, Pull
from shoal.swarm.rejection import OFFENCES, Rejection, Tally
from shoal.swarm.repair import Repair
from shoal.swarm.sender import Sender
from shoal.swarm.serving import Serving
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import Following
from shoal.swarm.transport.base import Transport
from shoal.swarm.watchdog import Watchdog

STALL = 3.0
QUIET_AFTER_STALL = 8.0
HOUSEKEEPING = 10.0
NEIGHBOURS = 16
FULL_WAITS = 0.02
"""Seconds that full frames wait for others to share a signature with."""

_beacon_decoder = msgspec.msgpack.Decoder(Beacon)
_pull_decoder = msgspec.msgpack.Decoder(Pull)

HOLDERS_FAULT = frozenset(
    {
        Rejection.OVERSIZE,
        Rejection.MALFORMED,
        Rejection.UNASKED,
        Rejection.VERSION,
        Rejection.SWARM,
        Rejection.KEY,
        Rejection.TOPIC,
        Rejection.FORGED,
        Rejection.ENCODING,
        Rejection.UNPACKED,
        Rejection.BODY,
        Rejection.ITEM_COUNT,
        Rejection.DIGEST,
    }
)
"""What a frame in an answer can have wrong through no fault of its author or of this node."""


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """That an item was taken for sharing: the hash of its content, its size, and how many wait before it."""

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
    ) -> None:
        """`codec` is for the simulator, whose nodes share one so that a frame is checked once for all."""
        settings.check()
        self.identity = identity
        self.transport = transport
        self.kinds = kinds
        self.settings = settings
        self.accounts = accounts if accounts is not None else Accounts(settings.authors)
        self.accounts.expect(settings.probation_items)
        self.tally = Tally()
        self.stalls = 0
        self.reopened = 0
        self._me = identity.node_id
        self._rng = rng
        self._now = now
        self._codec = codec or Codec(
            Membership(settings.swarm, settings.secret, settings.allow), kinds, settings.compress
        )
        self._following = Following(
            self._me, settings.shards, settings.follow, settings.follow_all_until, rng
        )
        self._authors = Authors(self._me, settings, self.accounts.established)
        self._intake = Intake(
            self._me,
            self._codec,
            settings,
            self._authors,
            self.accounts,
            self._following,
            now,
        )
        self._pool = Pool(settings, self.accounts)
        self._repair = Repair(self._me, settings, self._authors, self._following, self._standing, rng)
        self._watchdog = Watchdog(rng)
        # Later than every earlier start of this key, also when the clock was set back meanwhile.
        self.accounts.epoch = max(int(now * 1e6), self.accounts.epoch + 1)
        self._sender = Sender(
            identity, transport, self._codec, settings, self._authors, self.accounts, self.accounts.epoch, now
        )
        self._own = self._sender.own
        self._serving = Serving(settings, self._authors, now)
        self._salt = rng.randbytes(16)
        self._period = 1.0
        self._redraw_due = now + settings.redraw_seconds * rng.uniform(0.5, 1.5)
        self._beacon_due = now + rng.uniform(0.0, 0.2)
        self._repair_due = now + rng.uniform(0.4, 0.6)
        self._housekeeping_due = now + HOUSEKEEPING
        self._due = now
        self._subscribe()

    # What applications call.

    def share(self, item: msgspec.Struct) -> Receipt:
        """Takes an item for sharing and returns at once. Raises `ShareRefused` by name if its kind is not
        registered, if it is over its kind's limit, or if too much waits to be sent already."""
        kind = self.kinds.of(item)
        payload = encode(item)
        if len(payload) > kind.max_bytes:
            raise ShareRefused(
                f"this {kind.name} has {len(payload)} bytes; the limit of its kind is {kind.max_bytes}",
                "size",
            )
        digest = content_digest(kind.name, payload)
        waiting = self._sender.outbox.add(kind, payload, digest, self._now)
        self._due = min(self._due, self._sender.outbox.since + self.settings.flush_seconds)
        return Receipt(kind.name, digest, len(payload), waiting)

    def gather(self, limit: int | None = None) -> list[Received[Any]]:
        """What arrived since the last call: log items and changed registers, each content once. With a limit,
        authors are drawn by what their items were worth so far; the rest waits, within bounds."""
        return self._pool.gather(limit, self._rng, self._now)

    def latest(self, kind: str) -> dict[NodeId, Received[Any]]:
        """The newest item of a kind by each other author. If anyone is established, only a few newcomers."""
        found = {
            author.node_id: author.registers[kind].received
            for author in self._authors
            if kind in author.registers and author.node_id != self._me
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
        """Who is present: authors with a verified frame within the last four beacon periods."""
        established = self.accounts.established
        return {
            author.node_id: Peer(
                author.node_id, author.epoch, author.heard_at, author.endpoints, author.node_id in established
            )
            for author in sorted(self._present(), key=lambda author: author.node_id)
        }

    def credit(self, author: NodeId, place: Place, outcome: Credit, reason: str = "") -> None:
        """Books an outcome of the author's item at `place`: verified or rejected, then used, then useful."""
        self.accounts.credit(author, outcome, reason)

    # What drivers call.

    def next_due(self) -> float:
        """When `tick` has something to do even if nothing arrives."""
        return self._due

    def tick(self, now: float) -> bool:
        """Does what is due. True if more messages wait than one tick takes in."""
        if now < self._now:
            self._set_back(now)
        elif now - max(self._due, self._now) > STALL:
            self._stalled(now)
        self._now = now
        messages = self.transport.collect(self.settings.messages_per_tick)
        for message in messages:
            self._arrive(message)
        outbox = self._sender.outbox
        if outbox and now >= outbox.since + (
            FULL_WAITS if outbox.fills_a_frame else self.settings.flush_seconds
        ):
            self._sender.flush(now)
        if now >= self._beacon_due:
            self._announce()
        if now >= self._repair_due:
            self._mend()
        if now >= self._housekeeping_due:
            self._keep_house()
        self._due = min(self._beacon_due, self._repair_due, self._housekeeping_due)
        if outbox:
            self._due = min(self._due, max(outbox.since, now) + self.settings.flush_seconds)
        return len(messages) >= self.settings.messages_per_tick

    def flush(self, now: float) -> None:
        """Sends what waits, as far as the quota goes, without waiting for frames to fill."""
        self._sender.flush(max(self._now, now))

    def figures(self) -> dict[str, int]:
        """Counters for records and displays."""
        return {
            **self.tally.as_dict(),
            "authors": len(self._authors),
            "held bytes": self._authors.bytes,
            "waiting items": self._pool.items,
            "waiting bytes": self._pool.bytes,
            "dropped items": self._pool.dropped,
            "repeated items": self._pool.repeated,
            "pulls asked": self._repair.asked,
            "pulls answered": self._repair.answered,
            "pulls timed out": self._repair.timed_out,
            "pulls served": self._serving.served,
            "pulls refused": self._serving.refused,
            "reopened": self.reopened,
            "stalls": self.stalls,
        }

    @property
    def epoch(self) -> int:
        """When this node started, in microseconds; part of the name of everything it sends."""
        return self._sender.epoch

    @property
    def following(self) -> frozenset[int]:
        """The shards that are followed now."""
        return self._following.shards

    # Standing.

    def _standing(self, node: NodeId) -> tuple[bool, float]:
        return node in self.accounts.established, self.accounts.weight(node)

    def _nodes(self) -> int:
        present = self._present()
        known = sum(author.node_id in self.accounts.established for author in present)
        return nodes_counted(known, len(present) - known, bool(self.accounts.established))

    def _present(self) -> list[Author]:
        oldest = self._now - alive_within(self._period)
        return [author for author in self._authors if author.heard_at >= oldest and author is not self._own]

    # Taking in.

    def _arrive(self, message: bytes) -> None:
        frame = self._codec.read(message)
        if isinstance(frame, Frame):
            self._take(frame, pulled=False)
        elif isinstance(frame, Bundle):
            self._take_bundle(frame, len(message))
        else:
            self.tally.rejected[frame] += 1

    def _take(self, frame: Frame, pulled: bool) -> Rejection | None:
        """A frame through all checks and to where it belongs."""
        author = self._intake.admit(frame, self._now, pulled)
        if isinstance(author, Rejection):
            self.tally.rejected[author] += 1
            return author
        if frame.channel == "beacon":
            reason = self._take_beacon(author, frame)
        elif frame.channel == "to":
            reason = self._take_pull(author, frame)
        else:
            reason = self._take_items(author, frame, pulled)
        if reason is not None:
            self.tally.rejected[reason] += 1
            if reason in OFFENCES:
                self._intake.offence(author, reason, self._now)
            return reason
        self.tally.accepted += 1
        if author.mute is not None:
            author.mute.behave()
        return None

    def _take_items(self, author: Author, frame: Frame, pulled: bool) -> Rejection | None:
        self._note_path(author, frame, pulled)
        if frame.channel == "log":
            # Kept and passed on even if its items turn out to be bad: others must be able to fetch it to find
            # that out, or an author could make honest holders look like liars.
            self._authors.keep_log(author, frame)
        contents = self._codec.contents(frame)
        if isinstance(contents, Rejection):
            return contents
        self.tally.unknown_kinds += contents.unknown_kinds
        self.accounts.of(author.node_id).received += len(contents.items)
        node, epoch, seq, made_at, now = (
            author.node_id,
            frame.epoch,
            frame.seq,
            frame.made_at / 1e6,
            self._now,
        )
        waiting = [
            Waiting(
                Received(node, item.kind.name, item.value, epoch, seq, item.index, made_at, now, item.digest),
                item.size,
            )
            for item in contents.items
        ]
        if frame.channel == "latest":
            taken = sum(
                self._authors.keep_register(author, Register(one.received, frame, frame.size))
                and self._pool.replace(one)
                for one in waiting
            )
        else:
            taken = self._pool.extend(node, waiting)
        self.tally.items += taken
        self.tally.repeated += len(waiting) - taken
        return None

    def _note_path(self, author: Author, frame: Frame, pulled: bool) -> None:
        """What the watchdog needs to know about how the frame came."""
        if pulled and author.pushed_at:
            author.pulled_since_push += 1
            author.pulled_at = self._now
            author.pulled_made_at = max(author.pulled_made_at, frame.made_at)
        elif not pulled or not author.pushed_at:
            author.pushed_at = self._now
            author.pushed_made_at = max(author.pushed_made_at, frame.made_at)
            author.pulled_since_push = 0

    def _take_beacon(self, author: Author, frame: Frame) -> Rejection | None:
        beacon = self._codec.single(frame, BEACON_KIND, _beacon_decoder)
        if isinstance(beacon, Rejection):
            return beacon
        assert isinstance(beacon, Beacon)
        author.endpoints = beacon.endpoints
        self._repair.note(author.node_id, beacon, self._now)
        return None

    def _take_pull(self, author: Author, frame: Frame) -> Rejection | None:
        pull = self._codec.single(frame, PULL_KIND, _pull_decoder)
        if isinstance(pull, Rejection):
            return pull
        assert isinstance(pull, Pull)
        if pull.size > MOST_IDS:
            return Rejection.ITEM_SIZE
        answer = self._serving.answer(pull, author, self._now)
        if answer is not None:
            self.transport.publish(f"to/{author.node_id}", answer)
        return None

    def _take_bundle(self, bundle: Bundle, size: int) -> None:
        request = self._repair.open.get(bundle.nonce)
        if request is None:
            self.tally.rejected[Rejection.UNASKED] += 1
            return
        delivered = 0
        for message in bundle.frames[: MOST_IDS + MOST_ITEMS]:
            frame = self._codec.read(message)
            reason: Rejection | None = Rejection.UNASKED
            if isinstance(frame, Rejection):
                reason = frame
            elif isinstance(frame, Frame) and frame.channel in ("log", "latest"):
                number = frame.seq if frame.channel == "log" else 0
                if (frame.author, frame.epoch, number) in request.ids:
                    reason = self._take(frame, pulled=True)
                    delivered += reason not in HOLDERS_FAULT
                    continue
            self.tally.rejected[reason or Rejection.UNASKED] += 1
        self._repair.settle(bundle.nonce, delivered, size, self._now)
        if self._repair.waiting():
            self._repair_due = min(self._repair_due, self._now + 0.1 * self._period)

    # Keeping whole.

    def _announce(self) -> None:
        self._period = beacon_period(self._nodes())
        self._beacon_due = self._now + self._period * self._rng.uniform(1 - JITTER, 1 + JITTER)
        self._sender.beacon(self._now)

    def _mend(self) -> None:
        self._repair_due = self._now + 0.5 * self._period * self._rng.uniform(1 - JITTER, 1 + JITTER)
        for holder, pull in self._repair.plan(self._now, self._period):
            self._sender.pull(holder, pull, self._now)
        if self._repair.open:
            deadline = min(request.deadline for request in self._repair.open.values())
            self._repair_due = min(self._repair_due, max(deadline, self._now + 0.1))
        unanswered = self._repair.unanswered(self._now, self._period)
        if self._watchdog.check(self._authors, unanswered, self._now, self._period):
            endpoints = [endpoint for author in self._present() for endpoint in author.endpoints]
            self._rng.shuffle(endpoints)
            self.reopened += 1
            self._repair.forgive()
            self.transport.reopen(endpoints[:NEIGHBOURS])

    def _set_back(self, now: float) -> None:
        """This node's clock was: what is due is due again rather than much later."""
        self._beacon_due = self._repair_due = self._housekeeping_due = now
        self._sender.outbox.since = min(self._sender.outbox.since, now)
        for author in self._authors:
            author.heard_at = min(author.heard_at, now)
        if self._now - now > STALL:
            self._stalled(now)  # pulls under way have deadlines of another time

    def _stalled(self, now: float) -> None:
        """This node itself was away: what it knows about the others' silence means nothing."""
        self.stalls += 1
        self._repair.forget()
        self._watchdog.wait(now + QUIET_AFTER_STALL)
        for author in self._authors:
            author.pushed_at = now if author.pushed_at else 0.0
            author.pulled_since_push = 0

    def _keep_house(self) -> None:
        now = self._now
        self._housekeeping_due = now + HOUSEKEEPING
        self._authors.expire(int((now - self.settings.ttl_seconds) * 1e6))
        self._sender.refresh(now)
        changed = self._following.adjust(self._nodes())
        if now >= self._redraw_due and not self._following.everything:
            self._redraw_due = now + self.settings.redraw_seconds * self._rng.uniform(0.5, 1.5)
            changed = self._following.redraw() or changed
        if changed:
            for author in self._authors:
                if author.shard not in self._following.shards and author is not self._own:
                    self._authors.forget_log(author)
            self._subscribe()

    def _subscribe(self) -> None:
        followed = self._following.shards
        self.transport.subscribe(
            frozenset(
                [f"to/{self._me}"]
                + [f"latest/{shard}" for shard in range(self.settings.shards)]
                + [f"{channel}/{shard}" for channel in ("log", "beacon") for shard in followed]
            )
        )
