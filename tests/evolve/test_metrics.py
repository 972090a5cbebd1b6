"""Metrics by their definitions, on cases small enough to check by hand."""

from __future__ import annotations

import pytest
from hypothesis import given

from shoal.errors import ConfigError
from shoal.evolve import Archive, Axis, Duel, Elite, Evaluation, Origin, generality
from shoal.evolve.metrics import (
    Contribution,
    contributions,
    merge_common,
    merge_raw,
    niche_novelty,
    qd_score,
    summarise_archive,
)
from tests.evolve.elites import AXES, archive, batches

LINE = (Axis("place", (1, 2, 3)),)


def scored(name: str, fitness: float, place: float, evaluator: str = "now", model: str = "m") -> Elite:
    found = Evaluation(evaluator, "", 1, fitness, 0, {"place": place})
    return Elite(name, name, (found,), Origin(model))


def test_summary_by_hand() -> None:
    one = Archive(
        LINE, "now", [scored("a", 0.5, 0), scored("b", 2.0, 1), scored("c", 1.5, 1), scored("d", -1, 9)]
    )
    assert summarise_archive(one) == (3, 4, 0.75, 1.5, 0.375, 2.0, 0.5)
    assert qd_score(one, offset=-1) == 4.5
    assert summarise_archive(one, offset=-1).normalised_qd_score == 4.5 / 4
    assert summarise_archive(Archive(LINE, "now")) == (0, 4, 0.0, 0.0, 0.0, None, None)


@given(batches)
def test_equal_archives_have_equal_numbers(some: list[Elite]) -> None:
    assert summarise_archive(archive(some)) == summarise_archive(archive(some[::-1]))


def test_the_raw_merge_compares_unlike_numbers_and_the_common_one_does_not() -> None:
    few = Archive(
        LINE, "2 opponents", [scored("a", 0.9, 0, "2 opponents"), scored("b", 0.8, 1, "2 opponents")]
    )
    many = Archive(LINE, "20 opponents", [scored("c", 3.0, 0, "20 opponents")])
    raw = merge_raw([few, many])
    assert [elite.digest for elite in raw] == ["c", "b"]
    assert qd_score(raw) == 3.8

    def again(elites: object) -> list[Evaluation]:
        numbers = {"a": (1.0, 0), "b": (0.7, 2), "c": (0.6, 0)}
        return [
            Evaluation("common", "", 1, numbers[e.digest][0], 0, {"place": numbers[e.digest][1]})
            for e in elites
        ]  # type: ignore[attr-defined]

    common = merge_common([few, many], again)
    assert [(cell, elite.digest) for cell, elite in common.items()] == [((0,), "a"), ((2,), "b")]
    assert qd_score(common) == 1.7
    assert merge_common([many, few], again) == common
    assert merge_raw([many, few]) == raw


def test_merging_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="no archive"):
        merge_raw([])
    with pytest.raises(ConfigError, match="different axes"):
        merge_raw([Archive(LINE, "a"), Archive(AXES, "a")])
    with pytest.raises(ConfigError, match="one evaluation per program"):
        merge_common([Archive(LINE, "now", [scored("a", 1, 0)])], lambda elites: [])
    assert len(merge_common([Archive(LINE, "now")], lambda elites: [])) == 0


def test_niche_novelty() -> None:
    previous = Archive(LINE, "now", [scored("a", 1, 0), scored("b", 1, 1)])
    assert niche_novelty([(0,), (2,), (3,), (3,)], previous) == 0.75
    assert niche_novelty([(0,)], None) is None, "a first round has nothing to compare with"
    assert niche_novelty([], previous) is None


def test_who_filled_which_cell() -> None:
    fills = [
        ((0,), "x"),
        ((1,), "y"),
        ((0,), "y"),
        ((2,), "x"),
        ((0,), "x"),
        ((2,), "x"),
    ]
    assert contributions(fills) == {"x": Contribution(2, 2, 1), "y": Contribution(1, 1, 1)}
    assert contributions([]) == {}


def test_generality_by_both_definitions() -> None:
    duels = [
        Duel("a", 1.2, 0.8, 9),
        Duel("b", 1.0, 1.0, 9),
        Duel("c", 1.0, 1.0 + 1e-12, 9),
        Duel("d", 0.5, 1.5, 9),
    ]
    found = generality(duels, "them")
    assert (found.name, found.opponents, found.wins, found.ties, found.losses) == ("them", 4, 1, 2, 1)
    assert found.win_rate == 0.25, "DEI's: a tie is no win"
    assert found.defeated_or_tied == 0.75, "DRQ's"
    assert found.points_percent == pytest.approx(100 * 5 / 12)
    assert generality([]).win_rate == generality([]).defeated_or_tied == 0.0
    assert Duel("a", 1.0, 1.00001, 9).outcome == "loss"
