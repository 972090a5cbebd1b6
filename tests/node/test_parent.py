"""A node's process that dies is started again, some times, and told about; a failure that it tells is not."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cli.progress import ProgressDisplay
from shoal.evolve.crew import SearchStanding
from shoal.node import Stop, parent
from shoal.node.child import Orders
from shoal.node.crew import Network
from shoal.node.parent import DELAYS, HEALTHY_SECONDS, Restarts, _orders_of_restart
from shoal.node.running import run_crew
from shoal.node.standing import Progress
from shoal.runs import Journal
from shoal.runs.records import TurnBegun, kind_of
from tests.node.faulty import FaultyCrew, crew_with, starts_of
from tests.processes import is_alive, wait_until

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

ONE, OTHER = "1-bomber", "2-scanner"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "DELAYS", (0.3, 0.3, 0.3))


class Watched:
    """A run with its last standings, and the lines about restarts as a person sees them."""

    def __init__(self, folder: Path, crew: FaultyCrew, stop: Stop | None = None) -> None:
        self.nodes: dict[str, SearchStanding] = {}
        self.downs: set[str] = set()
        self.lines: list[str] = []
        self.display = ProgressDisplay((), "quiet")
        self.display.say = self.lines.append  # type: ignore[method-assign, assignment]
        self.ended = run_crew(crew, folder, stop=stop, progress=self.see)

    def see(self, progress: Progress[SearchStanding]) -> None:
        self.nodes = {node.name: node for node in progress.nodes}
        self.downs |= {node.down for node in progress.nodes}
        self.display.show(progress)


def test_a_process_may_die_three_times_and_again_after_it_was_healthy() -> None:
    restarts = Restarts()
    waits = [restarts.delay(5.0, worked=True) for _ in range(4)]
    assert waits == [*parent.DELAYS, None]
    assert len(DELAYS) == 3
    assert restarts.delay(HEALTHY_SECONDS - 1, worked=True) is None
    assert restarts.delay(HEALTHY_SECONDS, worked=False) is None, "it ran, and its node did not get on"
    assert restarts.delay(HEALTHY_SECONDS, worked=True) == parent.DELAYS[0]
    assert restarts.number == 1


@pytest.mark.parametrize(
    ("fault", "death"),
    [
        ("SIGKILL", "was ended by SIGKILL"),
        ("SIGSEGV", "was ended by SIGSEGV"),
        ("signal 35", "was ended by signal 35"),
        ("code 7", "ended with code 7"),
        ("mistake", "was ended by ZeroDivisionError: a mistake in two lines (faulty.py, line N)"),
        ("defect", "was ended by DefectError: the exchange has stopped: KeyError('x') (faulty.py, line N)"),
    ],
)
def test_a_node_that_dies_during_its_start_is_started_again(tmp_path: Path, fault: str, death: str) -> None:
    run = Watched(tmp_path / "run", crew_with(tmp_path / "run", {OTHER: [fault]}))
    assert run.ended == "finished"
    assert [re.sub(r"line \d+", "line N", one) for one in run.lines] == [
        f"{OTHER} {death}; started again (1 of 3)"
    ]
    assert run.downs == {"", "restarts"}
    assert [node.restarts for node in run.nodes.values()] == [0, 1]
    assert [node.spent for node in run.nodes.values()] == [12, 12]
    assert starts_of(tmp_path / "run", OTHER) == 2
    assert starts_of(tmp_path / "run", ONE) == 1


def test_a_node_that_dies_four_times_in_a_row_is_left_dead_and_the_other_one_finishes(tmp_path: Path) -> None:
    faults = {ONE: ["SIGKILL", "mistake", "code 7", "SIGKILL"]}
    run = Watched(tmp_path / "run", crew_with(tmp_path / "run", faults))
    assert run.ended == (
        f"{ONE} (builtin:bomber): its process was ended by SIGKILL and is left dead after 3 restarts; "
        "`shoal resume` goes on"
    )
    assert [line.rpartition("(")[2] for line in run.lines] == ["1 of 3)", "2 of 3)", "3 of 3)"]
    assert run.nodes[ONE].down == "dead"
    assert run.display.only_dead
    assert run.nodes[OTHER].ended
    assert run.nodes[OTHER].spent == 12
    assert starts_of(tmp_path / "run", ONE) == 4
    assert run_crew(crew_with(tmp_path / "run", {}), tmp_path / "run") == "finished", "and a resume goes on"


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        (["failure"], "the disk is gone: bring it back"),
        (["full disk"], "No space left on device. Everything before it is safe; make room and resume"),
        (["SIGKILL", "full disk"], "No space left on device"),
    ],
)
def test_a_failure_that_the_node_tells_is_not_tried_again(
    tmp_path: Path, faults: list[str], words: str
) -> None:
    run = Watched(tmp_path / "run", crew_with(tmp_path / "run", {ONE: faults}))
    assert words in run.ended
    assert starts_of(tmp_path / "run", ONE) == len(faults)
    assert not run.display.only_dead
    assert run.nodes[OTHER].ended


def test_a_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = subprocess.Popen, []

    def no_memory(*given: Any, **more: Any) -> Any:
        tries.append(given)
        if len(tries) == 1:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return real(*given, **more)

    monkeypatch.setattr(parent.subprocess, "Popen", no_memory)
    run = Watched(tmp_path / "run", crew_with(tmp_path / "run", {}))
    assert run.ended == "finished"
    assert run.lines == [f"{ONE} could not be started: Cannot allocate memory; started again (1 of 3)"]


def test_a_process_that_dies_before_it_reads_its_orders_does_not_harm_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, broken = subprocess.Popen, []

    def dead_at_once(command: list[str], **more: Any) -> Any:
        if broken:
            return real(command, **more)
        process = real([sys.executable, "-c", "import sys; sys.exit(9)"], **more)
        broken.append(process)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process

    monkeypatch.setattr(parent.subprocess, "Popen", dead_at_once)
    run = Watched(tmp_path / "run", crew_with(tmp_path / "run", {}))
    assert run.ended == "finished"
    assert run.lines == [f"{ONE} ended with code 9; started again (1 of 3)"]


def test_a_stop_does_not_wait_for_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "DELAYS", (3600.0,))
    stop, crew = Stop(), crew_with(tmp_path / "run", {ONE: ["SIGKILL"]}, calls=40_000, rounds=1000)
    stopper = threading.Thread(
        target=lambda: (wait_until(lambda: run_down(tmp_path), "a death"), stop.request())
    )
    stopper.start()
    run = Watched(tmp_path / "run", crew, stop)
    stopper.join(60)
    assert run.ended == "stopped"
    assert run.lines == []
    assert [node.trouble for node in run.nodes.values()] == ["", ""]
    assert starts_of(tmp_path / "run", ONE) == 1


def run_down(tmp_path: Path) -> bool:
    if starts_of(tmp_path / "run", ONE) == 0:
        return False
    time.sleep(1.0)  # its process has been dead for some looks of the parent
    return True


def children() -> Iterator[int]:
    """The nodes' processes of this one."""
    for pid in Path(f"/proc/self/task/{threading.main_thread().native_id}/children").read_text().split():
        if b"shoal.node.child" in Path(f"/proc/{pid}/cmdline").read_bytes():
            yield int(pid)


