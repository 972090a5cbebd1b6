"""The choice of foreign groups that a step trains on: each way is one small generator.

    walk(pool, wanted, budget, rng) yields batches of groups to be verified, is sent the rewards of each
    (None: refused), and returns the chosen ones.

A batch holds all groups that are needed whatever the rewards of the first: together they cost less. A walk
verifies as it goes, so that undrawn groups cost nothing, and stops once it has enough or the budget of
verifications is spent. Every walk but "uniform" drops groups without information (all rewards alike), the
filter of the SAPO paper. The choice depends on the groups and the generator only, never on the order of
arrival.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from shoal.policy.advantage import LEAST_SPREAD, is_informative
from shoal.policy.pool import Item, Pooled

Rewards = tuple[float, ...]
Groups = Sequence[Pooled[Item]]
Walk = Generator[Groups[Item], Sequence[Rewards | None], list[Pooled[Item]]]
Selection = Literal["published", "uniform", "best", "freshest", "author-quota", "near-half", "novel"]
IsUseful = Callable[[Rewards], bool]
"""Whether a group with these rewards may be chosen at all."""


def filter_of(selection: Selection, least_spread: float = LEAST_SPREAD) -> IsUseful:
    """The filter of a selection: "uniform" takes every group that could be verified, all others take groups
    whose rewards differ by `least_spread` or more."""
    if selection == "uniform":
        return lambda _: True
    return lambda rewards: is_informative(rewards, least_spread)


def walk(
    selection: Selection,
    pool: Iterable[Pooled[Item]],
    wanted: int,
    budget: int,
    rng: random.Random,
    uses: Mapping[str, int] | None = None,
    least_spread: float = LEAST_SPREAD,
) -> Walk[Item]:
    """The chosen way through the pool. `uses`: how often groups of each topic were trained on here."""
    is_useful = filter_of(selection, least_spread)
    groups = sorted(pool, key=lambda group: group.order)
    rng.shuffle(groups)
    if wanted <= 0:
        groups = []
    if selection == "best":
        return _rank(groups, wanted, budget, is_useful, lambda rewards: -_mean(rewards))
    if selection == "near-half":
        return _rank(groups, wanted, budget, is_useful, lambda rewards: abs(_mean(rewards) - 0.5))
    if selection == "freshest":
        groups.sort(key=lambda group: -group.step)
    elif selection == "author-quota":
        groups = _deal_by_author(groups)
    elif selection == "novel":
        seen = uses or {}
        groups.sort(key=lambda group: seen.get(group.topic, 0))
    return _first_useful(groups, wanted, budget, is_useful)


def choose(walk: Walk[Item], verify: Callable[[Pooled[Item]], Rewards | None]) -> list[Pooled[Item]]:
    """Follows a walk to its end with a plain function as verifier."""
    try:
        groups = next(walk)
        while True:
            groups = walk.send([verify(group) for group in groups])
    except StopIteration as end:
        return list(end.value or ())


def adapt(external: int, total: int, own_share: float | None, foreign_share: float | None) -> int:
    """The next number of foreign groups, out of `total`: one more if foreign groups are more often
    informative than own ones, one less if own ones are. Never below 1 nor above total - 1: at 0 no foreign
    group would be seen any more, and the number would stay there."""
    if total < 2:
        return external
    if own_share is not None and foreign_share is not None and own_share != foreign_share:
        external += 1 if foreign_share > own_share else -1
    return min(max(external, 1), total - 1)


def _first_useful(groups: Groups[Item], wanted: int, budget: int, is_useful: IsUseful) -> Walk[Item]:
    """The first `wanted` useful groups. In random order that is a uniform draw from all of them."""
    chosen: list[Pooled[Item]] = []
    affordable = _affordable(groups, budget)
    left = (group for group in affordable if group.rewards is None or is_useful(group.rewards))
    # As many at once as are still wanted: whatever the rewards of the first, all of them are needed.
    while some := list(islice(left, wanted - len(chosen))):
        rewards = yield from _rewards(some)
        pairs = zip(some, rewards, strict=True)
        chosen += [group for group, found in pairs if found is not None and is_useful(found)]
    return chosen


def _rank(
    groups: Groups[Item],
    wanted: int,
    budget: int,
    is_useful: IsUseful,
    badness: Callable[[Rewards], float],
) -> Walk[Item]:
    """Verifies as many groups as the budget allows and takes the best of all verified ones."""
    some = list(_affordable(groups, budget))
    rewards = yield from _rewards(some)
    known = [
        (badness(found), place, group)
        for place, (group, found) in enumerate(zip(some, rewards, strict=True))
        if found is not None and is_useful(found)
    ]
    return [group for _, _, group in sorted(known, key=lambda one: one[:2])[:wanted]]


def _affordable(groups: Iterable[Pooled[Item]], budget: int) -> Iterator[Pooled[Item]]:
    """The groups that were verified before, and as many others as the budget allows."""
    for group in groups:
        if group.rewards is None:
            budget -= 1
        if group.rewards is not None or budget >= 0:
            yield group


def _rewards(
    groups: Groups[Item],
) -> Generator[Groups[Item], Sequence[Rewards | None], list[Rewards | None]]:
    """The rewards of each group; unknown ones are asked for."""
    known = [group.rewards for group in groups]
    unknown = [group for group in groups if group.rewards is None]
    found = iter((yield unknown) if unknown else ())
    return [next(found) if rewards is None else rewards for rewards in known]


def _deal_by_author(groups: Groups[Item]) -> list[Pooled[Item]]:
    """The first group of each author, then the second of each …: more groups give nobody more turns."""
    turn: Counter[str] = Counter()
    dealt = []
    for place, group in enumerate(groups):
        dealt.append((turn[group.author], place, group))
        turn[group.author] += 1
    return [group for _, _, group in sorted(dealt, key=lambda one: one[:2])]


def _mean(rewards: Rewards) -> float:
    return sum(rewards) / len(rewards)
