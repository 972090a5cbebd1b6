"""Repair: makes the log complete over a transport that loses messages.

A frame that is missing here, and was missing one tick ago too, is asked of a random node whose vector says
that it holds it: registers first, then the newest of each author. Anyone may answer, because frames carry
their author's signature.

Bounds, whatever others claim: 64 numbers and 256 KB per answer, one pull per holder and four in all, two
seconds for an answer; a holder that did not answer is left alone, longer each time. Holders that never
delivered anything share one of the four pulls, so a liar costs one small pull now and then. When nothing is
answered for a while, probes tell holders that lie from a connection that is half dead (`watchdog.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.swarm.beacon import Known
from shoal.swarm.context import Context
from shoal.swarm.frame import NONCE_BYTES
from shoal.swarm.gaps import Gaps, Id
from shoal.swarm.identity import NodeId, id_bytes, id_text
from shoal.swarm.pull import MOST_ANSWER_BYTES, MOST_IDS, Pull, Want
from shoal.swarm.watchdog import Unanswered

UNDER_WAY = 4
TIMEOUT = 2.0
LEFT_ALONE, LEFT_ALONE_LONGEST = 4.0, 64.0
PROBES = 4
PROBE_TIMEOUT = 8.0  # longer than TIMEOUT: a slow machine is no dead connection
PROBE_EVERY = 16.0
MOST_HOLDERS = 1024


@dataclass(slots=True)
class Holder:
    """A node's answers so far."""

    strikes: int = 0
    delivered: int = 0
    until: float = 0.0  # left alone until then

    def strike(self, now: float) -> None:
        self.strikes += 1
        self.until = now + min(LEFT_ALONE * 2.0 ** max(0, self.strikes - 2), LEFT_ALONE_LONGEST)

    def forgive(self) -> None:
        self.strikes, self.until = 0, 0.0


