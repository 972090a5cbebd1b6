from __future__ import annotations

from hypothesis import given, strategies as st

from shoal.swarm.window import Window

numbers = st.lists(st.integers(1, 40), max_size=60)


@given(numbers, st.randoms())
def test_within_the_span_order_does_not_matter(marked: list[int], rng: object) -> None:
    shuffled = list(marked)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = Window(), Window()
    for number in marked:
        one.mark(number, 64)
    for number in shuffled + marked:
        other.mark(number, 64)
    seen = set(marked)
    assert [number in one for number in range(50)] == [number in seen for number in range(50)]
    assert (one.newest, one.contiguous, one.floor) == (other.newest, other.contiguous, other.floor)
    complete = 0
    while complete + 1 in seen:
        complete += 1
    assert one.contiguous == complete
    assert one.missing(45, 64, 100) == [number for number in range(45, 0, -1) if number not in seen]


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=50), st.integers(1, 64))
def test_it_stays_small_and_forgets_only_the_oldest(marked: list[int], span: int) -> None:
    window = Window()
    for number in marked:
        window.mark(number, span)
        assert window._bits.bit_length() <= span
    assert window.newest == max(marked)
    assert max(marked) in window
    assert window.floor >= max(0, max(marked) - span)


def test_settled_gaps_are_not_missing() -> None:
    window = Window()
    window.mark(5, 64)
    window.settle(5)
    assert window.contiguous == 5
    assert window.missing(7, 64, 10) == [7, 6]


@given(st.sets(st.integers(1, 60)), st.integers(0, 70), st.integers(1, 64), st.integers(0, 30))
def test_what_is_missing_is_named_from_both_ends(seen: set[int], claimed: int, span: int, limit: int) -> None:
    window = Window()
    for number in sorted(seen):
        window.mark(number, 64)
    lowest = max(0, max(claimed, max(seen, default=0)) - span)
    gaps = [number for number in range(claimed, lowest, -1) if number not in seen]
    found = window.missing(claimed, span, limit)
    if len(gaps) <= limit:
        assert found == gaps
    else:
        assert found == gaps[: limit - limit // 2] + gaps[len(gaps) - limit // 2 :]


def test_an_absurd_claim_costs_nothing() -> None:
    window = Window()
    window.mark(3, 64)
    assert window.missing(10**15, 64, 3) == [10**15, 10**15 - 1, 10**15 - 63]
