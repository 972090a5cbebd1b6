"""The outbox: what was shared and waits to be sent, bounded, packed into frames of about 60 KB.

Of a kind that is kept as `latest` only the newest item waits. Registers go out before the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from shoal.errors import ShareRefused
from shoal.swarm.body import MOST_ITEMS, Entry
from shoal.swarm.frame import FRAME_FILL_BYTES
from shoal.swarm.kinds import Keep, Kind
from shoal.swarm.settings import ExchangeSettings


class Parcel(NamedTuple):
    """An item that waits, and its content digest."""

    entry: Entry
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
    def fills_a_frame(self) -> bool:
        """Whether there is no point in waiting for more."""
        return self._size >= FRAME_FILL_BYTES or len(self._log) >= MOST_ITEMS

    def add(self, kind: Kind, payload: bytes, digest: bytes, now: float) -> int:
        """Takes an item; says how many were waiting before it."""
        waiting = len(self)
        if kind.keep == "latest":
            replaced = self._latest.pop(kind.name, None)
            self._size -= len(replaced.entry.payload) if replaced else 0
            self._latest[kind.name] = Parcel(Entry(kind.name, payload), digest)
        elif (
            waiting >= self._settings.outbox_items or self._size + len(payload) > self._settings.outbox_bytes
        ):
            raise ShareRefused(
                f"{waiting} items ({self._size} bytes) wait to be sent, more than receivers would take: "
                "share less, or raise the quotas of the whole swarm",
                "full",
            )
        else:
            self._log.append(Parcel(Entry(kind.name, payload), digest))
        self._size += len(payload)
        if not waiting:
            self.since = now
        return waiting

    def next(self) -> tuple[Keep, list[Parcel]] | None:
        """What the next frame should hold; it stays here until `sent`."""
        if self._latest:
            return "latest", filled(self._latest.values())
        return ("log", filled(self._log)) if self._log else None

    def sent(self, keep: Keep, parcels: list[Parcel]) -> None:
        for parcel in parcels:
            self._size -= len(parcel.entry.payload)
            if keep == "log":
                self._log.popleft()
            else:
                del self._latest[parcel.entry.kind]


def filled(parcels: Iterable[Parcel]) -> list[Parcel]:
    """The first few that fill a frame: at most sixteen and about 60 KB, but at least one."""
    size = 0
    taken: list[Parcel] = []
    for parcel in islice(parcels, MOST_ITEMS):
        size += len(parcel.entry.payload) + len(parcel.entry.kind) + 8
        if taken and size > FRAME_FILL_BYTES:
            break
        taken.append(parcel)
    return taken
