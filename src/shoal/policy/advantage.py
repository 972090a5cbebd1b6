"""From rewards to advantages: how much better a completion is than the others of its question. The advantages
of a group of one, or of like rewards, are exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from shoal.errors import TrainError

ScaleRewards = Literal["group", "batch", "none"]
"""The divisor of centred rewards, named as in TRL. group: the group's standard deviation. batch: that of
all rewards of the step. none: nothing, as in Dr. GRPO."""

EPSILON = 1e-4
LEAST_SPREAD = 0.05


def advantages(
    rewards: Sequence[Sequence[float]], scale: ScaleRewards = "group", epsilon: float = EPSILON
) -> list[list[float]]:
    """The advantage of each completion, group by group: reward less the group's mean, divided as `scale`
    says. Standard deviations are those of a sample (n - 1), and `epsilon` is added to them. TrainError if a
    reward is not finite."""
    everything = [reward for group in rewards for reward in group]
    for reward in everything:
        if not math.isfinite(reward):
            raise TrainError(f"a reward is {reward}: a verifier must give finite numbers")
    if scale == "batch":
        divisor = _deviation(everything) + epsilon
        return [[one / divisor for one in _centred(group)] for group in rewards]
    if scale == "group":
        return [[one / (_deviation(group) + epsilon) for one in _centred(group)] for group in rewards]
    return [_centred(group) for group in rewards]


def is_informative(rewards: Sequence[float], least_spread: float = LEAST_SPREAD) -> bool:
    """Whether best and worst reward differ, and by at least `least_spread`. Scaling by the group's deviation
    blows any difference up to full size, so tiny ones, such as partial credit for noise, must not count."""
    spread = max(rewards, default=0.0) - min(rewards, default=0.0)
    return spread > 0 and spread >= least_spread


def _centred(rewards: Sequence[float]) -> list[float]:
    if not rewards or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = math.fsum(rewards) / len(rewards)
    return [reward - mean for reward in rewards]


def _deviation(rewards: Sequence[float]) -> float:
    if len(rewards) < 2:
        return 0.0
    mean = math.fsum(rewards) / len(rewards)
    return math.sqrt(math.fsum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1))
