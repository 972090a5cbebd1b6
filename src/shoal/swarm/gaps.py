"""Gaps: the frames that are missing here, and the nodes that claim to hold them.

Bounds, whatever others claim: 256 vectors are kept, one claimant can make 64 missing numbers known, and all
of them together 1024.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from shoal.swarm.authors import Epoch
from shoal.swarm.beacon import VECTOR_PERIODS, Beacon, Known
from shoal.swarm.context import Context
from shoal.swarm.identity import NodeId, id_text
from shoal.swarm.pull import MOST_IDS
from shoal.swarm.shards import shard_of
from shoal.swarm.window import EMPTY

Id: TypeAlias = tuple[NodeId, int, int]  # author, epoch, number in its log (0: its registers)

MOST_CLAIMS = 256
MOST_MISSING = 1024


@dataclass(slots=True)
class Claim:
    """A beacon, its time of arrival, and whether everything in its vector is here already."""

    beacon: Beacon
    at: float
    satisfied: bool = False


class Gaps:
    """The newest claim of each node, compared with the frames that are here."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.claims: dict[NodeId, Claim] = {}

    def note(self, claimant: NodeId, beacon: Beacon, now: float) -> None:
        """Takes up the vector of a verified beacon."""
        self.claims.pop(claimant, None)
        self.claims[claimant] = Claim(beacon, now)
        if len(self.claims) > MOST_CLAIMS:
            established = self._context.accounts.established
            oldest_newcomer = next((node for node in self.claims if node not in established), None)
            del self.claims[oldest_newcomer or next(iter(self.claims))]

    def expire(self, now: float, period: float) -> None:
        oldest = now - VECTOR_PERIODS * period
        for claimant in [node for node, claim in self.claims.items() if claim.at < oldest]:
            del self.claims[claimant]

    def survey(
        self, now: float, left_alone: Collection[NodeId]
    ) -> tuple[dict[Id, list[NodeId]], dict[tuple[NodeId, NodeId, int], int]]:
        """The missing frames with those who claim to hold them, and the registers that these claim."""
        holders: dict[Id, list[NodeId]] = {}
        claimed: dict[tuple[NodeId, NodeId, int], int] = {}
        for claimant, claim, news in self._news():
            room = MOST_IDS
            needed = False
            for known in news:
                ids = self._needed(known, room, now)
                if not ids:
                    continue
                needed = True
                if claimant in left_alone:
                    continue
                room -= len(ids)
                for wanted in ids:
                    if wanted in holders:
                        holders[wanted].append(claimant)
                    elif len(holders) < MOST_MISSING:
                        holders[wanted] = [claimant]
                    if wanted[2] == 0:
                        claimed[claimant, wanted[0], wanted[1]] = known.latest
                if room <= 0:
                    break
            claim.satisfied = not needed
        return holders, claimed

    def _news(self) -> list[tuple[NodeId, Claim, list[Known]]]:
        """Claims with their news, claimants in good standing first. Many vectors say the same, and mostly
        nothing new, so each entry is looked at once."""
        found: list[tuple[NodeId, Claim, list[Known]]] = []
        settled: set[bytes] = set()
        by_id = self._context.authors.by_id
        for claimant, claim in self.claims.items():
            if claim.satisfied:
                continue
            news: list[Known] = []
            beacon = claim.beacon
            unsettled = beacon.key_set - settled
            if unsettled:
                for key, known in zip(beacon.keys, beacon.vector, strict=True):
                    if key not in unsettled:
                        continue
                    author = by_id.get(id_text(known.author))
                    if author is not None and (epoch := author.epochs.get(known.epoch)) is not None:
                        log, latest = epoch.log or EMPTY, epoch.latest or EMPTY
                        if known.newest <= log.contiguous and known.latest <= latest.contiguous:
                            settled.add(key)
                            continue
                    news.append(known)
            if news:
                found.append((claimant, claim, news))
            else:
                claim.satisfied = True
        found.sort(key=lambda entry: self._context.standing(entry[0]), reverse=True)
        return found

    def _needed(self, known: Known, room: int, now: float) -> list[Id]:
        """The frames that this entry's sender claims to hold and this node lacks, newest first."""
        node = id_text(known.author)
        author, settings = self._context.authors.get(node), self._context.settings
        if node == self._context.me:
            return []
        if author is not None and not author.accepts_epoch(known.epoch):
            return []
        if author is not None and author.mute is not None and author.mute.until > now:
            return []
        epoch = (author.epochs.get(known.epoch) if author is not None else None) or Epoch()
        log, latest = epoch.log, epoch.latest or EMPTY
        ids: list[Id] = []
        if known.latest > latest.contiguous:
            ids.append((node, known.epoch, 0))
        if known.newest <= (log or EMPTY).contiguous:
            return ids
        shard = author.shard if author is not None else shard_of(node, settings.shards)
        if shard not in self._context.following.shards:
            return ids
        if log is not None:
            numbers = log.missing(known.newest, settings.keep_frames, room)
        else:
            lowest = max(0, known.newest - min(room, settings.history_frames))
            numbers = list(range(known.newest, lowest, -1))
        ids += [(node, known.epoch, number) for number in numbers if known.holds(number)]
        return ids[:room]
