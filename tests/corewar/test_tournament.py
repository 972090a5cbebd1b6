"""Tournaments are battles added up: checked against battles fought one by one."""

from __future__ import annotations

import pytest

from shoal.corewar import assemble, fight, starter_set
from shoal.corewar.settings import Settings
from shoal.corewar.tournament import Pairing, benchmark, challenge, round_robin
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError

SETTINGS = Settings(cycles=2000)


@pytest.fixture(scope="module")
def warriors() -> list[Warrior]:
    known = starter_set()
    return [known[name] for name in ("dwarf", "imp", "paper", "mice")]


def test_a_round_robin_is_the_sum_of_its_battles(warriors: list[Warrior]) -> None:
    table = round_robin(warriors, SETTINGS, 20, seed=5)
    assert [(one.first, one.second) for one in table.pairings] == [
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    ]  # fmt: skip
    points = [0] * 4
    for pairing in table.pairings:
        pair = [warriors[pairing.first], warriors[pairing.second]]
        one, other = fight(pair, SETTINGS, 20, seed=5).standings()
        assert (pairing.wins, pairing.losses, pairing.ties) == (one.wins, one.losses, one.ties)
        points[pairing.first] += one.points
        points[pairing.second] += other.points
    assert {row.index: row.points for row in table.rows} == dict(enumerate(points))
    assert [row.points for row in table.rows] == sorted(points, reverse=True)
    assert all(row.rounds == 60 and row.score == pytest.approx(row.points / 0.6) for row in table.rows)


def test_the_table_does_not_depend_on_threads_nor_on_parts(
    warriors: list[Warrior], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = round_robin(warriors, SETTINGS, 10, seed=1, threads=1)
    monkeypatch.setattr("shoal.corewar.tournament.ROUNDS_PER_CALL", 10)
    calls: list[tuple[int, int]] = []
    parts = round_robin(
        warriors, SETTINGS, 10, seed=1, threads=2, progress=lambda done, total: calls.append((done, total))
    )
    assert parts == whole
    assert calls == [(done, 6) for done in range(7)]


def test_self_fights_add_one_battle_each(warriors: list[Warrior]) -> None:
    table = round_robin(warriors, SETTINGS, 10, self_fights=True)
    assert len(table.pairings) == 10
    assert {row.battles for row in table.rows} == {4}


def test_a_benchmark_score_is_the_mean_over_the_opponents(warriors: list[Warrior]) -> None:
    table = benchmark(warriors[:2], warriors[2:], SETTINGS, 25, seed=2)
    for row in table.rows:
        scores = [one.score for one in table.pairings if one.first == row.index]
        assert row.score == pytest.approx(sum(scores) / 2)


def test_a_challenge_has_one_row_and_a_pairing_per_opponent(warriors: list[Warrior]) -> None:
    table = challenge(warriors[0], warriors[1:], SETTINGS, 10)
    assert [row.name for row in table.rows] == [warriors[0].name]
    assert [one.second for one in table.pairings] == [0, 1, 2]


def test_equal_points_share_a_rank() -> None:
    imp = assemble("mov 0, 1")
    table = round_robin([imp, imp, assemble("dat 0, 0")], SETTINGS, 5)
    assert [(row.rank, row.index) for row in table.rows] == [(1, 0), (1, 1), (3, 2)]
    assert table.rows[0].score == pytest.approx(200.0)


def test_a_round_in_which_both_die_is_nobodys_win() -> None:
    doomed = assemble("nop 0, 0\ndat 0, 0")
    table = round_robin([doomed, doomed], Settings(stop="play-on"), 6)
    assert table.pairings[0] == Pairing(0, 1, wins=0, losses=6, ties=0, opponent_wins=0)
    assert [(row.wins, row.losses, row.points) for row in table.rows] == [(0, 6, 0), (0, 6, 0)]


def test_too_few_warriors_are_refused(warriors: list[Warrior]) -> None:
    with pytest.raises(ConfigError, match="two or more"):
        round_robin(warriors[:1])
    with pytest.raises(ConfigError, match="at least one of each"):
        benchmark(warriors, [])
