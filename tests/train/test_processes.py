"""A swarm of different models as processes over the network engine: killed, resumed, and given text by one
that only contributes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from shoal.runs import to_toml
from shoal.train.summary import summarise
from tests.processes import (
    children_of,
    is_alive,
    process_of,
    shoal,
    started,
    turns_of,
    wait_until,
)
from tests.train.small import last_checkpoint, small

pytestmark = pytest.mark.timeout(180)

__all__ = ["started"]

PATIENCE = 240.0

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")


@linux
def test_three_different_models_and_a_contributor_survive_a_kill(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    """Three tokenizers, one of them of a real pretrained model; one node is killed and resumed; a fourth
    sends text and has no model of its own."""
    pytest.importorskip("torch")
    folder, config = tmp_path / "run", tmp_path / "config.toml"
    models = ("tiny:llama", "tiny:gpt2", "local:smollm2?lora=4", "frozen:fake:7")
    config.write_text(
        to_toml(
            small(
                nodes=4, models=models, local=2, external=2, group=4, max_new_tokens=16, steps=3,
                evaluate_every=0, checkpoint_every=1, linger=1.0,
            )
        )
    )  # fmt: skip
    victim = folder / "nodes" / "1-tiny-llama" / "journal.jsonl"
    command = shoal(started, "train", config, "--out", folder, "--wait-for", "3", "--json")
    wait_until(lambda: turns_of(victim) >= 1, "the first step", PATIENCE)
    os.kill(process_of(command.pid, victim), signal.SIGKILL)
    out, errors = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, errors
    (told,) = [line for line in errors.splitlines() if "SIGKILL" in line]
    assert told == json.dumps(
        {"doing": "1-tiny-llama was ended by SIGKILL; started again from its journal (1 of 3)"}
    )
    summary = json.loads(out)
    assert summary["finished"]
    assert [node["steps"] for node in summary["nodes"]] == [3, 3, 3, 3]
    assert [node["trains"] for node in summary["nodes"]] == [True, True, True, False]
    seen = [node["foreign_seen"] for node in summary["nodes"][1:3]]
    assert all(seen), summary

    from transformers import AutoModelForCausalLM, AutoTokenizer

    for name in ("1-tiny-llama", "2-tiny-gpt2"):
        policy = last_checkpoint(folder / "nodes" / name) / "policy"
        assert AutoModelForCausalLM.from_pretrained(policy) is not None
        assert AutoTokenizer.from_pretrained(policy)("1+1=")["input_ids"]


@linux
def test_all_killed_at_once_lose_at_most_the_step_in_progress(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    folder, config = tmp_path / "run", tmp_path / "config.toml"
    config.write_text(to_toml(small(steps=400, evaluate_every=100, checkpoint_every=50, linger=0.0)))
    journals = [folder / "nodes" / name / "journal.jsonl" for name in small().node_names()]
    command = shoal(started, "train", config, "--out", folder)
    wait_until(lambda: all(turns_of(journal) > 60 for journal in journals), "sixty turns")
    orphans = children_of(command.pid)
    command.kill()
    command.wait(30)
    wait_until(lambda: not any(map(is_alive, orphans)), "the end of the children")
    kept = {journal: journal.read_bytes() for journal in journals}
    before = {node.name: node for node in summarise(folder).nodes}

    second = shoal(started, "resume", folder, "--json")
    out, errors = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0, errors
    for journal, content in kept.items():
        whole = content[: content.rfind(b"\n") + 1]
        assert journal.read_bytes().startswith(whole)
    for node in json.loads(out)["nodes"]:
        assert node["steps"] == 400
        was = before[node["name"]]
        assert node["curve_local"][: len(was.curve_local)] == [list(point) for point in was.curve_local]


def test_trouble_of_one_node_is_one_line_and_stops_nobody_else(tmp_path: Path) -> None:
    from shoal.train.crew import run

    models = ("table:small", "table:none", "frozen:openai:gpt-5-mini", "local:no-such-folder")
    assert "OPENAI_API_KEY" not in os.environ
    ended = run(small(nodes=4, models=models, steps=3), tmp_path / "run", in_process=False)
    assert "there is no policy table:none" in ended
    assert "needs a key" in ended
    assert "local:no-such-folder" in ended
    assert "\n" not in ended
    assert [node.steps for node in summarise(tmp_path / "run").nodes] == [3, 0, 0, 0]
