"""Whatever an adversary does, honest nodes lose nothing, and only its own account changes."""

from __future__ import annotations

import pytest

from shoal.sim.adversaries import (
    ADVERSARIES,
    Adversary,
    Flooder,
    Liar,
    Malformed,
    PullFlooder,
    Replayer,
    StaleClock,
    Sybils,
)
from shoal.sim.network import Link
from shoal.sim.scenarios import Figures, attack
from shoal.swarm.rejection import Rejection

LINK = Link(0.02, 0.05, 0.05, 0.02)
EXPECTED: dict[str, Rejection] = {
    "Malformed": Rejection.MALFORMED,
    "Forger": Rejection.FORGED,
    "Replayer": Rejection.DUPLICATE,
    "Flooder": Rejection.MUTED,
    "Oversizer": Rejection.ITEM_SIZE,
    "Mistyper": Rejection.MISTYPED,
    "StaleClock": Rejection.FUTURE,
    "PullFlooder": Rejection.UNASKED,
}


def figures(*adversaries: type[Adversary], rate: int = 4) -> Figures:
    return attack(
        adversaries, nodes=5, seconds=30.0, settle=15.0, interval=1.5, warm_up=12.0, link=LINK, rate=rate
    )


@pytest.fixture(scope="module")
def peace() -> Figures:
    return figures()


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_honest_nodes_lose_nothing(adversary: type[Adversary], peace: Figures) -> None:
    found = figures(adversary)
    assert found.complete == 1.0
    assert found.delivered == peace.delivered, "the same throughput as in peace"
    assert found.seconds_to_complete <= peace.seconds_to_complete + 10
    assert found.honest_rejections == 0, "nothing is held against honest authors"
    assert found.foreign_share < 0.17
    assert found.reopened == 0
    if adversary.__name__ in EXPECTED:
        assert found.rejected[EXPECTED[adversary.__name__]] > 20
    if adversary not in (Malformed, Replayer, StaleClock, Liar):
        assert adversary.__name__ == "Forger" or found.adversary_rejections > 0


def test_bounded_whatever_comes(peace: Figures) -> None:
    flood, sybils = figures(Flooder, rate=15), figures(Sybils, rate=3)
    assert flood.most_held_bytes < peace.most_held_bytes + (1 << 20)
    assert sybils.most_authors <= 5 + 200
    assert flood.pulls < peace.pulls + 60, "what a muted author sent is not chased"


def test_liars_and_askers_cost_little(peace: Figures) -> None:
    liars = figures(Liar, Liar, Liar)
    assert liars.complete == 1.0
    assert liars.reopened == 0, "honest nodes answer when they are probed"
    assert liars.pulls < peace.pulls + 150
    askers = figures(PullFlooder)
    assert askers.messages < 40 * peace.messages


def test_all_at_once(peace: Figures) -> None:
    found = figures(*ADVERSARIES, rate=1)
    assert found.complete == 1.0
    assert found.honest_rejections == 0
    assert found.foreign_share < 0.17
