"""Intake: brings each message that arrives through all checks and to where it belongs.

Items go to the inbox, beacons and answers to repair, pulls to those who serve them. Guarantee: whatever
arrives, no exception leaves `arrive`, and each rejection is counted by its name.
"""

from __future__ import annotations

import msgspec

from shoal.swarm.admission import Admission
from shoal.swarm.authors import Author, Received, Register
from shoal.swarm.beacon import BEACON_KIND, Beacon
from shoal.swarm.body import MOST_ITEMS
from shoal.swarm.context import Context
from shoal.swarm.frame import Bundle, Frame
from shoal.swarm.inbox import Inbox, Waiting
from shoal.swarm.pull import MOST_IDS, PULL_KIND, Pull, Serving
from shoal.swarm.rejection import HOLDERS_FAULT, OFFENCES, Rejection
from shoal.swarm.upkeep import Upkeep

_beacon_decoder = msgspec.msgpack.Decoder(Beacon)
_pull_decoder = msgspec.msgpack.Decoder(Pull)


class Intake:
    """Everything that one node takes in."""

    def __init__(self, context: Context, inbox: Inbox, upkeep: Upkeep, now: float) -> None:
        self.serving = Serving(context, now)
        self._context = context
        self._codec = context.codec
        self._tally = context.tally
        self._inbox = inbox
        self._upkeep = upkeep
        self._admission = Admission(context, now)

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
        if isinstance(contents, Rejection):
            return contents
        tally.unknown_kinds += contents.unknown_kinds
        context.accounts.of(author.node_id).received += len(contents.items)
        node, epoch, seq, made_at = author.node_id, frame.epoch, frame.seq, frame.made_at / 1e6
        waiting = [
            Waiting(
                Received(node, item.kind.name, item.value, epoch, seq, item.index, made_at, now, item.digest),
                item.size,
            )
            for item in contents.items
        ]
        if frame.channel == "latest":
            taken = sum(
                context.authors.keep_register(author, Register(one.received, frame))
                and self._inbox.replace(one)
                for one in waiting
            )
        else:
            taken = self._inbox.extend(node, waiting)
        tally.items += taken
        tally.repeated += len(waiting) - taken
        return None

    def _take_beacon(self, author: Author, frame: Frame, now: float) -> Rejection | None:
        beacon = self._codec.single(frame, BEACON_KIND, _beacon_decoder)
        if isinstance(beacon, Rejection):
            return beacon
        assert isinstance(beacon, Beacon)
        author.endpoints = beacon.endpoints
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
