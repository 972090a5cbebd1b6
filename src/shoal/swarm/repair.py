"""Repair: makes the log complete over a transport that loses things.

Every vector in a beacon says what its sender holds. What is missing here, and was missing one tick ago too,
is asked of a random node whose vector says that it holds it: registers first, then the newest of each
author. Anyone may answer, because frames carry their author's signature.

Bounds, whatever others claim: 64 numbers and 256 KB per answer, one request per holder and four in all,
two seconds for an answer; a holder that did not answer is left alone, longer each time. Those who never
delivered anything share one of the four requests, and 64 missing numbers is the most that one claimant can
make known. So a liar costs one small request now and then, and is asked last.

When nothing is answered for a while, a few of those who are heard are asked for what they must hold if they
are honest (a probe): that tells holders that lie from a connection that is half dead.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from shoal.swarm.authors import Authors
from shoal.swarm.beacon import Beacon, Known, vector_lives
from shoal.swarm.frame import NONCE_BYTES
from shoal.swarm.identity import NodeId, id_bytes, id_text
from shoal.swarm.pull import MOST_ANSWER_BYTES, MOST_IDS, Pull, Want
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import Following, shard_of
from shoal.swarm.watchdog import Unanswered

Id: TypeAlias = tuple[NodeId, int, int]
"""Author, epoch, number in its log; number 0 stands for its registers."""

UNDER_WAY = 4
TIMEOUT = 2.0
LEFT_ALONE, LEFT_ALONE_LONGEST = 4.0, 64.0
PROBES = 4
PROBE_TIMEOUT = 8.0
"""Longer than for other pulls, so that a slow machine is not taken for a dead connection."""
PROBE_EVERY = 16.0
MOST_CLAIMS = 256
MOST_MISSING = 1024
MOST_HOLDERS = 1024


@dataclass(slots=True)
class Claim:
    """A beacon, when it came, and whether everything in its vector is here already."""

    beacon: Beacon
    at: float
    satisfied: bool = False


@dataclass(slots=True)
class Holder:
    """How a node answered so far."""

    strikes: int = 0
    delivered: int = 0
    until: float = 0.0  # left alone until then

    def strike(self, now: float) -> None:
        self.strikes += 1
        self.until = now + min(LEFT_ALONE * 2.0 ** max(0, self.strikes - 2), LEFT_ALONE_LONGEST)


@dataclass(frozen=True, slots=True)
class Request:
    """A pull under way. `registers` is the number up to which the holder claimed to have them."""

    holder: NodeId
    ids: frozenset[Id]
    registers: dict[tuple[NodeId, int], int]
    asked_at: float
    deadline: float
    proven: bool
    probe: bool
    unanswered: Unanswered  # where it counts if it fails


class Repair:
    """What is missing at one node, and who is asked for it."""

    def __init__(
        self,
        me: NodeId,
        settings: ExchangeSettings,
        authors: Authors,
        following: Following,
        standing: Callable[[NodeId], tuple[bool, float]],
        rng: random.Random,
    ) -> None:
        self._me = me
        self._settings = settings
        self._authors = authors
        self._following = following
        self._standing = standing  # (established, weight) of a node
        self._rng = rng
        self._claims: dict[NodeId, Claim] = {}
        self._holders: dict[NodeId, Holder] = {}
        self._missing: set[Id] = set()
        self._unanswered = Unanswered()
        self.open: dict[bytes, Request] = {}
        self.asked = 0
        self.answered = 0
        self.timed_out = 0

    def note(self, claimant: NodeId, beacon: Beacon, now: float) -> None:
        """Takes up the vector of a verified beacon."""
        self._claims.pop(claimant, None)
        self._claims[claimant] = Claim(beacon, now)
        if len(self._claims) > MOST_CLAIMS:
            oldest_newcomer = next((node for node in self._claims if not self._standing(node)[0]), None)
            del self._claims[oldest_newcomer or next(iter(self._claims))]

    def forget(self) -> None:
        """After a stall of this node: what it believed about others is out of date."""
        self._claims.clear()
        self._missing.clear()
        self.forgive()

    def forgive(self) -> None:
        """After a stall, or with a new connection: that somebody did not answer means nothing any more."""
        self.open.clear()
        self._unanswered = Unanswered()
        for holder in self._holders.values():
            holder.strikes, holder.until = 0, 0.0

    def unanswered(self, now: float, period: float) -> bool:
        """Whether nobody answers this node any more, as far as pulls and probes can tell."""
        return self._unanswered.broken(now, period)

    def waiting(self) -> bool:
        """Whether something is known to be missing or under way."""
        return bool(self._missing or self.open)

    def plan(self, now: float, period: float) -> list[tuple[NodeId, Pull]]:
        """One tick: the pulls to send now."""
        self._expire(now, period)
        holders, claimed = self._survey(now)
        under_way = {wanted for request in self._pulls() for wanted in request.ids}
        due = [wanted for wanted in holders if wanted in self._missing and wanted not in under_way]
        self._missing = set(holders)
        chosen = self._assign(self._in_order(due, now), holders) if due else {}
        pulls = [self._request(holder, ids, claimed, now) for holder, ids in chosen.items()]
        if self._unanswered.doubtful(now, period):
            pulls += self._probe(now)
        return pulls

    def settle(self, nonce: bytes, delivered: int, size: int, now: float) -> None:
        """Closes a request: an answer that brought what was asked, or as much as fits, counts as one."""
        request = self.open.pop(nonce)
        self._unanswered = Unanswered(not_before=self._unanswered.not_before)
        holder = self._holder(request.holder)
        if delivered and (4 * delivered >= len(request.ids) or 2 * size >= MOST_ANSWER_BYTES):
            holder.strikes, holder.until = 0, 0.0
            holder.delivered += delivered
            self.answered += 1
        else:
            holder.strike(now)
        for (node, epoch), number in request.registers.items():
            author = self._authors.get(node)
            state = author.epochs.get(epoch) if author is not None else None
            if state is not None and state.latest is not None and state.latest.newest >= number:
                state.latest.settle(number)

    def _expire(self, now: float, period: float) -> None:
        for nonce, request in list(self.open.items()):
            if request.deadline <= now:
                self._holder(request.holder).strike(now)
                established, _ = self._standing(request.holder)
                request.unanswered.fail(request.holder, established, request.asked_at, request.probe)
                self.timed_out += 1
                del self.open[nonce]
        lives = vector_lives(period)
        for claimant in [node for node, claim in self._claims.items() if now - claim.at > lives]:
            del self._claims[claimant]

    def _survey(self, now: float) -> tuple[dict[Id, list[NodeId]], dict[tuple[NodeId, NodeId, int], int]]:
        """What is missing, each with those who claim to hold it; and how far each one's registers go."""
        holders: dict[Id, list[NodeId]] = {}
        claimed: dict[tuple[NodeId, NodeId, int], int] = {}
        for claimant, claim, news in self._news():
            room = MOST_IDS
            needed = False
            holder = self._holders.get(claimant)
            alone = holder is not None and holder.until > now
            for known in news:
                ids = self._needed(known, room, now)
                if not ids:
                    continue
                needed = True
                if alone:
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
        """Claims with what in them goes beyond what is here, claimants in good standing first. Many vectors
        say the same, and mostly what is known, so each entry is looked at once."""
        found: list[tuple[NodeId, Claim, list[Known]]] = []
        settled: set[bytes] = set()
        by_id = self._authors.by_id
        for claimant, claim in self._claims.items():
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
                        log, latest = epoch.log, epoch.latest
                        if known.newest <= (0 if log is None else log.contiguous) and known.latest <= (
                            0 if latest is None else latest.contiguous
                        ):
                            settled.add(key)
                            continue
                    news.append(known)
            if news:
                found.append((claimant, claim, news))
            else:
                claim.satisfied = True
        found.sort(key=lambda entry: self._standing(entry[0]), reverse=True)
        return found

    def _needed(self, known: Known, room: int, now: float) -> list[Id]:
        """What this entry says its sender holds and this node does not, newest first."""
        node = id_text(known.author)
        author = self._authors.get(node)
        if node == self._me:
            return []
        if author is not None:
            if not author.accepts_epoch(known.epoch):
                return []
            if author.mute is not None and author.mute.until > now:
                return []
        epoch = author.epochs.get(known.epoch) if author is not None else None
        log = epoch.log if epoch is not None else None
        latest = epoch.latest if epoch is not None else None
        ids: list[Id] = []
        if known.latest > (latest.contiguous if latest is not None else 0):
            ids.append((node, known.epoch, 0))
        if known.newest <= (log.contiguous if log is not None else 0):
            return ids
        shard = author.shard if author is not None else shard_of(node, self._settings.shards)
        if shard not in self._following.shards:
            return ids
        if log is not None:
            numbers = log.missing(known.newest, self._settings.keep_frames, room)
        else:
            lowest = max(0, known.newest - min(room, self._settings.history_frames))
            numbers = list(range(known.newest, lowest, -1))
        ids += [(node, known.epoch, number) for number in numbers if known.holds(number)]
        return ids[:room]

    def _in_order(self, due: list[Id], now: float) -> list[Id]:
        """Registers first, then the log: authors in good standing before newcomers, every author's newest
        before anyone's second, useful authors earlier. No more of an author than its quota would let in."""
        depth: dict[NodeId, int] = {}
        ranked: list[tuple[bool, bool, int, float, Id]] = []
        for wanted in sorted(due, key=lambda wanted: (wanted[1], wanted[2]), reverse=True):
            node, _, number = wanted
            depth[node] = depth.get(node, 0) + 1
            author = self._authors.get(node)
            left = self._settings.frames_burst
            if author is not None and author.pulled is not None:
                left = author.pulled.frames_left(self._settings, now)
            if depth[node] <= left:
                established, weight = self._standing(node)
                ranked.append((number != 0, not established, depth[node], -weight, wanted))
        return [entry[-1] for entry in sorted(ranked)]

    def _assign(self, due: list[Id], holders: dict[Id, list[NodeId]]) -> dict[NodeId, list[Id]]:
        """Packs what is due into as few requests as there are places for."""
        under_way = self._pulls()
        busy = {request.holder for request in under_way}
        places = UNDER_WAY - len(under_way)
        place_for_unproven = all(request.proven for request in under_way)
        chosen: dict[NodeId, list[Id]] = {}
        for wanted in due:
            able = holders[wanted]
            holder = next((node for node in able if node in chosen and len(chosen[node]) < MOST_IDS), None)
            if holder is None:
                free = [node for node in able if node not in busy and node not in chosen]
                proven = [node for node in free if self._proven(node)]
                if len(chosen) >= places or not (proven or (free and place_for_unproven)):
                    continue
                if proven:
                    holder = self._rng.choice(proven)
                else:
                    fewest = min(self._holder(node).strikes for node in free)
                    holder = self._rng.choice([node for node in free if self._holder(node).strikes == fewest])
                    place_for_unproven = False
                chosen[holder] = []
            chosen[holder].append(wanted)
        return chosen

    def _pulls(self) -> list[Request]:
        """What is under way and no probe."""
        return [request for request in self.open.values() if not request.probe]

    def _probe(self, now: float) -> list[tuple[NodeId, Pull]]:
        """Asks a few of those who are heard, those in good standing first, for something of their vectors,
        here or not: an honest holder answers. Also those who are left alone, since the fault may be here."""
        self._unanswered.not_before = now + PROBE_EVERY
        able = [
            (node, known)
            for node, claim in self._claims.items()
            if (known := next(filter(_held, claim.beacon.vector), None)) is not None
        ]
        self._rng.shuffle(able)
        able.sort(key=lambda pair: not self._standing(pair[0])[0])
        pulls = []
        for holder, known in able[:PROBES]:
            author = id_text(known.author)
            wanted = (author, known.epoch, known.newest if 0 < known.oldest <= known.newest else 0)
            claimed = {(holder, author, known.epoch): known.latest}
            pulls.append(self._request(holder, [wanted], claimed, now, probe=True))
        return pulls

    def _request(
        self,
        holder: NodeId,
        ids: list[Id],
        claimed: dict[tuple[NodeId, NodeId, int], int],
        now: float,
        probe: bool = False,
    ) -> tuple[NodeId, Pull]:
        numbers: dict[tuple[NodeId, int], list[int]] = {}
        for node, epoch, number in ids:
            numbers.setdefault((node, epoch), []).append(number)
        wants = tuple(
            Want(id_bytes(node), epoch, tuple(number for number in asked if number), 0 in asked)
            for (node, epoch), asked in numbers.items()
        )
        registers = {
            (node, epoch): claimed[holder, node, epoch] for node, epoch, number in ids if number == 0
        }
        nonce = self._rng.randbytes(NONCE_BYTES)
        self.open[nonce] = Request(
            holder,
            frozenset(ids),
            registers,
            now,
            now + (PROBE_TIMEOUT if probe else TIMEOUT),
            self._proven(holder),
            probe,
            self._unanswered,
        )
        self.asked += 1
        return holder, Pull(nonce, wants)

    def _proven(self, node: NodeId) -> bool:
        holder = self._holders.get(node)
        return (holder is not None and holder.delivered > 0 and holder.strikes < 3) or self._standing(node)[0]

    def _holder(self, node: NodeId) -> Holder:
        holder = self._holders.get(node)
        if holder is None:
            if len(self._holders) >= MOST_HOLDERS:
                least = min(
                    self._holders,
                    key=lambda node: (self._holders[node].delivered, -self._holders[node].strikes),
                )
                del self._holders[least]
            holder = self._holders[node] = Holder()
        return holder


def _held(known: Known) -> bool:
    """Whether its sender claims to hold anything of this entry."""
    return 0 < known.oldest <= known.newest or known.latest > 0
