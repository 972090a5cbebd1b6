"""Laws of the intervals, and how often they really hold the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from shoal.errors import ConfigError
from shoal.lab.statistics import (
    estimate,
    expanded_tail,
    paired_difference,
    student_quantile,
    superiority,
    verdict,
)
from shoal.runs.results import Estimate

numbers = st.floats(-1e6, 1e6)
samples = st.lists(numbers, min_size=2, max_size=12)


@settings(deadline=None)
@given(samples, st.integers(0, 2**32))
def test_the_interval_holds_the_mean_stays_within_the_values_and_is_reproducible(
    values: list[float], seed: int
) -> None:
    found = estimate(values, seed=seed, resamples=500)
    assert found == estimate(values, seed=seed, resamples=500)
    assert found.low is not None
    assert found.high is not None
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= found.low <= found.value <= found.high <= max(values) + slack
    assert found.runs == len(values)


@settings(deadline=None, max_examples=30)
@given(samples)
def test_a_higher_level_is_never_narrower(values: list[float]) -> None:
    narrow, wide = (estimate(values, level=level, resamples=500) for level in (0.5, 0.95))
    assert wide.low <= narrow.low  # type: ignore[operator]
    assert wide.high >= narrow.high  # type: ignore[operator]


@settings(deadline=None, max_examples=30)
@given(numbers, st.integers(2, 9))
def test_equal_values_have_an_interval_without_width(value: float, runs: int) -> None:
    found = estimate([value] * runs, resamples=100)
    assert (found.low, found.value, found.high) == pytest.approx((value, value, value))


def test_one_run_has_no_interval_and_none_no_estimate() -> None:
    assert estimate([3.5]) == Estimate(3.5, None, None, 1)
    for values in ([], [1.0, float("nan")], [float("inf")]):
        with pytest.raises(ConfigError):
            estimate(values)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        estimate([1.0, 2.0], level=95)


def test_pairing_takes_out_what_the_seeds_have_in_common() -> None:
    hard_and_easy = [10.0, 50.0, 20.0, 90.0, 30.0]
    ours = [value + 1 + 0.1 * (index % 2) for index, value in enumerate(hard_and_easy)]
    assert verdict(paired_difference(ours, hard_and_easy)) == "greater"
    assert verdict(paired_difference(hard_and_easy, ours)) == "less"
    with pytest.raises(ConfigError, match="cannot be pairs"):
        paired_difference([1.0], [1.0, 2.0])


def test_few_seeds_never_support_a_claim() -> None:
    assert verdict(paired_difference([9.0] * 4, [1.0] * 4)) == "too few seeds"
    assert verdict(paired_difference([9.0], [1.0])) == "too few seeds"
    assert verdict(paired_difference([9.0] * 5, [1.0] * 5)) == "greater"
    assert verdict(paired_difference([1.0, -1, 2, -2, 0], [0.0] * 5)) == "no difference can be shown"


@settings(deadline=None, max_examples=50)
@given(st.lists(numbers, min_size=1, max_size=8), st.lists(numbers, min_size=1, max_size=8))
def test_superiority_is_a_chance_and_the_two_sides_add_up_to_one(
    ours: list[float], theirs: list[float]
) -> None:
    assert 0 <= superiority(ours, theirs) <= 1
    assert superiority(ours, theirs) + superiority(theirs, ours) == pytest.approx(1)
    assert superiority(ours, ours) == pytest.approx(0.5)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 10, 29, 99])
@pytest.mark.parametrize("probability", [0.5, 0.75, 0.975, 0.9995])
def test_students_quantile_is_scipys(freedom: int, probability: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.t.ppf(probability, freedom)
    assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_many_runs_need_no_expansion() -> None:
    assert expanded_tail(10_000, 0.95) == pytest.approx(0.025, abs=1e-4)
    assert expanded_tail(5, 0.95) < 0.001


def test_with_five_seeds_the_interval_is_honest() -> None:
    """About 92 of 100 intervals of five normal values hold the truth; of the plain percentile's about 83."""
    rng = np.random.default_rng(1)
    held = 0
    for number in range(400):
        found = estimate(rng.normal(size=5).tolist(), seed=number, resamples=2000)
        held += found.low <= 0 <= found.high  # type: ignore[operator]
    assert 0.89 <= held / 400 <= 0.97
