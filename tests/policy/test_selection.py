"""Selection verifies as little as it needs, and does not depend on the order of arrival."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st

from shoal.policy.selection import Selection, adapt, choose, walk
from tests.policy.small_groups import pooled

REWARDS = {1: (0.0, 1.0), 2: (1.0, 1.0), 3: (0.0, 0.0), 4: (0.0, 0.0, 0.0, 1.0), 5: (1.0, 1.0, 1.0, 0.0)}


def pool_of(authors: str = "a") -> list:  # type: ignore[type-arg]
    return [pooled(author, seq) for author in authors for seq in REWARDS]


def look_up(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
    return REWARDS[one.order[2]]


@pytest.mark.parametrize("selection", ["published", "best", "freshest", "author-quota", "near-half", "novel"])
def test_all_choose_informative_groups_only(selection) -> None:  # type: ignore[no-untyped-def]
    chosen = choose(walk(selection, pool_of("ab"), 4, 100, random.Random(1)), look_up)
    assert len(chosen) == 4
    assert {one.order[2] for one in chosen} <= {1, 4, 5}


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
            return REWARDS[one.order[2]]

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
        if len(set(REWARDS[one.order[2]])) > 1:
            chosen.append(one.order)
    return chosen, asked


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 99), st.integers(0, 8), st.integers(0, 20), st.sets(st.integers(0, 14)))
def test_verifying_several_at_once_verifies_and_chooses_the_same(seed, wanted, budget, known) -> None:  # type: ignore[no-untyped-def]
    pool, asked = pool_of("abc"), []
    for place in known:
        pool[place].rewards = REWARDS[pool[place].order[2]]
    shuffled = list(pool)
    random.Random(seed).shuffle(shuffled)
    expected = one_by_one(shuffled, wanted, budget)

    def verify(one) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
        asked.append(one.order)
        one.rewards = REWARDS[one.order[2]]
        return REWARDS[one.order[2]]

    chosen = choose(walk("published", pool, wanted, budget, random.Random(seed)), verify)
    assert ([one.order for one in chosen], asked) == expected


def test_the_published_way_is_uniform_over_informative_groups() -> None:
    counts = dict.fromkeys((1, 4, 5), 0)
    for seed in range(600):
        (one,) = choose(walk("published", pool_of(), 1, 100, random.Random(seed)), look_up)
        counts[one.order[2]] += 1
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
    assert best.order[2] == 5
    (half,) = choose(walk("near-half", pool_of(), 1, 100, random.Random(1)), look_up)
    assert half.order[2] == 1
    pool = [pooled("a", seq, step=seq) for seq in (1, 4, 5)]
    (fresh,) = choose(walk("freshest", pool, 1, 100, random.Random(1)), look_up)
    assert fresh.order[2] == 5


def test_the_author_quota_gives_each_author_a_turn() -> None:
    pool = [pooled("loud", seq) for seq in range(100, 150)] + [pooled("quiet", 1)]
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


def test_uniform_draws_from_all_groups_that_could_be_verified() -> None:
    """No filter: groups without information are chosen as often as others; refused ones never."""

    def verify(one):  # type: ignore[no-untyped-def]
        return None if one.order[2] == 2 else look_up(one)

    counts = dict.fromkeys(REWARDS, 0)
    for seed in range(800):
        (one,) = choose(walk("uniform", pool_of(), 1, 100, random.Random(seed)), verify)
        counts[one.order[2]] += 1
    assert counts.pop(2) == 0
    assert all(150 < count < 250 for count in counts.values()), counts


def test_the_least_spread_decides_what_informs() -> None:
    def verify(one):  # type: ignore[no-untyped-def]
        return (0.0, 0.01 * one.order[2])

    def chosen(selection: Selection, least_spread: float) -> set[int]:
        path = walk(selection, pool_of(), 5, 100, random.Random(1), None, least_spread)
        return {one.order[2] for one in choose(path, verify)}

    for selection in ("published", "best", "near-half"):
        assert chosen(selection, 0.0) == {1, 2, 3, 4, 5}
        assert chosen(selection, 0.03) == {3, 4, 5}
    assert chosen("uniform", 0.5) == {1, 2, 3, 4, 5}
