"""Shards: the authors that a node follows, all in a small swarm, a few shards of them in a large one.

An author's shard is a hash of its key. Every node follows its own shard, whose authors keep each other's log
complete, and a few others drawn at random, one of which is exchanged now and then.
"""

from __future__ import annotations

import random
from hashlib import blake2b

from shoal.swarm.identity import NodeId
from shoal.swarm.settings import ExchangeSettings


def shard_of(author: NodeId, shards: int) -> int:
    """The shard of an author among `shards`."""
    if shards == 1:
        return 0
    digest = blake2b(author.encode("ascii"), digest_size=8, person=b"shoal shard").digest()
    return int.from_bytes(digest, "big") % shards


class Following:
    """The shards that are followed now: `follow` of them, or all up to `follow_all_until` authors."""

    __slots__ = ("_rng", "_until", "_wanted", "home", "number", "shards")

    def __init__(self, me: NodeId, settings: ExchangeSettings, rng: random.Random) -> None:
        self.number = settings.shards
        self.home = shard_of(me, self.number)
        self._wanted = min(settings.follow, self.number)
        self._until = settings.follow_all_until
        self._rng = rng
        self.shards = frozenset(range(self.number)) if self._until > 0 else self._draw()

    @property
    def everything(self) -> bool:
        return len(self.shards) == self.number

    def _draw(self) -> frozenset[int]:
        others = [shard for shard in range(self.number) if shard != self.home]
        return frozenset((self.home, *self._rng.sample(others, self._wanted - 1)))

    def adjust(self, authors_heard: int) -> bool:
        """Follows all shards while the swarm is small, a draw of them when it is not; True if that changed.
        The size of the swarm is estimated from the authors heard in the followed part."""
        if self.number == self._wanted:
            return False
        estimate = authors_heard * self.number / len(self.shards)
        if self.everything and estimate > self._until:
            self.shards = self._draw()
        elif not self.everything and estimate < 0.7 * self._until:
            self.shards = frozenset(range(self.number))
        else:
            return False
        return True

    def redraw(self) -> bool:
        """Exchanges one of the followed shards, never the own one, for another."""
        drawn = sorted(self.shards - {self.home})
        rest = [shard for shard in range(self.number) if shard not in self.shards]
        if not drawn or not rest:
            return False
        self.shards = (self.shards - {self._rng.choice(drawn)}) | {self._rng.choice(rest)}
        return True
