"""A peer that knows the page of the protocol alone takes part in a search and in a training run: its items are
accepted and used, and those that it does not publish are asked for."""

from __future__ import annotations

import ast
import json
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shoal.runs import to_toml
from shoal.swarm import Identity
from tests.evolve.small import small as small_search
from tests.processes import PATIENCE, Watched, shoal, started, wait_until
from tests.train.small import small as small_training

pytestmark = pytest.mark.timeout(280)

__all__ = ["started"]

OTHER_PEER = Path(__file__).with_name("other_peer.py")
MOST_LINES = 250


def test_it_knows_nothing_of_shoal() -> None:
    source = OTHER_PEER.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MOST_LINES
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).partition(".")[0])
    assert imported - set(sys.stdlib_module_names) == {"msgspec", "cryptography", "zenoh"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def join(
    started: list[subprocess.Popen[str]], port: int, *arguments: str
) -> tuple[subprocess.Popen[str], str]:
    """The other peer, joined, and its id."""
    peer = subprocess.Popen(
        [sys.executable, str(OTHER_PEER), f"tcp/127.0.0.1:{port}", "--seconds", "240", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started.append(peer)
    assert peer.stdout is not None
    first = peer.stdout.readline()
    assert first, peer.communicate(timeout=PATIENCE)[1]
    return peer, str(json.loads(first)["id"])


def end(peer: subprocess.Popen[str], run: subprocess.Popen[str]) -> dict[str, Any]:
    """Ends both, and gives the last words of the peer."""
    peer.send_signal(signal.SIGINT)
    out, errors = peer.communicate(timeout=PATIENCE)
    assert peer.returncode == 0, errors
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=PATIENCE)
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


def arrived(journal: Watched, author: str) -> list[int]:
    return [one["seq"] for one in journal.contents("arrived") if one["author"] == author]


def verdicts(journal: Watched, author: str) -> Counter[bool]:
    return Counter(one["accepted"] for one in journal.contents("verdict") if one["author"] == author)


def both(journals: list[Watched], condition: Callable[[Watched], object]) -> Callable[[], bool]:
    return lambda: all(condition(journal) for journal in journals)


def joined_run(
    started: list[subprocess.Popen[str]], folder: Path, verb: str, settings: Any, *arguments: object
) -> tuple[subprocess.Popen[str], int, list[Watched]]:
    """A run of two nodes that others can join, its port, and its journals."""
    port, config = free_port(), folder / "config.toml"
    config.write_text(to_toml(settings))
    run = shoal(
        started, verb, config, "--out", folder / "run", "--listen", f"tcp/127.0.0.1:{port}", *arguments
    )
    paths = [folder / "run" / "nodes" / name / "journal.jsonl" for name in settings.node_names()]
    return run, port, [Watched(path, "asked", "arrived", "verdict", "note") for path in paths]


def members(journals: list[Watched]) -> set[str]:
    return {Identity.load(journal.path.with_name("identity.key")).node_id for journal in journals}


def test_its_champions_are_used_in_a_search(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    """In a swarm with a name and a secret."""
    settings = small_search(models=("builtin:bomber", "builtin:replicator"), calls=400_000, rounds=20_000)
    secret = tmp_path / "secret.txt"
    secret.write_text("open sesame\n")
    run, port, journals = joined_run(
        started, tmp_path, "evolve", settings, "--swarm", "herring", "--swarm-secret-file", secret
    )
    peer, author = join(started, port, "--items", "champion", "--swarm", "herring", "--secret", "open sesame")

    def used(journal: Watched) -> bool:
        """A program of the peer was evaluated here, and later ones had to face it as an opponent."""
        accepted = {
            one["evidence"]["digest"]
            for one in journal.contents("verdict")
            if one["author"] == author and one["accepted"]
        }
        rounds = [one["request"] for one in journal.contents("asked") if one["request"]["type"] == "open"]
        visitors = {
            one["program"]["digest"]
            for opened in rounds
            for one in opened.get("visitors", ())
            if one["author"] == author
        }
        opponents = {one["digest"] for opened in rounds for one in opened["opponents"]}
        return len(accepted & visitors & opponents) >= 2

    wait_until(both(journals, used), "champions of the other peer among the opponents")
    assert all(verdicts(journal, author)[False] == 0 for journal in journals)
    last = end(peer, run)
    assert last["pulls answered"] >= 1
    assert last["withheld"] >= 1
    assert members(journals) <= set(last["heard"])
    assert "unreadable" not in last


def test_its_rollout_groups_are_used_in_training(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    settings = small_training(
        nodes=2,
        models=("table:small", "table:even"),
        local=2,
        external=2,
        steps=1_000_000,
        evaluate_every=0,
        checkpoint_every=0,
    )
    run, port, journals = joined_run(started, tmp_path, "train", settings)
    peer, author = join(started, port, "--items", "rollouts")

    def used(journal: Watched) -> bool:
        steps = [note["note"].get("used_authors", ()) for note in journal.contents("note")]
        return sum(author in authors for authors in steps) >= 5

    wait_until(both(journals, used), "groups of the other peer among those trained on")
    # The first was never published, so it was asked for; the log is whole from there on.
    first = {1, 2, 3, 4}
    wait_until(both(journals, lambda journal: first <= set(arrived(journal, author))), "its first groups")
    assert all(verdicts(journal, author)[False] == 0 for journal in journals)
    assert all(verdicts(journal, author)[True] >= 5 for journal in journals)
    last = end(peer, run)
    assert last["pulls answered"] >= 1
    assert last["withheld"] >= 1
    assert members(journals) <= set(last["heard"])
    assert "unreadable" not in last
