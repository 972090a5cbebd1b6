"""Budgets: how much of this node's time and memory others may spend.

Token buckets over the clock that is handed in. A clock that steps back gives nothing and takes nothing.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from shoal.swarm.settings import ExchangeSettings

Lane: TypeAlias = Literal["pulled", "known", "new"]

RESERVED = 0.2
"""What each lane of the verification budget has for itself; the rest goes to whoever comes first."""


class Bucket:
    """Up to `burst` at once, refilled with `rate` per second. Rates are passed in: they are the same for all
    authors, and a bucket per author should be small."""

    __slots__ = ("_at", "_level")

    def __init__(self, burst: float, now: float) -> None:
        self._level = float(burst)
        self._at = now

    def take(self, amount: float, rate: float, burst: float, now: float) -> bool:
        """Takes `amount` if it is there, else nothing."""
        level = self._level
        if now > self._at:
            level += (now - self._at) * rate
            if level > burst:
                level = burst
        self._at = now
        if level < amount:
            self._level = level
            return False
        self._level = level - amount
        return True


class Quota:
    """What an author may send: frames and bytes. Taken together or not at all. Two buckets in one object,
    because there is one for every author and every frame passes it."""

    __slots__ = ("_at", "_bytes", "_frames")

    def __init__(self, settings: ExchangeSettings, now: float) -> None:
        self._frames = float(settings.frames_burst)
        self._bytes = float(settings.bytes_per_minute)
        self._at = now

    def frames_left(self, settings: ExchangeSettings, now: float) -> int:
        """How many frames would be taken now, as far as their number goes; none while no bytes are left."""
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
    """How many signatures are checked per second.

    Whoever sends is not known before the check, so a forger can spend this. Therefore each lane has a part of
    its own: frames that were asked for (`pulled`) get through whatever is pushed, and newcomers cannot use up
    what authors in good standing need.
    """

    __slots__ = ("_common", "_common_rate", "_lanes", "_own_rate")

    def __init__(self, per_second: float, now: float) -> None:
        self._own_rate = per_second * RESERVED
        self._common_rate = per_second * (1 - 3 * RESERVED)
        self._lanes: dict[Lane, Bucket] = {
            lane: Bucket(self._own_rate, now) for lane in ("pulled", "known", "new")
        }
        self._common = Bucket(self._common_rate, now)

    def take(self, lane: Lane, now: float) -> bool:
        own, common = self._own_rate, self._common_rate
        return self._lanes[lane].take(1.0, own, own, now) or self._common.take(1.0, common, common, now)


class Mute:
    """Silence for an author that keeps breaking the rules: longer each time, and made up for by good ones."""

    __slots__ = ("_length", "_offences", "until")

    OFFENCES = 50
    SHORTEST, LONGEST = 10.0, 600.0

    def __init__(self) -> None:
        self.until = 0.0
        self._length = self.SHORTEST
        self._offences = 0.0

    def offend(self, now: float) -> None:
        self._offences += 1
        if self._offences >= self.OFFENCES:
            self._offences = 0
            self.until = now + self._length
            self._length = min(2 * self._length, self.LONGEST)

    def behave(self) -> None:
        """One frame in order makes up for a tenth of an offence."""
        if self._offences > 0:
            self._offences = max(0.0, self._offences - 0.1)
