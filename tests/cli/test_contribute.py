"""`shoal contribute` as a person uses it at a terminal, and where nobody listens."""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Shoal

pytestmark = pytest.mark.timeout(180)

pty = pytest.importorskip("pty")

NOBODY = "nobody was heard (0 peers), so nobody received anything"


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))


def nowhere() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{probe.getsockname()[1]}"


class Seat:
    """A command at a terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        self.text = ""
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(sys.executable, [sys.executable, "-m", "shoal.cli", *map(str, arguments)])

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def read_until(self, wanted: str, times: int, patience: float = 60.0) -> None:
        until = time.monotonic() + patience
        while self.text.count(wanted) < times:
            assert time.monotonic() < until, self.text
            self._read()

    def end(self, patience: float = 20.0) -> int:
        until = time.monotonic() + patience
        while True:
            self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            assert time.monotonic() < until, self.text

    def close(self) -> None:
        os.close(self._terminal)  # hangs up, which ends what is still there

    def _read(self) -> None:
        if select.select([self._terminal], [], [], 0.1)[0]:
            try:
                self.text += os.read(self._terminal, 1 << 16).decode()
            except OSError:  # the other side is closed
                time.sleep(0.02)


def test_a_person_types_undisturbed_and_one_interrupt_ends_it(tmp_path: Path) -> None:
    seat = Seat(
        "contribute", "--model", "person:", "--tasks", "sums", "--join", nowhere(), "--out", tmp_path / "run",
        "--group", 2,
    )  # fmt: skip
    try:
        seat.read_until("> ", 1)
        seat.type("\n")
        seat.read_until("An answer is expected", 1)
        seat.type("3\n")
        seat.read_until("> ", 3)
        seat.type("4\n")
        seat.read_until("1 of 40 steps", 1)
        seat.read_until("> ", 4)
        time.sleep(1.0)
        asked = seat.text
        seat.type("\x03")
        assert seat.end() == 130, "nobody answers the question that it asked"
    finally:
        seat.close()
    assert "\x1b" not in asked, "nothing is redrawn and no cursor hidden"
    assert asked.endswith("> ")
    assert f"Go on with: shoal resume {tmp_path / 'run'}" in seat.text
    assert "stopping: waiting" not in seat.text
    assert NOBODY in seat.text.replace("\r\n", " ")


def test_what_nobody_received_is_no_success(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal(
        "contribute", "--model", "fake:8", "--tasks", "sums", "--join", nowhere(), "--steps", 2, "--linger", 0.5,
        "--out", tmp_path / "run", "--quiet",
    )  # fmt: skip
    assert done.code == 1
    assert done.out == f"{tmp_path / 'run'}\n"
    (line,) = done.err.splitlines()
    assert NOBODY in line
    assert "shoal doctor --join ADDRESS" in line


def test_rollouts_of_an_unknown_family_are_refused_before_anything_is_joined(
    shoal: Shoal, tmp_path: Path
) -> None:
    file = tmp_path / "rollouts.jsonl"
    file.write_text('{"family": "summs", "parameters": {}, "completions": [{"text": "1"}, {"text": "2"}]}\n')
    done = shoal("contribute", "--rollouts", file, "--join", "tcp/127.0.0.1:9", "--out", tmp_path / "run")
    assert done.code == 2
    assert done.err.startswith(f"shoal: {file}, line 1: no task is called 'summs'; did you mean sums")
    assert not (tmp_path / "run").exists()
