"""Admission: the checks that a frame passes before anything in it is believed, cheap ones first.

They come after those of `codec.py`: author and shard, age, replay, mute, verification budget, signature, body
and digest, the author's starts and quota. Before its signature and the digest held, nothing is charged to an
author and nothing of it is remembered.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.swarm.authors import DIRECTED_SPAN, Author
from shoal.swarm.context import Context
from shoal.swarm.frame import Frame
from shoal.swarm.outbox import ENVELOPE
from shoal.swarm.quota import (
    START_EVERY,
    STARTS_AT_ONCE,
    Bucket,
    Lane,
    Minutes,
    Mute,
    Quota,
    Spent,
    VerificationBudget,
    minutes_remembered,
    most_in_a_minute,
)
from shoal.swarm.rejection import OFFENCES, Rejection
from shoal.swarm.shards import shard_of
from shoal.swarm.window import Window


class Admission:
    """One node's checks. `mute` is told of authors that are muted, and until when."""

    def __init__(self, context: Context, mute: Callable[[Author, float], None], now: float) -> None:
        self._me = context.me
        self._mute = mute
        self._codec = context.codec
        self._settings = context.settings
        self._authors = context.authors
        self._accounts = context.accounts
        self._following = context.following
        self._budget = VerificationBudget(context.settings.verifications_per_second, now)
        self._most = most_in_a_minute(context.settings)
        self._minutes = minutes_remembered(context.settings)

    def admit(self, frame: Frame, now: float, pulled: bool) -> Author | Rejection:
        """The author's state if the frame is authentic, new and within quota; it then counts as seen."""
        author = self._authors.by_id.get(frame.author)
        reason = self._misaddressed(frame, author) or self._mistimed(frame, now, pulled)
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
            author = self._authors.open(frame.author, frame.key)
        if author.epochs and frame.epoch not in author.epochs and not self._may_start(author, now):
            return Rejection.STARTS
        if pulled and not self._may_be_asked_for(frame, author, now):
            return Rejection.QUOTA
        if not self._charge(frame, author):
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
        if author.mute.offend(now):
            self._mute(author, author.mute.until)

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

    def _mistimed(self, frame: Frame, now: float, pulled: bool) -> Rejection | None:
        # A quota is counted by stamps, so one that is pushed has to be of this time.
        settings = self._settings
        if frame.made_at < (now - (settings.ttl_seconds if pulled else settings.push_ttl_seconds)) * 1e6:
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

    def _may_start(self, author: Author, now: float) -> bool:
        """Whether the author may have one more epoch: each has a quota of its own."""
        if author.starts is None:
            author.starts = Bucket(STARTS_AT_ONCE, now)
        return author.starts.take(1.0, 1 / START_EVERY, STARTS_AT_ONCE, now)

    def _may_be_asked_for(self, frame: Frame, author: Author, now: float) -> bool:
        """Whether this node has asked for no more of the author than suits it."""
        if author.pulled is None:
            author.pulled = Quota(self._settings, now)
        return author.pulled.take(frame.size, self._settings, now)

    def _charge(self, frame: Frame, author: Author) -> bool:
        """Charges the author's quota, by its own stamps: however late and in whatever order frames come."""
        epoch = author.open_epoch(frame.epoch)
        if epoch.spent is None:
            epoch.spent = Minutes()
        if frame.channel in ("beacon", "to"):
            spent = Spent(control=1)
        else:
            spent = Spent(frames=1, size=max(0, frame.size - ENVELOPE))
        return epoch.spent.take(frame.made_at, spent, self._most, self._minutes)

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
