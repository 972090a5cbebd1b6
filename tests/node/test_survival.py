"""Whole runs whose nodes are killed at moments that nobody chose: all nodes finish, exactly, and one line says
so. The long form does it twenty times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shoal.cli import main
from shoal.node import parent
from shoal.runs import derive, read, sum_up, to_toml
from tests.evolve.small import small as small_search
from tests.processes import PATIENCE, Family, children_of, process_of, shoal, started, state_of, wait_until
from tests.train.small import small as small_training

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

__all__ = ["started"]

STEPS, TOKENS = 150, 20_000
STARTING = 2.5
"""Seconds, about, that a node's process takes to its first turn."""
SETTINGS: dict[str, Any] = {
    "evolve": small_search(calls=402, rounds=4, repeats=30, look_ahead=3),
    "train": small_training(
        nodes=4, steps=STEPS, tokens=TOKENS, evaluate_every=50, checkpoint_every=20, linger=0.5
    ),
}
Started = list[subprocess.Popen[str]]


@pytest.mark.parametrize("verb", ["evolve", "train"])
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_a_node_killed_at_any_moment_comes_back_and_all_finish(
    tmp_path: Path, started: Started, verb: str, kills: int
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(to_toml(SETTINGS[verb]))
    turns, killed = 0, 0
    for number in range(kills + 1):  # the first run is left alone, and says how many turns they take
        folder = tmp_path / str(number)
        command = shoal(started, verb, config, "--out", folder, "--json")
        family, moment = Family(command.pid), derive(number, verb, "moment")
        when = "left alone"
        if number % 4 == 1:  # while the processes start
            seconds = moment.random() * STARTING
            when = f"killed {seconds:.2f} s after its start"
            wait_until(family.nodes, "nodes")
            time.sleep(seconds)
            kill_one(family.nodes(), number)
        elif number:
            reached = moment.randint(1, int(0.9 * turns))
            when = f"killed after turn {reached} of {turns} of all nodes"
            wait_until(lambda at=folder, least=reached: turns_in(at) >= least, when)  # type: ignore[misc]
            kill_one(family.nodes(), number)
        out, errors = command.communicate(timeout=PATIENCE)
        assert command.returncode == 0, errors
        turns = turns or turns_in(folder)
        lines = restarts_in(errors)
        print(f"{verb} {number}, {when}: {lines}")
        assert len(lines) == (number > 0)
        assert all("was ended by SIGKILL; started again" in one and "(1 of 3)" in one for one in lines)
        killed += len(lines)
        check_budgets(verb, folder, json.loads(out))
        family.has_ended()
    assert killed == kills


def turns_in(folder: Path) -> int:
    """Of all nodes. Counted without parsing, as a run may pass many of them between two looks."""
    return sum(path.read_bytes().count(b'"kind":"turn"') for path in folder.glob("nodes/*/journal.jsonl"))


def restarts_in(errors: str) -> list[str]:
    return [said for line in errors.splitlines() if "again" in (said := json.loads(line).get("doing", ""))]


def kill_one(candidates: Sequence[int], seed: int) -> None:
    """Kills one that certainly lived until then: a process that stands still cannot end by itself."""
    for pid in derive(seed, "victim").sample(candidates, len(candidates)):
        os.kill(pid, signal.SIGSTOP)
        wait_until(lambda pid=pid: state_of(pid) in ("T", "Z", ""), "that it stands still")  # type: ignore[misc]
        if state_of(pid) == "T":
            os.kill(pid, signal.SIGKILL)
            return
    raise AssertionError("all nodes had ended before the kill")


def check_budgets(verb: str, folder: Path, summary: dict[str, Any]) -> None:
    assert summary["finished"]
    ledgers = [sum_up(read(journal)) for journal in sorted(folder.glob("nodes/*/journal.jsonl"))]
    assert len(ledgers) == 4
    assert not any(ledger.overrun or ledger.reserved for ledger in ledgers)
    if verb == "evolve":
        assert [ledger.spent["calls"] for ledger in ledgers] == [101, 101, 100, 100]
        assert summary["calls"] == 402
    else:
        assert [node["steps"] for node in summary["nodes"]] == [STEPS] * 4
        assert all(ledger.spent["tokens"] <= TOKENS for ledger in ledgers)


def test_four_kills_in_a_row_leave_a_node_dead_and_the_others_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parent, "DELAYS", (0.2, 0.2, 0.2))
    config, folder = tmp_path / "config.toml", tmp_path / "run"
    config.write_text(to_toml(small_search(calls=2000, rounds=4, repeats=60)))
    victim, killed = folder / "nodes" / "2-replicator" / "journal.jsonl", []

    def kill() -> None:
        while len(killed) < 4:
            pid = process_of(os.getpid(), victim, patience=PATIENCE, but=killed)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    code = main(["evolve", str(config), "--out", str(folder)])
    killer.join(10)
    errors = capsys.readouterr().err
    reason = "its process was ended by SIGKILL and is left dead after 3 restarts; `shoal resume` goes on"
    assert code == 1
    *_, told, last = errors.splitlines()
    assert told == f"shoal: 2-replicator (builtin:replicator): {reason}"
    assert last == f"shoal: not finished. Go on with: shoal resume {folder}"
    assert len([line for line in errors.splitlines() if "started again from its journal" in line]) == 3
    ledgers = [sum_up(read(journal)) for journal in sorted(folder.glob("nodes/*/journal.jsonl"))]
    assert [ledger.spent.get("calls", 0) == 500 for ledger in ledgers] == [True, False, True, True]
    assert not set(killed) & set(children_of(os.getpid()))
    assert main(["resume", str(folder), "--quiet"]) == 0


def test_a_frozen_node_ends_with_its_parent(tmp_path: Path, started: Started) -> None:
    config, folder = tmp_path / "config.toml", tmp_path / "run"
    config.write_text(to_toml(small_search(calls=40_000, rounds=400)))
    command = shoal(started, "evolve", config, "--out", folder)
    family = Family(command.pid)
    journals = [folder / "nodes" / name / "journal.jsonl" for name in small_search().node_names()]
    wait_until(lambda: all(journal.exists() for journal in journals), "four nodes at work")
    for pid in family.nodes()[:2]:
        os.kill(pid, signal.SIGSTOP)
    command.kill()
    command.wait(30)
    family.has_ended()


def test_programs_of_a_contributor_end_with_its_node(tmp_path: Path, started: Started) -> None:
    """Also those that the node was waiting for when it was killed, and when the whole run was."""
    config, folder = tmp_path / "config.toml", tmp_path / "run"
    config.write_text(to_toml(small_training(nodes=1, models=("frozen:program:sleep 600",), steps=2)))
    command = shoal(started, "train", config, "--out", folder)
    family = Family(command.pid)

    def programs() -> list[int]:
        found = [pid for node in family.nodes() for pid in children_of(node)]
        return [pid for pid in found if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")]

    wait_until(programs, "the program")
    (first,), (node,) = programs(), family.nodes()
    os.kill(node, signal.SIGKILL)
    wait_until(lambda: state_of(first) in ("", "Z"), "the end of the program")
    wait_until(programs, "the program of the restarted node")
    command.kill()
    command.wait(30)
    family.has_ended()
