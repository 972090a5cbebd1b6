"""Every round against pMARS: results of series, whole cores, P-space, the option letters.

The outside program is built by `build_pmars.sh`; see pmars.py for where it is looked for.
"""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from shoal.corewar.battle import Result, fight
from shoal.corewar.instruction import EMPTY, Instruction, Mode, Modifier, Opcode
from shoal.corewar.mars import engine
from shoal.corewar.mars.binding import Series, decode
from shoal.corewar.mars.placement import (
    all_positions,
    pmars_fixed_seed,
    pmars_positions,
    pmars_series_seed,
)
from shoal.corewar.redcode import assemble, disassemble
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.corewar.warriors import starter_set
from tests.corewar.generator import final_core, random_warrior
from tests.oracles.pmars import PMARS, PMARS_DEBUG, WARRIORS, needs_pmars, options

pytestmark = needs_pmars


def write(warriors: list[Warrior], folder: Path) -> list[str]:
    paths = []
    for number, warrior in enumerate(warriors):
        path = folder / f"{number}.red"
        path.write_text(disassemble(warrior), encoding="latin-1")
        paths.append(str(path))
    return paths


def scores_of_pmars(
    warriors: list[Warrior], settings: Settings, rounds: int, folder: Path, how: list[str]
) -> list[list[int]]:
    """Per warrior: rounds survived with 1, 2, … survivors. What -k prints, brought into one form."""
    command = [str(PMARS), "-b", "-k", "-r", str(rounds), *options(settings), *how, *write(warriors, folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [[int(word) for word in line.split()] for line in done.stdout.splitlines() if line.strip()]
    assert len(rows) == len(warriors), done.stdout
    return [row if len(warriors) == 2 else row[1:-1] for row in rows]


def scores_of(result: Result) -> list[list[int]]:
    return [list(standing.survived) for standing in result.standings()]


def play_fixed(warriors: list[Warrior], settings: Settings, rounds: int, position: int) -> Result:
    seed = pmars_fixed_seed(settings, position)
    return fight(warriors, settings, positions=pmars_positions(settings, len(warriors), rounds, seed))


SHAPES = (
    # warriors, core size, processes, length, distance, cycles
    (2, 8000, 8000, 100, 100, 2000),
    (2, 8000, 64, 100, 100, 2000),
    (2, 8000, 1, 100, 100, 500),
    (2, 800, 800, 20, 20, 3000),
    (2, 80, 80, 5, 5, 800),
    (2, 8191, 8000, 100, 100, 1500),
    (2, 55440, 10000, 200, 200, 1500),
    (3, 8000, 8000, 100, 100, 1500),
    (5, 801, 64, 20, 20, 1500),
    (10, 8000, 8000, 100, 700, 800),
    (12, 8000, 64, 100, 600, 800),
    (20, 8000, 8000, 100, 350, 600),
    (36, 8000, 8000, 100, 100, 400),
    (36, 8000, 1, 100, 200, 300),
    (4, 8192, 256, 300, 300, 1500),
)


@pytest.mark.parametrize("batch", range(15))
def test_random_warriors_end_every_series_as_in_pmars(batch: int, tmp_path: Path) -> None:
    """15 shapes x 8 series x 20 rounds = 2,400 battles. pMARS prints sums, so that each series is played with
    1, 2, … 20 rounds: equal sums of all beginnings mean that every single round ended alike."""
    rng = random.Random(1000 + batch)
    count, core_size, processes, length, distance, cycles = SHAPES[batch]
    settings = Settings(core_size, cycles, processes, length, distance)
    for _ in range(8):
        warriors = [random_warrior(rng, core_size, most=min(29, length), number=k) for k in range(count)]
        position = rng.choice((rng.randint(distance, core_size - distance), rng.randint(core_size, 1 << 30)))
        for rounds in range(1, 21):
            theirs = scores_of_pmars(warriors, settings, rounds, tmp_path, ["-F", str(position)])
            assert scores_of(play_fixed(warriors, settings, rounds, position)) == theirs


@pytest.mark.parametrize("seed", range(40))
def test_single_rounds_end_as_in_pmars(seed: int, tmp_path: Path) -> None:
    """One round per call, so that each outcome is compared by itself and not only their sum."""
    rng = random.Random(seed)
    settings = Settings(
        core_size=800, cycles=1000, processes=rng.choice((1, 64, 800)), length=20, distance=20
    )
    warriors = [random_warrior(rng, 800, most=20, number=k) for k in range(2)]
    for _ in range(4):
        position = rng.randint(20, 780)
        theirs = scores_of_pmars(warriors, settings, 1, tmp_path, ["-F", str(position)])
        assert scores_of(play_fixed(warriors, settings, 1, position)) == theirs


@pytest.mark.parametrize("seed", range(30))
def test_pspace_is_kept_over_rounds_as_in_pmars(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    count = rng.choice((2, 2, 3))
    core_size = rng.choice((800, 801, 799))
    settings = Settings(
        core_size, cycles=500, processes=8, length=12, distance=12, pspace=rng.choice((None, 1, 3))
    )
    warriors = [random_warrior(rng, core_size, most=12, pspace=True, number=k) for k in range(count)]
    position = rng.randint(12, core_size - 12)
    theirs = scores_of_pmars(warriors, settings, 25, tmp_path, ["-F", str(position)])
    assert scores_of(play_fixed(warriors, settings, 25, position)) == theirs


def test_the_starter_set_ends_every_series_as_in_pmars(tmp_path: Path) -> None:
    settings = Settings()
    warriors = list(starter_set().values())
    rng = random.Random(7)
    for first in warriors:
        second = rng.choice(warriors)
        position = rng.randint(100, 7900)
        for rounds in range(1, 11):
            theirs = scores_of_pmars([first, second], settings, rounds, tmp_path, ["-F", str(position)])
            assert scores_of(play_fixed([first, second], settings, rounds, position)) == theirs
    theirs = scores_of_pmars(warriors, settings, 10, tmp_path, ["-F", "4321"])
    assert scores_of(play_fixed(warriors, settings, 10, 4321)) == theirs


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_the_series_of_option_f(count: int, tmp_path: Path) -> None:
    rng = random.Random(count)
    settings = Settings(core_size=800, cycles=1000, processes=800, length=20, distance=20)
    for _ in range(5):
        warriors = [random_warrior(rng, 800, most=20, number=k) for k in range(count)]
        positions = pmars_positions(settings, count, 20, pmars_series_seed(warriors))
        theirs = scores_of_pmars(warriors, settings, 20, tmp_path, ["-f"])
        assert scores_of(fight(warriors, settings, positions=positions)) == theirs


def test_all_positions_of_option_P(tmp_path: Path) -> None:
    rng = random.Random(3)
    settings = Settings(core_size=80, cycles=200, processes=80, length=5, distance=5)
    for _ in range(5):
        warriors = [random_warrior(rng, 80, most=5, number=k) for k in range(2)]
        positions = all_positions(settings)
        theirs = scores_of_pmars(warriors, settings, len(positions), tmp_path, ["-P"])
        assert scores_of(fight(warriors, settings, positions=positions)) == theirs


LINE = re.compile(r"(\d{5})\s+([A-Z]{3})\.([A-Z]{1,2})\s+([#$*@{<}>])\s*(-?\d+), ([#$*@{<}>])\s*(-?\d+)")
EMPTY_LINE = re.compile(r"(\d{5})\s*$")


def core_of_pmars(
    warriors: list[Warrior], settings: Settings, position: int, steps: int, folder: Path
) -> list[Instruction]:
    """The core after `steps` instructions of the first round, from pMARS's debugger."""
    command = [
        str(PMARS_DEBUG),
        "-b",
        "-e",
        *options(settings),
        "-F",
        str(position),
        *write(warriors, folder),
    ]
    orders = f"skip {steps - 1}\nlist 0,{settings.core_size - 1}\na\nquit\n"
    done = subprocess.run(command, input=orders, capture_output=True, text=True, timeout=120)
    core: list[Instruction | None] = [None] * settings.core_size
    for line in done.stdout.splitlines():
        if found := LINE.search(line):
            address, opcode, modifier, a_mode, a, b_mode, b = found.groups()
            core[int(address)] = Instruction(
                Opcode[opcode],
                Modifier[modifier],
                Mode("#$*@{<}>".index(a_mode)),
                int(a) % settings.core_size,
                Mode("#$*@{<}>".index(b_mode)),
                int(b) % settings.core_size,
            )
        elif found := EMPTY_LINE.search(line):
            core[int(found[1])] = EMPTY
    assert None not in core, f"{core.count(None)} cells are missing in the dump: {done.stdout[:300]}"
    return [cell for cell in core if cell is not None]


@pytest.mark.parametrize("batch", range(20))
def test_whole_cores_are_as_in_pmars(batch: int, tmp_path: Path) -> None:
    """20 x 25 = 500 cores, each from the fast loops where the steps fill whole cycles, else stepped."""
    rng = random.Random(9000 + batch)
    compared = 0
    while compared < 25:
        core_size = rng.choice((80, 127, 800))
        settings = Settings(core_size, 80000, rng.choice((1, 64, 8000)), 5, 5, stop="decision")
        warriors = [random_warrior(rng, core_size, most=5, number=k) for k in range(2)]
        position = rng.randint(5, core_size - 5)
        positions = pmars_positions(settings, 2, 1, pmars_fixed_seed(settings, position))
        series = Series(tuple(warriors), positions)
        # The dump is taken inside the time that both live.
        (counts,) = engine.play([series], Settings(core_size, 400, settings.processes, 5, 5))
        both = int(counts.executed.min()) * 2 - 2
        if both < 2:
            continue
        steps = rng.randint(1, both)
        if steps % 2:
            ours = decode(engine.record(series, settings, steps=steps).core)
        else:
            ours = final_core(series, Settings(core_size, steps // 2, settings.processes, 5, 5))
        assert ours == core_of_pmars(warriors, settings, position, steps, tmp_path)
        compared += 1


def test_the_validation_warriors_tie_with_themselves() -> None:
    validate = assemble((WARRIORS / "validate.red").read_bytes(), Settings(standard="88"))
    result = fight([validate, validate], rounds=100, seed=1)
    assert result.standings()[0].ties == 100
    assert fight([validate], rounds=10, seed=1).alive.all()


def test_the_packaged_warriors_end_every_series_as_in_pmars(tmp_path: Path) -> None:
    settings = Settings()
    warriors = [assemble(path.read_bytes(), rounds=10) for path in sorted(WARRIORS.glob("*.red"))]
    assert len(warriors) >= 5
    for first in warriors:
        for second in warriors:
            theirs = scores_of_pmars([first, second], settings, 10, tmp_path, ["-F", "4000"])
            assert scores_of(play_fixed([first, second], settings, 10, 4000)) == theirs
