"""Admission: every check that a frame passes before anything in it is believed, cheap ones first.

Order: (size, decoding, version, swarm, key, topic in `frame.py`), author and shard, age, replay, mute,
verification budget, signature, body and digest, quota of the author; the typed items come after.
Guarantee: nothing
is charged to an author, and nothing of it remembered, before its signature and the digest held.
"""

from __future__ import annotations

from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import DIRECTED_SPAN, Author, Authors, Epoch
from shoal.swarm.frame import Codec, Frame
from shoal.swarm.identity import NodeId
from shoal.swarm.quota import Bucket, Lane, Mute, Quota, VerificationBudget
from shoal.swarm.rejection import OFFENCES, Rejection
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import Following, shard_of
from shoal.swarm.window import Window


class Intake:
    """The gate of one node."""

    def __init__(
        self,
        me: NodeId,
        codec: Codec,
        settings: ExchangeSettings,
        authors: Authors,
        accounts: Accounts,
        following: Following,
        now: float,
    ) -> None:
        self._me = me
        self._codec = codec
        self._settings = settings
        self._authors = authors
        self._accounts = accounts
        self._following = following
        self._budget = VerificationBudget(settings.verifications_per_second, now)

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
            if not pulled:  # what was asked for here is not the author's fault
                self.offence(author, Rejection.QUOTA, now)
            return Rejection.QUOTA
        self._mark(frame, author)
        author.heard_at = now
        self._authors.touch(author)
        account = self._accounts.of(frame.author)
        account.heard_at = now
        return author

    def offence(self, author: Author, reason: Rejection, now: float) -> None:
        """Books what only the author can have done; too much of it and the author is muted for a while."""
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
            window = _window(epoch, frame)
            if window is not None:
                if frame.seq in window:
                    return Rejection.DUPLICATE
                if frame.seq <= window.floor:
                    return Rejection.OUT_OF_WINDOW
        if author.mute is not None and author.mute.until > now:
            return Rejection.MUTED
        return None

    def _charge(self, frame: Frame, author: Author, now: float, pulled: bool) -> bool:
        settings = self._settings
        if frame.channel in ("beacon", "to"):
            if author.control is None:
                author.control = Bucket(settings.control_burst, now)
            return author.control.take(1.0, settings.control_per_second, settings.control_burst, now)
        if pulled:
            if author.pulled is None:
                author.pulled = Quota(settings, now)
            return author.pulled.take(frame.size, settings, now)
        if author.pushed is None:
            author.pushed = Quota(settings, now)
        return author.pushed.take(frame.size, settings, now)

    def _mark(self, frame: Frame, author: Author) -> None:
        epoch = author.open_epoch(frame.epoch)
        if frame.channel == "log":
            if epoch.log is None:
                epoch.log = Window(max(0, frame.seq - self._settings.history_frames))
            epoch.log.mark(frame.seq, self._settings.keep_frames)
        elif frame.channel == "latest":
            if epoch.latest is None:
                epoch.latest = Window(max(0, frame.seq - self._settings.history_frames))
            epoch.latest.mark(frame.seq, self._settings.keep_frames)
        elif frame.channel == "to":
            if epoch.directed is None:
                epoch.directed = Window(max(0, frame.seq - DIRECTED_SPAN))
            epoch.directed.mark(frame.seq, DIRECTED_SPAN)
        else:
            epoch.beacon = frame.seq


def _window(epoch: Epoch, frame: Frame) -> Window | None:
    if frame.channel == "log":
        return epoch.log
    return epoch.latest if frame.channel == "latest" else epoch.directed
