"""Claims about arms from a few seeds: the same numbers for the same arguments. The interval is the *expanded*
percentile bootstrap (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 5.3): the
plain one is too narrow for few runs, because it takes the spread of the sample for that of the population and
the normal curve for Student's. Its percentiles are moved outwards so that it would be Student's interval if
the resampled means were normal. It cannot reach beyond the least and the greatest value seen, so fewer than
`FEWEST_RUNS` runs never support a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import Literal

import numpy as np

from shoal.errors import ConfigError
from shoal.runs.results import Estimate

FEWEST_RUNS = 5
LEVEL = 0.95
RESAMPLES = 10_000

Verdict = Literal["greater", "less", "no difference can be shown", "too few seeds"]
_Floats = np.ndarray[tuple[int], np.dtype[np.float64]]


def estimate(
    values: Sequence[float], *, seed: int = 0, level: float = LEVEL, resamples: int = RESAMPLES
) -> Estimate:
    """The mean of some runs with its interval, which always holds the mean. One run has no interval."""
    if not values or not all(map(math.isfinite, values)):
        raise ConfigError("an estimate needs one or more finite values")
    if not 0 < level < 1:
        raise ConfigError(f"level {level}: give a number between 0 and 1, such as {LEVEL}")
    sample = np.array(values, dtype=np.float64)
    mean = math.fsum(values) / len(values)
    if len(sample) == 1:
        return Estimate(mean, None, None, 1)
    drawn = np.random.default_rng(seed).integers(0, len(sample), size=(resamples, len(sample)))
    means: _Floats = sample[drawn].mean(axis=1)
    tail = expanded_tail(len(sample), level)
    low, high = np.quantile(means, [tail, 1 - tail])
    # Means of equal values differ in their last bits, and the mean must not fall out by them.
    return Estimate(mean, min(float(low), mean), max(float(high), mean), len(sample))


def paired_difference(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Estimate:
    """The mean of ours − theirs, where both lists are in the order of the same seeds."""
    if len(ours) != len(theirs):
        raise ConfigError(f"{len(ours)} and {len(theirs)} values cannot be pairs")
    return estimate([one - other for one, other in zip(ours, theirs, strict=True)], seed=seed)


def superiority(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The chance that one of ours is greater than one of theirs, both drawn at random; equals count half."""
    if not ours or not theirs:
        raise ConfigError("a comparison needs values on both sides")
    greater = sum((one > other) + (one == other) / 2 for one in ours for other in theirs)
    return greater / (len(ours) * len(theirs))


def verdict(difference: Estimate) -> Verdict:
    """The claim that the interval of a difference allows."""
    if difference.runs < FEWEST_RUNS or difference.low is None or difference.high is None:
        return "too few seeds"
    if difference.low > 0:
        return "greater"
    if difference.high < 0:
        return "less"
    return "no difference can be shown"


@cache
def expanded_tail(runs: int, level: float) -> float:
    """The share of resampled means to leave out on each side for an interval of this level."""
    quantile = student_quantile((1 + level) / 2, runs - 1)
    return NormalDist().cdf(-math.sqrt(runs / (runs - 1)) * quantile)


def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's distribution for a probability of at least one half, to ten digits."""
    if not 0.5 <= probability < 1 or freedom < 1:
        raise ConfigError(f"no quantile {probability} of Student's distribution with {freedom} degrees")
    low, high = 0.0, 1.0
    while _student_below(high, freedom) < probability:
        low, high = high, high * 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _student_below(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def _student_below(value: float, freedom: int) -> float:
    """Student's distribution function for value >= 0, by its finite series (Abramowitz, Stegun 26.7.3-4)."""
    angle = math.atan(value / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    term = cosine if freedom % 2 else 1.0
    total = term if freedom > 1 else 0.0
    for step in range(3 if freedom % 2 else 2, freedom - 1, 2):
        term *= cosine**2 * (step - 1) / step
        total += term
    within = 2 / math.pi * (angle + sine * total) if freedom % 2 else sine * total
    return (1 + within) / 2
