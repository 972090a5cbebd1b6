"""Nodes as processes: several single-node runs on one machine, at the same moment."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from shoal.evolve.crew import SearchCrew
from shoal.evolve.settings import EvolveSettings
from shoal.node.crew import Network
from shoal.node.processes import _orders
from shoal.node.running import open_run
from shoal.runs.journal import read
from shoal.swarm import Identity
from tests.processes import PATIENCE, shoal, started, wait_until

__all__ = ["started"]

SMALL = ("evolve", "--models", "builtin:bomber", "--calls", "4", "--rounds", "1")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def node_folder(run: Path) -> Path:
    return run / "nodes" / "1-bomber"


@pytest.mark.parametrize("attempt", range(3))
def test_two_single_node_runs_started_at_the_same_moment_both_finish(
    attempt: int, home: Path, tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    """Both create the machine's key and claim it; the one that comes second uses its run's own key. Each
    waits for the other, so that they have their identities at the same time."""
    runs = [tmp_path / "one", tmp_path / "two"]
    common = (*SMALL, "--swarm", f"race-{attempt}-{os.getpid()}", "--wait-for", "1", "--out")
    processes = [shoal(started, *common, run) for run in runs]
    for process in processes:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
    own = [path for run in runs if (path := node_folder(run) / "identity.key").exists()]
    assert len(own) == 1, "one of them has the machine's key"
    assert Identity.load(own[0]).node_id != Identity.load(home / "identity.key").node_id


def test_a_node_waits_for_peers_before_its_first_turn(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    common = (*SMALL, "--swarm", f"waiting-{os.getpid()}", "--out")
    first, second = tmp_path / "first", tmp_path / "second"
    waiting = shoal(started, *common, first, "--wait-for", "1")
    wait_until((node_folder(first) / "presence.json").exists, "the first node joins")
    assert waiting.stderr is not None
    assert waiting.stderr.readline().startswith("waiting for 1 peer, 0 heard so far")
    assert not (node_folder(first) / "journal.jsonl").exists(), "no turn before there is a peer"
    other = shoal(started, *common, second, "--wait-for", "1")
    for process in (waiting, other):
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
    assert any(record.kind == "turn" for record in read(node_folder(first) / "journal.jsonl"))


def test_a_node_that_waits_for_peers_can_be_stopped_and_resumed(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    run = tmp_path / "run"
    lonely = shoal(started, *SMALL, "--swarm", f"lonely-{os.getpid()}", "--wait-for", "3", "--out", run)
    wait_until((node_folder(run) / "presence.json").exists, "the node joins")
    lonely.send_signal(signal.SIGINT)
    _, errors = lonely.communicate(timeout=PATIENCE)
    assert lonely.returncode == 130, errors
    resumed = shoal(started, "resume", run)
    _, errors = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 0, errors


def test_a_run_that_was_alone_for_a_while_still_speaks_for_the_machine(home: Path, tmp_path: Path) -> None:
    settings = EvolveSettings(models=("builtin:bomber",)).settled()
    crew = SearchCrew(settings)
    with open_run(settings, tmp_path / "run") as run:
        machine = str(home / "identity.key")
        joined = Network(swarm="herring", machine_key=machine)
        assert _orders(crew, run, joined)[0].key == machine
        assert _orders(crew, run, Network())[0].key == str(node_folder(run.path) / "private.key")
        assert _orders(crew, run, joined)[0].key == machine
