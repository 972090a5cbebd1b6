"""A stop is answered with a word at once, also where calls under way are waited for."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from shoal.cli.experiments import _progress
from shoal.cli.progress import ProgressDisplay
from shoal.cli.running import announcing_stop
from shoal.cli.search_terminal import COLUMNS
from shoal.lab.experiment import Trial
from shoal.lab.running import Progress
from shoal.node import Stop
from tests.processes import shoal, started, wait_until

pytestmark = pytest.mark.timeout(180)

__all__ = ["started"]

TEXT = "stopping: waiting up to 30 s for calls under way; Ctrl-C again to stop at once"


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def said(stop: Stop, *, requested: bool) -> list[str]:
    texts: list[str] = []
    with announcing_stop(stop, texts.append):
        if requested:
            stop.request()
        time.sleep(0.3)
    return texts


def test_it_is_said_once_and_only_if_a_stop_is_requested() -> None:
    assert said(Stop(), requested=True) == [TEXT]
    assert said(Stop(), requested=False) == []


def test_where_the_first_signal_ends_all_there_is_nothing_to_wait_for() -> None:
    stop = Stop()
    stop.at_once = True
    assert said(stop, requested=True) == []


def test_it_is_said_in_every_manner_but_the_quiet_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ProgressDisplay(COLUMNS, "quiet") as display:
        display.say(TEXT)
    assert capsys.readouterr().err == ""
    with ProgressDisplay(COLUMNS, "programs") as display:
        display.say(TEXT)
    assert json.loads(capsys.readouterr().err) == {"doing": TEXT}
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay(COLUMNS) as display:
        display.say(TEXT)
    with _progress(quiet=False, json=False) as (_, say):
        say(TEXT)
    assert terminal.getvalue().count(TEXT) == 2


def test_experiments_say_it_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with _progress(quiet=quiet, json=False) as (_, say):
            say(TEXT)
    assert capsys.readouterr().err == f"{TEXT}\n"


def test_a_stopped_run_of_an_experiment_is_said_to_be_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial("solo", 3, {}, {}, "folder")
    for json_lines in (False, True):
        with _progress(quiet=False, json=json_lines) as (tell, _):
            tell(Progress(6, 65, 0.1, 50.0, trial, 3.0))
            tell(Progress(6, 65, 0.1, 50.0, trial, 3.0, stopped=True))
    done, stopped, done_object, stopped_object = capsys.readouterr().err.splitlines()
    assert done.startswith("6/65 solo, seed 3: 3 s; about")
    assert stopped == "solo, seed 3: stopped after 3 s"
    assert [json.loads(one)["stopped"] for one in (done_object, stopped_object)] == [False, True]


@pytest.fixture
def silent() -> Iterator[tuple[str, threading.Event]]:
    """The address of a server that takes calls and never answers, and whether it was called."""
    called, kept = threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                called.set()

        threading.Thread(target=take, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1#x", called
        server.shutdown(socket.SHUT_RDWR)
    for one in kept:
        one.close()


@pytest.mark.parametrize("where", [(), ("--in-process",)])
def test_an_interrupt_while_a_call_is_under_way(
    tmp_path: Path,
    started: list[subprocess.Popen[str]],
    silent: tuple[str, threading.Event],
    where: tuple[str, ...],
) -> None:
    model, called = silent
    folder = tmp_path / "run"
    command = shoal(started, "evolve", "--models", model, "--calls", 5, "--out", folder, *where)
    assert called.wait(60)
    assert command.stderr is not None
    command.send_signal(signal.SIGINT)
    lines: list[str] = []
    reading = threading.Thread(target=lambda: lines.extend(iter(command.stderr.readline, "")), daemon=True)  # type: ignore[union-attr]
    reading.start()
    wait_until(lambda: TEXT + "\n" in lines, "the word that it stops", 10)
    assert command.poll() is None, "the call is waited for"
    command.send_signal(signal.SIGINT)
    assert command.wait(timeout=10) == 130
    reading.join(10)
    assert lines.count(TEXT + "\n") == 1
    assert f"shoal resume {folder}" in lines[-1]
