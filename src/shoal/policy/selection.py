"""Which foreign groups a step trains on: each way is one small generator.

    walk(pool, wanted, budget, rng) yields groups to be verified, is sent the rewards of each (None:
    refused), and returns the chosen ones.

It yields several where all of them are needed whatever comes of the first: together they cost less. It
verifies as it goes, so that what is not drawn costs nothing, and stops once it has what it wants or the
budget of verifications is spent. All of them drop groups without any information (all rewards alike), the
filter of the SAPO paper. They depend on the groups and the generator only, never on the order of arrival.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

from shoal.policy.advantage import is_informative
from shoal.policy.pool import Entry

Rewards = tuple[float, ...]
Walk = Generator[Sequence[Entry], Sequence[Rewards | None], list[Entry]]
Selection = Literal["published", "best", "freshest", "author-quota", "near-half", "novel"]


def walk(
    selection: Selection,
    pool: Iterable[Entry],
    wanted: int,
    budget: int,
    rng: random.Random,
    uses: Mapping[str, int] | None = None,
) -> Walk:
    """The chosen way through the pool. `uses`: how often a group of each kind of task was trained on here."""
    entries = sorted(pool, key=lambda entry: entry.order)
    rng.shuffle(entries)
    if wanted <= 0:
        entries = []
    if selection == "best":
        return _rank(entries, wanted, budget, lambda rewards: -_mean(rewards))
    if selection == "near-half":
        return _rank(entries, wanted, budget, lambda rewards: abs(_mean(rewards) - 0.5))
    if selection == "freshest":
        entries.sort(key=lambda entry: -entry.step)
    elif selection == "author-quota":
        entries = _deal_by_author(entries)
    elif selection == "novel":
        seen = uses or {}
        entries.sort(key=lambda entry: seen.get(kind_of_task(entry), 0))
    return _first_informative(entries, wanted, budget)


def choose(walk: Walk, verify: Callable[[Entry], Rewards | None]) -> list[Entry]:
    """Follows a walk to its end with a plain function as verifier."""
    try:
        entries = next(walk)
        while True:
            entries = walk.send([verify(entry) for entry in entries])
    except StopIteration as end:
        return list(end.value or ())


def kind_of_task(entry: Entry) -> str:
    return f"{entry.group.task.family} {entry.group.task.parameters}"


def adapt(external: int, total: int, own_share: float | None, foreign_share: float | None) -> int:
    """The next number of foreign groups, out of `total`: one more where foreign groups are more often
    informative than own ones, one less where it is the other way round. Never below 1 nor above total - 1:
    at 0 nothing would be seen of others any more, and it would stay there."""
    if total < 2:
        return external
    if own_share is not None and foreign_share is not None and own_share != foreign_share:
        external += 1 if foreign_share > own_share else -1
    return min(max(external, 1), total - 1)


def _first_informative(entries: Sequence[Entry], wanted: int, budget: int) -> Walk:
    """The first `wanted` informative ones. In random order that is a uniform draw from all of them."""
    chosen: list[Entry] = []
    left = (
        entry for entry in _affordable(entries, budget) if entry.rewards is None or _is_useful(entry.rewards)
    )
    # As many at once as are still wanted: no outcome of the first makes the last of them superfluous.
    while some := list(islice(left, wanted - len(chosen))):
        rewards = yield from _rewards(some)
        chosen += [entry for entry, found in zip(some, rewards, strict=True) if _is_useful(found)]
    return chosen


def _rank(entries: Sequence[Entry], wanted: int, budget: int, badness: Callable[[Rewards], float]) -> Walk:
    """Verifies what the budget allows and takes the best of all that is verified."""
    some = list(_affordable(entries, budget))
    rewards = yield from _rewards(some)
    known = [
        (badness(found), place, entry)
        for place, (entry, found) in enumerate(zip(some, rewards, strict=True))
        if found is not None and is_informative(found)
    ]
    return [entry for _, _, entry in sorted(known, key=lambda one: one[:2])[:wanted]]


def _affordable(entries: Iterable[Entry], budget: int) -> Iterator[Entry]:
    """What was verified before, and of the rest as many as may be."""
    for entry in entries:
        if entry.rewards is None:
            budget -= 1
        if entry.rewards is not None or budget >= 0:
            yield entry


def _rewards(
    entries: Sequence[Entry],
) -> Generator[Sequence[Entry], Sequence[Rewards | None], list[Rewards | None]]:
    """Those of each; what is not known yet is asked for."""
    known = [entry.rewards for entry in entries]
    unknown = [entry for entry in entries if entry.rewards is None]
    found = iter((yield unknown) if unknown else ())
    return [next(found) if rewards is None else rewards for rewards in known]


def _is_useful(rewards: Rewards | None) -> bool:
    return rewards is not None and is_informative(rewards)


def _deal_by_author(entries: Sequence[Entry]) -> list[Entry]:
    """One of each author, then the second of each …: nobody gets more by sending more."""
    turn: Counter[str] = Counter()
    dealt = []
    for place, entry in enumerate(entries):
        dealt.append((turn[entry.author], place, entry))
        turn[entry.author] += 1
    return [entry for _, _, entry in sorted(dealt, key=lambda one: one[:2])]


def _mean(rewards: Rewards) -> float:
    return sum(rewards) / len(rewards)
