"""The C engine against the specification in reference.py, number by number."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shoal.corewar.mars import engine
from shoal.corewar.mars.binding import Series, decode
from shoal.corewar.mars.placement import random_positions
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from tests.corewar import reference
from tests.corewar.generator import final_core, random_warrior


def random_settings(rng: random.Random, warriors: int) -> Settings:
    core_size = (
        rng.choice((1, 2, 3, 13, 80, 127, 800, 801)) if warriors == 1 else rng.choice((80, 127, 800, 801))
    )
    length = max(1, min(9, core_size // (warriors + 1)))
    return Settings(
        core_size=core_size,
        cycles=rng.choice((1, 2, 17, 250, 1023, 1500)),
        processes=rng.choice((1, 2, 5, 64, 8000)),
        length=length,
        distance=length,
        pspace=rng.choice((None, 1, min(7, core_size))),
        stop=rng.choice(("decision", "play-on")),
    )


@pytest.mark.parametrize("seed", range(400))
def test_engine_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    warriors = rng.choice((1, 1, 2, 2, 2, 3, 4, 8))
    settings = random_settings(rng, warriors)
    programs = tuple(
        random_warrior(rng, settings.core_size, most=settings.length, pspace=rng.random() < 0.2)
        for _ in range(warriors)
    )
    positions = random_positions(settings, warriors, rounds=3, seed=seed)
    first_round = rng.randrange(5)
    series = Series(programs, positions, first_round)

    (counts,) = engine.play([series], settings, statistics=True, threads=1)
    expected = reference.play(programs, positions.tolist(), settings, first_round=first_round)

    assert counts.executed.tolist() == [[f.executed for f in one.fighters] for one in expected]
    assert counts.processes.tolist() == [[len(f.queue) for f in one.fighters] for one in expected]
    assert counts.spawned.tolist() == [[f.spawned for f in one.fighters] for one in expected]
    assert counts.coverage is not None
    assert counts.coverage.tolist() == [[f.coverage for f in one.fighters] for one in expected]
    assert final_core(series, settings) == expected[-1].core


@pytest.mark.parametrize("seed", range(100))
def test_recording_agrees_with_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    warriors = rng.choice((1, 2, 3, 5))
    settings = random_settings(rng, warriors)
    programs = tuple(random_warrior(rng, settings.core_size, most=settings.length) for _ in range(warriors))
    positions = random_positions(settings, warriors, rounds=1, seed=seed)
    steps = rng.randrange(1, 600)

    recorded = engine.record(Series(programs, positions, seed), settings, steps=steps)
    (expected,) = reference.play(programs, positions.tolist(), settings, first_round=seed, steps=steps)

    assert recorded.counts.executed.tolist() == [[f.executed for f in expected.fighters]]
    assert recorded.queues == tuple(tuple(f.queue) for f in expected.fighters)
    assert decode(recorded.core) == expected.core


@pytest.mark.parametrize("pspace", [False, True])
def test_threads_do_not_change_the_result(pspace: bool) -> None:
    rng = random.Random(5)
    settings = Settings(core_size=800, cycles=2000, processes=800, length=20, distance=20)
    warriors = [random_warrior(rng, 800, most=20, pspace=pspace) for _ in range(12)]
    series = [
        Series(tuple(rng.sample(warriors, count)), random_positions(settings, count, rounds, seed=9))
        for count, rounds in ((2, 50), (2, 1), (5, 7), (1, 30), (12, 3))
    ]
    one = engine.play(series, settings, statistics=True, threads=1)
    two = engine.play(series, settings, statistics=True, threads=2)
    many = engine.play(series, settings, statistics=True, threads=7)
    for a, b, c in zip(one, two, many, strict=True):
        for name in ("executed", "processes", "spawned", "coverage"):
            assert np.array_equal(getattr(a, name), getattr(b, name))
            assert np.array_equal(getattr(a, name), getattr(c, name))


def test_an_empty_program_dies_in_its_first_cycle() -> None:
    settings = Settings(core_size=100, cycles=10, processes=10, length=10, distance=10)
    nothing = Warrior((), core_size=100)
    (counts,) = engine.play([Series((nothing,), np.zeros((1, 1), np.uint32))], settings, statistics=True)
    assert counts.executed.tolist() == [[1]]
    assert counts.processes.tolist() == [[0]]
