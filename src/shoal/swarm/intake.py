"""Intake: brings each message that arrives through all checks and to its place.

The checks, cheap ones first: (size, decoding, version, swarm, key, topic in `codec.py`), author and shard,
age, replay, mute, verification budget, signature, body and digest, quota of the author, typed items.

Guarantees: whatever arrives, no exception leaves `arrive`, and each rejection is counted by its name. Before
its signature and the digest held, nothing is charged to an author and nothing of it is remembered.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from shoal.swarm.authors import DIRECTED_SPAN, Author, Received, Register
from shoal.swarm.beacon import BEACON_KIND, Beacon
from shoal.swarm.body import MOST_ITEMS
from shoal.swarm.codec import Item
from shoal.swarm.context import Context
from shoal.swarm.frame import Bundle, Frame
from shoal.swarm.inbox import Inbox, Waiting
from shoal.swarm.pull import MOST_IDS, PULL_KIND, Pull, Serving
from shoal.swarm.quota import Bucket, Lane, Mute, Quota, VerificationBudget
from shoal.swarm.rejection import HOLDERS_FAULT, OFFENCES, Rejection
from shoal.swarm.shards import shard_of
from shoal.swarm.upkeep import Upkeep
from shoal.swarm.window import Window

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
            if not item.kind.direct
        ]
        if len(waiting) < len(contents.items):
            self._take_words(author, frame, [item for item in contents.items if item.kind.direct], now)
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

    def _take_words(self, author: Author, frame: Frame, items: list[Item], now: float) -> None:
        """Direct items: those to this node wait for it, and the others are only kept for their readers."""
        node, epoch, seq, made_at = author.node_id, frame.epoch, frame.seq, frame.made_at / 1e6
        words: list[Waiting] = []
        for item in items:
            digest = sha256(item.digest + frame.key).digest()  # not equal to another's same words
            received = Received(
                node, item.kind.name, item.value, epoch, seq, item.index, made_at, now, digest
            )
            if frame.channel == "latest" and not self._context.authors.keep_register(
                author, Register(received, frame)
            ):
                continue
            to = getattr(item.value, "to", ())
            if not to or self._context.me in to:
                words.append(Waiting(received, item.size))
        if frame.channel == "latest":
            taken = sum(map(self._words.replace, words))
        else:
            taken = self._words.extend(node, words)
        self._tally.items += taken
        self._tally.repeated += len(words) - taken

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


class Admission:
    """The checks that a frame passes before anything in it is believed."""

    def __init__(self, context: Context, now: float) -> None:
        self._me = context.me
        self._codec = context.codec
        self._settings = context.settings
        self._authors = context.authors
        self._accounts = context.accounts
        self._following = context.following
        self._budget = VerificationBudget(context.settings.verifications_per_second, now)

    def admit(self, frame: Frame, now: float, pulled: bool) -> Author | Rejection:
        """The author's state if the frame is authentic, new and within quota; it then counts as seen."""
        author = self._authors.by_id.get(frame.author)
        reason = self._misaddressed(frame, author) or self._mistimed(frame, now)
        if reason is None and author is not None:
            reason = self._seen(frame, author, now)
        if reason is not None:
            return reason
        lane: Lane = "pulled" if pulled else "known" if frame.author in self._accounts.established else "new"
        if not self._budget.take(lane, now):
            return Rejection.BUDGET
        if not self._codec.authentic(frame):
            return Rejection.FORGED
        wrong = self._codec.intact(frame)
        if wrong is not None:
            return wrong
        if author is None:
            author = self._authors.open(frame.author)
        if not self._charge(frame, author, now, pulled):
            if not pulled:  # the author is not to blame for frames that this node asked for
                self.offence(author, Rejection.QUOTA, now)
            return Rejection.QUOTA
        self._mark(frame, author)
        author.heard_at = now
        self._authors.touch(author)
        self._accounts.of(frame.author).heard_at = now
        return author

    def offence(self, author: Author, reason: Rejection, now: float) -> None:
        """Books a fault that only the author can have caused; too many, and it is muted for a while."""
        assert reason in OFFENCES
        self._accounts.reject(author.node_id, reason.value)
        if author.mute is None:
            author.mute = Mute()
        author.mute.offend(now)

    def _misaddressed(self, frame: Frame, author: Author | None) -> Rejection | None:
        if frame.author == self._me:
            return Rejection.OWN
        if not self._codec.membership.allows(frame.author):
            return Rejection.NOT_ALLOWED
        if frame.channel == "to":
            return None if frame.place == self._me else Rejection.TOPIC
        shard = author.shard if author is not None else shard_of(frame.author, self._settings.shards)
        if frame.place != shard:
            return Rejection.TOPIC
        if frame.channel != "latest" and shard not in self._following.shards:
            return Rejection.UNFOLLOWED
        return None

    def _mistimed(self, frame: Frame, now: float) -> Rejection | None:
        settings = self._settings
        items = frame.channel in ("log", "latest")
        if frame.made_at < (now - (settings.ttl_seconds if items else settings.control_ttl_seconds)) * 1e6:
            return Rejection.STALE
        if max(frame.made_at, frame.epoch) > (now + settings.ahead_seconds) * 1e6:
            return Rejection.FUTURE
        return None

    def _seen(self, frame: Frame, author: Author, now: float) -> Rejection | None:
        epoch = author.epochs.get(frame.epoch)
        if epoch is None:
            if not author.accepts_epoch(frame.epoch):
                return Rejection.OLD_EPOCH
        elif frame.channel == "beacon":
            if frame.seq <= epoch.beacon:
                return Rejection.DUPLICATE
        else:
            window: Window | None = getattr(epoch, frame.channel)
            if window is not None:
                if frame.seq in window:
                    return Rejection.DUPLICATE
                if frame.seq <= window.floor:
                    return Rejection.OUT_OF_WINDOW
        return Rejection.MUTED if author.mute is not None and author.mute.until > now else None

    def _charge(self, frame: Frame, author: Author, now: float, pulled: bool) -> bool:
        settings = self._settings
        if frame.channel in ("beacon", "to"):
            if author.control is None:
                author.control = Bucket(settings.control_burst, now)
            return author.control.take(1.0, settings.control_per_second, settings.control_burst, now)
        lane = "pulled" if pulled else "pushed"
        quota: Quota | None = getattr(author, lane)
        if quota is None:
            quota = Quota(settings, now)
            setattr(author, lane, quota)
        return quota.take(frame.size, settings, now)

    def _mark(self, frame: Frame, author: Author) -> None:
        epoch = author.open_epoch(frame.epoch)
        if frame.channel == "beacon":
            epoch.beacon = frame.seq
            return
        span, history = self._settings.keep_frames, self._settings.history_frames
        if frame.channel == "to":
            span = history = DIRECTED_SPAN
        window: Window | None = getattr(epoch, frame.channel)
        if window is None:
            window = Window(max(0, frame.seq - history))
            setattr(epoch, frame.channel, window)
        window.mark(frame.seq, span)
