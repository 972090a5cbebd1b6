"""Nodes that know one relay only: it goes and comes back, and so does the process of a contributor."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from shoal.runs import read, to_toml
from tests.evolve.small import small as small_search
from tests.processes import PATIENCE, Family, process_of, shoal, started, wait_until
from tests.train.small import small as small_training

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

__all__ = ["started"]

Started = list[subprocess.Popen[str]]
AWAY = 6.0
"""Seconds: longer than the lease of a link."""


@pytest.fixture
def address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"tcp/127.0.0.1:{free.getsockname()[1]}"


def relay_at(address: str, started: Started) -> subprocess.Popen[str]:
    relay = shoal(started, "relay", "--listen", address, "--seconds", "170")
    assert relay.stdout is not None
    assert address in relay.stdout.readline()
    return relay


def arrived_since(journal: Path, moment: float) -> int:
    """Items in the journal that their author made after this moment."""
    if not journal.exists():
        return 0
    payloads = [json.loads(bytes(record.payload)) for record in read(journal) if record.kind == "arrived"]
    return sum(one["made_at"] > moment for one in payloads)


def test_nodes_hear_each_other_again_when_their_relay_is_back(
    tmp_path: Path, address: str, started: Started
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        to_toml(small_search(models=("builtin:bomber",), calls=200_000, rounds=10_000, history=4))
    )
    relay, journals, nodes = relay_at(address, started), [], []
    for name in ("one", "other"):
        key = tmp_path / f"{name}.key"
        joined = ("--join", address, "--swarm", f"relay-{os.getpid()}", "--key", key)
        nodes.append(shoal(started, "evolve", config, "--out", tmp_path / name, *joined, "--quiet"))
        journals.append(tmp_path / name / "nodes" / "1-bomber" / "journal.jsonl")
    wait_until(lambda: all(arrived_since(one, 0.0) for one in journals), "items at both nodes")

    relay.kill()
    relay.wait(30)
    away = time.time()
    time.sleep(AWAY)
    assert not any(arrived_since(one, away + 1.0) for one in journals), "only the relay connected them"
    relay_at(address, started)
    back = time.time()
    wait_until(lambda: all(arrived_since(one, back) for one in journals), "new items at both nodes")
    for node in nodes:
        node.send_signal(signal.SIGINT)
        _, errors = node.communicate(timeout=PATIENCE)
        assert node.returncode == 130, errors
        assert "started again" not in errors


def test_a_contributor_that_is_killed_goes_on_giving(tmp_path: Path, address: str, started: Started) -> None:
    config, steps = tmp_path / "config.toml", 2000
    config.write_text(to_toml(small_training(nodes=1, models=("table:small",), steps=200_000)))
    swarm = ("--swarm", f"giving-{os.getpid()}")
    learner = tmp_path / "learner" / "nodes" / "1-table-small" / "journal.jsonl"
    shoal(started, "train", config, "--out", learner.parents[2], "--listen", address, *swarm, "--quiet")
    giver = tmp_path / "giver" / "nodes" / "1-frozen-fake-7" / "journal.jsonl"
    contribute = shoal(
        started, "contribute", "--model", "fake:7", "--tasks", "sums", "--steps", steps, "--linger", "5",
        "--join", address, "--key", tmp_path / "giver.key", "--out", giver.parents[2], "--json", *swarm,
    )  # fmt: skip
    family = Family(contribute.pid)
    wait_until(lambda: arrived_since(learner, 0.0) > 3, "groups at the learner")
    os.kill(process_of(contribute.pid, giver), signal.SIGKILL)
    killed = time.time()
    wait_until(lambda: arrived_since(learner, killed + 0.5) > 3, "groups of the restarted contributor")
    contribute.send_signal(signal.SIGINT)
    _, errors = contribute.communicate(timeout=PATIENCE)
    assert contribute.returncode == 130, errors
    said = [json.loads(line).get("doing", "") for line in errors.splitlines() if line.startswith("{")]
    (line,) = [one for one in said if "SIGKILL" in one]
    assert line == f"{giver.parent.name} was ended by SIGKILL; started again from its journal (1 of 3)"
    family.has_ended()
