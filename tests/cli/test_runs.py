"""`shoal runs`, and folders of runs given to other verbs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.cli import main
from tests.runs.test_listing import make


def test_the_table_and_its_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("runs/first"), ended="nothing more to produce")
    (make(Path("runs/\x1b[31mred")) / "config.toml").write_text("no toml")
    assert main(["runs"]) == 0
    out, err = capsys.readouterr()
    head, *rows = out.splitlines()
    assert head.split() == ["run", "application", "state", "age", "size", "nodes"]
    assert len(rows) == 2
    assert any(row.split()[:3] == ["runs/first", "evolve", "finished"] for row in rows)
    assert "\x1b" not in out + err
    assert "not the config of a run" in err
    assert main(["runs", "--json"]) == 0
    found = {Path(one["path"]).name: one for one in json.loads(capsys.readouterr().out)}
    assert found["first"]["state"] == "finished"
    assert found["first"]["size"] > 0


def test_no_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs"]) == 2
    assert "`shoal evolve`" in capsys.readouterr().err
    assert main(["runs", "."]) == 0
    assert "no runs in it" in capsys.readouterr().err
    assert main(["runs", ".", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("verb", [["show"], ["report"], ["resume"], ["export", "-o", "out"]])
def test_a_folder_of_runs_given_to_another_verb(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("runs/first"), ended="nothing more to produce")
    make(Path("runs/second"), 'application = "train"\nnodes = 1\n')
    assert main([*verb, "runs"]) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 1
    assert "runs/first (evolve, finished, " in err
    assert "runs/second (train, stopped, " in err
    assert "shoal runs runs" in err
