"""`shoal sweep`, and `shoal report` of what it leaves, with very small runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from shoal.applications import application_of
from shoal.errors import RunError
from tests.cli.conftest import Shoal

SMALL = (
    "--mix", "2/0,1/1", "--models", "table:small", "--nodes", "2", "--steps", "6", "--seeds", "1",
    "--set", "held_out=4", "--set", "group=4", "--workers", "1",
)  # fmt: skip
FEW = ("--arms", "mix")


def outcomes(folder: Path) -> Any:
    """All that was found but the time it took."""
    found = json.loads((folder / "results.json").read_text())
    return [{**run["values"], "cpu": 0} for arm in found["arms"] for run in arm["runs"]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "e"
    done = subprocess.run(
        [sys.executable, "-m", "shoal.cli", "sweep", *SMALL, *FEW, "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("arm ")
    assert "held-out reward %" in done.stdout
    assert f"report: {folder / 'report.html'}" in done.stdout
    assert "2/2 mix-1-1, seed 0" in done.stderr
    return folder


def test_it_leaves_a_report_a_table_and_results(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "They are biased" in page
    assert "| 1/1 | 1 |" in (finished / "results.md").read_text()
    assert [run["tokens"] for run in outcomes(finished)] == [96, 48]


def test_asked_again_it_does_nothing_again(finished: Path, shoal: Shoal) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "outcomes").rglob("*.json")}
    done = shoal("sweep", *SMALL, *FEW, "--out", finished, "--json")
    assert done.code == 0
    assert [arm["name"] for arm in json.loads(done.out)["arms"]] == ["mix-2-0", "mix-1-1"]
    assert before == {path: path.stat().st_mtime_ns for path in (finished / "outcomes").rglob("*.json")}


def test_another_setting_in_the_same_folder_is_one_clear_line(finished: Path, shoal: Shoal) -> None:
    done = shoal("sweep", *SMALL, *FEW, "--set", "steps=7", "--out", finished)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "steps is 6 there and 7 now" in done.err


def test_killed_in_the_middle_it_ends_as_if_it_had_not_been(finished: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shoal.cli", "sweep", *SMALL, *FEW, "--out", str(tmp_path / "e")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("e/runs/*/*/nodes/*/journal.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert len(list(tmp_path.glob("e/outcomes/*/*.json"))) < 2, "it was killed too late"
    again = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert again.returncode == 0, again.stderr
    assert outcomes(tmp_path / "e") == outcomes(finished)


def test_a_run_of_it_has_a_page_too(finished: Path, shoal: Shoal, tmp_path: Path) -> None:
    run = finished / "runs" / "mix-1-1" / "0"
    assert application_of(run).name == "train"
    assert shoal("report", run, "-o", tmp_path / "run.html").code == 0
    assert "Shoal training run" in (tmp_path / "run.html").read_text()
    assert shoal("report", finished, "-o", tmp_path / "all.html").code == 0
    assert (tmp_path / "all.html").read_text() == (finished / "report.html").read_text()


def test_a_config_says_what_its_run_is(tmp_path: Path) -> None:
    def run_with(config: str) -> Path:
        (tmp_path / "nodes").mkdir(exist_ok=True)
        (tmp_path / "config.toml").write_text(config)
        return tmp_path

    assert application_of(run_with("seed = 1\n")).name == "evolve"
    assert application_of(run_with('application = "train"\n')).name == "train"
    with pytest.raises(RunError, match="does not know the application 'fly'"):
        application_of(run_with('application = "fly"\n'))
    with pytest.raises(RunError, match="not the config of a run"):
        application_of(run_with("= ="))
    with pytest.raises(RunError):
        application_of(tmp_path / "nowhere")


def test_a_dry_run_shows_the_arms_and_makes_nothing(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal("sweep", "--models", "table:small", "--dry-run", "--out", tmp_path / "e")
    assert done.code == 0
    assert "9 arms × 5 seeds = 45 runs" in done.out
    assert not (tmp_path / "e").exists()
    (tmp_path / "own.toml").write_text('nodes = 5\nmodels = ["table:odd"]\n')
    done = shoal("sweep", tmp_path / "own.toml", "--arms", "mix", "--dry-run", "--json")
    assert {arm["settings"]["nodes"] for arm in json.loads(done.out)["arms"]} == {5}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arms", "duo"), "no arm is called 'duo'"),
        (("--mix", "8"), "write own and foreign groups"),
        (("--models", "gpt"), "does not name a policy"),
        (("--tasks", "nothing"), "no task is called"),
        (("--set", "stepz=3"), "Did you mean steps?"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(
    arguments: tuple[str, ...], said: str, shoal: Shoal, tmp_path: Path
) -> None:
    done = shoal("sweep", *arguments, "--out", tmp_path / "e")
    assert (done.code, said in done.err) == (2, True), done.err
