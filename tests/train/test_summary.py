"""What can be said about a run, from its folder alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from shoal.runs.training import Right, TrainNote
from shoal.train.crew import run
from shoal.train.summary import (
    NodeHistory,
    costs,
    largest_fall,
    oscillation,
    smoothed,
    spreading,
    summarise,
    swings,
    window_of,
)
from tests.train.small import small


def evaluation(step: int, *solved: int, total: int = 4) -> TrainNote:
    return TrainNote(
        step, step, "evaluation", held_out={"sums": Right(len(solved), total, float(len(solved)), solved)}
    )


def step(number: int, tokens: int, cpu: float) -> TrainNote:
    return TrainNote(number, number, "step", tokens=tokens, cpu=cpu)


def test_a_run_in_numbers(tmp_path: Path) -> None:
    models = ("table:small", "table:even", "frozen:table:wide")
    assert (
        run(small(models=models, steps=20, evaluate_every=5), tmp_path / "run", in_process=True) == "finished"
    )
    summary = summarise(tmp_path / "run")
    assert summary.finished
    assert [node.steps for node in summary.nodes] == [20, 20, 20]
    assert [len(node.curve_held_out) for node in summary.nodes] == [5, 5, 0]
    first = summary.nodes[0]
    assert first.own_groups == 80
    assert first.shared_groups == 80
    assert first.foreign_used <= first.foreign_informative <= first.foreign_verified <= first.foreign_seen
    assert first.reward_cumulative == pytest.approx(sum(reward for _, reward in first.curve_batch))
    assert first.reward_local_cumulative == pytest.approx(sum(reward for _, reward in first.curve_local))
    assert not summary.nodes[2].trains
    assert summary.nodes[2].reward_held_out is None


def test_the_same_settings_give_the_same_run(tmp_path: Path) -> None:
    curves = []
    for name in ("one", "two"):
        run(small(steps=8), tmp_path / name, in_process=True)
        curves.append([node.curve_local for node in summarise(tmp_path / name).nodes])
    assert curves[0] == curves[1]


def test_an_unfinished_run_can_be_looked_at(tmp_path: Path) -> None:
    run(small(steps=3), tmp_path / "run", in_process=True)
    journal = tmp_path / "run" / "nodes" / "1-table-small" / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: len(content) // 2])
    summary = summarise(tmp_path / "run")
    assert not summary.finished
    assert summary.nodes[0].steps < 3


def test_falls_and_swings() -> None:
    assert largest_fall([0.1, 0.5, 0.2, 0.6]) == pytest.approx(0.3)
    assert largest_fall([0.1]) is None
    assert smoothed([0.0, 1.0, 1.0], 2) == [0.0, 0.5, 1.0]
    assert oscillation([0.5] * 20) == pytest.approx(0.0)
    assert oscillation([0.0, 1.0]) is None
    calm, wild = [0.5] * 40, [float(place // 10 % 2) for place in range(40)]
    assert oscillation(wild) > oscillation(calm)  # type: ignore[operator]


def test_a_swing_is_a_fall_that_was_made_good() -> None:
    def held(*levels: float) -> list[float]:
        """Each level for twenty steps: the mean of five arrives at it."""
        return [level for level in levels for _ in range(20)]

    assert swings(held(0.1, 0.4, 0.2, 0.4)) == [pytest.approx(0.2)]
    assert swings(held(0.1, 0.4, 0.2, 0.31)) == [pytest.approx(0.2)], "half of it was regained"
    assert swings(held(0.1, 0.4, 0.2, 0.29)) == [], "forgotten and not learnt again"
    assert swings(held(0.1, 0.4, 0.2)) == []
    assert swings(held(0.4, 0.31, 0.4)) == [], "less than a quarter of the peak"
    assert swings(held(0.02, 0.011, 0.02)) == [], "less than a hundredth: noise near zero"
    assert swings(held(0.4, 0.2, 0.4, 0.1, 0.5)) == [pytest.approx(0.2), pytest.approx(0.3)]
    assert swings([one / 100 for one in range(100)]) == []
    assert swings([]) == swings([0.5]) == swings([0.9, 0.0, 0.9]) == []


def test_a_single_step_is_no_swing() -> None:
    """What is smoothed falls by a fifth of what one step of five fell."""
    values = [0.5] * 40 + [0.0] + [0.5] * 40
    assert swings(values) == []
    assert window_of(len(values)) == 5
    assert window_of(2000) == 100


@given(st.lists(st.floats(0, 1), max_size=120))
def test_swings_are_falls_of_what_was_reached(values: list[float]) -> None:
    found = swings(values)
    assert all(0.01 < one <= 1 for one in found)
    assert len(found) <= len(values) // 2
    assert swings(sorted(values)) == []


def test_what_a_level_cost() -> None:
    turns = [
        evaluation(0),
        step(1, 10, 0.5),
        step(2, 10, 0.5),
        evaluation(2, 0, 1),
        step(3, 10, 0.5),
        evaluation(3, 0, 1, 2, 3),
    ]
    found = costs(turns)
    assert [(one.reward, one.step, one.tokens) for one in found] == [
        (0.1, 2, 20),
        (0.25, 2, 20),
        (0.5, 2, 20),
        (0.75, 3, 30),
        (0.9, 3, 30),
    ]


def test_how_solutions_spread() -> None:
    """Task 0 is known to both at once and does not count; task 1 takes ten steps; task 2 never spreads."""
    one = NodeHistory([evaluation(0, 0), evaluation(10, 0, 1), evaluation(20, 0, 1, 2)])
    other = NodeHistory([evaluation(0, 0), evaluation(10, 0), evaluation(20, 0, 1)])
    spread = spreading([one, other])
    assert (spread.tasks, spread.median_delay, spread.reached_all) == (2, 10, 0.5)
    assert spreading([one]).tasks == 0
