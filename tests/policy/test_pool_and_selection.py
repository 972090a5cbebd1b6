"""The pool is bounded and does not depend on arrival; selection verifies as little as it needs."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.policy.pool import Kept, Pool, PoolLimits
from shoal.policy.selection import adapt, choose, walk
from tests.train.small import entry, honest_group, received

AUTHORS = ("a", "b", "c")


def arrivals(names: list[tuple[str, int]]) -> list:  # type: ignore[type-arg]
    return [received(honest_group(author, seq), author, seq) for author, seq in names]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(AUTHORS), st.integers(1, 12)), unique=True, max_size=24),
    st.randoms(use_true_random=False),
    st.integers(1, 10),
    st.integers(1, 6),
)
def test_what_stays_does_not_depend_on_the_order_of_arrival(names, rng, most, most_of_author) -> None:  # type: ignore[no-untyped-def]
    limits = PoolLimits(groups=most, author_groups=most_of_author)
    shuffled = list(names)
    rng.shuffle(shuffled)
    pools = []
    for order in (names, shuffled):
        pool = Pool(limits)
        pool.take_in(arrivals(order), step=0)
        pools.append([one.order for one in pool])
        assert len(pool) <= most
        for author in AUTHORS:
            assert sum(one.author == author for one in pool) <= most_of_author
    assert pools[0] == pools[1]


def test_duplicates_change_nothing() -> None:
    pool = Pool(PoolLimits())
    pool.take_in(arrivals([("a", 1), ("b", 1)]), 0)
    before = [one.order for one in pool]
    dropped = pool.take_in(arrivals([("a", 1), ("b", 1)]), 1)
    assert [one.order for one in pool] == before
    assert dropped == {"same task again": 2}


def test_a_loud_author_gives_way_first() -> None:
    pool = Pool(PoolLimits(groups=6))
    pool.take_in(arrivals([("loud", n) for n in range(1, 20)] + [("b", 1), ("c", 1)]), 0)
    held = sorted(one.author for one in pool)
    assert held == ["b", "c", "loud", "loud", "loud", "loud"]


def test_bytes_are_bounded() -> None:
    pool = Pool(PoolLimits(bytes=3000))
    pool.take_in(arrivals([("a", n) for n in range(1, 20)]), 0)
    assert sum(one.size for one in pool) <= 3000


def test_a_pool_is_kept_whole() -> None:
    pool = Pool(PoolLimits())
    pool.take_in(arrivals([("a", 1), ("b", 2)]), 3)
    again = Pool(PoolLimits(), Kept(**{name: getattr(pool.keep(), name) for name in ("entries", "used")}))
    assert [one.order for one in again] == [one.order for one in pool]
    assert again.take_in(arrivals([("a", 1)]), 4) == {"same task again": 1}


REWARDS = {1: (0.0, 1.0), 2: (1.0, 1.0), 3: (0.0, 0.0), 4: (0.0, 0.0, 0.0, 1.0), 5: (1.0, 1.0, 1.0, 0.0)}


def pool_of(authors: str = "a") -> list:  # type: ignore[type-arg]
    return [entry(author, seq) for author in authors for seq in REWARDS]


def look_up(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
    return REWARDS[one.seq]


@pytest.mark.parametrize("selection", ["published", "best", "freshest", "author-quota", "near-half", "novel"])
def test_all_choose_informative_groups_only(selection) -> None:  # type: ignore[no-untyped-def]
    chosen = choose(walk(selection, pool_of("ab"), 4, 100, random.Random(1)), look_up)
    assert len(chosen) == 4
    assert {one.seq for one in chosen} <= {1, 4, 5}


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 5), st.integers(0, 20))
def test_the_order_of_the_pool_does_not_matter_and_the_budget_holds(rng, wanted, budget) -> None:  # type: ignore[no-untyped-def]
    found = []
    for _ in range(2):
        pool = pool_of("abc")
        rng.shuffle(pool)
        asked = []

        def verify(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
            asked.append(one)  # noqa: B023
            return REWARDS[one.seq]

        found.append(
            [one.order for one in choose(walk("published", pool, wanted, budget, random.Random(7)), verify)]
        )
        assert len(asked) <= budget
        assert len(found[-1]) <= wanted
    assert found[0] == found[1]


def one_by_one(entries, wanted, budget):  # type: ignore[no-untyped-def]
    """The published way in its plainest form."""
    chosen, asked = [], []
    for one in entries:
        if len(chosen) == wanted:
            break
        if one.rewards is None:
            if len(asked) == budget:
                continue
            asked.append(one.order)
        if len(set(REWARDS[one.seq])) > 1:
            chosen.append(one.order)
    return chosen, asked


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 99), st.integers(0, 8), st.integers(0, 20), st.sets(st.integers(0, 14)))
def test_verifying_several_at_once_verifies_and_chooses_the_same(seed, wanted, budget, known) -> None:  # type: ignore[no-untyped-def]
    pool, asked = pool_of("abc"), []
    for place in known:
        pool[place].rewards = REWARDS[pool[place].seq]
    shuffled = list(pool)
    random.Random(seed).shuffle(shuffled)
    expected = one_by_one(shuffled, wanted, budget)

    def verify(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
        asked.append(one.order)
        one.rewards = REWARDS[one.seq]
        return REWARDS[one.seq]

    chosen = choose(walk("published", pool, wanted, budget, random.Random(seed)), verify)
    assert ([one.order for one in chosen], asked) == expected


def test_the_published_way_is_uniform_over_informative_groups() -> None:
    counts = dict.fromkeys((1, 4, 5), 0)
    for seed in range(600):
        (one,) = choose(walk("published", pool_of(), 1, 100, random.Random(seed)), look_up)
        counts[one.seq] += 1
    assert all(150 < count < 250 for count in counts.values()), counts


def test_the_published_way_stops_once_it_has_enough() -> None:
    asked = []

    def verify(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
        asked.append(one)
        return (0.0, 1.0)

    choose(walk("published", pool_of("abcdef"), 2, 100, random.Random(1)), verify)
    assert len(asked) == 2


def test_best_near_half_and_freshest_mean_what_they_say() -> None:
    (best,) = choose(walk("best", pool_of(), 1, 100, random.Random(1)), look_up)
    assert best.seq == 5
    (half,) = choose(walk("near-half", pool_of(), 1, 100, random.Random(1)), look_up)
    assert half.seq == 1
    pool = [entry("a", seq, step=seq) for seq in (1, 4, 5)]
    (fresh,) = choose(walk("freshest", pool, 1, 100, random.Random(1)), look_up)
    assert fresh.seq == 5


def test_the_author_quota_gives_each_author_a_turn() -> None:
    pool = [entry("loud", seq) for seq in range(100, 150)] + [entry("quiet", 1)]
    chosen = choose(walk("author-quota", pool, 2, 100, random.Random(3)), lambda _: (0.0, 1.0))
    assert sorted(one.author for one in chosen) == ["loud", "quiet"]


def test_adapting_stays_within_bounds() -> None:
    external = 4
    for _ in range(20):
        external = adapt(external, 8, 1.0, 0.0)
    assert external == 1
    assert adapt(external, 8, 0.0, 1.0) == 2
    assert adapt(7, 8, 0.0, 1.0) == 7
    assert adapt(3, 8, None, 0.5) == 3
