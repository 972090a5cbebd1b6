"""The laws of the archive, for any programs in any order, and what it says when it cannot go on."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, strategies as st

from shoal.errors import ConfigError, DomainError, RunError
from shoal.evolve import MIXED, Archive, Axis, Elite, Evaluation, cell_of, load
from shoal.evolve.archive import EVALUATIONS_KEPT, better
from shoal.evolve.domains.corewar import COVERAGE, LENGTH, OPCODES, SPAWNED
from shoal.evolve.metrics import coverage
from tests.evolve.elites import AXES, archive, batches, elite, elites, evaluation


@given(batches, batches)
def test_merge_is_commutative(ours: list[Elite], theirs: list[Elite]) -> None:
    assert archive(ours).merge(archive(theirs)) == archive(theirs).merge(archive(ours))


@given(batches, batches, batches)
def test_merge_is_associative(a: list[Elite], b: list[Elite], c: list[Elite]) -> None:
    one, two, three = archive(a), archive(b), archive(c)
    assert one.merge(two).merge(three) == one.merge(two.merge(three))


@given(batches)
def test_merge_is_idempotent_and_empty_is_neutral(some: list[Elite]) -> None:
    one = archive(some)
    assert one.merge(one) == one == one.merge(archive([]))


@given(batches, batches)
def test_merging_is_adding_everything_to_one(ours: list[Elite], theirs: list[Elite]) -> None:
    assert archive(ours).merge(archive(theirs)) == archive(ours + theirs)


@given(batches, st.randoms(use_true_random=False))
def test_the_order_and_number_of_adds_do_not_matter(some: list[Elite], rng: random.Random) -> None:
    shuffled = some + some[: len(some) // 2]
    rng.shuffle(shuffled)
    assert archive(shuffled) == archive(some)
    assert archive(shuffled).snapshot() == archive(some).snapshot()


@given(batches, elites)
def test_an_elite_leaves_its_cell_only_for_a_better_one(some: list[Elite], new: Elite) -> None:
    grown = archive(some)
    before = dict(grown.items())
    placed = grown.add(new)
    for cell, held in before.items():
        now = grown.get(cell)
        assert now is not None
        assert now == held or (cell == placed.cell and now == new and better(new, held, "now"))
        assert grown.fitness(now) >= grown.fitness(held)
    assert coverage(grown) >= len(before) / grown.capacity
    assert len(grown) == len(before) + (placed.status == "new")
    replaced = placed.cell in before and grown.get(placed.cell) != before[placed.cell]
    assert placed.displaced == (before[placed.cell] if replaced else None)


@given(batches)
def test_every_elite_is_in_its_own_cell_and_the_best_is_the_best(some: list[Elite]) -> None:
    one = archive(some)
    assert all(one.cell(held) == cell for cell, held in one.items())
    if some:
        assert one.best is not None
        assert one.fitness(one.best) == max(held.evaluation("now").fitness for held in some)


@given(batches)
def test_rescoring_is_placing_anew(some: list[Elite]) -> None:
    one = archive(some)
    held = list(one)
    again = {e.digest: evaluation(int(e.source.split()[1]), "later") for e in held}
    report = one.rescore(again)
    if held:
        assert one == Archive(AXES, "later", [e.with_evaluation(again[e.digest]) for e in held])
    assert {e.digest for e in held} == {e.digest for e in one} | {e.digest for e in report.displaced}
    assert not {e.digest for e in one} & {e.digest for e in report.displaced}


def test_a_lower_score_moves_an_elite_or_costs_it_its_place() -> None:
    def scored(name: str, fitness: float, width: float) -> Elite:
        return Elite(name, name, (Evaluation("now", "", 1, fitness, 0, {"width": width, "depth": 0}),))

    one = archive([scored("a", 5, 0), scored("b", 3, 2)])
    lower = Evaluation("now", "", 1, 1.0, 0, {"width": 2, "depth": 0})
    report = one.rescore({"a": lower})
    assert [e.digest for e in one] == ["b"]
    assert [e.digest for e in report.displaced] == ["a"]
    higher = Evaluation("now", "", 1, 0.5, 0, {"width": 9, "depth": 9})
    assert one.rescore({"b": higher}).moved == ("b",)
    assert one.best is not None
    assert one.fitness(one.best) == 0.5


def test_a_new_evaluator_needs_all_elites_and_changes_nothing_otherwise() -> None:
    one = archive([elite(number) for number in range(20)])
    before = one.snapshot()
    first = next(iter(one))
    with pytest.raises(ConfigError, match="evaluate them too"):
        one.rescore({first.digest: evaluation(0, "later")})
    assert one.snapshot() == before
    with pytest.raises(ConfigError, match="only one can be compared"):
        one.rescore({"x": evaluation(0, "a"), "y": evaluation(0, "b")})


def test_remove_empties_the_cell() -> None:
    one = archive([elite(number) for number in range(20)])
    first = next(iter(one))
    assert first.digest in one
    assert one.find(first.digest) == first
    assert one.remove(first.digest) == [first]
    assert first.digest not in one
    assert one.remove(first.digest) == []


def test_unlike_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="was not evaluated by 'now'"):
        archive([elite(1, evaluator="later")])
    with pytest.raises(ConfigError, match="Re-score both"):
        archive([]).merge(Archive(AXES, "later"))
    mixed = Archive(AXES, MIXED, [elite(1, evaluator="later"), elite(2, evaluator="now")])
    assert 1 <= len(mixed) <= 2


def test_sampling_is_uniform_over_cells_and_depends_on_content_only() -> None:
    one, other = (archive([elite(number) for number in order]) for order in (range(30), reversed(range(30))))
    drawn = [one.sample(random.Random(seed)).digest for seed in range(400)]
    assert drawn == [other.sample(random.Random(seed)).digest for seed in range(400)]
    assert set(drawn) == {e.digest for e in one}
    with pytest.raises(ConfigError, match="empty"):
        archive([]).sample(random.Random(0))


def test_drq_bins() -> None:
    assert [SPAWNED.bin(value) for value in (0, 0.99, 1, 9, 10, 999, 1000, 9999, 10_000, 1e9)] == [
        0,
        0,
        1,
        1,
        2,
        3,
        4,
        4,
        5,
        5,
    ]
    assert [COVERAGE.bin(value) for value in (1, 10, 99.9, 100, 500, 1000, 3999, 4000, 8000)] == [
        0,
        1,
        1,
        2,
        3,
        4,
        4,
        5,
        5,
    ]
    assert [LENGTH.bin(value) for value in (4, 5, 12, 20, 35, 60)] == list(range(6))
    assert [OPCODES.bin(value) for value in (3, 4, 6, 8, 10, 14)] == list(range(6))
    assert Archive((SPAWNED, COVERAGE), "x").capacity == 36
    assert [SPAWNED.label(index) for index in (0, 1, 5)] == ["<1", "1–10", "≥10000"]


@pytest.mark.parametrize("edges", [(), (1, 1), (2, 1), (float("nan"),), (1, float("inf"))])
def test_bad_edges_are_named(edges: tuple[float, ...]) -> None:
    with pytest.raises(ConfigError, match="axis 'width'"):
        Axis("width", edges)


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(DomainError, match="no measure depth"):
        cell_of(AXES, {"width": 1})
    for mean, variance, count in (
        (float("nan"), 0, 1),
        (float("-inf"), 0, 1),
        (0, -1, 1),
        (0, float("nan"), 1),
        (0, 0, 0),
    ):
        with pytest.raises(DomainError):
            Evaluation("now", "", count, mean, variance, {})
    with pytest.raises(DomainError, match="not finite"):
        Evaluation("now", "", 1, 0, 0, {"width": float("inf")})
    with pytest.raises(ConfigError, match="axes"):
        Archive((AXES[0], AXES[0]), "now")


def test_an_elite_remembers_a_bounded_number_of_evaluations() -> None:
    one = elite(1)
    for number in range(50):
        one = one.with_evaluation(evaluation(1, f"round {number}")).with_evaluation(
            evaluation(1, f"round {number}")
        )
    assert [e.evaluator for e in one.evaluations] == [
        f"round {number}" for number in range(50 - EVALUATIONS_KEPT, 50)
    ]


@given(batches)
def test_a_snapshot_loads_as_the_same_archive(some: list[Elite]) -> None:
    one = archive(some)
    assert load(one.snapshot()) == one
    assert load(one.snapshot()).snapshot() == one.snapshot()


@given(st.binary(max_size=200))
def test_any_other_bytes_raise_a_run_error(some: bytes) -> None:
    with pytest.raises(RunError):
        load(some)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_snapshot_raises_a_run_error(place: int, byte: int) -> None:
    whole = archive([elite(number) for number in range(8)]).snapshot()
    damaged = bytearray(whole)
    damaged[place % len(whole)] = byte
    try:
        assert load(bytes(damaged)) == load(whole)
    except RunError:
        return
    assert damaged == whole or damaged.strip() == whole.strip() or bytes([byte]).isspace()


def test_a_snapshot_says_what_it_is() -> None:
    whole = msgspec.json.decode(archive([elite(1)]).snapshot())
    for change, message in (
        ({"version": 2}, "version 2"),
        ({"format": "x"}, "not an archive"),
        ({"checksum": "0"}, "damaged"),
    ):
        with pytest.raises(RunError, match=message):
            load(msgspec.json.encode(whole | change))
    with pytest.raises(RunError):
        load(archive([elite(1)]).snapshot()[:-20])
