"""Nodes in the swarm against nodes alone, by the rounds that they took part in, as in the SAPO paper's open
demonstration (Swarm sAmpling Policy Optimization).

For each model and each number of rounds, the cumulative rewards of both sides are compared by the test of
Mann, Whitney and Wilcoxon, two-sided: exact for few nodes, ties included, else by the normal approximation.
All tests of a board together are adjusted by Benjamini and Hochberg's procedure, so that at most one in
twenty of the differences that are shown is expected to be false. It stands tests that go up and down
together, as those of neighbouring rounds do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate
from statistics import NormalDist, fmean

import msgspec
import numpy as np

from shoal.runs.judging import Entrant, ModelComparison, RoundTest

FEWEST_NODES = 4
"""On each side. Of three against three, even the clearest order has a p of 0.1."""
LEVEL = 0.05
MOST_ROUNDS = 200
"""Rounds at which one model is tested: all of them, or so many, evenly spaced."""
MOST_EXACT = 24
"""Nodes of both sides together for which all orders are counted."""


def compare(entrants: Sequence[Entrant]) -> list[ModelComparison]:
    """One comparison for each model that has nodes on both sides or enough on one; by the model's name."""
    models: dict[str, tuple[list[Entrant], list[Entrant]]] = defaultdict(lambda: ([], []))
    for one in entrants:
        if one.rewards:
            models[one.model][one.alone].append(one)
    drawn = {model: _tests(*sides) for model, sides in sorted(models.items())}
    adjusted = iter(adjust([test.p for tests in drawn.values() for test in tests if test.p is not None]))
    found = []
    for model, tests in drawn.items():
        tests = [
            test if test.p is None else msgspec.structs.replace(test, adjusted=next(adjusted))
            for test in tests
        ]
        swarm, alone = models[model]
        start = _from_round(tests)
        said = _found(tests, start, len(swarm), len(alone))
        found.append(ModelComparison(model, len(swarm), len(alone), tests, start, said))
    return found


def _tests(swarm: Sequence[Entrant], alone: Sequence[Entrant]) -> list[RoundTest]:
    """The rounds that nodes of both sides reached."""
    ours = [list(accumulate(one.rewards)) for one in swarm]
    theirs = [list(accumulate(one.rewards)) for one in alone]
    last = min(max(map(len, ours), default=0), max(map(len, theirs), default=0))
    count = min(last, MOST_ROUNDS)
    found = []
    for number in sorted({round(last * place / count) for place in range(1, count + 1)} if count else ()):
        one = [sums[number - 1] for sums in ours if len(sums) >= number]
        other = [sums[number - 1] for sums in theirs if len(sums) >= number]
        p = mann_whitney(one, other) if min(len(one), len(other)) >= FEWEST_NODES else None
        found.append(RoundTest(number, len(one), len(other), fmean(one), fmean(other), p))
    return found


def _from_round(tests: Sequence[RoundTest]) -> int | None:
    start = None
    for test in reversed([one for one in tests if one.adjusted is not None]):
        if test.adjusted is None or test.adjusted >= LEVEL:
            break
        start = test.round
    return start


def _found(tests: Sequence[RoundTest], start: int | None, swarm: int, alone: int) -> str:
    tested = [test for test in tests if test.adjusted is not None]
    sides = f"{swarm} in the swarm, {alone} alone"
    if not tested:
        return f"too few nodes ({sides}): a test needs {FEWEST_NODES} on each side"
    last = tested[-1]
    if start is None:
        at_last = f"up to round {last.round}, adjusted p = {last.adjusted:.2g}"
        return f"no difference can be shown ({sides}; {at_last})"
    higher = "the swarm" if last.mean_swarm > last.mean_alone else "training alone"
    return f"{higher} has more from round {start} on ({sides}; adjusted p < {LEVEL} up to round {last.round})"


def mann_whitney(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The two-sided p: how often an order of all values that was drawn at random would put ours as far to one
    side as they are, or farther, twice. 1 where all values are equal."""
    ranks, ties = _twice_the_ranks([*ours, *theirs])
    ours_first = int(sum(ranks[: len(ours)]))
    if len(ranks) <= MOST_EXACT:
        return _exact(ranks, len(ours), ours_first)
    return _approximate(len(ours), len(theirs), ours_first / 2, ties)


def _twice_the_ranks(values: Sequence[float]) -> tuple[list[int], list[int]]:
    """Ranks times two, so that mean ranks of equal values are whole; and the sizes of groups of equals."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks, ties, first = [0] * len(values), [], 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for place in order[first : last + 1]:
            ranks[place] = first + last + 2
        ties.append(last - first + 1)
        first = last + 1
    return ranks, ties


def _exact(ranks: Sequence[int], count: int, found: int) -> float:
    """By the number of choices of `count` ranks with each sum."""
    choices = np.zeros((count + 1, sum(ranks) + 1))
    choices[0, 0] = 1.0
    for rank in ranks:
        choices[1:, rank:] += choices[:-1, : choices.shape[1] - rank]
    sums = choices[count]
    below, above = float(sums[: found + 1].sum()), float(sums[found:].sum())
    return min(1.0, 2 * min(below, above) / math.comb(len(ranks), count))


def _approximate(ours: int, theirs: int, rank_sum: float, ties: Sequence[int]) -> float:
    """By the normal distribution, with the corrections for ties and for continuity."""
    every = ours + theirs
    deviation = abs(rank_sum - ours * (every + 1) / 2) - 0.5
    tied = sum(size**3 - size for size in ties) / (every * (every - 1))
    variance = ours * theirs / 12 * (every + 1 - tied)
    if variance <= 0:
        return 1.0
    return min(1.0, 2 * NormalDist().cdf(-deviation / math.sqrt(variance)))


def adjust(values: Sequence[float]) -> list[float]:
    """By Benjamini and Hochberg: each is the least rate of false discoveries at which its test shows one."""
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    found, least = [0.0] * len(values), 1.0
    for place, index in enumerate(order):
        least = min(least, values[index] * len(values) / (len(values) - place))
        found[index] = least
    return found
