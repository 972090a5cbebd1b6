"""What a battle reports: outcomes, points, survival, DRQ's share, and the rules it refuses."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shoal.corewar import Settings, Warrior, assemble, fight, fight_all, hill, starter_set
from shoal.corewar.battle import Result
from shoal.corewar.mars.binding import Counts
from shoal.errors import ConfigError, ShoalError
from tests.corewar import reference
from tests.corewar.generator import random_warrior

IMP = assemble("mov 0, 1")
IDLE = assemble("jmp 0")
DIES = assemble("dat 0, 0")


def result_of(executed: list[list[int]], processes: list[list[int]], settings: Settings) -> Result:
    counts = Counts(*(np.array(rows, dtype=np.uint32) for rows in (executed, processes, processes)), None)
    return Result((IMP,) * len(executed[0]), settings, np.zeros_like(counts.executed), counts)


def share_by_definition(executed: list[int], processes: list[int], cycles: int) -> list[float]:
    """N / T * sum over cycles of alive / number alive, cycle by cycle as DRQ's released code counts it."""
    share = [0.0] * len(executed)
    for cycle in range(1, cycles + 1):
        alive = [bool(left) or cycle < last for left, last in zip(processes, executed, strict=True)]
        for index, lives in enumerate(alive):
            share[index] += lives / max(1, sum(alive)) / cycles * len(executed)
    return share


@given(st.data())
def test_share_is_what_its_definition_says(data: st.DataObject) -> None:
    cycles = data.draw(st.integers(1, 40))
    warriors = data.draw(st.integers(1, 6))
    executed, processes = [], []
    for _ in range(warriors):
        lives = data.draw(st.booleans())
        executed.append(cycles if lives else data.draw(st.integers(1, cycles)))
        processes.append(int(lives))
    result = result_of([executed], [processes], Settings(cycles=cycles, stop="play-on"))
    assert result.share[0] == pytest.approx(share_by_definition(executed, processes, cycles))
    assert result.share.sum() <= warriors + 1e-9


def test_two_imps_share_evenly() -> None:
    result = fight([IMP, IMP], hill("drq"), rounds=3)
    assert result.share.tolist() == [[1.0, 1.0]] * 3
    assert result.survival.tolist() == [[1.0, 1.0]] * 3
    assert result.outcome.tolist() == [[0, 0]] * 3


def test_the_survivor_earns_nearly_everything() -> None:
    result = fight([IDLE, DIES], hill("drq", cycles=100), rounds=1)
    assert result.outcome.tolist() == [[1, -1]]
    assert result.share.tolist() == [[2.0, 0.0]]
    assert result.survived_cycles.tolist() == [[100, 0]]


def test_play_on_goes_to_the_end_and_decision_does_not() -> None:
    assert fight([IDLE, DIES], hill("drq", cycles=500)).counts.executed.tolist() == [[500, 1]]
    assert fight([IDLE, DIES], hill("94", cycles=500)).counts.executed.tolist() == [[1, 1]]


def test_one_warrior_alone_plays_until_it_dies_or_the_cycles_end() -> None:
    assert fight([IDLE], Settings(cycles=300)).counts.executed.tolist() == [[300]]
    assert fight([DIES], Settings(cycles=300)).counts.executed.tolist() == [[1]]


def test_points_are_those_of_hills() -> None:
    warriors = [IDLE, IDLE, DIES]
    standings = fight(warriors, rounds=4).standings()
    assert [(s.wins, s.ties, s.losses) for s in standings] == [(0, 4, 0), (0, 4, 0), (0, 0, 4)]
    assert [s.points for s in standings] == [16, 16, 0]  # (3 * 3 - 1) // 2 survivors, four rounds
    assert [s.points for s in fight([IDLE, DIES], rounds=10).standings()] == [30, 0]
    assert [s.points for s in fight([IDLE, IDLE], rounds=10).standings()] == [10, 10]


def test_coverage_and_spawns() -> None:
    settings = Settings(cycles=20_000)
    imp = fight([IMP], settings, statistics=True)
    assert (imp.coverage.tolist(), imp.spawned.tolist()) == ([[8000]], [[0]])
    splitter = fight([assemble("spl 0\n jmp -1")], Settings(cycles=10), statistics=True)
    assert splitter.coverage.tolist() == [[2]]
    assert splitter.spawned.tolist() == [[6]]
    assert fight([DIES], settings, statistics=True).coverage.tolist() == [[0]]


def test_coverage_that_was_not_counted_is_refused() -> None:
    with pytest.raises(ConfigError, match="statistics=True"):
        _ = fight([IMP]).coverage


def test_the_same_seed_gives_the_same_battle_on_any_number_of_threads() -> None:
    warriors = list(starter_set().values())
    rng = random.Random(1)
    battles = [rng.sample(warriors, count) for count in (2, 2, 3, 10)]
    one = fight_all(battles, rounds=6, seed=5, statistics=True, threads=1)
    two = fight_all(battles, rounds=6, seed=5, statistics=True, threads=2)
    other = fight_all(battles, rounds=6, seed=6, statistics=True, threads=2)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.counts.executed, b.counts.executed)
        assert np.array_equal(a.coverage, b.coverage)
        assert np.array_equal(a.positions, b.positions)
    assert any(not np.array_equal(a.positions, b.positions) for a, b in zip(one, other, strict=True))


