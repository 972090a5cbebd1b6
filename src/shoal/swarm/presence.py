"""Presence: the number of peers that a node has heard, in a small file for those who watch a run.

No node reads it. It is replaced whole, and only when a number in it changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from shoal.files import replace_whole
from shoal.swarm.identity import NodeId

PRESENCE = "presence.json"
MOST_BYTES = 1024  # a longer file is not one of these


class Saved(msgspec.Struct, frozen=True):
    """`seen` since the node's start, `present` when the file was written."""

    version: int
    seen: int
    present: int


class Presence:
    """Counts up to `most` peers and keeps the file at `path`."""

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        self._seen: set[NodeId] = set()
        self._written: Saved | None = None

    def note(self, present: Iterable[NodeId]) -> None:
        """Takes in the nodes that are present now."""
        nodes = list(present)
        for node in nodes:
            if len(self._seen) < self._most:
                self._seen.add(node)
        saved = Saved(1, len(self._seen), len(nodes))
        if saved != self._written:
            # A full disk stops the node by its journal, which says so; this number need not.
            with contextlib.suppress(OSError):
                replace_whole(self._path, msgspec.json.encode(saved))
                self._written = saved


def peers_seen(path: Path) -> int:
    """The number in the file; 0 if there is none that can be understood."""
    try:
        with path.open("rb") as file:
            saved = msgspec.json.decode(file.read(MOST_BYTES), type=Saved)
    except (OSError, msgspec.MsgspecError):
        return 0
    return max(0, saved.seen)
