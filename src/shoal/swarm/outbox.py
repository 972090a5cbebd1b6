"""The outbox: shared items that wait to be sent, and the sender of everything that a node signs.

Of a kind that is kept as `latest` only the newest item waits. Registers go out before the log. The sender
keeps within the quota that receivers apply; both count it by the stamps of its frames. It holds the frames
that it sent, so that others can fetch them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import msgspec

from shoal.errors import ShareRefused
from shoal.swarm.authors import Author, Received, Register
from shoal.swarm.beacon import BEACON_KIND, MOST_ENDPOINTS, MOST_ENTRIES, Beacon, Known, draw_vector
from shoal.swarm.body import MOST_ITEMS, PackedItem, content_digest
from shoal.swarm.codec import FRAME_FILL_BYTES, Draft
from shoal.swarm.context import Context
from shoal.swarm.frame import MOST_ON_A_ROLL, Frame, encode
from shoal.swarm.identity import NodeId
from shoal.swarm.kinds import Keep, Kind
from shoal.swarm.pull import PULL_KIND, Pull
from shoal.swarm.quota import Bucket, Quota, Stamps
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.window import Window

PACE = 0.8  # the part of its byte quota that a node uses itself
ENVELOPE = 2048  # bytes; a frame has no more beside the payloads of its items
SPARED = 4.0  # of the quota of beacons and pulls: pulls leave this for beacons


class Parcel(NamedTuple):
    """An item that waits, and its content digest."""

    item: PackedItem
    digest: bytes


class Outbox:
    """Items in the order they were shared."""

    __slots__ = ("_latest", "_log", "_settings", "_size", "since")

    def __init__(self, settings: ExchangeSettings) -> None:
        self._settings = settings
        self._log: deque[Parcel] = deque()
        self._latest: dict[str, Parcel] = {}
        self._size = 0
        self.since = 0.0  # when the oldest began to wait, or when sending was last tried

    def __len__(self) -> int:
        return len(self._log) + len(self._latest)

    @property
    def of_log(self) -> int:
        """The number of items of the log that wait."""
        return len(self._log)

    @property
    def fills_a_frame(self) -> bool:
        """Whether there is no point in waiting for more."""
        return self._size >= FRAME_FILL_BYTES or len(self._log) >= MOST_ITEMS

    def add(self, kind: Kind, payload: bytes, digest: bytes, now: float) -> int:
        """Takes an item; returns how many were waiting before it."""
        waiting, settings = len(self), self._settings
        parcel = Parcel(PackedItem(kind.name, payload), digest)
        if kind.keep == "latest":
            replaced = self._latest.pop(kind.name, None)
            self._size -= len(replaced.item.payload) if replaced else 0
            self._latest[kind.name] = parcel
        elif waiting >= settings.outbox_items or self._size + len(payload) > settings.outbox_bytes:
            raise ShareRefused(
                f"{waiting} items ({self._size} bytes) wait to be sent, more than receivers would take: "
                "share less, or raise the quotas of the whole swarm",
                "full",
            )
        else:
            self._log.append(parcel)
        self._size += len(payload)
        if not waiting:
            self.since = now
        return waiting

    def next(self) -> tuple[Keep, list[Parcel]] | None:
        """The content of the next frame; it stays here until `sent`."""
        if self._latest:
            return "latest", filled(self._latest.values())
        return ("log", filled(self._log)) if self._log else None

    def sent(self, keep: Keep, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            self._size -= len(parcel.item.payload)
            if keep == "log":
                self._log.popleft()
            else:
                del self._latest[parcel.item.kind]


def filled(parcels: Iterable[Parcel]) -> list[Parcel]:
    """The first few that fill a frame: at most sixteen and about 60 KB, but at least one."""
    size = 0
    taken: list[Parcel] = []
    for parcel in islice(parcels, MOST_ITEMS):
        size += len(parcel.item.payload) + len(parcel.item.kind) + 8
        if taken and size > FRAME_FILL_BYTES:
            break
        taken.append(parcel)
    return taken


class Sender:
    """One node's own streams of items, beacons and pulls. `epoch` is their start, in microseconds."""

    def __init__(self, context: Context, epoch: int, now: float) -> None:
        self.epoch = epoch
        self.own = context.authors.open(context.me)
        self.outbox = Outbox(context.settings)
        self._context = context
        self._settings = context.settings
        self._stamps = Stamps(max(now, epoch / 1e6))
        self._quota = Quota(context.settings, self._stamps.read(now))
        self._control = Bucket(context.settings.control_burst, self._stamps.read(now))
        self._numbers = {"log": 0, "latest": 0, "beacon": 0, "to": 0}
        self._shared = {"log": 0, "latest": 0}  # items that were sent
        self._turn = 0
        self._log, self._latest = Window(), Window()
        state = self.own.open_epoch(epoch)
        state.log, state.latest = self._log, self._latest

    def flush(self, now: float) -> None:
        """Sends waiting items, as far as the quota goes. Frames that leave together share a signature."""
        self.outbox.since = now
        stamp = self._stamps.read(now)
        batch: list[tuple[Keep, list[Parcel], Draft]] = []
        while (filled := self.outbox.next()) is not None:
            keep, parcels = filled
            size = sum(len(parcel.item.payload) for parcel in parcels) + 512
            if not self._quota.take(int(size / PACE), self._settings, stamp):
                break
            self.outbox.sent(keep, parcels)
            items, digests = zip(*parcels, strict=True)
            topic = f"{keep}/{self.own.shard}"
            self._shared[keep] += len(parcels)
            made_at = max(int(stamp * 1e6), self.epoch)
            draft = Draft(self._number(keep), made_at, topic, items, digests, self._shared[keep])
            batch.append((keep, parcels, draft))
            if len(batch) == MOST_ON_A_ROLL:
                self._send_items(batch, now)
                batch = []
        if batch:
            self._send_items(batch, now)

    def refresh(self, now: float) -> None:
        """Shares registers again before they become too old to be taken."""
        for name, register in self.own.registers.items():
            if now - register.received.made_at > self._settings.ttl_seconds / 2:
                kind = self._context.codec.kinds.get(name)
                assert kind is not None
                payload = encode(register.received.item)
                self.outbox.add(kind, payload, content_digest(name, payload), now)

    def beacon(self, now: float) -> None:
        """Announces this node and the frames that it holds, as far as the quota goes."""
        self.own.heard_at = now
        if self._control_left(now) < 1.0:
            return
        endpoints = self._context.transport.endpoints()[:MOST_ENDPOINTS]
        beacon = Beacon(tuple(endpoint[:200] for endpoint in endpoints), self.vector())
        shared = self._shared["log"] + self.outbox.of_log
        self._send("beacon", f"beacon/{self.own.shard}", BEACON_KIND, beacon, now, shared)

    def pulls_left(self, now: float) -> int:
        """The number of pulls that the quota of others lets through now."""
        return max(0, int(self._control_left(now) - SPARED))

    def pull(self, holder: NodeId, pull: Pull, now: float) -> None:
        """Asks a holder for frames."""
        self._send("to", f"to/{holder}", PULL_KIND, pull, now)

    def vector(self) -> tuple[Known, ...]:
        """The entries for authors of this node's own shard, those in good standing before newcomers."""
        groups: tuple[list[Author], list[Author]] = ([], [])
        for author in self._context.authors.recent():
            if author.shard == self.own.shard and author is not self.own and author.epochs:
                groups[author.node_id not in self._context.accounts.established].append(author)
        self._turn += 1
        in_turn: list[Author] = []
        for group in groups:
            turn = self._turn * (MOST_ENTRIES // 2) % max(1, len(group))
            in_turn += group[turn:] + group[:turn]
        return draw_vector(
            self.own.known(self.epoch),
            (author.known(author.epoch) for group in groups for author in group),
            (author.known(epoch) for author in in_turn for epoch in sorted(author.epochs, reverse=True)),
        )

    def _send_items(self, batch: list[tuple[Keep, list[Parcel], Draft]], now: float) -> None:
        context, span = self._context, self._settings.keep_frames
        frames = context.codec.seal_all(context.identity, self.epoch, [draft for _, _, draft in batch])
        for frame, (keep, parcels, _) in zip(frames, batch, strict=True):
            if keep == "log":
                self._log.mark(frame.seq, span)
                context.authors.keep_log(self.own, frame)
            else:
                self._latest.mark(frame.seq, span)
                for index, parcel in enumerate(parcels):
                    context.authors.keep_register(self.own, self._register(frame, index, parcel, now))
            context.transport.publish(frame.topic, frame.encode())

    def _register(self, frame: Frame, index: int, parcel: Parcel, now: float) -> Register:
        kind = parcel.item.kind
        decode = self._context.codec.kinds.decoder(kind)
        assert decode is not None, kind
        item = decode(parcel.item.payload)
        received = Received(frame.author, kind, item, frame.epoch, frame.seq, index, now, now, parcel.digest)
        return Register(received, frame)

    def _control_left(self, now: float) -> float:
        settings = self._settings
        return self._control.left(settings.control_per_second, settings.control_burst, self._stamps.read(now))

    def _send(
        self, channel: str, topic: str, kind: str, item: msgspec.Struct, now: float, shared: int = 0
    ) -> None:
        context, packed = self._context, [PackedItem(kind, encode(item))]
        self._control.level -= 1.0
        seq, made_at = self._number(channel), max(int(self._stamps.read(now) * 1e6), self.epoch)
        frame = context.codec.seal(context.identity, self.epoch, seq, made_at, topic, packed, shared)
        context.transport.publish(frame.topic, frame.encode())

    def _number(self, channel: str) -> int:
        self._numbers[channel] += 1
        return self._numbers[channel]
