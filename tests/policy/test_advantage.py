"""From rewards to advantages."""

from __future__ import annotations

import math
import statistics

import pytest

from shoal.errors import TrainError
from shoal.policy.advantage import advantages, is_informative


def test_a_group_is_centred_and_scaled_by_its_own_deviation() -> None:
    (found,) = advantages([[1.0, 0.0, 0.0, 0.0]])
    assert found == pytest.approx([1.4997, -0.4999, -0.4999, -0.4999], abs=1e-4)
    rewards = [0.3, 0.9, 0.1]
    divisor = statistics.stdev(rewards) + 1e-8
    assert advantages([rewards], epsilon=1e-8)[0] == pytest.approx(
        [(reward - statistics.mean(rewards)) / divisor for reward in rewards]
    )


def test_the_batch_is_scaled_by_the_deviation_of_all() -> None:
    rewards = [[1.0, 0.0], [0.5, 0.0, 0.25]]
    divisor = statistics.stdev([1.0, 0.0, 0.5, 0.0, 0.25]) + 1e-4
    found = advantages(rewards, "batch")
    assert found[0] == pytest.approx([0.5 / divisor, -0.5 / divisor])
    assert found[1] == pytest.approx([0.25 / divisor, -0.25 / divisor, 0.0])


def test_none_takes_off_the_mean_only() -> None:
    assert advantages([[1.0, 0.0, 0.5]], "none") == [[0.5, -0.5, 0.0]]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_nothing_to_compare_teaches_nothing(scale: str) -> None:
    rewards = [[0.1] * 7, [1.0], [], [0.0, 1.0]]
    found = advantages(rewards, scale)  # type: ignore[arg-type]
    assert found[:3] == [[0.0] * 7, [0.0], []]
    assert found[3][0] < 0 < found[3][1]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_adding_a_constant_to_a_group_changes_nothing(scale: str) -> None:
    one = advantages([[0.0, 1.0, 0.5]], scale)  # type: ignore[arg-type]
    other = advantages([[4.0, 5.0, 4.5]], scale)  # type: ignore[arg-type]
    assert one[0] == pytest.approx(other[0])
    assert sum(one[0]) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rewards_must_be_finite(bad: float) -> None:
    with pytest.raises(TrainError, match="finite"):
        advantages([[0.0, bad]])


def test_small_differences_do_not_inform() -> None:
    assert is_informative([0.0, 1.0])
    assert is_informative([0.0, 0.05])
    assert not is_informative([0.0, 0.04])
    assert is_informative([0.0, 0.04], least_spread=0.01)
    assert not is_informative([1.0])
    assert not is_informative([])


def test_any_difference_may_inform_and_none_never_does() -> None:
    assert is_informative([0.0, 1e-9], least_spread=0.0)
    assert not is_informative([0.5, 0.5], least_spread=0.0)
    assert not is_informative([1.0], least_spread=0.0)
    assert not is_informative([], least_spread=0.0)


def test_the_epsilon_is_added_to_the_deviation() -> None:
    ((first, *_),) = advantages([[1.0, 0.0, 0.0, 0.0]], epsilon=1e-8)
    assert first == pytest.approx(0.75 / 0.5, rel=1e-7)
    ((first, *_),) = advantages([[1.0, 0.0, 0.0, 0.0]], epsilon=0.5)
    assert first == pytest.approx(0.75)
