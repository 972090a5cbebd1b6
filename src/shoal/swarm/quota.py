"""Budgets: how much of this node's time and memory others may spend.

Token buckets run over the clock that is handed in. A clock that steps back gives nothing and takes nothing.

The quota of an author is counted by the stamps in its own frames, here as there. The author fills a bucket by
its `Stamps`, which never go back; receivers count frames in the `Minutes` of the same stamps. Whatever a
network does to frames, that count is the same, so an honest author never exceeds it (`most_in_a_minute`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from shoal.swarm.settings import ExchangeSettings

Lane: TypeAlias = Literal["pulled", "known", "new"]

RESERVED = 0.2  # the part of the checks that each lane has to itself; the rest is first come, first served
MINUTE = 60_000_000  # microseconds
STARTS_AT_ONCE, START_EVERY = 8, 10.0  # new epochs of an author, and the seconds between further ones
OFFENCES_TO_MUTE = 50  # after this many an author is muted
SHORTEST_MUTE, LONGEST_MUTE = 10.0, 600.0


@dataclass(slots=True, eq=False)
class Bucket:
    """Up to `burst` at once, refilled with `rate` per second. Rates are passed in to keep it small."""

    level: float
    at: float

    def left(self, rate: float, burst: float, now: float) -> float:
        """The amount that is there now."""
        if now > self.at:
            self.level = min(self.level + (now - self.at) * rate, burst)
        self.at = now
        return self.level

    def take(self, amount: float, rate: float, burst: float, now: float) -> bool:
        """Takes `amount` if it is there, else nothing."""
        enough = self.left(rate, burst, now) >= amount
        if enough:
            self.level -= amount
        return enough


class Stamps:
    """The clock of an author's own frames. It is this machine's, but never goes back: after that one stepped
    back, it goes at half speed until that one has caught up."""

    __slots__ = ("_at", "_stamp")

    def __init__(self, at: float) -> None:
        self._at = self._stamp = at

    def read(self, now: float) -> float:
        elapsed, self._at = now - self._at, now
        if now >= self._stamp:
            self._stamp = now
        elif elapsed > 0.0:
            self._stamp += elapsed / 2
        return self._stamp


class Spent(NamedTuple):
    """A part of an author's quota: frames with items, their bytes, and beacons and pulls."""

    frames: int = 0
    size: int = 0
    control: int = 0


NOTHING = Spent()


class Minutes:
    """The frames of one start of an author, by the minute of the stamps that it gave them."""

    __slots__ = ("_spent",)

    def __init__(self) -> None:
        self._spent: dict[int, Spent] = {}

    def take(self, made_at: int, more: Spent, most: Spent, remembered: int) -> bool:
        """Counts a frame in the minute of `made_at` (microseconds) if there is room. The earliest minute of
        more than `remembered` is forgotten."""
        minute = made_at // MINUTE
        spent = self._spent.get(minute, NOTHING)
        spent = Spent(spent.frames + more.frames, spent.size + more.size, spent.control + more.control)
        if spent.frames > most.frames or spent.size > most.size or spent.control > most.control:
            return False
        self._spent[minute] = spent
        if len(self._spent) > remembered:
            del self._spent[min(self._spent)]
        return True


def most_in_a_minute(settings: ExchangeSettings) -> Spent:
    """The part that a receiver takes of a minute of an author's stamps. A full bucket and a minute of
    refilling are the most that an honest sender spends; of bytes fewer: see `PACE` in outbox.py."""
    return Spent(
        ceil(settings.frames_burst + 60 * settings.frames_per_second),
        2 * settings.bytes_per_minute,
        ceil(settings.control_burst + 60 * settings.control_per_second),
    )


def minutes_remembered(settings: ExchangeSettings) -> int:
    """Frames of earlier ones are too old to be taken."""
    return ceil((settings.ttl_seconds + settings.ahead_seconds) / 60) + 2


class Quota:
    """An author's quota of frames and bytes, taken together or not at all. One small object for both."""

    __slots__ = ("_at", "_bytes", "_frames")

    def __init__(self, settings: ExchangeSettings, now: float) -> None:
        self._frames = float(settings.frames_burst)
        self._bytes = float(settings.bytes_per_minute)
        self._at = now

    def frames_left(self, settings: ExchangeSettings, now: float) -> int:
        """The number of frames that would be taken now; none while hardly any bytes are left."""
        self._refill(settings, now)
        return int(self._frames) if self._bytes >= 1024 else 0

    def take(self, size: int, settings: ExchangeSettings, now: float) -> bool:
        self._refill(settings, now)
        if self._frames < 1.0 or self._bytes < size:
            return False
        self._frames -= 1.0
        self._bytes -= size
        return True

    def _refill(self, settings: ExchangeSettings, now: float) -> None:
        elapsed = now - self._at
        self._at = now
        if elapsed > 0.0:
            frames = self._frames + elapsed * settings.frames_per_second
            self._frames = frames if frames < settings.frames_burst else settings.frames_burst
            size = self._bytes + elapsed * settings.bytes_per_minute / 60
            self._bytes = size if size < settings.bytes_per_minute else settings.bytes_per_minute


class VerificationBudget:
    """The signatures that are checked per second. The sender is unknown before the check, so a forger can
    spend this. Therefore each lane has a part to itself: frames that were asked for (`pulled`) get through
    whatever is pushed, and newcomers cannot use up the checks that authors in good standing need."""

    def __init__(self, per_second: float, now: float) -> None:
        self._own_rate = per_second * RESERVED
        self._common_rate = per_second * (1 - 3 * RESERVED)
        self._lanes = {lane: Bucket(self._own_rate, now) for lane in ("pulled", "known", "new")}
        self._common = Bucket(self._common_rate, now)

    def take(self, lane: Lane, now: float) -> bool:
        own, common = self._own_rate, self._common_rate
        return self._lanes[lane].take(1.0, own, own, now) or self._common.take(1.0, common, common, now)


@dataclass(slots=True, eq=False)
class Mute:
    """Silence for an author that keeps breaking the rules, longer each time. Good frames make up for bad."""

    until: float = 0.0
    length: float = SHORTEST_MUTE
    offences: float = 0.0

    def offend(self, now: float) -> bool:
        """Notes an offence; True if it begins a silence."""
        self.offences += 1
        if self.offences < OFFENCES_TO_MUTE:
            return False
        self.offences = 0.0
        self.until = now + self.length
        self.length = min(2 * self.length, LONGEST_MUTE)
        return True

    def behave(self) -> None:
        """One frame in order makes up for a tenth of an offence."""
        self.offences = max(0.0, self.offences - 0.1)
