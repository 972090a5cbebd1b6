"""The outbox: what was shared and waits to be sent, bounded, packed into frames of about 60 KB.

Of a kind that is kept as `latest` only the newest item waits. Registers go out before the log.
"""

from __future__ import annotations

from shoal.errors import ShareRefused
from shoal.swarm.frame import FRAME_FILL_BYTES, MOST_ITEMS, Entry
from shoal.swarm.kinds import Keep, Kind
from shoal.swarm.settings import ExchangeSettings


class Outbox:
    """Items in the order they were shared."""

    __slots__ = ("_latest", "_log", "_settings", "_size", "since")

    def __init__(self, settings: ExchangeSettings) -> None:
        self._settings = settings
        self._log: list[Entry] = []
        self._latest: dict[str, Entry] = {}
        self._size = 0
        self.since = 0.0  # when the oldest began to wait, or when sending was last tried

    def __len__(self) -> int:
        return len(self._log) + len(self._latest)

    def add(self, kind: Kind, payload: bytes, now: float) -> int:
        """Takes an item; says how many were waiting before it."""
        waiting = len(self)
        if kind.keep == "latest":
            replaced = self._latest.pop(kind.name, None)
            self._size -= len(replaced.payload) if replaced else 0
            self._latest[kind.name] = Entry(kind.name, payload)
        elif (
            waiting >= self._settings.outbox_items or self._size + len(payload) > self._settings.outbox_bytes
        ):
            raise ShareRefused(
                f"{waiting} items ({self._size} bytes) wait to be sent, more than receivers would take: "
                "share less, or raise the quotas of the whole swarm",
                "full",
            )
        else:
            self._log.append(Entry(kind.name, payload))
        self._size += len(payload)
        if not waiting:
            self.since = now
        return waiting

    def next(self) -> tuple[Keep, list[Entry]] | None:
        """What the next frame should hold; it stays here until `sent`."""
        if self._latest:
            return "latest", filled(list(self._latest.values()))
        return ("log", filled(self._log)) if self._log else None

    def sent(self, keep: Keep, entries: list[Entry]) -> None:
        if keep == "log":
            del self._log[: len(entries)]
        else:
            for entry in entries:
                del self._latest[entry.kind]
        self._size -= sum(len(entry.payload) for entry in entries)


def filled(entries: list[Entry]) -> list[Entry]:
    """The first few entries that fill a frame: at most sixteen and about 60 KB, but at least one."""
    size = 0
    for count, entry in enumerate(entries[:MOST_ITEMS]):
        size += len(entry.payload) + len(entry.kind) + 8
        if count and size > FRAME_FILL_BYTES:
            return entries[:count]
    return entries[:MOST_ITEMS]
