"""`shoal watch`: one round, step by step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli import rules
from shoal.cli.options import option
from shoal.cli.sources import FILES
from shoal.errors import ConfigError, RunError

if TYPE_CHECKING:
    from shoal.cli.replay import Replay
    from shoal.corewar.recording import Recording, Snapshot

FRAMES_IN_A_PIPE = 4
COLUMNS, ROWS = 80, 25
INSTRUCTIONS_AROUND = 3
MOST_RECORDING_BYTES = 64 << 20


def watch(
    files: Annotated[list[str] | None, FILES] = None,
    hill: rules.Hill = "94",
    core_size: rules.CoreSize = None,
    cycles: rules.Cycles = None,
    processes: rules.Processes = None,
    length: rules.Length = None,
    distance: rules.Distance = None,
    pspace: rules.PspaceSize = None,
    rules_88: rules.Rules88 = False,
    seed: rules.Seed = 0,
    round_number: Annotated[
        int, option("--round", "N", "Which round of `shoal battle` with this seed to show.", min=1)
    ] = 1,
    speed: Annotated[float | None, option("--speed", "N", "Instructions per second.", min=1)] = None,
    frames: Annotated[
        int | None, option("--frames", "N", "Print N evenly spaced pictures.", min=1, max=10_000)
    ] = None,
    at: Annotated[
        int | None, option("--at", "STEP", "Print the state after STEP instructions.", min=0)
    ] = None,
    save: Annotated[Path | None, option("--save", "FILE", "Store the recording.")] = None,
    load: Annotated[Path | None, option("--load", "FILE", "Show a stored recording.")] = None,
) -> None:
    """Watch a round in the core, step by step.

    The map tells by letter and colour who touched each cell last; a capital is the cell it executed last.

    On a terminal it is played; space pauses, the right arrow or n steps on, the left arrow or p steps
    back, + and - change the speed, q quits. In a pipe a few pictures are printed. P-space begins empty.

    \b
    Examples:
      shoal watch @dwarf @paper
      shoal watch mine.red @dwarf --at 1200
      shoal watch mine.red @dwarf --frames 6 --save fight.rec
      shoal watch --load fight.rec
    """
    from shoal.cli.output import on_terminal
    from shoal.cli.replay import Replay
    from shoal.cli.sources import read_all
    from shoal.corewar.recording import record, snapshot

    if bool(files) == (load is not None):
        raise ConfigError("give the warriors of a round, or --load with a recording")
    if frames is not None and at is not None:
        raise ConfigError("--frames and --at exclude each other: give one of them")
    core: Snapshot | None = None
    if load is not None:
        recording = _read(load)
    else:
        settings = rules.settings_from(
            hill, core_size, cycles, processes, length, distance, pspace, rules_88=rules_88
        )
        sources = read_all(files or [])
        settings.check_room_for(len(sources))
        warriors = [one.fighter(settings, warriors=len(sources), rounds=1) for one in sources]
        recording = record(warriors, settings, seed=seed, round_number=round_number - 1, steps=at)
        if at is not None:
            steps = min(at, recording.steps)
            core = snapshot(warriors, settings, steps=steps, seed=seed, round_number=round_number - 1)
    if save is not None:
        _write(save, recording)
    replay = Replay(recording)
    if at is not None:
        replay.seek(at)
        _print_state(replay, core)
    elif frames is None and on_terminal():
        from shoal.cli.player import play

        play(replay, speed)
        print(_outcome(replay))
    else:
        _print_frames(replay, frames or FRAMES_IN_A_PIPE)


def _print_frames(replay: Replay, count: int) -> None:
    """From the beginning to the end; a single one is the end."""
    for number in range(count):
        replay.seek(replay.steps * number // (count - 1) if count > 1 else replay.steps)
        _print_picture(replay)
        print()
    print(_outcome(replay))


def _print_picture(replay: Replay, *, of_all: bool = True) -> None:
    from shoal.cli.output import clean
    from shoal.cli.replay import letter, state

    core = replay.map(COLUMNS, ROWS)
    step = f"{replay.step} of {replay.steps}" if of_all else str(replay.step)
    print(f"step {step}, cycle {replay.cycle}; a character is {core.cells} cells")
    for index, (name, count) in enumerate(zip(replay.recording.names, replay.processes(), strict=True)):
        print(f"{letter(index)} {clean(name)}: {state(count)}")
    print("\n".join(core.rows))


def _print_state(replay: Replay, core: Snapshot | None) -> None:
    from shoal.cli.output import clean
    from shoal.cli.replay import letter

    _print_picture(replay, of_all=core is None)  # the rest of the round is played only for a recording
    if core is None:
        print("\na stored recording holds no instructions: name the warriors to see them")
        return
    size = len(core.core)
    for index, (name, queue) in enumerate(zip(replay.recording.names, core.queues, strict=True)):
        print(f"\n{letter(index)} {clean(name)}: {core.executed[index]} instructions executed", end="")
        if not queue:
            print(", dead")
            continue
        following = ", ".join(map(str, queue[1:6])) + (" …" if len(queue) > 6 else "")
        print(f", next at {queue[0]}" + (f", then {following}" if following else ""))
        for offset in range(-INSTRUCTIONS_AROUND, INSTRUCTIONS_AROUND + 1):
            address = (queue[0] + offset) % size
            print(f"{'->' if offset == 0 else '  '} {address:5}  {core.core[address]}")


def _outcome(replay: Replay) -> str:
    from shoal.cli.output import clean
    from shoal.cli.replay import letter

    names = ", ".join(f"{letter(index)} {clean(name)}" for index, name in enumerate(replay.recording.names))
    return f"{names}: {replay.outcome()}"


def _read(path: Path) -> Recording:
    from shoal.corewar.recording import Recording

    try:
        with path.open("rb") as file:
            data = file.read(MOST_RECORDING_BYTES + 1)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return Recording.from_bytes(data)
    except RunError as error:
        raise RunError(f"{path}: {error}") from error


def _write(path: Path, recording: Recording) -> None:
    try:
        path.write_bytes(recording.to_bytes())
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror}") from None
