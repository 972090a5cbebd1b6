"""The gate: names the lane that pays for a message, or drops it, before anything of it is decoded.

Guarantee: a message of a muted author, an answer that nobody asked for, and a message for which no processor
time is left cost the same little, whatever is in them. Nothing of them is kept but a count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container

from shoal.swarm.context import Context
from shoal.swarm.frame import claimed_key, claimed_nonce
from shoal.swarm.identity import node_id
from shoal.swarm.quota import RESERVED, Lane
from shoal.swarm.rejection import Rejection

SAVED_SECONDS = 5.0  # an unspent share of the processor is saved up for this long


class IntakeShare:
    """The processor time that a node spends on the messages of others: at most `share` of a core, in lanes as
    the signature checks. Once anyone is `established`, newcomers have the part of their own lane alone.
    Without a `meter`, which tells the processor time of this thread so far, there is no bound."""

    def __init__(
        self, share: float, established: Collection[object], meter: Callable[[], float] | None, now: float
    ) -> None:
        self._meter = meter
        self._established = established
        self._at = now
        self._own_rate = share * RESERVED
        self._common_rate = share * (1 - 3 * RESERVED)
        lanes: tuple[Lane, ...] = ("pulled", "known", "new")
        self._own = dict.fromkeys(lanes, SAVED_SECONDS * self._own_rate)
        self._common = SAVED_SECONDS * self._common_rate

    def time(self) -> float:
        return self._meter() if self._meter is not None else 0.0

    def refill(self, now: float) -> bool:
        """Adds the time up to `now`; False if there is none left for anyone."""
        elapsed, self._at = min(max(0.0, now - self._at), SAVED_SECONDS), now
        for lane, left in self._own.items():
            self._own[lane] = min(left + elapsed * self._own_rate, SAVED_SECONDS * self._own_rate)
        self._common = min(self._common + elapsed * self._common_rate, SAVED_SECONDS * self._common_rate)
        return self._meter is None or self._common > 0.0 or any(left > 0.0 for left in self._own.values())

    def affords(self, lane: Lane) -> bool:
        return self._meter is None or self._own[lane] > 0.0 or (self._common > 0.0 and self._shares(lane))

    def spend(self, lane: Lane | None, seconds: float) -> None:
        """Books time that was spent, perhaps a little more than was left. None: for sorting, in no lane."""
        if lane is None or (self._own[lane] <= 0.0 and self._shares(lane)):
            self._common -= seconds
        else:
            self._own[lane] -= seconds

    def _shares(self, lane: Lane) -> bool:
        return lane != "new" or not self._established


class Gate:
    """One node's gate."""

    def __init__(self, context: Context, now: float) -> None:
        self._established = context.accounts.established
        self._muted: dict[bytes, float] = {}  # until when, by key
        self._most_muted = context.settings.authors
        self.share = IntakeShare(context.settings.intake_share, self._established, context.meter, now)

    def lane(self, message: bytes, pulls: Container[bytes], now: float) -> Lane | Rejection:
        """The lane of a message; `pulls` are the nonces of open pulls. A forged name gets the lane of the one
        whose name it is, which is why each lane has bounds."""
        lane: Lane = "new"
        key = claimed_key(message)
        if key is not None:
            if self._muted and self._is_muted(key, now):
                return Rejection.MUTED
            if node_id(key) in self._established:
                lane = "known"
        elif (nonce := claimed_nonce(message)) is not None:
            if nonce not in pulls:
                return Rejection.UNASKED
            lane = "pulled"
        return lane if self.share.affords(lane) else Rejection.BUSY

    def mute(self, key: bytes, until: float) -> None:
        """Drops everything under this key until then."""
        self._muted.pop(key, None)
        self._muted[key] = until
        if len(self._muted) > self._most_muted:
            del self._muted[next(iter(self._muted))]

    def _is_muted(self, key: bytes, now: float) -> bool:
        until = self._muted.get(key, 0.0)
        if until <= now:
            self._muted.pop(key, None)
        return until > now
