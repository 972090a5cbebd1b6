"""Beacons: each node's announcement about once a second, and the times that follow from their period.

A beacon names the node's endpoints and, in a vector, the frames that it holds. A vector is a claim: it may
cause a pull, and never counts as presence or progress until a frame proves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from struct import Struct
from typing import Annotated

import msgspec

from shoal.swarm.frame import Number
from shoal.swarm.identity import ID_BYTES

MOST_ENTRIES = 64
MOST_ENDPOINTS = 8
BEACON_KIND = "beacon"

NODES_PER_SECOND = 16
NEWCOMERS_COUNTED = 64
LONGEST_PERIOD = 60.0
JITTER = 0.2
VECTOR_PERIODS, ALIVE_PERIODS = 3.5, 4.0  # periods for which a vector counts, a silent node is present

Id = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]


class Known(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One entry of a vector: of this author since its start `epoch`, the sender holds the log frames from
    `oldest` to `contiguous` and the one numbered `newest`, and registers up to number `latest`. If there is a
    gap, bit i of `behind` says that it holds `newest` - 1 - i too."""

    author: Id
    epoch: Number
    oldest: Number
    contiguous: Number
    newest: Number
    latest: Number
    behind: Number = 0

    def holds(self, number: int) -> bool:
        """Whether the sender claims to hold this log frame."""
        if not self.oldest <= number <= self.newest:
            return False
        if number <= self.contiguous or number == self.newest:
            return True
        return bool(self.behind >> (self.newest - 1 - number) & 1)


_key = Struct(">20sQQQ").pack


class Beacon(msgspec.Struct, array_like=True, frozen=True, dict=True):
    """A node's announcement."""

    endpoints: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=200)], ...], msgspec.Meta(max_length=MOST_ENDPOINTS)
    ]
    vector: Annotated[tuple[Known, ...], msgspec.Meta(max_length=MOST_ENTRIES)]

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """The part of each entry of the vector that decides whether it is news."""
        return tuple(_key(known.author, known.epoch, known.newest, known.latest) for known in self.vector)

    @cached_property
    def key_set(self) -> frozenset[bytes]:
        return frozenset(self.keys)


def nodes_counted(established: int, newcomers: int, anyone_established: bool) -> int:
    """The apparent number of nodes, this one included. Once there are authors in good standing, only a
    limited number of newcomers counts, so that invented nodes cannot slow everyone's beacons down."""
    if anyone_established:
        newcomers = min(newcomers, max(NEWCOMERS_COUNTED, 3 * established))
    return 1 + established + newcomers


def beacon_period(nodes: int) -> float:
    """Seconds between beacons: about sixteen arrive per second, however many nodes there are."""
    return min(max(1.0, nodes / NODES_PER_SECOND), LONGEST_PERIOD)


def watchdog_waits(period: float) -> float:
    return max(15.0, ALIVE_PERIODS * period)


def draw_vector(own: Known | None, heard: Iterable[Known], others: Iterable[Known]) -> tuple[Known, ...]:
    """The own entry first, then half of the room for the most recently heard, the rest for the others."""
    chosen: dict[tuple[bytes, int], Known] = {}
    if own is not None:
        chosen[own.author, own.epoch] = own
    for bound, entries in ((MOST_ENTRIES // 2, heard), (MOST_ENTRIES, others)):
        for entry in entries:
            if len(chosen) >= bound:
                break
            chosen.setdefault((entry.author, entry.epoch), entry)
    return tuple(chosen.values())
