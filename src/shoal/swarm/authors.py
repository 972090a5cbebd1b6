"""Authors: the numbers seen of each, the log frames to pass on, the newest registers.

Everything is bounded. An author's oldest frames by its own order (epoch, number) are dropped first, whenever
they arrived; between authors the largest gives way, and newcomers before others. As soon as anyone is
established, newcomers together have a fixed part of the store, and a part of the time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any, Generic, TypeVar

import msgspec

from shoal.swarm.accounts import SUPERSEDED, Accounts
from shoal.swarm.beacon import Known
from shoal.swarm.counts import Stream
from shoal.swarm.frame import Frame
from shoal.swarm.identity import NodeId, id_bytes, short_name
from shoal.swarm.quota import Bucket, Minutes, Mute, Quota
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import shard_of
from shoal.swarm.window import EMPTY, Window

EPOCHS = 4
OVERHEAD = 1024  # bytes of a frame's object in memory, which count where the frames are of newcomers
DIRECTED_SPAN = 64

Item = TypeVar("Item")


class Place(msgspec.Struct, frozen=True, order=True, gc=False):
    """The position of an item in its author's own order. An author counts the frames of each start (`epoch`)
    and each kind, so author and place together name one item for ever."""

    kind: str
    epoch: int
    seq: int
    index: int


class Received(msgspec.Struct, Generic[Item], frozen=True, gc=False):
    """An item as it is handed to the application. `made_at` is the author's clock, `arrived_at` this node's,
    both in seconds; `digest` is the hash of the content."""

    author: NodeId
    kind: str
    item: Item
    epoch: int
    seq: int
    index: int
    made_at: float
    arrived_at: float
    digest: bytes

    @property
    def place(self) -> Place:
        return Place(self.kind, self.epoch, self.seq, self.index)


class Peer(msgspec.Struct, frozen=True):
    """An author whose signature was verified lately. `established`: no longer on probation."""

    node_id: NodeId
    epoch: int
    heard_at: float
    endpoints: tuple[str, ...]
    established: bool

    @property
    def name(self) -> str:
        return short_name(self.node_id)


class Register(msgspec.Struct, frozen=True, gc=False):
    """The newest item of one kind by one author, and the frame that brought it."""

    received: Received[Any]
    frame: Frame


@dataclass(slots=True, eq=False)
class Epoch:
    """The numbers seen since one start of an author, per channel: of beacons the newest only."""

    log: Window | None = None
    latest: Window | None = None
    to: Window | None = None
    beacon: int = 0
    spent: Minutes | None = None  # of the author's quota
    log_items: Stream | None = None
    latest_items: Stream | None = None


@dataclass(slots=True, eq=False)
class Author:
    """One author's state. `log` is sorted by (epoch, number)."""

    node_id: NodeId
    shard: int
    key: bytes = b""
    epochs: dict[int, Epoch] = field(default_factory=dict)
    log: list[Frame] = field(default_factory=list)
    log_bytes: int = 0
    registers: dict[str, Register] = field(default_factory=dict)
    endpoints: tuple[str, ...] = ()
    heard_at: float = 0.0  # last verified frame of any kind
    # For the watchdog: the last frame that came by itself, and those that had to be fetched since.
    pushed_at: float = 0.0
    pushed_made_at: int = 0
    pulled_at: float = 0.0
    pulled_made_at: int = 0
    pulled_since_push: int = 0
    pulled: Quota | None = None  # what is asked for; others may hold more of it than its quota
    starts: Bucket | None = None
    served: Bucket | None = None
    mute: Mute | None = None

    @property
    def epoch(self) -> int:
        """The newest start known."""
        return max(self.epochs, default=0)

    def accepts_epoch(self, epoch: int) -> bool:
        """Whether an epoch is among the last four, itself counted."""
        return epoch in self.epochs or len(self.epochs) < EPOCHS or epoch > min(self.epochs)

    def open_epoch(self, epoch: int) -> Epoch:
        state = self.epochs.get(epoch)
        if state is None:
            state = self.epochs[epoch] = Epoch()
            if len(self.epochs) > EPOCHS:
                del self.epochs[min(self.epochs)]
        return state

    def count(self, epoch: int, channel: str, shared: int, items: int, accounts: Accounts) -> None:
        """Counts a frame with so many items that tells how many the author has shared by then."""
        state = self.epochs[epoch]
        name = f"{channel}_items"
        stream: Stream | None = getattr(state, name)
        if stream is None:
            stream = Stream()
            setattr(state, name, stream)
        accounts.of(self.node_id).claimed += stream.note(shared, items)
        latest = state.latest
        if channel == "latest" and latest is not None and latest.contiguous == latest.newest:
            accounts.refuse(self.node_id, SUPERSEDED, stream.give_up())

    def held(self, epoch: int, number: int) -> Frame | None:
        """The log frame of that number, if it is kept."""
        place = bisect_left(self.log, (epoch, number), key=_order)
        if place < len(self.log) and self.log[place].order == (epoch, number):
            return self.log[place]
        return None

    def known(self, epoch: int) -> Known:
        """The entry of a vector for one epoch of this author."""
        state = self.epochs[epoch]
        place = bisect_left(self.log, (epoch, 0), key=_order)
        log, latest = state.log or EMPTY, (state.latest or EMPTY).contiguous
        oldest = log.newest + 1 if state.log else 0  # nothing is held
        if place < len(self.log) and self.log[place].epoch == epoch:
            oldest = self.log[place].seq
        me = id_bytes(self.node_id)
        return Known(me, epoch, oldest, log.contiguous, log.newest, latest, log.behind)