@dataclass(frozen=True, slots=True)
class OpenPull:
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
    """One node's pulls: which holder is asked for which missing frames."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rng = context.rng
        self.gaps = Gaps(context)
        self._holders: dict[NodeId, Holder] = {}
        self._missing: set[Id] = set()
        self._unanswered = Unanswered()
        self.open: dict[bytes, OpenPull] = {}
        self.asked = 0
        self.answered = 0
        self.timed_out = 0

    def forget(self) -> None:
        """After a stall of this node, its beliefs about others are out of date."""
        self.gaps.claims.clear()
        self._missing.clear()
        self.forgive()

    def forgive(self) -> None:
        """After a stall, or with a new connection, missing answers mean nothing any more."""
        self.open.clear()
        self._unanswered = Unanswered()
        for holder in self._holders.values():
            holder.forgive()

    def unanswered(self, now: float, period: float) -> bool:
        """Whether nobody answers this node any more, as far as pulls and probes can tell."""
        return self._unanswered.broken(now, period)

    def waiting(self) -> bool:
        """Whether a frame is known to be missing or under way."""
        return bool(self._missing or self.open)

    def plan(self, now: float, period: float, most: int) -> list[tuple[NodeId, Pull]]:
        """One tick: the pulls to send now, at most that many."""
        self._expire(now)
        self.gaps.expire(now, period)
        alone = {node for node, holder in self._holders.items() if holder.until > now}
        holders, claimed = self.gaps.survey(now, alone)
        under_way = {wanted for pull in self._pulls() for wanted in pull.ids}
        due = [wanted for wanted in holders if wanted in self._missing and wanted not in under_way]
        self._missing = set(holders)
        chosen = self._assign(self._in_order(due, now), holders, most) if due else {}
        pulls = [self._ask(holder, ids, claimed, now) for holder, ids in chosen.items()]
        if self._unanswered.doubtful(now, period):
            pulls += self._probe(now, most - len(pulls))
        return pulls

    def settle(self, nonce: bytes, delivered: int, size: int, now: float) -> None:
        """Closes a pull. An answer counts if it brought a quarter of the frames, or as many as fit."""
        pull = self.open.pop(nonce)
        self._unanswered = Unanswered(not_before=self._unanswered.not_before)
        holder = self._holder(pull.holder)
        if delivered and (4 * delivered >= len(pull.ids) or 2 * size >= MOST_ANSWER_BYTES):
            holder.forgive()
            holder.delivered += delivered
            self.answered += 1
        else:
            holder.strike(now)
        for (node, epoch), number in pull.registers.items():
            author = self._context.authors.get(node)
            state = author.epochs.get(epoch) if author is not None else None
            if state is not None and state.latest is not None and state.latest.newest >= number:
                state.latest.settle(number)

    def _expire(self, now: float) -> None:
        for nonce, pull in list(self.open.items()):
            if pull.deadline <= now:
                self._holder(pull.holder).strike(now)
                established, _ = self._context.standing(pull.holder)
                pull.unanswered.fail(pull.holder, established, pull.asked_at, pull.probe)
                self.timed_out += 1
                del self.open[nonce]

    def _in_order(self, due: list[Id], now: float) -> list[Id]:
        """Registers first, then the log: authors in good standing before newcomers, every author's newest
        before anyone's second, useful authors earlier. No more of an author than its quota would let in."""
        depth: dict[NodeId, int] = {}
        ranked: list[tuple[bool, bool, int, float, Id]] = []
        settings = self._context.settings
        for wanted in sorted(due, key=lambda wanted: (wanted[1], wanted[2]), reverse=True):
            node, _, number = wanted
            depth[node] = depth.get(node, 0) + 1
            author = self._context.authors.get(node)
            left = settings.frames_burst
            if author is not None and author.pulled is not None:
                left = author.pulled.frames_left(settings, now)
            if depth[node] <= left:
                established, weight = self._context.standing(node)
                ranked.append((number != 0, not established, depth[node], -weight, wanted))
        return [entry[-1] for entry in sorted(ranked)]

    def _assign(self, due: list[Id], holders: dict[Id, list[NodeId]], most: int) -> dict[NodeId, list[Id]]:
        """Packs the missing frames into as few pulls as there are places for."""
        under_way = self._pulls()
        busy = {pull.holder for pull in under_way}
        places = min(UNDER_WAY - len(under_way), most)
        place_for_unproven = all(pull.proven for pull in under_way)
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

    def _pulls(self) -> list[OpenPull]:
        """The pulls under way that are no probes."""
        return [pull for pull in self.open.values() if not pull.probe]

    def _probe(self, now: float, most: int) -> list[tuple[NodeId, Pull]]:
        """Asks a few of the nodes that are heard, those in good standing first, for a frame of their vectors,
        here or not: an honest holder answers. Also nodes that are left alone, since the fault may be here."""
        self._unanswered.not_before = now + PROBE_EVERY
        able = [
            (node, known)
            for node, claim in self.gaps.claims.items()
            if (known := next(filter(_held, claim.beacon.vector), None)) is not None
        ]
        self._rng.shuffle(able)
        able.sort(key=lambda pair: pair[0] not in self._context.accounts.established)
        pulls = []
        for holder, known in able[: min(PROBES, max(0, most))]:
            author = id_text(known.author)
            wanted = (author, known.epoch, known.newest if 0 < known.oldest <= known.newest else 0)
            claimed = {(holder, author, known.epoch): known.latest}
            pulls.append(self._ask(holder, [wanted], claimed, now, probe=True))
        return pulls

    def _ask(
        self,
        holder: NodeId,
        ids: list[Id],
        claimed: dict[tuple[NodeId, NodeId, int], int],
        now: float,
        probe: bool = False,
    ) -> tuple[NodeId, Pull]:
        """Opens a pull."""
        numbers: dict[tuple[NodeId, int], list[int]] = {}
        for node, epoch, number in ids:
            numbers.setdefault((node, epoch), []).append(number)
        wants = tuple(
            Want(id_bytes(node), epoch, tuple(number for number in asked if number), 0 in asked)
            for (node, epoch), asked in numbers.items()
        )
        nonce = self._rng.randbytes(NONCE_BYTES)
        self.open[nonce] = OpenPull(
            holder,
            frozenset(ids),
            {(node, epoch): claimed[holder, node, epoch] for node, epoch, number in ids if number == 0},
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
        delivers = holder is not None and holder.delivered > 0 and holder.strikes < 3
        return delivers or node in self._context.accounts.established

    def _holder(self, node: NodeId) -> Holder:
        holders = self._holders
        if node not in holders:
            if len(holders) >= MOST_HOLDERS:
                del holders[
                    min(holders, key=lambda other: (holders[other].delivered, -holders[other].strikes))
                ]
            holders[node] = Holder()
        return holders[node]


def _held(known: Known) -> bool:
    """Whether its sender claims to hold anything of this entry."""
    return 0 < known.oldest <= known.newest or known.latest > 0
