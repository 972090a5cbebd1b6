"""A recorded round tells the same story as the played one, and survives being stored."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shoal.corewar import Recording, Settings, assemble, fight, hill, record, snapshot, starter_set
from shoal.corewar.recording import NOBODY, Event
from shoal.errors import ConfigError, RunError
from tests.corewar import reference
from tests.corewar.generator import random_warrior

NANO = hill("nano")


@pytest.mark.parametrize("seed", range(40))
def test_a_recording_tells_what_the_fast_loops_counted(seed: int) -> None:
    rng = random.Random(seed)
    warriors = [random_warrior(rng, 80, most=5, number=k) for k in range(rng.choice((1, 2, 3, 6)))]
    settings = hill("nano", stop=rng.choice(("decision", "play-on")))
    result = fight(warriors, settings, rounds=4, seed=seed)
    recording = record(warriors, settings, seed=seed, round_number=3)
    executed = np.bincount(recording.select(Event.EXECUTE)[:, 1], minlength=len(warriors))
    spawned = np.bincount(recording.select(Event.SPAWN)[:, 1], minlength=len(warriors))
    assert executed.tolist() == result.counts.executed[3].tolist()
    assert spawned.tolist() == result.spawned[3].tolist()
    dead = {index for index, processes in enumerate(result.counts.processes[3]) if processes == 0}
    assert set(recording.deaths()) == dead
    assert recording.steps == int(result.counts.executed[3].sum())
    for index, cycle in recording.deaths().items():
        assert cycle + 1 == result.counts.executed[3, index]


def test_writes_are_recorded_where_they_happen() -> None:
    recording = record([assemble("mov 0, 1")], Settings(cycles=3))
    assert recording.select(Event.WRITE).tolist() == [[0, 0, 1], [1, 0, 2], [2, 0, 3]]
    assert recording.select(Event.EXECUTE).tolist() == [[0, 0, 0], [1, 0, 1], [2, 0, 2]]


def test_owners_are_the_warriors_as_loaded() -> None:
    recording = record([assemble("mov 0, 1"), assemble("jmp 0\ndat 0")], positions=[0, 7999], steps=9)
    owners = recording.owners()
    assert (owners[0], owners[7999], owners[1]) == (1, 1, NOBODY)  # the second was loaded over the first
    assert np.count_nonzero(owners != NOBODY) == 2


def test_a_snapshot_is_the_reference_after_so_many_steps() -> None:
    warriors = list(starter_set().values())[:3]
    settings = Settings()
    found = snapshot(warriors, settings, steps=777, seed=2, round_number=1)
    positions = record(warriors, settings, seed=2, round_number=1, steps=1).positions
    (expected,) = reference.play(warriors, [positions], settings, first_round=1, steps=777)
    assert found.core == expected.core
    assert found.queues == tuple(tuple(fighter.queue) for fighter in expected.fighters)
    assert found.executed == tuple(fighter.executed for fighter in expected.fighters)


def test_storing_keeps_everything() -> None:
    recording = record(list(starter_set(Settings(cycles=200)).values())[:2], Settings(cycles=200), seed=1)
    again = Recording.from_bytes(recording.to_bytes())
    assert np.array_equal(again.events, recording.events)
    assert (again.settings, again.names, again.positions) == (
        recording.settings,
        recording.names,
        recording.positions,
    )


STORED = record([assemble("mov 0, 1")], Settings(cycles=5)).to_bytes()


@given(st.one_of(st.binary(max_size=200), st.binary(max_size=60).map(lambda tail: STORED[:18] + tail)))
def test_any_bytes_are_a_recording_or_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="not a recording"):
        Recording.from_bytes(data)


@given(st.integers(0, len(STORED) - 1), st.integers(1, 255))
def test_a_flipped_byte_is_noticed_or_harmless(index: int, change: int) -> None:
    damaged = bytearray(STORED)
    damaged[index] ^= change
    try:
        Recording.from_bytes(bytes(damaged))
    except RunError as error:
        assert "not a recording" in str(error)


def test_a_recording_that_grows_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.corewar.mars import engine
    from shoal.corewar.mars.binding import Series

    series = Series((assemble("mov 0, 1"),), np.zeros((1, 1), np.uint32))
    monkeypatch.setattr(engine, "MOST_EVENTS", 10)
    with pytest.raises(ConfigError, match="more than the 10 events"):
        engine.record(series, Settings())


def test_long_names_are_stored_or_refused_before_writing() -> None:
    from shoal.corewar import Warrior

    imp = assemble("mov 0, 1")
    many = [Warrior(imp.code, name="é" * 240) for _ in range(64)]
    recording = record(many, Settings(cycles=2, length=1, distance=1))
    assert Recording.from_bytes(recording.to_bytes()).names == recording.names
    with pytest.raises(RunError, match="shorten"):
        record([Warrior(imp.code, name="x" * (2 << 20))], Settings(cycles=2)).to_bytes()


@pytest.mark.parametrize("steps", [-1, 2**64, 2**64 + 5, 1.5, True])
def test_impossible_steps_are_refused(steps: object) -> None:
    with pytest.raises(ConfigError, match="steps is"):
        record([assemble("mov 0, 1")], steps=steps)  # type: ignore[arg-type]


def test_a_snapshot_needs_no_room_for_events() -> None:
    found = snapshot([assemble("jmp 0")], Settings(cycles=20_000_000), steps=20_000_000)
    assert found.executed == (20_000_000,)
