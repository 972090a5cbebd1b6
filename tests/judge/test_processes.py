"""A judge and training nodes as processes over the network engine: one node trains alone, one peer is hostile,
and the judge is killed and goes on."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.judge.settings import JudgeSettings
from shoal.judge.summary import summarise
from shoal.judge.words import of_a_judged_node
from shoal.node.crew import Network
from shoal.runs import to_toml
from shoal.runs.judging import JudgeAnswer, JudgeQuestion, JudgeRequest, JudgeSummary
from shoal.swarm import Identity
from shoal.swarm.live import LiveExchange
from shoal.train.rollouts import ROLLOUTS
from shoal.train.settings import TrainSettings
from tests.cli.test_swarm_commands import free_port
from tests.processes import children_of, is_alive, process_of, shoal, started, wait_until

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc"),
]

__all__ = ["started"]

SWARM = "judged"
PATIENCE = 120.0


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory(prefix="sh") as short:  # the path of a Unix socket has 107 bytes
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        yield


def looked(folder: Path) -> JudgeSummary | None:
    return summarise(folder) if (folder / "nodes" / "judge" / "journal.jsonl").exists() else None


def counted(folder: Path, nodes: int, questions: int) -> bool:
    """Whether so many nodes have had so many questions each."""
    found = looked(folder)
    return found is not None and sum(one.answered >= questions for one in found.entrants) >= nodes


@contextmanager
def hostile_peer(address: str) -> Iterator[list[JudgeQuestion]]:
    """Answers everybody's questions wrongly, asks under many runs, answers nothing that it is asked, and sends
    as much as it may. Yields the questions that it was asked."""
    network = Network(join=(address,), swarm=SWARM)
    identity, heard, ended = Identity.create(), list[JudgeQuestion](), threading.Event()
    exchange = LiveExchange(
        identity,
        network.open(identity.node_id),
        of_a_judged_node(ROLLOUTS),
        network.exchange_settings(),
    )

    def flood() -> None:
        for number in itertools.count():
            heard.extend(one.item for one in exchange.gather(64) if isinstance(one.item, JudgeQuestion))
            for place in range(20):
                try:
                    exchange.share(JudgeAnswer((), (number * 20 + place) << 20, "x" * 100))
                except Exception:  # the outbox is full: it sends as much as its own quota lets it
                    break
            exchange.share(JudgeRequest((), number % 5, 1 + number, ("sums",), "table:small", True))
            if ended.wait(0.1):
                return

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        ended.set()
        thread.join(10)
        exchange.close()


def train(
    started: list[subprocess.Popen[str]], folder: Path, address: str, judge: str, **changes: Any
) -> subprocess.Popen[str]:
    """A node that goes on until it is stopped, with steps of some length."""
    given: dict[str, Any] = {
        "nodes": 1, "models": ("table:small",), "steps": 1_000_000, "evaluate_every": 0, "local": 16,
        "group": 16, "checkpoint_every": 200,
    }  # fmt: skip
    config = folder.with_suffix(".toml")
    config.write_text(to_toml(TrainSettings(**{**given, **changes})))
    options = ("--join", address, "--swarm", SWARM, "--judge", judge, "--out", folder, "--quiet")
    return shoal(started, "train", config, *options)


def test_three_nodes_are_judged_one_of_them_alone_and_a_killed_judge_goes_on(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    address, folder = f"tcp/127.0.0.1:{free_port()}", tmp_path / "judge"
    relay = shoal(started, "relay", "--listen", address, "--seconds", "240")
    config = tmp_path / "judge.toml"
    config.write_text(to_toml(JudgeSettings(per_minute=600.0, time_limit=20.0, checkpoint_every=20)))
    command = ("judge", config, "--join", address, "--swarm", SWARM, "--out", folder)
    first = shoal(started, *command)
    wait_until(lambda: (found := looked(folder)) is not None and found.judge, "the judge's id", PATIENCE)
    judge = summarise(folder).judge
    nodes = [
        train(started, tmp_path / "one", address, judge),
        train(started, tmp_path / "two", address, "any", models=("table:even",)),
        train(started, tmp_path / "alone", address, judge, sharing="off"),
    ]
    with hostile_peer(address) as asked_of_it:
        wait_until(lambda: counted(folder, 3, 5), "five answers of each node", PATIENCE)

        # Killed in the middle, together with its node's process.
        journal = folder / "nodes" / "judge" / "journal.jsonl"
        victims = [process_of(first.pid, journal), *children_of(first.pid)]
        os.kill(first.pid, signal.SIGKILL)
        for victim in dict.fromkeys(victims):
            os.kill(victim, signal.SIGKILL)
        first.wait(30)
        wait_until(lambda: not any(map(is_alive, victims)), "the end of the judge")
        before = summarise(folder)
        kept = journal.read_bytes()

        second = shoal(started, *command)
        had = {(one.author, one.run): one.answered for one in before.entrants}

        def is_ahead() -> bool:
            ahead = [one.answered - had.get((one.author, one.run), 0) for one in summarise(folder).entrants]
            return sum(one >= 5 for one in ahead) >= 3

        wait_until(is_ahead, "five more answers of each node", PATIENCE)
    second.send_signal(signal.SIGINT)
    _, errors = second.communicate(timeout=60)
    assert "Go on with: shoal resume" in errors
    assert all(node.poll() is None for node in [*nodes, relay])

    assert journal.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    after = summarise(folder)
    assert after.judge == judge, "its id stays with its folder"
    known = {(one.author, one.run): one for one in after.entrants}
    for one in before.entrants:
        assert known[one.author, one.run].rewards[: one.rounds] == one.rewards
    answering = [one for one in after.entrants if one.answered]
    assert sorted((one.model, one.alone) for one in answering) == [
        ("table:even", False),
        ("table:small", False),
        ("table:small", True),
    ]
    for one in answering:
        assert one.rounds == one.answered, "none of them was cheated of an answer"
        assert one.rounds + one.lapsed + 1 >= one.asked
        assert sum(one.rewards) == one.right
    silent = [one for one in after.entrants if not one.answered]
    assert asked_of_it
    assert len({one.author for one in silent}) == 1
    assert all(not any(one.rewards) for one in silent)
    assert after.refused.get("an answer to no open question", 0) > 20

    shown = shoal(started, "show", folder, "--json")
    out, errors = shown.communicate(timeout=60)
    assert shown.returncode == 0, errors
    assert {one["author"] for one in json.loads(out)["entrants"]} == {one.author for one in after.entrants}
    for node in nodes:
        node.send_signal(signal.SIGINT)
    for node in nodes:
        node.communicate(timeout=90)


def test_a_judge_ends_by_itself_and_says_how_to_be_asked(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    folder = tmp_path / "judge"
    command = (
        "--listen",
        f"tcp/127.0.0.1:{free_port()}",
        "--swarm",
        SWARM,
        "--seconds",
        "12",
        "--out",
        folder,
    )
    judge = shoal(started, "judge", *command)
    out, errors = judge.communicate(timeout=PATIENCE)
    assert judge.returncode == 1, "nobody was heard, as `shoal contribute` has it"
    assert "nobody has asked yet; nodes that train ask with: shoal train --judge" in errors
    assert summarise(folder).ended == "nothing more to produce"
    assert summarise(folder).judge in out
