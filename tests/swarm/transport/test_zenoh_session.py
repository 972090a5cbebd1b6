from __future__ import annotations

import random

from shoal.swarm.transport.zenoh_session import (
    AFTER_STALL_SECONDS,
    LONELY_SECONDS,
    PAUSE_SECONDS,
    SessionHealth,
)


def run(
    health: SessionHealth, start: float, seconds: float, linked: bool, others: bool = True
) -> list[float]:
    """The times at which a new session is asked for, when it is checked every second."""
    return [
        start + second
        for second in range(1, int(seconds) + 1)
        if health.check(start + second, lambda: linked, lambda: others)
    ]


def healthy() -> SessionHealth:
    health = SessionHealth(random.Random(1))
    health.opened(0.0)
    return health


def test_a_linked_session_is_left_alone() -> None:
    assert run(healthy(), 0.0, 100, linked=True) == []


def test_a_lonely_session_is_replaced_now_and_then_if_there_are_others() -> None:
    assert run(healthy(), 0.0, 100, linked=False, others=False) == []
    health = healthy()
    first = run(health, 0.0, LONELY_SECONDS + 1, linked=False)
    assert first == [LONELY_SECONDS + 1]
    health.opened(first[0])
    second = run(health, first[0], 60, linked=False)
    assert second[0] - first[0] > PAUSE_SECONDS


def test_a_session_that_slept_through_its_lease_is_replaced_a_little_later() -> None:
    health = healthy()
    assert not health.check(20.0, lambda: True, lambda: True)
    due = run(health, 20.0, 10, linked=True)[0] - 20.0
    assert AFTER_STALL_SECONDS[0] <= due <= AFTER_STALL_SECONDS[1] + 1
    health.opened(30.0)
    assert run(health, 30.0, 20, linked=True) == []


def test_a_short_sleep_changes_nothing() -> None:
    health = healthy()
    assert not health.check(4.0, lambda: True, lambda: True)
    assert run(health, 4.0, 20, linked=True) == []
