"""A folder of runs is told at a glance, whatever is in it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from shoal.errors import RunError
from shoal.runs import Journal, RunFolder
from shoal.runs.journal import last_record
from shoal.runs.listing import Listed, ago, describe, find_runs, list_runs

STARTED = {"seed": 0, "node": "1-a", "application": "evolve", "shoal": "0", "look_ahead": 1}


def make(path: Path, config: str = 'models = ["builtin:a"]\n', ended: str | None = None) -> Path:
    with RunFolder.create(path, config) as run, run.open_journal("1-a") as journal:
        journal.append("started", 1.0, STARTED)
        if ended is not None:
            journal.append("stopped", 2.0, {"turn": 1, "reason": ended})
    return path


def by_name(folder: Path) -> dict[str, Listed]:
    return {Path(one.path).name: one for one in list_runs(folder)}


def test_states_of_runs(tmp_path: Path) -> None:
    make(tmp_path / "done", ended="nothing more to produce")
    make(tmp_path / "spent", ended="the budget is spent")
    make(tmp_path / "interrupted", ended="SIGINT")
    make(tmp_path / "killed")
    make(tmp_path / "half", 'models = ["a", "b"]\n', ended="nothing more to produce")
    make(tmp_path / "training", 'application = "train"\nmodels = ["a"]\nnodes = 1\n', "the budget is spent")
    RunFolder.create(tmp_path / "fresh", "seed = 1\n").close()
    going_on = RunFolder.resume(make(tmp_path / "going on"))
    found = by_name(tmp_path)
    going_on.close()
    assert {name: one.state for name, one in found.items()} == {
        "done": "finished",
        "spent": "finished",
        "interrupted": "stopped",
        "killed": "stopped",
        "half": "stopped",
        "training": "finished",
        "fresh": "not started",
        "going on": "running",
    }
    assert found["training"].application == "train"
    assert found["done"].nodes == 1
    files = [path for path in (tmp_path / "done").rglob("*") if path.is_file()]
    assert found["done"].size == sum(path.stat().st_size for path in files)


def test_the_newest_comes_first(tmp_path: Path) -> None:
    for age, name in enumerate(("young", "middle", "old")):
        run = make(tmp_path / name)
        for path in run.rglob("*"):
            os.utime(path, (1e9 - 1000 * age,) * 2)
    assert [Path(one.path).name for one in list_runs(tmp_path)] == ["young", "middle", "old"]
    assert [path.name for path in find_runs(tmp_path)] == ["young", "middle", "old"]


def test_one_that_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    make(tmp_path / "good")
    (make(tmp_path / "no toml") / "config.toml").write_text("[[[")
    (make(tmp_path / "empty") / "config.toml").write_text("")
    pipe = make(tmp_path / "pipe") / "config.toml"
    pipe.unlink()
    os.mkfifo(pipe)
    journal = make(tmp_path / "pipe as journal") / "nodes" / "1-a" / "journal.jsonl"
    journal.unlink()
    os.mkfifo(journal)
    damaged = make(tmp_path / "damaged") / "nodes" / "1-a" / "journal.jsonl"
    damaged.write_bytes(damaged.read_bytes() + b"junk\n")
    owner = make(tmp_path / "pipe as owner") / ".owner"
    owner.unlink()
    os.mkfifo(owner)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "note.txt").write_text("mine")
    found = by_name(tmp_path)
    assert found["good"].state == found["pipe as owner"].state == "stopped"
    for name in ("no toml", "empty", "pipe", "pipe as journal", "damaged"):
        assert found[name].state == "unreadable", name
        assert found[name].problem
    assert "thesis" not in found


def test_experiments_and_folders_in_the_folder(tmp_path: Path) -> None:
    make(tmp_path / "demo" / "evolve")
    experiment = tmp_path / "compare"
    arm = {"name": "solo", "title": "", "family": "", "settings": {"application": "evolve"}}
    plan = {"plan": {"title": "t", "arms": [arm, arm], "seeds": [0, 1, 2]}}
    make(experiment / "runs" / "solo" / "0")
    (experiment / "experiment.json").write_bytes(msgspec.json.encode(plan))
    (experiment / "outcomes" / "solo").mkdir(parents=True)
    (experiment / "outcomes" / "solo" / "0.json").write_text("{}")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "experiment.json").write_text('{"plan": []}')
    found = by_name(tmp_path)
    assert set(found) == {"evolve", "compare", "broken"}
    one = found["compare"]
    assert (one.kind, one.state, one.done, one.runs) == ("experiment", "stopped", 1, 6)
    assert found["broken"].state == "unreadable"
    assert [path.name for path in find_runs(tmp_path)] == ["evolve"]
    assert [path.name for path in find_runs(experiment)] == ["0"]


def test_a_run_lists_itself_and_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    run = make(tmp_path / "run")
    assert [one.path for one in list_runs(run)] == [str(run)]
    with pytest.raises(RunError, match="cannot be read"):
        list_runs(tmp_path / "nowhere")
    assert find_runs(tmp_path / "nowhere") == []


def test_a_folder_of_runs_given_as_a_run_says_what_is_in_it(tmp_path: Path) -> None:
    for number in range(7):
        make(tmp_path / f"run-{number}", ended="the budget is spent")
    with pytest.raises(RunError) as raised:
        RunFolder.look(tmp_path)
    said = str(raised.value)
    assert "\n" not in said
    assert f"{tmp_path}/run-" in said
    assert "(evolve, finished, " in said
    assert "and 2 more" in said
    assert f"`shoal runs {tmp_path}` lists all" in said


def test_reading_a_listing_changes_nothing_and_takes_no_lock(tmp_path: Path) -> None:
    run = make(tmp_path / "run")
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    for _ in range(3):
        describe(run)
        RunFolder.resume(run).close()
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_the_last_record_is_found_from_the_end(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    assert last_record(path) is None
    with Journal(path) as journal:
        assert last_record(path) is None
        journal.append("large", 0.0, "x" * 200_000)
        journal.append("last", 0.0, 1)
    whole = path.read_bytes()
    found = last_record(path)
    assert found is not None
    assert (found.number, found.kind) == (2, "last")
    path.write_bytes(whole[:-1])
    torn = last_record(path)
    assert torn is not None
    assert torn.kind == "large"


def test_times_for_people() -> None:
    assert [ago(seconds) for seconds in (0.2, 119, 120, 7199, 7200, 400_000)] == [
        "0 s",
        "119 s",
        "2 min",
        "120 min",
        "2 h",
        "5 d",
    ]
