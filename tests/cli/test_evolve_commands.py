"""`shoal evolve`, `resume`, `show` and `merge`."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from shoal.cli import running, search_terminal as archive_map
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop
from shoal.runs import RunFolder, to_toml
from shoal.runs.search import Axis, Placed
from tests.cli.conftest import Shoal
from tests.processes import shoal as run_shoal, started, turns_of, wait_until

__all__ = ["started"]

QUICK = (
    "--set", "options.core_size=800", "--set", "options.cycles=800", "--set", "options.length=20",
    "--set", "options.distance=20", "--set", "repeats=3",
)  # fmt: skip


def test_a_search_from_the_command_line(shoal: Shoal, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    models = "builtin:bomber,builtin:random"
    done = shoal("evolve", "--models", models, "--rounds", 2, "--calls", 31, "--seed", 5, "--out", folder, "--in-process", *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    assert "finished; 31 calls" in done.out
    assert "1-bomber" in done.out
    assert "upward: spawned, across: coverage" in done.out
    assert "31 of 31 calls" in done.err or "of 31 calls" in done.err

    shown = shoal("show", folder, "--json")
    summary = json.loads(shown.out)
    assert summary.keys() >= {"coverage", "qd_score", "qd_score_common", "best", "calls", "tokens", "nodes"}
    assert summary["calls"] == 31
    assert [node["calls"] for node in summary["nodes"]] == [16, 15]

    assert shoal("show", folder, "--best").out.strip()
    resumed = shoal("resume", folder, "--in-process", "--json")
    assert resumed.code == 0
    assert json.loads(resumed.out) == summary

    merged = shoal("merge", folder, folder, "--out", tmp_path / "merged", "--json")
    assert json.loads(merged.out)["runs"] == [str(folder)]
    assert json.loads(merged.out)["archives"] == 2
    assert json.loads(merged.out)["qd_score_common"] == pytest.approx(summary["qd_score_common"])
    assert (tmp_path / "merged" / "archive.json").exists()
    same = tmp_path / "other" / ".." / "run"
    (tmp_path / "other").mkdir()
    text = shoal("merge", folder, same, "--out", tmp_path / "again").out
    assert text.startswith("2 archives of 1 run: ")
    assert "written to" in text


def test_a_domain_in_a_local_file_needs_no_other_setting(
    shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[2] / "docs" / "domains.md"
    (curve, *_) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    bare = f"{curve}\n\nclass Bare(Curve):\n    def starters(self):\n        return {{}}\n"
    (tmp_path / "curve_in_a_file.py").write_text(bare, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name, opponents in (("Curve", '["line", "square"]'), ("Bare", "[]")):
        folder = tmp_path / name
        done = shoal("evolve", "--set", f"domain=curve_in_a_file:{name}", "--models", "builtin:graft,builtin:graft", "--rounds", 2, "--calls", 24, "--out", folder, "--in-process")  # fmt: skip
        assert done.code == 0, done.err
        assert "finished; 24 calls" in done.out
        assert "See it:" in done.out
        assert "shoal battle" not in done.out, "that is for Core War"
        assert f"opponents = {opponents}" in (folder / "config.toml").read_text()


def test_a_dry_run_prints_settings_that_can_be_given_back(shoal: Shoal, tmp_path: Path) -> None:
    printed = shoal("evolve", "--dry-run", "--calls", 77, "--set", "sharing=seeds", *QUICK)
    assert printed.code == 0
    (tmp_path / "config.toml").write_text(printed.out)
    again = shoal("evolve", tmp_path / "config.toml", "--dry-run")
    assert again.out == printed.out
    assert "calls = 77" in again.out
    assert not list(tmp_path.glob("run*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--models", "gpt-5"), "models[0]: 'gpt-5' does not say what kind of model it is"),
        (("--set", "warmstart=3"), "warmstart: there is no such setting. Did you mean warm_start?"),
        (("--set", "options.core_size=50"), "length 100 is more than the core size 50"),
        (("--in-process", "--join", "tcp/host:1"), "--in-process has no network"),
        (("no-such-file.toml",), "the config cannot be read"),
        (("--held-out", "no-such-folder"), "no-such-folder is not a folder"),
        (("--set", "domain=os:system"), "name a subclass of shoal.evolve.Domain"),
        (("--set", "sharing=perhaps"), "sharing: 'perhaps' is none of both, off, opponents, seeds"),
        (("--set", "dollars=inf"), "dollars: inf is not a finite number"),
        (("--set", "options.axes=[]"), "options.axes: name one axis or more"),
        (("--set", 'options.axes=["spawned","spawned"]'), "options.axes: name one axis or more, each once"),
        (
            ("--set", 'corewar.axes=["spawned"]'),
            "corewar: there is no such setting. It is called options now.",
        ),
        (("--set", 'prices={"builtin:bomber"=[-1,2]}'), "prices.builtin:bomber: -1 and 2"),
        (("--rounds", "6", "--calls", "20"), "give 5 rounds at most, or 24 calls"),
        (
            ("--out", "n" * 300),
            f"{'n' * 300}/config.toml: this cannot be read or written: File name too long",
        ),
    ],
)
def test_what_cannot_work_is_one_line(
    shoal: Shoal, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = shoal("evolve", "--out", tmp_path / "run", *arguments)
    assert done.code == 2
    assert words in done.err
    assert len([line for line in done.err.splitlines() if line.startswith("shoal:")]) == 1
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_a_node_that_fails_is_a_line_and_an_exit_code(shoal: Shoal, tmp_path: Path) -> None:
    models = "builtin:bomber,fake:error=authentication"
    done = shoal("evolve", "--models", models, "--calls", 20, "--rounds", 1, "--out", tmp_path / "run", "--in-process", *QUICK)  # fmt: skip
    assert done.code == 2
    lines = [line for line in done.err.splitlines() if line.startswith("shoal:")]
    assert lines == [
        "shoal: 2-error-authentication (fake:error=authentication): fake:error=authentication fails as it was asked to",
        f"shoal: not finished. Go on with: shoal resume {tmp_path / 'run'}",
    ], "the reason and the remedy are the last lines"
    assert "not finished; 1" in done.out


@pytest.mark.parametrize("verb", ["evolve", "resume"])
@pytest.mark.parametrize("how", ["asked, with --json", "at once"])
def test_whoever_stops_a_run_is_told_how_to_go_on(
    shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, how: str
) -> None:
    folder = tmp_path / "run"
    RunFolder.create(folder, to_toml(EvolveSettings())).close()

    def stopped(*_: object, stop: Stop, **__: object) -> str:
        if how == "at once":
            raise KeyboardInterrupt
        stop.request("SIGINT")
        return "SIGINT"

    monkeypatch.setattr("shoal.node.running.run_crew", stopped)
    json_wanted = () if how == "at once" else ("--json",)
    done = shoal(verb, *(("--out", folder) if verb == "evolve" else (folder,)), *json_wanted)
    assert done.code == 130
    assert f"Go on with: shoal resume {folder}" in done.err
    if verb == "evolve" and how == "at once":  # there is nothing to go on with
        assert "Go on" not in shoal("evolve", "--out", tmp_path / "nothing").err


@pytest.mark.parametrize("verb", ["show", "resume"])
def test_a_folder_that_is_no_run(shoal: Shoal, tmp_path: Path, verb: str) -> None:
    done = shoal(verb, tmp_path)
    assert done.code == 2
    assert "not a run folder" in done.err


def test_a_folder_with_runs_in_it_names_them(
    shoal: Shoal, search_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("evolve", "train"):
        shutil.copytree(search_run, tmp_path / "runs" / "demo" / name)
    (tmp_path / "runs" / "demo" / "other").mkdir()
    done = shoal("show", "runs/demo")
    assert done.code == 2
    assert done.err.startswith(
        "shoal: runs/demo: this is not a run folder; there are runs in it: runs/demo/evolve ("
    )
    assert "runs/demo/train (" in done.err
    assert "other" not in done.err
    assert done.err.endswith("`shoal runs runs/demo` lists all.\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_map_of_an_archive(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    """Every shade can be drawn, and the text is the same on a terminal and in a pipe: as in a plot, small
    values of the first axis are at the bottom."""
    monkeypatch.setattr(archive_map, "on_terminal", lambda: terminal)
    cells = [Placed((row, row), row / 5, "d", f"model {row % 2}", "n") for row in range(6)]
    archive_map.print_map([Axis("spawned", (1, 2, 3, 4, 5)), Axis("coverage", (10, 20, 30, 40, 50))], cells)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert len(lines) == 8
    assert lines[0].split() == ["≥5", "·", "·", "·", "·", "·", "1.00", "B"]
    assert lines[5].split() == ["<1", "0.00", "A", "·", "·", "·", "·", "·"]
    assert lines[6].split() == ["<10", "10–20", "20–30", "30–40", "40–50", "≥50"]
    assert lines[7] == "upward: spawned, across: coverage; A model 0, B model 1"


def searched(shoal: Shoal, folder: Path) -> Path:
    done = shoal("evolve", "--models", "builtin:bomber", "--rounds", 1, "--calls", 3, "--out", folder, "--in-process", *QUICK)  # fmt: skip
    assert done.code == 0, done.err
    return folder


def test_a_report_replaces_nothing_but_a_report(shoal: Shoal, tmp_path: Path) -> None:
    folder = searched(shoal, tmp_path / "run")
    for target in (folder / "config.toml", tmp_path, Path("/dev/full")):
        done = shoal("report", folder, "--out", target)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1, done.err
        assert str(target) in done.err
    assert not Path("/dev/full").is_file()
    assert shoal("show", folder).code == 0
    assert shoal("report", folder).code == shoal("report", folder).code == 0
    (folder / "versions.json").write_text("{")
    assert shoal("report", folder).code == 0


def test_held_out_programs_that_cannot_be_read_are_no_zero(shoal: Shoal, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.mkdir()
    (junk / "x.red").write_bytes(bytes(range(256)))
    refused = shoal("evolve", "--calls", 20, "--held-out", junk, "--out", tmp_path / "none", "--in-process")
    assert refused.code == 2
    assert "none of the 1 files" in refused.err
    assert not (tmp_path / "none").exists(), "nothing was spent"
    folder = searched(shoal, tmp_path / "run")
    refused = shoal("show", folder, "--held-out", junk)
    assert refused.code == 2
    assert refused.err == f"shoal: none of the 1 held-out programs of {junk} can be read: name others\n"
    (junk / "imp.red").write_text("mov 0, 1\n")
    shown = shoal("show", folder, "--held-out", junk)
    assert shown.code == 0
    assert "(1 more could not be read)" in shown.out


def test_a_run_in_which_no_call_was_answered_says_so(shoal: Shoal, tmp_path: Path) -> None:
    model = "http://127.0.0.1:9/v1#nobody"
    done = shoal("evolve", "--models", model, "--calls", 2, "--rounds", 1, "--out", tmp_path / "run", "--in-process",
                 "--set", "deadline=2", "--set", "attempts=1", *QUICK)  # fmt: skip
    assert done.code == 2
    assert "1-nobody" in done.err


def test_quiet_is_the_folder_and_nothing_else(shoal: Shoal, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    given = (
        "--models",
        "builtin:bomber",
        "--rounds",
        1,
        "--calls",
        3,
        "--out",
        folder,
        "--in-process",
        *QUICK,
    )
    for done in (shoal("evolve", *given, "--quiet"), shoal("resume", folder, "--in-process", "--quiet")):
        assert (done.code, done.out, done.err) == (0, f"{folder}\n", "")
    done = shoal("resume", folder, "--in-process", "--quiet", "--json")
    assert json.loads(done.out)["calls"] == 3
    assert done.err == ""
    done = shoal("resume", folder, "--in-process", "--json")
    assert [json.loads(line)["calls"] for line in done.err.splitlines()][-1] == 3


def test_a_training_run_is_not_merged(shoal: Shoal, search_run: Path, training_run: Path) -> None:
    done = shoal("merge", search_run, training_run)
    assert done.code == 2
    assert done.err == (f"shoal: {training_run} is no search, so it has no archive to merge\n")


@pytest.mark.parametrize("quiet", [True, False])
def test_an_interrupted_run_says_where_it_stood_and_how_to_go_on(
    tmp_path: Path, started: list[subprocess.Popen[str]], quiet: bool
) -> None:
    folder = tmp_path / "run"
    journal = folder / "nodes" / "1-bomber" / "journal.jsonl"
    more = ("--quiet",) if quiet else ()
    command = run_shoal(started, "evolve", "--models", "builtin:bomber", "--calls", 100_000, "--out", folder, *more)  # fmt: skip
    wait_until(lambda: turns_of(journal) >= 3, "a few turns")
    command.send_signal(signal.SIGINT)
    out, errors = command.communicate(timeout=90)
    assert command.returncode == 130
    assert "Traceback" not in errors
    assert f"shoal resume {folder}" in errors
    if quiet:
        assert out == f"{folder}\n"
        assert len(errors.splitlines()) == 1
    else:
        assert "1-bomber: round 1/5" in errors
        assert "Go on with" in errors.splitlines()[-1]


def test_runs_that_begin_in_the_same_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(running.time, "strftime", lambda form: form)
    folders = [running.new_folder("evolve") for _ in range(3)]
    assert len(set(folders)) == 3
    assert all(folder.is_dir() for folder in folders)
