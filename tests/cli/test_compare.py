"""`shoal compare` and `shoal report` with real, very small searches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shoal

SMALL = (
    "--models", "builtin:bomber,builtin:replicator", "--calls", "12", "--rounds", "2", "--seeds", "1",
    "--set", "options.cycles=500", "--set", "repeats=2", "--set", "retest_repeats=2", "--workers", "2",
)  # fmt: skip
FEW = ("--arms", "solo,heterogeneous")


def outcomes(folder: Path) -> dict[str, Any]:
    found = json.loads((folder / "results.json").read_text())
    del found["made"]
    return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare") / "e"
    done = subprocess.run(
        [sys.executable, "-m", "shoal.cli", "compare", *SMALL, *FEW, "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("arm ")
    assert f"report: {folder / 'report.html'}" in done.stdout
    assert "3/3 " in done.stderr
    return folder


def test_it_leaves_a_report_a_table_and_results(finished: Path) -> None:
    assert (finished / "report.html").read_text().startswith("<!doctype html>")
    assert "| heterogeneous | 1 |" in (finished / "results.md").read_text()
    found = outcomes(finished)
    assert {run["values"]["calls"] for arm in found["arms"] for run in arm["runs"]} == {12}
    assert found["missing"] == 0
    assert "one seed is too few" in found["sentences"][0]
    assert list((finished / "contests").rglob("*.json")), "champions met held-out programs, once each"


def test_the_results_alone_are_enough_for_the_page(finished: Path, tmp_path: Path, shoal: Shoal) -> None:
    shutil.copy(finished / "results.json", tmp_path)
    done = shoal("report", tmp_path)
    assert (done.code, done.out) == (0, f"{tmp_path / 'report.html'}\n")
    assert (tmp_path / "report.html").read_text() == (finished / "report.html").read_text()
    (tmp_path / "results.json").write_text("{}")
    done = shoal("report", tmp_path)
    assert done.code == 2
    assert "these are not the results of an experiment" in done.err


def test_asked_again_it_does_nothing_again(finished: Path, shoal: Shoal) -> None:
    before = {path: path.stat().st_mtime_ns for path in (finished / "outcomes").rglob("*.json")}
    done = shoal("compare", *SMALL, *FEW, "--out", finished, "--json")
    assert done.code == 0
    assert json.loads(done.out)["arms"][0]["name"] == "solo-builtin-bomber"
    assert before == {path: path.stat().st_mtime_ns for path in (finished / "outcomes").rglob("*.json")}


def test_another_setting_in_the_same_folder_is_one_clear_line(finished: Path, shoal: Shoal) -> None:
    done = shoal("compare", *SMALL, *FEW, "--set", "calls=14", "--out", finished)
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "calls is 12 there and 14 now" in done.err


def test_killed_in_the_middle_it_ends_as_if_it_had_not_been(finished: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shoal.cli", "compare", *SMALL, *FEW, "--out", str(tmp_path / "e")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("e/runs/*/*/nodes/*/journal.jsonl")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert len(list(tmp_path.glob("e/outcomes/*/*.json"))) < 3, "it was killed too late"
    again = subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=240)
    assert again.returncode == 0, again.stderr
    assert outcomes(tmp_path / "e") == outcomes(finished)
    sessions = json.loads((tmp_path / "e" / "sessions.json").read_text())
    assert len(sessions) == 2


def test_a_run_has_a_page_too(finished: Path, shoal: Shoal, tmp_path: Path) -> None:
    run = finished / "runs" / "heterogeneous" / "0"
    assert shoal("report", run, "-o", tmp_path / "run.html").code == 0
    assert "Shoal run" in (tmp_path / "run.html").read_text()
    assert shoal("report", finished, "-o", tmp_path / "all.html").code == 0
    assert (tmp_path / "all.html").read_text() == (finished / "report.html").read_text()
    assert shoal("report", tmp_path).code == 2


def test_a_dry_run_shows_the_arms_and_makes_nothing(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal("compare", *SMALL, "--dry-run", "--out", tmp_path / "e")
    assert done.code == 0
    assert "9 arms × 1 seeds = 9 runs" in done.out
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--arms", "duo"), "no arm is called 'duo'"),
        (("--models", "builtin:bomber"), "two or more different models"),
        (("--held-out", "nowhere"), "nowhere is not a folder"),
        (("--set", "callz=3"), "Did you mean calls?"),
        (("--held-out-size", "0"), "held_out_size"),
        (("--held-out-size", "most"), "held_out_size"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(
    arguments: tuple[str, ...], said: str, shoal: Shoal, tmp_path: Path
) -> None:
    done = shoal("compare", *arguments, "--out", tmp_path / "e")
    assert (done.code, said in done.err) == (2, True), done.err
