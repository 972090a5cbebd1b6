"""From values by seed to rows, sentences and curves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from shoal.lab.tables import MOST_CURVE_POINTS, curve, difference, mean_of, mean_points, sentence
from shoal.runs.results import Metric

SCORE = Metric("score", "score", "", "", 1, "greater")
LOSS = Metric("loss", "loss", "", "", 1, "less")
EITHER = Metric("sum", "sum", "", "", 1, "")
SEEDS = range(6)


def test_a_mean_over_arms_takes_the_seeds_that_all_have() -> None:
    assert mean_of([{1: 2.0, 2: 4.0}, {2: 6.0, 3: 1.0}]) == {2: 5.0}
    assert mean_of([]) == {}


def test_a_difference_is_paired_over_the_seeds_that_both_have() -> None:
    found = difference("score", "ours", {1: 5.0, 2: 6.0, 9: 0.0}, "theirs", {2: 1.0, 1: 1.0})
    assert found is not None
    assert (found.difference.value, found.difference.runs, found.superiority) == (4.5, 2, 1.0)
    assert difference("score", "ours", {1: 5.0}, "theirs", {2: 1.0}) is None


@pytest.mark.parametrize(
    ("shift", "metric", "word"),
    [
        (3.0, SCORE, "better in score (+3.0, 95 % interval +3.0 to +3.0)"),
        (-3.0, SCORE, "worse in score (−3.0, 95 % interval −3.0 to −3.0)"),
        (3.0, LOSS, "worse in loss (+3.0"),
        (-3.0, LOSS, "better in loss (−3.0"),
        (3.0, EITHER, "greater in sum (+3.0"),
        (-3.0, EITHER, "less in sum (−3.0"),
        (0.0, SCORE, "no difference can be shown in score."),
    ],
)
def test_the_sentence_follows_from_the_numbers(shift: float, metric: Metric, word: str) -> None:
    theirs = {seed: float(seed) for seed in SEEDS}
    ours = {seed: value + shift for seed, value in theirs.items()}
    found = difference(metric.name, "ours", ours, "theirs", theirs)
    assert found is not None
    said = sentence("ours", "theirs", [found], {metric.name: metric})
    assert said.startswith(f"ours against theirs: {word}")


def test_four_seeds_are_said_to_be_too_few() -> None:
    found = difference("score", "ours", dict.fromkeys(range(4), 9.0), "theirs", dict.fromkeys(range(4), 1.0))
    assert found is not None
    assert "4 seeds are too few" in sentence("ours", "theirs", [found], {"score": SCORE})


def test_curves_are_steps_and_end_where_the_first_run_ends() -> None:
    runs = [[(1.0, 10.0), (3.0, 30.0)], [(2.0, 0.0), (4.0, 8.0)]]
    assert mean_points(runs) == [(2.0, 5.0), (3.0, 15.0)]
    found = curve("chart", "line", runs)
    assert found is not None
    assert (found.x, found.value) == ([2.0, 3.0], [5.0, 15.0])
    assert mean_points([[(1.0, 1.0)], []]) == []
    assert curve("chart", "line", [[(1.0, 1.0)], [(2.0, 1.0)]]) is None


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 300), st.integers(1, 4))
def test_a_curve_keeps_its_ends_and_a_bounded_number_of_points(length: int, runs: int) -> None:
    points = [(float(x), float(x * x)) for x in range(length)]
    found = curve("chart", "line", [points] * runs)
    assert found is not None
    assert len(found.x) <= MOST_CURVE_POINTS + 1
    assert (found.x[0], found.x[-1], found.value[-1]) == (0, length - 1, (length - 1) ** 2)
    assert len(found.low) == len(found.high) == (0 if runs == 1 else len(found.x))
