"""Intake: brings each message that arrives through all checks and to its place.

The checks, cheap ones first: muted authors and the share of the processor (`gate.py`); size, decoding,
version, swarm, key, topic (`codec.py`); everything about the author (`admission.py`); typed items.

Guarantees: whatever arrives, no exception leaves `arrive`, and each rejection is counted by its name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from shoal.swarm.accounts import FOR_OTHERS, SUPERSEDED, UNKNOWN_KIND
from shoal.swarm.admission import Admission
from shoal.swarm.authors import Author, Received, Register
from shoal.swarm.beacon import BEACON_KIND, Beacon
from shoal.swarm.body import MOST_ITEMS
from shoal.swarm.codec import Item
from shoal.swarm.context import Context
from shoal.swarm.frame import Bundle, Frame
from shoal.swarm.gate import Gate
from shoal.swarm.inbox import Inbox, Waiting
from shoal.swarm.pull import MOST_IDS, PULL_KIND, Pull, Serving
from shoal.swarm.rejection import HOLDERS_FAULT, OFFENCES, Rejection
from shoal.swarm.upkeep import Upkeep

SORTED_AT_ONCE = 8  # times `messages_per_tick` that are looked at while hardly any is taken in

_beacon_decoder = msgspec.msgpack.Decoder(Beacon)
_pull_decoder = msgspec.msgpack.Decoder(Pull)


class Intake:
    """Everything that one node takes in: items into `inbox`, words to this node into `words`."""

    def __init__(self, context: Context, inbox: Inbox, words: Inbox, upkeep: Upkeep, now: float) -> None:
        self.serving = Serving(context, now)
        self._context = context
        self._codec = context.codec
        self._tally = context.tally
        self._inbox = inbox
        self._words = words
        self._upkeep = upkeep
        self._gate = Gate(context, now)
        self._admission = Admission(context, self._mute, now)

    def collect(self, now: float) -> bool:
        """Takes in the messages that wait, as far as this node's share of its processor goes; the others are
        dropped, and repair fetches what was worth it. True if more wait than one call takes in."""
        share, most = self._gate.share, self._context.settings.messages_per_tick
        if not share.refill(now):
            return False
        began, taking_in, taken_in = share.time(), 0.0, 0
        for _ in range(SORTED_AT_ONCE):
            messages = self._context.transport.collect(most)
            for message in messages:
                lane = self._gate.lane(message, self._upkeep.repair.open, now)
                if isinstance(lane, Rejection):
                    self._tally.rejected[lane] += 1
                    continue
                before = share.time()
                self.arrive(message, now)
                spent = share.time() - before
                share.spend(lane, spent)
                taking_in += spent
                taken_in += 1
            if 2 * taken_in >= most or len(messages) < most:
                break
        share.spend(None, share.time() - began - taking_in)
        return len(messages) >= most

    def _mute(self, author: Author, until: float) -> None:
        self._gate.mute(author.key, until)
        self._inbox.forget(author.node_id, Rejection.MUTED)
        self._words.forget(author.node_id, Rejection.MUTED)

    def arrive(self, message: bytes, now: float) -> None:
        frame = self._codec.read(message)
        if isinstance(frame, Frame):
            self._take(frame, now, pulled=False)
        elif isinstance(frame, Bundle):
            self._take_bundle(frame, len(message), now)
        else:
            self._tally.rejected[frame] += 1

    def _take(self, frame: Frame, now: float, pulled: bool) -> Rejection | None:
        author = self._admission.admit(frame, now, pulled)
        if isinstance(author, Rejection):
            self._tally.rejected[author] += 1
            return author
        if frame.channel == "beacon":
            reason = self._take_beacon(author, frame, now)
        elif frame.channel == "to":
            reason = self._take_pull(author, frame, now)
        else:
            reason = self._take_items(author, frame, now, pulled)
        if reason is not None:
            self._tally.rejected[reason] += 1
            if reason in OFFENCES:
                self._admission.offence(author, reason, now)
            return reason
        self._tally.accepted += 1
        if author.mute is not None:
            author.mute.behave()
        return None

    def _take_items(self, author: Author, frame: Frame, now: float, pulled: bool) -> Rejection | None:
        context, tally = self._context, self._tally
        _note_path(author, frame, now, pulled)
        if frame.channel == "log":
            # Kept and passed on even if its items turn out to be bad: others must be able to fetch it to find
            # that out, or an author could make honest holders look like liars.
            context.authors.keep_log(author, frame)
        contents = self._codec.contents(frame)
        author.count(frame.epoch, frame.channel, frame.shared, frame.count, context.accounts)
        if isinstance(contents, Rejection):
            context.accounts.refuse(author.node_id, contents.value, frame.count)
            return contents
        tally.unknown_kinds += contents.unknown_kinds
        context.accounts.refuse(author.node_id, UNKNOWN_KIND, contents.unknown_kinds)
        node, epoch, seq, made_at = author.node_id, frame.epoch, frame.seq, frame.made_at / 1e6
        waiting = [
            Waiting(
                Received(node, item.kind.name, item.value, epoch, seq, item.index, made_at, now, item.digest),
                item.size,
            )
            for item in contents.items
            if not item.kind.direct
        ]
        if len(waiting) < len(contents.items):
            self._take_words(author, frame, [item for item in contents.items if item.kind.direct], now)
        if frame.channel == "latest":
            taken = sum(
                self._keep_register(author, one.received, frame) and self._inbox.replace(one)
                for one in waiting
            )
        else:
            taken = self._inbox.extend(node, waiting)
        tally.items += taken
        tally.repeated += len(waiting) - taken
        return None

    def _take_words(self, author: Author, frame: Frame, items: list[Item], now: float) -> None:
        """Direct items: those to this node wait for it, and the others are only kept for their readers."""
        node, epoch, seq, made_at = author.node_id, frame.epoch, frame.seq, frame.made_at / 1e6
        words: list[Waiting] = []
        for item in items:
            digest = sha256(item.digest + frame.key).digest()  # not equal to another's same words
            received = Received(
                node, item.kind.name, item.value, epoch, seq, item.index, made_at, now, digest
            )
            if frame.channel == "latest" and not self._keep_register(author, received, frame):
                continue
            to = getattr(item.value, "to", ())
            if not to or self._context.me in to:
                words.append(Waiting(received, item.size))
            else:
                self._context.accounts.refuse(node, FOR_OTHERS)
        if frame.channel == "latest":
            taken = sum(map(self._words.replace, words))
        else:
            taken = self._words.extend(node, words)
        self._tally.items += taken
        self._tally.repeated += len(words) - taken

    def _keep_register(self, author: Author, received: Received[Any], frame: Frame) -> bool:
        kept = self._context.authors.keep_register(author, Register(received, frame))
        if not kept:
            self._context.accounts.refuse(author.node_id, SUPERSEDED)
        return kept

    def _take_beacon(self, author: Author, frame: Frame, now: float) -> Rejection | None:
        beacon = self._codec.single(frame, BEACON_KIND, _beacon_decoder)
        if isinstance(beacon, Rejection):
            return beacon
        assert isinstance(beacon, Beacon)
        author.endpoints = beacon.endpoints
        author.count(frame.epoch, "log", frame.shared, 0, self._context.accounts)
        self._upkeep.repair.gaps.note(author.node_id, beacon, now)
        return None

    def _take_pull(self, author: Author, frame: Frame, now: float) -> Rejection | None:
        pull = self._codec.single(frame, PULL_KIND, _pull_decoder)
        if isinstance(pull, Rejection):
            return pull
        assert isinstance(pull, Pull)
        if pull.size > MOST_IDS:
            return Rejection.ITEM_SIZE
        answer = self.serving.answer(pull, author, now)
        if answer is not None:
            self._context.transport.publish(f"to/{author.node_id}", answer)
        return None

    def _take_bundle(self, bundle: Bundle, size: int, now: float) -> None:
        pull = self._upkeep.repair.open.get(bundle.nonce)
        if pull is None:
            self._tally.rejected[Rejection.UNASKED] += 1
            return
        delivered = 0
        for message in bundle.frames[: MOST_IDS + MOST_ITEMS]:
            frame = self._codec.read(message)
            if isinstance(frame, Frame) and frame.channel in ("log", "latest"):
                number = frame.seq if frame.channel == "log" else 0
                if (frame.author, frame.epoch, number) in pull.ids:
                    delivered += self._take(frame, now, pulled=True) not in HOLDERS_FAULT
                    continue
            self._tally.rejected[frame if isinstance(frame, Rejection) else Rejection.UNASKED] += 1
        self._upkeep.settle(bundle.nonce, delivered, size, now)


def _note_path(author: Author, frame: Frame, now: float, pulled: bool) -> None:
    """Notes for the watchdog how the frame came."""
    if pulled and author.pushed_at:
        author.pulled_since_push += 1
        author.pulled_at = now
        author.pulled_made_at = max(author.pulled_made_at, frame.made_at)
    else:
        author.pushed_at = now
        author.pushed_made_at = max(author.pushed_made_at, frame.made_at)
        author.pulled_since_push = 0
