"""The pool is bounded, and its content does not depend on the order of arrival."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings, strategies as st

from shoal.policy.pool import Pool, Pooled, PoolLimits, PoolSnapshot
from tests.policy.small_groups import pooled

AUTHORS = ("a", "b", "c")


def arrivals(names: list[tuple[str, int]], step: int = 0) -> list[Pooled[str]]:
    return [pooled(author, seq, step) for author, seq in names]


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
        pool: Pool[str] = Pool(limits)
        pool.take_in(arrivals(order))
        pools.append([one.order for one in pool])
        assert len(pool) <= most
        for author in AUTHORS:
            assert sum(one.author == author for one in pool) <= most_of_author
    assert pools[0] == pools[1]


def test_duplicates_change_nothing() -> None:
    pool: Pool[str] = Pool(PoolLimits())
    pool.take_in(arrivals([("a", 1), ("b", 1)]))
    before = [one.order for one in pool]
    dropped = pool.take_in(arrivals([("a", 1), ("b", 1)], step=1))
    assert [one.order for one in pool] == before
    assert dropped == {"same task again": 2}


def test_a_loud_author_gives_way_first() -> None:
    pool: Pool[str] = Pool(PoolLimits(groups=6))
    pool.take_in(arrivals([("loud", n) for n in range(1, 20)] + [("b", 1), ("c", 1)]))
    held = sorted(one.author for one in pool)
    assert held == ["b", "c", "loud", "loud", "loud", "loud"]


def test_bytes_are_bounded() -> None:
    pool: Pool[str] = Pool(PoolLimits(bytes=3000))
    pool.take_in(arrivals([("a", n) for n in range(1, 20)]))
    assert sum(one.size for one in pool) <= 3000


def test_a_pool_is_kept_whole() -> None:
    pool: Pool[str] = Pool(PoolLimits())
    pool.take_in(arrivals([("a", 1), ("b", 2)], step=3))
    stored = msgspec.json.encode(pool.snapshot())
    again = Pool(PoolLimits(), msgspec.json.decode(stored, type=PoolSnapshot[str]))
    assert [one.order for one in again] == [one.order for one in pool]
    assert again.take_in(arrivals([("a", 1)], step=4)) == {"same task again": 1}


def test_stale_groups_and_groups_of_one_author_are_removed() -> None:
    pool: Pool[str] = Pool(PoolLimits(staleness=5))
    pool.take_in([pooled("a", 1, step=0), pooled("a", 2, step=3), pooled("b", 1, step=3)])
    assert pool.drop_stale(5) == 0
    assert pool.drop_stale(6) == 1
    assert [one.item for one in pool] == ["a 2", "b 1"]
    assert pool.forget("a") == 1
    assert [one.item for one in pool] == ["b 1"]
