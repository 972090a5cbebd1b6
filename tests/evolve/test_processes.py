"""A run as processes over the network engine: killed, resumed, and with the budget exactly spent."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from shoal.errors import PeerError, RunError
from shoal.evolve.crew import run
from shoal.evolve.searcher import Searcher
from shoal.node import Stop, child
from shoal.node.crew import Network, private_swarm
from shoal.runs import RunFolder, to_toml
from shoal.runs.journal import read
from shoal.runs.lock import is_in_use
from shoal.swarm import Identity, MemoryHub
from shoal.swarm.live import LiveExchange
from tests.evolve.small import FOUR, histories, small
from tests.models.server import Misbehaving
from tests.processes import (
    PATIENCE,
    children_of,
    is_alive,
    process_of,
    shoal,
    started,
    starts_of,
    turns_of,
    wait_until,
)

pytestmark = pytest.mark.timeout(180)

CALLS = 403

__all__ = ["started"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_killed_nodes_and_a_killed_run_go_on_and_spend_the_budget_exactly(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    folder, config = tmp_path / "run", tmp_path / "config.toml"
    config.write_text(to_toml(small(calls=CALLS, rounds=4, repeats=30, look_ahead=3)))
    victim = folder / "nodes" / "2-replicator" / "journal.jsonl"
    command = shoal(started, "evolve", config, "--out", folder)

    # One node is killed and started again, and then all are, the parent first: the children end with it.
    wait_until(lambda: turns_of(victim) >= 3, "the first turns")
    killed = process_of(command.pid, victim)
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: starts_of(victim) == 2, "the restart")
    orphans = children_of(command.pid)
    assert orphans
    assert killed not in orphans
    command.kill()
    command.wait(30)
    wait_until(lambda: not any(map(is_alive, orphans)), "the end of the children")

    # The same once more, after a resume.
    before = {node.name: node.events for node in histories(folder)}
    before_resume = turns_of(victim)
    second = shoal(started, "resume", folder)
    wait_until(lambda: turns_of(victim) > before_resume, "turns after the resume")
    orphans = children_of(second.pid)
    assert orphans
    second.kill()
    second.wait(30)
    wait_until(lambda: not any(map(is_alive, orphans)), "the end of the children")

    kept = {path.parent.name: path.read_bytes() for path in folder.glob("nodes/*/journal.jsonl")}
    third = shoal(started, "resume", folder, "--json")
    out, errors = third.communicate(timeout=PATIENCE)
    assert third.returncode == 0, errors
    summary = json.loads(out)
    assert summary["finished"]
    assert summary["calls"] == CALLS
    assert [node["calls"] for node in summary["nodes"]] == [101, 101, 101, 100]
    for name, content in kept.items():  # whatever was accepted is still there
        whole = content[: content.rfind(b"\n") + 1]
        assert (folder / "nodes" / name / "journal.jsonl").read_bytes().startswith(whole)
    for node in histories(folder):
        assert [event.fills for event in node.events][: len(before[node.name])] == [
            event.fills for event in before[node.name]
        ]
    assert any(node.champions_received for node in histories(folder))


def test_a_bad_model_stops_its_own_process_only(tmp_path: Path) -> None:
    """Process mode, without the command line: the reason is one line, and the others do all their calls."""
    settings = small(models=(FOUR[0], "openai:gpt-5-mini", "local:no-such-file.gguf"), calls=60)
    assert "OPENAI_API_KEY" not in os.environ
    ended = run(settings, tmp_path / "run", in_process=False)
    assert "2-gpt-5-mini (openai:gpt-5-mini): openai:gpt-5-mini needs a key: set OPENAI_API_KEY" in ended
    assert (
        "3-no-such-file.gguf (local:no-such-file.gguf): local:no-such-file.gguf is not a GGUF file" in ended
    )
    assert "\n" not in ended
    assert [node.spent.get("calls", 0) for node in histories(tmp_path / "run")] == [20, 0, 0]


@pytest.mark.parametrize("how", ["raised", "told"])
def test_a_full_disk_names_what_failed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The accounts, which are written last, cannot be written either."""
    settings = small(models=FOUR[:1], calls=6)
    with RunFolder.create(tmp_path / "run", to_toml(settings)) as folder:
        key = tmp_path / "identity.key"
        me = Identity.load_or_create(key)

        def join(*_: object) -> LiveExchange:
            swarm = private_swarm("run", (me.node_id,))
            path = tmp_path / "accounts.json"
            exchange = LiveExchange(me, MemoryHub().open(), Searcher.kinds, swarm, accounts_path=path)
            monkeypatch.setattr("shoal.swarm.live.write_accounts", full)
            return exchange

        def full(path: Path, content: bytes) -> None:
            raise PeerError(f"the accounts file {path} cannot be written")

        def fails(*_: object, **__: object) -> str:
            raise RunError("journal.jsonl cannot be written")

        monkeypatch.setattr(child, "_join_swarm", join)
        if how == "raised":
            monkeypatch.setattr(child, "run_in_field", fails)
        else:
            monkeypatch.setattr(
                child,
                "run_in_field",
                lambda node, *_, **__: setattr(node, "trouble", "journal.jsonl, it said"),
            )
        orders = child.Orders("shoal.evolve.crew:SearchCrew", str(folder.path), 0, str(key), "run", Network())
        said = child.serve(child.read_crew(orders), orders, Stop())
    assert said.startswith("journal.jsonl")


