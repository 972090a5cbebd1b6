from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from shoal.cli.replay import Replay
from shoal.corewar import record, snapshot, starter_set
from shoal.corewar.recording import Event
from shoal.corewar.settings import Settings
from tests.cli.conftest import Shoal

pytestmark = pytest.mark.timeout(120)

SETTINGS = Settings(cycles=1500)


def test_a_replay_agrees_with_the_library_at_every_step() -> None:
    known = starter_set()
    warriors = [known["paper"], known["dwarf"]]
    recording = record(warriors, SETTINGS, seed=2)
    replay = Replay(recording)
    for step in (0, 1, 2, 7, 500, 499, 3, recording.steps):
        replay.seek(step)
        state = snapshot(warriors, SETTINGS, seed=2, steps=step)
        assert replay.processes() == [len(queue) for queue in state.queues]
        assert replay.cycle == max(state.executed)


def test_a_replay_knows_who_touched_each_cell_last() -> None:
    recording = record([starter_set()["paper"], starter_set()["dwarf"]], SETTINGS, seed=2)
    replay = Replay(recording)
    for step in (0, 1, 500, 7, recording.steps):
        owners = recording.owners()
        for kind, warrior, address, at in zip(
            recording.kind, recording.warrior, recording.address, recording.step, strict=True
        ):
            if at < step and kind in (Event.EXECUTE, Event.WRITE):
                owners[address] = warrior
        replay.seek(step)
        assert np.array_equal(replay._owners, owners)


@pytest.mark.parametrize(("columns", "rows"), [(80, 25), (7, 3), (1, 1), (200, 100)])
def test_the_map_covers_the_core_once(columns: int, rows: int) -> None:
    replay = Replay(record([starter_set()["imp"]], SETTINGS, seed=0))
    found = replay.map(columns, rows)
    characters = sum(map(len, found.rows))
    assert len(found.rows) <= rows
    assert all(len(row) <= columns for row in found.rows)
    assert (characters - 1) * found.cells < 8000 <= characters * found.cells


def test_frames_are_evenly_spaced_and_plain(shoal: Shoal) -> None:
    done = shoal("watch", "@imp", "@dwarf", "-c", 100, "--frames", 3)
    assert re.findall(r"^step (\d+) of 200", done.out, re.MULTILINE) == ["0", "100", "200"]
    assert done.out.splitlines()[-1] == (
        "a Imp, b Dwarf With A Broom: alive at the end, after 100 cycles: a b"
    )
    assert "\x1b" not in done.out


def test_in_a_pipe_a_few_frames_are_printed(shoal: Shoal) -> None:
    assert shoal("watch", "@imp", "-c", 10).out.count("a character is") == 4


def test_the_state_at_a_step(shoal: Shoal) -> None:
    lines = shoal("watch", "@imp", "@dwarf", "--at", 100, "-c", 1000).out.splitlines()
    assert lines[0].startswith("step 100, cycle 50;")
    assert "a Imp: 50 instructions executed, next at 50" in lines
    assert "->    50  MOV.I $0, $1" in lines


def test_a_recording_is_stored_and_shown_again(shoal: Shoal, tmp_path: Path) -> None:
    stored = tmp_path / "fight.rec"
    fresh = shoal("watch", "@imp", "@dwarf", "-c", 300, "--save", stored)
    assert shoal("watch", "--load", stored) == fresh
    assert "holds no instructions" in shoal("watch", "--load", stored, "--at", 5).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give the warriors"),
        (("@imp", "--load", "x"), "give the warriors"),
        (("--load", "nowhere.rec"), "nowhere.rec cannot be read"),
        (("--load", __file__), "not a recording"),
        (("@imp", "--at", "1", "--frames", "2"), "exclude each other"),
        (("@imp", "-c", "5", "--save", "/nowhere/x"), "cannot be written"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(arguments: tuple[str, ...], said: str, shoal: Shoal) -> None:
    done = shoal("watch", *arguments)
    assert done.code == 2
    assert said in done.err


class Terminal:
    """`shoal watch` on a pseudo-terminal."""

    def __init__(self, *arguments: str) -> None:
        self.descriptor, self.inner = pty.openpty()
        self.before = termios.tcgetattr(self.inner)
        command = [sys.executable, "-m", "shoal.cli", "watch", *arguments]
        environment = os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
        self.process = subprocess.Popen(
            command, stdin=self.inner, stdout=self.inner, stderr=self.inner, env=environment
        )
        self.seen = ""

    def wait_for(self, pattern: str, seconds: float = 20) -> re.Match[str]:
        """Reads on until the pattern appears behind all that was found before."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := re.search(pattern, self.seen):
                self.seen = self.seen[found.end() :]
                return found
            if select.select([self.descriptor], [], [], 0.1)[0]:
                self.seen += os.read(self.descriptor, 1 << 16).decode(errors="replace")
        raise AssertionError(f"{pattern!r} did not appear; last seen: {self.seen[-300:]!r}")

    def press(self, keys: bytes) -> None:
        os.write(self.descriptor, keys)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)
        os.close(self.descriptor)
        os.close(self.inner)


def test_keys_on_a_terminal() -> None:
    terminal = Terminal("@imp", "@dwarf", "--speed", "20")
    try:
        terminal.wait_for(r"step \d+ of 160000")
        terminal.press(b" ")
        step = int(terminal.wait_for(r"step (\d+) of 160000, cycle \d+, paused")[1])
        terminal.press(b"\x1b[C")
        terminal.wait_for(rf"step {step + 1} of")
        terminal.press(b"n")
        terminal.wait_for(rf"step {step + 2} of")
        terminal.press(b"\x1b[D")
        terminal.wait_for(rf"step {step + 1} of")
        terminal.press(b"+")
        terminal.press(b" ")
        terminal.wait_for(r"40 per second")
        terminal.press(b"q")
        terminal.wait_for("alive at the end")
        assert terminal.process.wait(20) == 0
        assert termios.tcgetattr(terminal.inner) == terminal.before
    finally:
        terminal.close()


def test_an_interrupt_is_quiet_and_restores_the_terminal() -> None:
    terminal = Terminal("@imp", "@dwarf")
    try:
        terminal.wait_for(r"step \d+ of 160000")
        terminal.process.send_signal(2)
        terminal.wait_for(r"\x1b\[\?1049l")
        assert terminal.process.wait(20) == 130
        assert termios.tcgetattr(terminal.inner) == terminal.before
        assert "Traceback" not in terminal.seen
    finally:
        terminal.close()
