from __future__ import annotations

import random

from hypothesis import given, strategies as st

from shoal.swarm.beacon import beacon_period, nodes_counted, watchdog_waits
from shoal.swarm.outbox import PACE
from shoal.swarm.quota import (
    MINUTE,
    OFFENCES_TO_MUTE,
    Bucket,
    Lane,
    Minutes,
    Mute,
    Quota,
    Spent,
    Stamps,
    VerificationBudget,
    most_in_a_minute,
)
from shoal.swarm.settings import ExchangeSettings
from tests.swarm.samples import NOW


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


clock_steps = st.lists(st.tuples(st.floats(-500, 500), st.integers(0, 30)), min_size=1, max_size=60)


@given(clock_steps)
def test_stamps_never_go_back_and_catch_up(steps: list[tuple[float, int]]) -> None:
    now = 1000.0
    stamps = Stamps(now)
    before = stamps.read(now)
    for step, _ in steps:
        now += step
        stamp = stamps.read(now)
        assert stamp >= max(before, now)
        before = stamp
    for _ in range(40_000):
        now += 1.0
        stamp = stamps.read(now)
    assert stamp == now


@given(
    clock_steps,
    st.randoms(),
    st.sampled_from([0.5, 1.0, 5.0]),
    st.sampled_from([1, 7, 40]),
    st.sampled_from([3000, 100_000]),
)
def test_an_honest_author_never_exceeds_its_quota_whatever_the_network_does(
    steps: list[tuple[float, int]], rng: random.Random, rate: float, burst: int, volume: int
) -> None:
    """Any steps of its clock, any order of arrival, and any part of its frames lost."""
    settings = ExchangeSettings(frames_per_second=rate, frames_burst=burst, bytes_per_minute=volume)
    now = NOW
    stamps = Stamps(now)
    quota, sent = Quota(settings, now), []
    for step, frames in steps:
        now += step
        stamp = stamps.read(now)
        for _ in range(frames):
            size = rng.choice((10, 700, 2000))
            if quota.take(int((size + 512) / PACE), settings, stamp):
                sent.append((int(stamp * 1e6), size))
    rng.shuffle(sent)
    minutes, most = Minutes(), most_in_a_minute(settings)
    for made_at, size in sent:
        if rng.random() < 0.9:
            assert minutes.take(made_at, Spent(frames=1, size=size), most, 10**6)


def test_a_receiver_takes_of_each_minute_what_a_full_bucket_and_its_refilling_give() -> None:
    settings = ExchangeSettings(frames_per_second=1.0, frames_burst=10)
    minutes, most = Minutes(), most_in_a_minute(settings)
    for minute in (3, 1, 2):
        taken = sum(minutes.take(minute * MINUTE + place, Spent(frames=1), most, 5) for place in range(200))
        assert taken == 70
    assert not minutes.take(1 * MINUTE, Spent(frames=1), most, 5)
    assert minutes.take(1 * MINUTE, Spent(control=1), most, 5), "beacons and pulls are counted apart"
    for minute in range(4, 8):
        assert minutes.take(minute * MINUTE, Spent(frames=1), most, 5)
    assert len(minutes._spent) == 5, "a bounded number of minutes is remembered"


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
