"""The comparison of nodes in and out of the swarm, against scipy and against counting by hand."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, strategies as st

from shoal.judge.comparison import FEWEST_NODES, MOST_EXACT, MOST_ROUNDS, adjust, compare, mann_whitney
from shoal.runs.judging import Entrant

few = st.lists(st.integers(0, 6), min_size=1, max_size=6)
many = st.lists(st.integers(0, 30), min_size=MOST_EXACT, max_size=60)
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(few, few)
def test_few_values_are_compared_by_counting_all_orders(ours: list[int], theirs: list[int]) -> None:
    """With ties too: every choice of as many values as ours have, by their mean ranks."""
    values = sorted([*ours, *theirs])
    rank = {value: (2 * values.index(value) + values.count(value) + 1) / 2 for value in values}
    found = sum(rank[value] for value in ours)
    sums = [
        sum(rank[[*ours, *theirs][place]] for place in chosen)
        for chosen in itertools.combinations(range(len(values)), len(ours))
    ]
    below, above = sum(one <= found for one in sums), sum(one >= found for one in sums)
    assert mann_whitney(ours, theirs) == pytest.approx(min(1.0, 2 * min(below, above) / len(sums)))


@given(st.permutations(range(12)), st.integers(1, 11))
def test_few_values_without_ties_are_as_scipy_has_them(order: list[int], count: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    ours, theirs = order[:count], order[count:]
    expected = stats.mannwhitneyu(ours, theirs, method="exact").pvalue
    assert mann_whitney(ours, theirs) == pytest.approx(expected)


@given(many, many)
def test_many_values_are_as_scipy_has_them(ours: list[int], theirs: list[int]) -> None:
    stats = pytest.importorskip("scipy.stats")
    expected = stats.mannwhitneyu(ours, theirs, method="asymptotic").pvalue
    assert mann_whitney(ours, theirs) == pytest.approx(1.0 if math.isnan(expected) else expected)


@given(probabilities)
def test_adjustment_is_as_scipy_has_it(values: list[float]) -> None:
    stats = pytest.importorskip("scipy.stats")
    assert adjust(values) == pytest.approx(list(stats.false_discovery_control(values)))


def test_one_value_a_side_and_equal_values_show_nothing() -> None:
    assert mann_whitney([1.0], [2.0]) == 1.0
    assert mann_whitney([1.0] * 5, [1.0] * 7) == 1.0
    assert mann_whitney([1.0] * 40, [1.0] * 40) == 1.0
    assert mann_whitney([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert adjust([]) == []


def entrant(place: int, alone: bool, rewards: list[float], model: str = "table:small") -> Entrant:
    return Entrant(place, f"author {place}", 1, model, alone, rewards=rewards, right=int(sum(rewards)))


def test_a_difference_is_found_from_the_round_on_where_it_begins() -> None:
    """Six against six; the swarm answers rightly from round 10 on, the others never do."""
    ours = [entrant(place, False, [0.0] * 10 + [1.0] * 20) for place in range(6)]
    theirs = [entrant(place + 6, True, [0.0] * 30) for place in range(6)]
    (found,) = compare([*ours, *theirs])
    assert (found.nodes_swarm, found.nodes_alone, found.from_round) == (6, 6, 11)
    assert [test.round for test in found.tests] == list(range(1, 31))
    assert [test.p for test in found.tests[:10]] == [1.0] * 10
    assert all(test.adjusted >= test.p for test in found.tests if test.adjusted is not None and test.p)
    assert found.tests[-1].mean_swarm == 20.0
    assert found.tests[-1].mean_alone == 0.0
    assert found.found.startswith("the swarm has more from round 11 on (6 in the swarm, 6 alone;")


def test_sides_that_do_the_same_show_no_difference() -> None:
    rewards = [[float((place + number) % 3 == 0) for number in range(40)] for place in range(12)]
    (found,) = compare([entrant(place, place % 2 == 0, one) for place, one in enumerate(rewards)])
    assert found.from_round is None
    assert found.found.startswith("no difference can be shown (6 in the swarm, 6 alone; up to round 40")


def test_too_few_nodes_are_not_tested() -> None:
    """Also at late rounds that only a few nodes reached."""
    short = [entrant(place, False, [1.0] * 5) for place in range(FEWEST_NODES)]
    long = [entrant(9, False, [1.0] * 9)]
    theirs = [entrant(place + 20, True, [0.0] * 9) for place in range(FEWEST_NODES)]
    (found,) = compare([*short, *long, *theirs])
    assert [test.p is None for test in found.tests] == [False] * 5 + [True] * 4
    assert found.tests[-1].nodes_swarm == 1
    (found,) = compare([*short[1:], *theirs])
    assert all(test.p is None for test in found.tests)
    assert found.found == "too few nodes (3 in the swarm, 4 alone): a test needs 4 on each side"
    (found,) = compare(short)
    assert found.tests == []


def test_models_are_compared_apart_and_adjusted_together() -> None:
    better = [entrant(place, place >= 4, [float(place < 4)] * 6, "a") for place in range(8)]
    same = [entrant(place + 8, place >= 4, [1.0] * 6, "b") for place in range(8)]
    alone, together = compare(better), compare([*better, *same])
    assert [one.model for one in together] == ["a", "b"]
    assert together[0].tests[0].p == alone[0].tests[0].p == pytest.approx(2 / 70)
    assert alone[0].tests[0].adjusted == pytest.approx(2 / 70)
    assert together[0].tests[0].adjusted == pytest.approx(4 / 70), "half of the tests show nothing"
    assert together[0].from_round is None


def test_long_runs_are_tested_at_evenly_spaced_rounds() -> None:
    found = compare([entrant(place, place >= 5, [0.0] * 3000) for place in range(10)])
    rounds = [test.round for test in found[0].tests]
    assert len(rounds) == MOST_ROUNDS
    assert rounds[0] == 15
    assert rounds[-1] == 3000


def test_a_board_without_rounds_has_nothing_to_compare() -> None:
    assert compare([]) == []
    assert compare([entrant(1, True, [])]) == []