def _order(frame: Frame) -> tuple[int, int]:
    return frame.order


class Authors:
    """All authors, at most `settings.authors` of them, and all bytes, at most `settings.keep_bytes`."""

    def __init__(self, me: NodeId, settings: ExchangeSettings, established: Collection[NodeId]) -> None:
        self._me = me
        self._settings = settings
        self._established = established
        self.by_id: dict[NodeId, Author] = {}
        self.bytes = 0
        self._of_newcomers = 0  # as many bytes of their logs are kept at most, with the overhead

    def __iter__(self) -> Iterator[Author]:
        return iter(self.by_id.values())

    def __len__(self) -> int:
        return len(self.by_id)

    def get(self, author: NodeId) -> Author | None:
        return self.by_id.get(author)

    def open(self, author: NodeId, key: bytes = b"") -> Author:
        """The state of an author whose signature was verified."""
        state = self.by_id.get(author)
        if state is None:
            if len(self.by_id) >= self._settings.authors:
                for other in self._by_standing()[: max(1, self._settings.authors // 8)]:
                    self.forget(other)
            state = self.by_id[author] = Author(author, shard_of(author, self._settings.shards), key)
        return state

    def touch(self, author: Author) -> None:
        """Makes an author the first in `recent`."""
        self.by_id[author.node_id] = self.by_id.pop(author.node_id)

    def recent(self) -> Iterator[Author]:
        """Authors, most recently heard first."""
        return reversed(self.by_id.values())

    def keep_log(self, author: Author, frame: Frame) -> None:
        """Keeps a log frame, dropping the author's oldest beyond its bounds, then the largest author's."""
        if author.log and author.log[-1].order > frame.order:
            author.log.insert(bisect_left(author.log, frame.order, key=_order), frame)
        else:
            author.log.append(frame)
        self._count(author, frame.size)
        bounds = self._settings
        while len(author.log) > bounds.keep_frames or author.log_bytes > bounds.keep_author_bytes:
            self._drop_oldest(author)
        if self.bytes > bounds.keep_bytes:
            self._shrink()
        if self._established and self._is_newcomer(author):
            self._of_newcomers += frame.size + OVERHEAD
            if self._of_newcomers > bounds.keep_bytes * bounds.probation_share:
                self._shrink_newcomers()

    def keep_register(self, author: Author, register: Register) -> bool:
        """Keeps a register if it is newer than the one held."""
        kind = register.received.kind
        held = author.registers.get(kind)
        if held is not None and held.received.place >= register.received.place:
            return False
        author.registers[kind] = register
        self.bytes += register.frame.size - (held.frame.size if held else 0)
        if self.bytes > self._settings.keep_bytes:
            self._shrink()
        return True

    def forget(self, author: Author) -> None:
        del self.by_id[author.node_id]
        self.bytes -= author.log_bytes + sum(register.frame.size for register in author.registers.values())

    def forget_log(self, author: Author) -> None:
        """Drops the log of an author that is no longer followed; its numbers stay known."""
        while author.log:
            self._drop_oldest(author)
        for epoch in author.epochs.values():
            if epoch.log is not None:
                epoch.log.settle(epoch.log.newest)

    def expire(self, oldest: int, oldest_of_newcomers: int) -> None:
        """Drops frames made before that time, and authors without any that were silent since. The later time
        is for newcomers, if anyone is established."""
        for author in list(self.by_id.values()):
            oldest_made_at = oldest
            if self._established and self._is_newcomer(author):
                oldest_made_at = oldest_of_newcomers
            while author.log and author.log[0].made_at < oldest_made_at:
                self._drop_oldest(author)
            for kind, register in list(author.registers.items()):
                if register.frame.made_at < oldest_made_at:
                    del author.registers[kind]
                    self.bytes -= register.frame.size
            is_silent = author.heard_at * 1e6 < oldest_made_at
            if is_silent and author.node_id != self._me and not author.log and not author.registers:
                self.forget(author)

    def _is_newcomer(self, author: Author) -> bool:
        return author.node_id not in self._established and author.node_id != self._me

    def _shrink_newcomers(self) -> None:
        """Brings the newcomers' logs back to seven eighths of their part, if they are beyond it."""
        most = self._settings.keep_bytes * self._settings.probation_share
        newcomers = [author for author in self if author.log and self._is_newcomer(author)]
        held = sum(author.log_bytes + OVERHEAD * len(author.log) for author in newcomers)
        largest = [(-len(author.log), author.node_id) for author in newcomers]
        heapify(largest)
        surplus = held - most * 7 / 8 if held > most else 0.0
        while surplus > 0.0:
            size, node = largest[0]
            author = self.by_id[node]
            dropped = author.log[0].size + OVERHEAD
            self._drop_oldest(author)
            held, surplus = held - dropped, surplus - dropped
            if size < -1:
                heapreplace(largest, (size + 1, node))
            else:
                heappop(largest)
        self._of_newcomers = held

    def _count(self, author: Author, size: int) -> None:
        author.log_bytes += size
        self.bytes += size

    def _drop_oldest(self, author: Author) -> None:
        self._count(author, -author.log.pop(0).size)

    def _shrink(self) -> None:
        """Back to seven eighths of the bound: first newcomers' logs while they hold more than their share,
        then the largest. In steps, so that a full store does not cost a search for every frame."""
        target = self._settings.keep_bytes * 7 // 8
        newcomers = [author for author in self._by_standing() if author.node_id not in self._established]
        share = self._settings.keep_bytes * self._settings.probation_share
        self._drop_largest(newcomers, self.bytes - target, share)
        self._drop_largest(list(self), self.bytes - target, 0.0)
        if self.bytes > target:  # registers alone fill the store: the authors that were longest silent go
            for author in self._by_standing():
                self.forget(author)
                if self.bytes <= target:
                    break

    def _drop_largest(self, authors: list[Author], surplus: int, floor: float) -> None:
        held = sum(author.log_bytes for author in authors)
        surplus = min(surplus, int(held - floor))
        while surplus > 0:
            largest = max(authors, key=lambda author: (author.log_bytes, author.node_id))
            if not largest.log:
                return
            surplus -= largest.log[0].size
            self._drop_oldest(largest)

    def _by_standing(self) -> list[Author]:
        """All others in the order in which they are forgotten: newcomers first, the longest silent first."""

        def standing(author: Author) -> tuple[bool, float, NodeId]:
            return (author.node_id in self._established, author.heard_at, author.node_id)

        return sorted((author for author in self if author.node_id != self._me), key=standing)
