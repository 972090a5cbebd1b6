"""Budgets: how much of this node's time and memory others may spend.

Token buckets over the clock that is handed in. A clock that steps back gives nothing and takes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from shoal.swarm.settings import ExchangeSettings

Lane: TypeAlias = Literal["pulled", "known", "new"]

RESERVED = 0.2  # the part of the checks that each lane has to itself; the rest is first come, first served
OFFENCES_TO_MUTE = 50  # after this many an author is muted
SHORTEST_MUTE, LONGEST_MUTE = 10.0, 600.0


@dataclass(slots=True, eq=False)
class Bucket:
    """Up to `burst` at once, refilled with `rate` per second. Rates are passed in to keep it small."""

    level: float
    at: float

    def take(self, amount: float, rate: float, burst: float, now: float) -> bool:
        """Takes `amount` if it is there, else nothing."""
        level = self.level
        if now > self.at:
            level += (now - self.at) * rate
            if level > burst:
                level = burst
        self.at = now
        enough = level >= amount
        self.level = level - amount if enough else level
        return enough


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

    def offend(self, now: float) -> None:
        self.offences += 1
        if self.offences >= OFFENCES_TO_MUTE:
            self.offences = 0.0
            self.until = now + self.length
            self.length = min(2 * self.length, LONGEST_MUTE)

    def behave(self) -> None:
        """One frame in order makes up for a tenth of an offence."""
        self.offences = max(0.0, self.offences - 0.1)
