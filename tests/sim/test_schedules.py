"""No honest node is ever booked for its quota, and counts add up: in every schedule of bursts, delays, losses,
freezes, cuts, restarts and clocks that step."""

from __future__ import annotations

import pytest

from shoal.sim.schedules import play
from shoal.swarm import quota
from shoal.swarm.inbox import Inbox


def faults_of(first: int, last: int) -> list[str]:
    return [f"schedule {seed}: {fault}" for seed in range(first, last) for fault in play(seed).faults]


def test_the_books_of_honest_nodes_are_right() -> None:
    assert faults_of(0, 60) == []


def test_schedules_reach_what_they_are_for() -> None:
    """They refuse, lose and complete: a check of nothing would pass too."""
    played = [play(seed) for seed in range(20)]
    assert sum(one.whole for one in played) > 0.5 * sum(one.pairs for one in played)
    assert sum(one.refused for one in played) > 1000
    assert sum(one.shared for one in played) > 10_000


def test_a_booking_for_quota_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota.Minutes, "take", lambda self, made_at, more, most, remembered: more.frames == 0)
    assert any("booked for its quota" in fault for fault in faults_of(0, 3))


def test_items_that_get_lost_without_a_word_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = Inbox.gather
    monkeypatch.setattr(Inbox, "gather", lambda self, limit, rng, now: gather(self, limit, rng, now)[:3])
    assert any("handed out" in fault for fault in faults_of(0, 3))


@pytest.mark.soak
@pytest.mark.timeout(4 * 3600)
def test_ten_thousand_schedules() -> None:
    assert faults_of(0, 10_000) == []
