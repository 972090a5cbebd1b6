"""A real process, really killed, at moments that nobody chose."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shoal.runs import derive, read, sum_up
from shoal.runs.records import Answered, Stopped, content_of

pytestmark = pytest.mark.timeout(120)


def start(run: Path, *arguments: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.node.killed_node", str(run), *map(str, arguments)]
    # Unbuffered: a line that came along with the first one would be lost to `communicate`.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    assert process.stdout.readline() == b"running\n", process.communicate(timeout=30)[1]
    return process


def finish(run: Path, *arguments: int) -> bytes:
    outcome = run.with_suffix(".outcome")
    outcome.unlink(missing_ok=True)
    process = start(run, *arguments)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output.strip() in (b"nothing more to produce", b"the budget is spent")
    return outcome.read_bytes()


def calls(run: Path) -> int:
    return run.with_suffix(".tally").read_text().count("\n")


def journal(run: Path) -> Path:
    return run / "nodes" / "a" / "journal.jsonl"


def answers(run: Path) -> dict[int, bytes]:
    found = [content_of(record) for record in read(journal(run))]
    return {content.turn: bytes(content.answer) for content in found if isinstance(content, Answered)}


@pytest.mark.parametrize(("look_ahead", "checkpoint_every"), [(1, 0), (4, 7)])
def test_killed_again_and_again_it_ends_as_if_it_had_not_been(
    tmp_path: Path, look_ahead: int, checkpoint_every: int
) -> None:
    budget = 1000
    undisturbed = finish(tmp_path / "undisturbed", look_ahead, budget, checkpoint_every)
    run, moments = tmp_path / "killed", derive(look_ahead, "moments")
    accepted: dict[int, bytes] = {}
    for _ in range(6):
        process = start(run, look_ahead, budget, checkpoint_every)
        time.sleep(moments.random() * 0.1)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        now_accepted = answers(run)
        assert accepted.items() <= now_accepted.items(), "an accepted answer was lost"
        accepted = now_accepted
    assert finish(run, look_ahead, budget, checkpoint_every) == undisturbed
    assert accepted.items() <= answers(run).items()
    spent = sum_up(read(journal(run))).spent["searches"]
    assert len(answers(run)) <= calls(run) <= spent, "every call that was made was reserved"


def test_the_budget_is_exactly_spent_whatever_kills_it(tmp_path: Path) -> None:
    run, moments, budget = tmp_path / "killed", derive(1, "moments"), 40
    for _ in range(6):
        process = start(run, 3, budget, 0)
        time.sleep(moments.random() * 0.04)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        assert calls(run) <= budget
    finish(run, 3, budget, 0)
    assert sum_up(read(journal(run))).spent == {"searches": budget}
    assert calls(run) <= budget


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_asked_to_stop_it_stops_cleanly_and_goes_on_as_if_it_had_not(tmp_path: Path, number: int) -> None:
    undisturbed = finish(tmp_path / "undisturbed", 4, 1000, 7)
    run = tmp_path / "stopped"
    process = start(run, 4, 1000, 7)
    time.sleep(0.04)
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert (output.decode().strip(), errors, process.returncode) == (signal.Signals(number).name, b"", 0)
    *_, last = read(journal(run))
    assert isinstance(content_of(last), Stopped)
    assert finish(run, 4, 1000, 7) == undisturbed
    assert calls(run) == len(answers(run)), "nothing that was paid for was lost and asked again"
