from __future__ import annotations

from hypothesis import given, strategies as st

from shoal.swarm.beacon import beacon_period, nodes_counted, watchdog_waits
from shoal.swarm.quota import OFFENCES_TO_MUTE, Bucket, Lane, Mute, Quota, VerificationBudget
from shoal.swarm.settings import ExchangeSettings


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.floats(0, 30)), max_size=60), st.floats(0.1, 10), st.floats(1, 20)
)
def test_never_more_than_burst_and_rate(steps: list[tuple[float, float]], rate: float, burst: float) -> None:
    """Over any time, with a clock that may also step back: at most burst + rate * (sum of steps forward)."""
    now = passed = taken = 0.0
    bucket = Bucket(burst, now)
    for step, amount in steps:
        now += step
        passed += max(0.0, step)
        if bucket.take(amount, rate, burst, now):
            taken += amount
        assert taken <= burst + rate * passed + 1e-6


def test_frames_and_bytes_are_taken_together() -> None:
    settings = ExchangeSettings(frames_burst=3, frames_per_second=1.0, bytes_per_minute=6000)
    quota = Quota(settings, 0.0)
    assert quota.take(5000, settings, 0.0)
    assert not quota.take(5000, settings, 0.0), "the bytes are used up"
    assert quota.frames_left(settings, 0.0) == 0
    assert quota.take(1000, settings, 0.0)
    assert not quota.take(0, settings, 0.0) or not quota.take(0, settings, 0.0), "the frames are used up"


def test_lanes_of_the_verification_budget_do_not_starve_each_other() -> None:
    budget = VerificationBudget(100.0, 0.0)

    def taken(lane: Lane, now: float) -> int:
        return sum(budget.take(lane, now) for _ in range(1000))

    assert 59 <= taken("new", 0.0) <= 60
    assert 20 <= taken("pulled", 0.0) <= 21
    assert 20 <= taken("known", 0.0) <= 21
    assert 59 <= taken("known", 1.0) <= 60


def test_muting_grows_and_is_made_up_for() -> None:
    mute = Mute()
    for _ in range(OFFENCES_TO_MUTE):
        mute.offend(0.0)
    assert mute.until == 10.0
    for _ in range(OFFENCES_TO_MUTE):
        mute.offend(100.0)
    assert mute.until == 120.0
    good = Mute()
    for _ in range(1000):
        good.offend(0.0)
        for _ in range(10):
            good.behave()
    assert good.until == 0.0, "one fault among ten good frames is forgiven"


def test_periods() -> None:
    assert beacon_period(2) == beacon_period(16) == 1.0
    assert beacon_period(64) == 4.0
    assert watchdog_waits(1.0) == 15.0
    assert watchdog_waits(8.0) == 32.0
    assert nodes_counted(0, 1000, anyone_established=False) == 1001
    assert nodes_counted(8, 1000, anyone_established=True) == 73, (
        "invented nodes do not slow the beacons down"
    )
    assert nodes_counted(500, 1000, anyone_established=True) == 1501