def test_a_node_that_somebody_else_asks_to_stop_is_started_again(tmp_path: Path) -> None:
    crew, killed = crew_with(tmp_path / "run", {}, models=("builtin:bomber",), calls=600, rounds=30), []

    def ask() -> None:
        wait_until((tmp_path / "run/nodes/1-bomber/journal.jsonl").exists, "the journal")
        killed.extend(children())
        os.kill(killed[0], signal.SIGTERM)

    asker = threading.Thread(target=ask)
    asker.start()
    run = Watched(tmp_path / "run", crew)
    asker.join(60)
    assert run.ended == "finished"
    assert run.lines == [f"{ONE} was ended by SIGTERM; started again from its journal (1 of 3)"]
    assert run.nodes[ONE].spent == 600
    assert not any(map(is_alive, killed))


def test_a_restarted_node_keeps_its_identity_and_waits_for_its_first_turn_only(tmp_path: Path) -> None:
    journal, spare = tmp_path / "journal.jsonl", tmp_path / "identity.key"
    orders = Orders("", "", 0, "machine.key", "s", Network(wait_for=2), spare_key=str(spare))
    assert _orders_of_restart(orders, journal) == orders, "it died before its first turn and its own key"
    spare.touch()
    with Journal(journal) as written:
        assert _orders_of_restart(orders, journal).network.wait_for == 2
        written.append(kind_of(TurnBegun(1)), 1.0, TurnBegun(1))
    again = _orders_of_restart(orders, journal)
    assert (again.key, again.spare_key, again.network.wait_for) == (str(spare), "", 0)
    journal.write_bytes(b"nonsense\n")
    assert _orders_of_restart(orders, journal).network.wait_for == 2, "its node tells about the damage"


def test_progress_for_programs_counts_restarts(capsys: pytest.CaptureFixture[str]) -> None:
    node = SearchStanding(name=ONE, model="m", restarts=1, restarted="1-bomber was ended\x07 by SIGKILL")
    with ProgressDisplay((), "programs") as display:
        for seconds in (0.0, 1.0, 9.0):
            display.show(Progress(0, 1, "calls", seconds, (node,)))
    said = [msgspec.json.decode(line) for line in capsys.readouterr().err.splitlines()]
    assert [one.get("doing", one.get("restarts")) for one in said] == [
        "1-bomber was ended by SIGKILL",
        1,
        1,
    ]
