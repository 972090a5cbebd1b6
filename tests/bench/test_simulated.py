"""Many real nodes in one process: the small form of what `python -m bench.simulated` does with a thousand."""

from __future__ import annotations

import msgspec
import pytest
from bench.simulated import play


@pytest.mark.parametrize(("application", "nodes"), [("train", 24), ("evolve", 8)])
def test_a_swarm_with_losses_churn_and_liars_does_all_its_rounds(application: str, nodes: int) -> None:
    outcome = play(application, nodes=nodes, rounds=5, churn=0.25)
    assert outcome.rounds == (5, 5)
    assert outcome.restarted == nodes // 4
    assert outcome.used > 0
    assert sum(outcome.refused.values()) > 0  # the liars were heard, and not believed
    assert outcome.honest_refused == 0


def test_the_same_seed_gives_the_same_swarm_byte_for_byte() -> None:
    def played(seed: int) -> object:
        outcome = play("train", nodes=12, rounds=3, seed=seed)
        return msgspec.structs.replace(outcome, seconds=0.0, megabytes=0.0)

    assert played(5) == played(5)
    assert played(5) != played(6)


@pytest.mark.soak
@pytest.mark.parametrize("application", ["train", "evolve"])
def test_a_thousand_nodes(application: str) -> None:
    outcome = play(application)
    print(outcome)
    assert outcome.rounds == (10, 10)
    assert outcome.honest_refused == 0