def test_two_runs_of_one_user_hear_each_other(
    tmp_path: Path, started: list[subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key given, the second does not take the identity that the first has."""
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    machine, config = tmp_path / "home" / "identity.key", tmp_path / "config.toml"
    config.write_text(to_toml(small(models=("builtin:bomber",), calls=20_000, rounds=1000, history=4)))
    common = ("evolve", config, "--swarm", f"two-runs-{os.getpid()}", "--out")
    first, second = (tmp_path / name / "nodes" / "1-bomber" for name in ("first", "second"))
    shoal(started, *common, tmp_path / "first")
    wait_until(lambda: turns_of(first / "journal.jsonl"), "the first run")
    shoal(started, *common, tmp_path / "second")
    wait_until((second / "identity.key").exists, "an identity of its own")
    assert not (first / "identity.key").exists()
    assert Identity.load(second / "identity.key").node_id != Identity.load(machine).node_id
    wait_until(lambda: authors_in(tmp_path / "first"), "a champion of the second")
    wait_until(lambda: authors_in(tmp_path / "second"), "a champion of the first")

    same = shoal(started, *common, tmp_path / "third", "--key", machine)
    _, errors = same.communicate(timeout=PATIENCE)
    assert same.returncode == 2
    assert "the identity of another node that runs now" in errors


def test_a_node_from_elsewhere_joins_a_swarm(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp/127.0.0.1:{free.getsockname()[1]}"
    secret = tmp_path / "secret"
    secret.write_text("a few words that only the swarm knows\n")
    home, guest = tmp_path / "home", tmp_path / "guest"
    config = tmp_path / "config.toml"
    config.write_text(to_toml(small(models=FOUR[:2], calls=20_000, rounds=1000, history=4)))
    common = ("--swarm", "tests", "--swarm-secret-file", secret)
    host = shoal(started, "evolve", config, "--out", home, "--listen", address, *common)
    wait_until(lambda: list(home.glob("nodes/*/journal.jsonl")), "the first journals")
    key = tmp_path / "guest.key"
    joined = shoal(
        started,
        "evolve",
        config,
        "--out",
        guest,
        "--models",
        "builtin:random",
        "--join",
        address,
        "--key",
        key,
        *common,
    )
    wait_until(key.exists, "the guest's identity")
    guest_id = Identity.load(key).node_id
    wait_until(lambda: len(authors_in(guest) - {guest_id}) == 2, "champions of both hosts at the guest")
    wait_until(lambda: guest_id in authors_in(home), "a champion of the guest at its host")
    for process in (joined, host):
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, errors
        assert "Go on with: shoal resume" in errors
    for folder in (home, guest):
        assert not [
            path for path in folder.rglob("*") if path.is_file() and b"few words" in path.read_bytes()
        ]


def authors_in(folder: Path) -> set[str]:
    return {
        json.loads(bytes(record.payload))["author"]
        for journal in folder.glob("nodes/*/journal.jsonl")
        for record in read(journal)
        if record.kind == "arrived"
    }


def test_after_a_kill_only_the_calls_that_were_sent_are_booked(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    """Four proposals of up to three calls each are under way at a server that never answers."""
    folder = tmp_path / "run"
    journal = folder / "nodes" / "1-hang" / "journal.jsonl"
    with Misbehaving() as server:
        config = tmp_path / "config.toml"
        config.write_text(to_toml(small(models=(f"{server.root}/v1#hang",), calls=60, rounds=1)))
        command = shoal(started, "evolve", config, "--out", folder)
        wait_until(lambda: server.calls["hang"] >= 4, "four calls at the server")
        command.kill()
        command.wait(timeout=PATIENCE)
        wait_until(lambda: not is_in_use(journal), "the end of the node")
        asked = server.calls["hang"]
        shown = shoal(started, "show", folder, "--json")
        summary = json.loads(shown.communicate(timeout=PATIENCE)[0])
        resumed = shoal(started, "resume", folder, "--json")
        assert resumed.stderr is not None
        first = json.loads(resumed.stderr.readline())
    assert asked == 4
    assert summary["calls"] == first["calls"] == 4, "show and resume agree, and nothing else is booked"
