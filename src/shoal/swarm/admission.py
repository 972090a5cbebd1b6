"""Admission: the checks that a frame passes before anything in it is believed, cheap ones first.

Order: (size, decoding, version, swarm, key, topic in `codec.py`), author and shard, age, replay, mute,
verification budget, signature, body and digest, quota of the author; the typed items come after. Guarantee:
before its signature and the digest held, nothing is charged to an author and nothing of it is remembered.
"""

from __future__ import annotations

from shoal.swarm.authors import DIRECTED_SPAN, Author
from shoal.swarm.context import Context
from shoal.swarm.frame import Frame
from shoal.swarm.quota import Bucket, Lane, Mute, Quota, VerificationBudget
from shoal.swarm.rejection import OFFENCES, Rejection
from shoal.swarm.shards import shard_of
from shoal.swarm.window import Window


class Admission:
    """The gate of one node."""

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
        return Rejection.MUTED if author.is_muted(now) else None

    def _charge(self, frame: Frame, author: Author, now: float, pulled: bool) -> bool:
        settings = self._settings
        if frame.channel in ("beacon", "to"):
            if author.control is None:
                author.control = Bucket(settings.control_burst, now)
            return author.control.take(1.0, settings.control_per_second, settings.control_burst, now)
        quota = author.pulled if pulled else author.pushed
        if quota is None:
            quota = Quota(settings, now)
            if pulled:
                author.pulled = quota
            else:
                author.pushed = quota
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