def test_the_reference_plays_the_starter_set_as_the_engine_does() -> None:
    settings = Settings(cycles=3000, stop="play-on")
    warriors = list(starter_set().values())
    result = fight(warriors, settings, rounds=1, seed=3, statistics=True)
    (expected,) = reference.play(warriors, result.positions.tolist(), settings)
    assert result.counts.executed.tolist() == [[f.executed for f in expected.fighters]]
    assert result.spawned.tolist() == [[f.spawned for f in expected.fighters]]
    assert result.coverage.tolist() == [[f.coverage for f in expected.fighters]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"core_size": 0}, "core_size is 0"),
        ({"core_size": 70_000}, "core_size is 70000"),
        ({"processes": 0}, "processes is 0: give a whole number from 1"),
        ({"cycles": -1}, "cycles is -1"),
        ({"length": 9000}, "length 9000 is more than the core size"),
        ({"distance": 50}, "distance 50 is less than length 100"),
        ({"pspace": 0}, "pspace is 0"),
        ({"stop": "never"}, "stop is 'never'"),
        ({"standard": "86"}, "standard is '86'"),
        ({"cycles": 1.5}, "cycles is 1.5"),
        ({"cycles": True}, "cycles is True"),
    ],
)
def test_impossible_settings_are_refused_with_the_remedy(change: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Settings(**change)  # type: ignore[arg-type]


def test_impossible_battles_are_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match="no hill is called 'everest'"):
        hill("everest")
    with pytest.raises(ConfigError, match="fewer warriors"):
        fight([IMP] * 40, Settings(core_size=800, length=21, distance=21))
    with pytest.raises(ConfigError, match="from 1 to 64"):
        fight([])
    with pytest.raises(ConfigError, match="assembled for core size 8000"):
        fight([IMP], hill("nano"))
    with pytest.raises(ConfigError, match="more than the 3 allowed"):
        fight([Warrior(IMP.code * 5)], Settings(length=3))
    with pytest.raises(ConfigError, match="position 8000 is outside"):
        fight([IMP], positions=[[8000]])
    with pytest.raises(ConfigError, match="positions"):
        fight([IMP], positions=[[-1]])
    with pytest.raises(ConfigError, match="one row per round with 2 numbers"):
        fight([IMP, IMP], positions=[[0]])
    with pytest.raises(ConfigError, match="threads is 0"):
        fight([IMP], threads=0)
    with pytest.raises(ConfigError, match="starts at 9000"):
        fight([Warrior(IMP.code, start=9000)])
    with pytest.raises(ConfigError, match="outside of the core"):
        fight([Warrior((IMP.code[0]._replace(a=9000),))])
    assert issubclass(ConfigError, ShoalError)


def test_random_warriors_have_equal_digests_only_when_equal() -> None:
    rng = random.Random(1)
    warriors = [random_warrior(rng, most=3) for _ in range(300)]
    assert len({w.digest for w in warriors}) == len({(w.code, w.start) for w in warriors})
    assert Warrior(IMP.code, name="a").digest == Warrior(IMP.code, name="b").digest
    assert Warrior(IMP.code, pin=1).digest != Warrior(IMP.code).digest


def test_wrong_kinds_of_arguments_are_told_apart() -> None:
    with pytest.raises(ConfigError, match=r"hill\(NAME\)"):
        fight([IMP], "nano")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="assemble its source"):
        fight(["mov 0, 1"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"seed is 1\.5"):
        fight([IMP], seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="2 rows of positions"):
        fight([IMP], rounds=5, positions=[[0], [1]])


def test_given_positions_are_copied() -> None:
    positions = np.array([[0, 4000]], dtype=np.uint32)
    result = fight([IMP, IDLE], positions=positions)
    positions[0, 1] = 7
    assert result.positions.tolist() == [[0, 4000]]


@pytest.mark.parametrize(
    "warrior",
    [
        Warrior((IMP.code[0]._replace(a=1.5),)),  # type: ignore[arg-type]
        Warrior((IMP.code[0]._replace(opcode=2**40),)),  # type: ignore[arg-type]
        Warrior((IMP.code[0]._replace(opcode=99),)),  # type: ignore[arg-type]
        Warrior(((1, 6, 1, 0, 1, 1),)),  # type: ignore[arg-type]
        Warrior([IMP.code[0]]),  # type: ignore[arg-type]
        Warrior(IMP.code, start=1.5),  # type: ignore[arg-type]
    ],
)
def test_programs_made_by_hand_are_checked(warrior: Warrior) -> None:
    with pytest.raises(ConfigError):
        fight([warrior])


def test_numpy_numbers_are_numbers() -> None:
    result = fight([IMP, IDLE], rounds=np.int64(2), seed=np.int64(3))  # type: ignore[arg-type]
    assert result.rounds == 2


def test_an_interrupt_ends_a_long_battle_after_its_round() -> None:
    """Also with P-space, whose rounds cannot be spread over threads."""
    code = (
        "from shoal.corewar import assemble, fight\n"
        "one = assemble('jmp 0\\n ldp 0, 1')\n"
        "print('begun', flush=True)\n"
        "fight([one, one], rounds=1_000_000)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)  # the battle would take a quarter of an hour
    assert b"KeyboardInterrupt" in error
