"""The sender: everything that leaves a node under its own signature. Items, beacons, pulls.

Keeps a pace below the quota that receivers apply, so that an honest node is never found to exceed it, and
holds what it sent, so that others can fetch it later.
"""

from __future__ import annotations

import msgspec

from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import Author, Authors, Received, Register
from shoal.swarm.beacon import BEACON_KIND, MOST_ENDPOINTS, MOST_ENTRIES, Beacon, Known, draw_vector
from shoal.swarm.body import Entry, content_digest
from shoal.swarm.frame import MOST_ON_A_ROLL, Codec, Draft, Frame, encode
from shoal.swarm.identity import Identity, NodeId
from shoal.swarm.kinds import Keep
from shoal.swarm.outbox import Outbox, Parcel
from shoal.swarm.pull import PULL_KIND, Pull
from shoal.swarm.quota import Quota
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport.base import Transport
from shoal.swarm.window import Window

PACE = 0.8
"""The part of its byte quota that a node uses itself."""


class Sender:
    """One node's own streams. `epoch` is when they began, in microseconds."""

    def __init__(
        self,
        identity: Identity,
        transport: Transport,
        codec: Codec,
        settings: ExchangeSettings,
        authors: Authors,
        accounts: Accounts,
        epoch: int,
        now: float,
    ) -> None:
        self.epoch = epoch
        self.own = authors.open(identity.node_id)
        self.outbox = Outbox(settings)
        self._identity = identity
        self._transport = transport
        self._codec = codec
        self._settings = settings
        self._authors = authors
        self._established = accounts.established
        self._quota = Quota(settings, now)
        self._numbers = {"log": 0, "latest": 0, "beacon": 0, "to": 0}
        self._turn = 0
        self._log, self._latest = Window(), Window()
        state = self.own.open_epoch(epoch)
        state.log, state.latest = self._log, self._latest

    def flush(self, now: float) -> None:
        """Sends what waits, as far as the quota goes. Frames that leave together share a signature."""
        self.outbox.since = now
        batch: list[tuple[Keep, list[Parcel], Draft]] = []
        while (filled := self.outbox.next()) is not None and self._affordable(filled[1], now):
            self.outbox.sent(*filled)
            batch.append((*filled, self._draft(*filled, now)))
            if len(batch) == MOST_ON_A_ROLL:
                self._send_items(batch, now)
                batch = []
        if batch:
            self._send_items(batch, now)

    def refresh(self, now: float) -> None:
        """Shares registers again before they become too old to be taken."""
        for name, register in self.own.registers.items():
            if now - register.received.made_at > self._settings.ttl_seconds / 2:
                kind = self._codec.kinds.get(name)
                assert kind is not None
                payload = encode(register.received.item)
                self.outbox.add(kind, payload, content_digest(name, payload), now)

    def beacon(self, now: float) -> None:
        """Announces this node and what it holds."""
        self.own.heard_at = now
        endpoints = tuple(endpoint[:200] for endpoint in self._transport.endpoints()[:MOST_ENDPOINTS])
        self._send("beacon", f"beacon/{self.own.shard}", BEACON_KIND, Beacon(endpoints, self.vector()), now)

    def pull(self, holder: NodeId, pull: Pull, now: float) -> None:
        """Asks a holder for frames."""
        self._send("to", f"to/{holder}", PULL_KIND, pull, now)

    def vector(self) -> tuple[Known, ...]:
        """What is held of the authors of this node's own shard, those in good standing before newcomers."""
        groups: tuple[list[Author], list[Author]] = ([], [])
        for author in self._authors.recent():
            if author.shard == self.own.shard and author is not self.own and author.epochs:
                groups[author.node_id not in self._established].append(author)
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

    def _affordable(self, parcels: list[Parcel], now: float) -> bool:
        size = sum(len(parcel.entry.payload) for parcel in parcels) + 512
        return self._quota.take(int(size / PACE), self._settings, now)

    def _draft(self, keep: Keep, parcels: list[Parcel], now: float) -> Draft:
        entries, digests = zip(*parcels, strict=True)
        return Draft(self._number(keep), self._made_at(now), f"{keep}/{self.own.shard}", entries, digests)

    def _send_items(self, batch: list[tuple[Keep, list[Parcel], Draft]], now: float) -> None:
        frames = self._codec.seal_all(self._identity, self.epoch, [draft for _, _, draft in batch])
        for frame, (keep, parcels, _) in zip(frames, batch, strict=True):
            if keep == "log":
                self._log.mark(frame.seq, self._settings.keep_frames)
                self._authors.keep_log(self.own, frame)
            else:
                self._latest.mark(frame.seq, self._settings.keep_frames)
                for index, parcel in enumerate(parcels):
                    self._authors.keep_register(self.own, self._register(frame, index, parcel, now))
            self._transport.publish(frame.topic, frame.encode())

    def _register(self, frame: Frame, index: int, parcel: Parcel, now: float) -> Register:
        kind, payload = parcel.entry.kind, parcel.entry.payload
        item = self._codec.kinds.decode(kind, payload)
        received = Received(frame.author, kind, item, frame.epoch, frame.seq, index, now, now, parcel.digest)
        return Register(received, frame, frame.size)

    def _send(self, channel: str, topic: str, kind: str, item: msgspec.Struct, now: float) -> None:
        entry = Entry(kind, encode(item))
        frame = self._codec.seal(
            self._identity, self.epoch, self._number(channel), self._made_at(now), topic, [entry]
        )
        self._transport.publish(frame.topic, frame.encode())

    def _number(self, channel: str) -> int:
        self._numbers[channel] += 1
        return self._numbers[channel]

    def _made_at(self, now: float) -> int:
        return max(int(now * 1e6), self.epoch)
