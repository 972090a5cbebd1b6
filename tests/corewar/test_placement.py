"""Where warriors stand: legal, reproducible, evenly spread; pMARS's own scheme from recorded places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shoal.corewar import Settings, assemble
from shoal.corewar.mars.placement import (
    all_positions,
    pmars_fixed_seed,
    pmars_positions,
    pmars_series_seed,
    random_positions,
)
from shoal.errors import ConfigError


def distances(row: list[int], size: int) -> list[int]:
    ring = sorted(row)
    return [(b - a) % size or size for a, b in zip(ring, ring[1:] + ring[:1], strict=True)]


@given(
    st.integers(1, 12),
    st.integers(0, 60),
    st.integers(0, 300),
    st.integers(-(2**63), 2**64 - 1),
    st.booleans(),
)
def test_places_are_legal(warriors: int, distance: int, spare: int, seed: int, as_pmars: bool) -> None:
    size = warriors * max(1, distance) + spare
    settings = Settings(core_size=size, length=distance, distance=distance)
    if as_pmars:
        positions = pmars_positions(settings, warriors, 5, abs(seed) % 2147483647)
    else:
        positions = random_positions(settings, warriors, 5, seed)
    assert positions.shape == (5, warriors)
    for row in positions.tolist():
        assert row[0] == 0
        assert all(0 <= place < size for place in row)
        assert min(distances(row, size)) >= max(1, distance)


def test_a_round_depends_on_seed_and_number_only() -> None:
    settings = Settings()
    whole = random_positions(settings, 5, 20, seed=7)
    assert np.array_equal(whole[8:], random_positions(settings, 5, 12, seed=7, first_round=8))
    assert not np.array_equal(whole, random_positions(settings, 5, 20, seed=8))


def test_places_are_evenly_spread() -> None:
    settings = Settings(core_size=30, length=2, distance=2)
    places = random_positions(settings, 2, 60_000, seed=1)[:, 1]
    counts = np.bincount(places, minlength=30)
    assert counts[:2].sum() == 0
    assert counts[29] == 0
    expected = 60_000 / 27
    chi_square = float((((counts[2:29] - expected) ** 2) / expected).sum())
    assert chi_square < 60  # 26 degrees of freedom: beyond 60 once in 6,000 seeds, and this seed is fixed


RECORDED = [
    # From pMARS 0.9.2: warriors, distance, -F, and the places it chose in a core of 8000.
    (2, 100, 4000, [0, 4000]),
    (10, 700, 5203, [0, 5708, 4975, 3381, 2673, 1904, 7282, 6453, 4086, 939]),
    (10, 700, 4603, [0, 4050, 7287, 6433, 801, 3315, 2566, 4772, 5621, 1542]),
    (10, 700, 3954, [0, 2194, 6466, 5753, 3275, 1463, 7174, 722, 4175, 5035]),
]


@pytest.mark.parametrize(("warriors", "distance", "fixed", "places"), RECORDED)
def test_places_recorded_from_pmars(warriors: int, distance: int, fixed: int, places: list[int]) -> None:
    settings = Settings(distance=distance)
    seed = pmars_fixed_seed(settings, fixed)
    assert pmars_positions(settings, warriors, 1, seed).tolist() == [places]


def test_the_seed_of_a_fixed_series_recorded_from_pmars() -> None:
    settings = Settings()
    for first, place in (
        ("dat.f $0, $0", 4022),
        ("dat.f >0, $0", 2246),
        ("stp.f $0, $0", 7255),
        ("jmp.f $0, $0", 5861),
    ):
        warriors = [assemble(first), assemble("jmp 7, 77")]
        assert pmars_positions(settings, 2, 1, pmars_series_seed(warriors)).tolist() == [[0, place]]


def test_all_positions_holds_each_place_twice() -> None:
    settings = Settings(core_size=20, length=3, distance=3)
    assert all_positions(settings)[:, 1].tolist() == [place for place in range(3, 18) for _ in range(2)]


def test_a_fixed_position_outside_of_the_room_is_refused() -> None:
    for position in (99, (1 << 30) + 1):
        with pytest.raises(ConfigError, match=f"fixed position {position}"):
            pmars_fixed_seed(Settings(), position)
