"""A judge's run from its folder: summary, tables, page, and the command line around them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import pytest

from shoal.cli import main
from shoal.errors import TaskError
from shoal.judge.crew import JudgeCrew, check_tasks, run
from shoal.judge.settings import JudgeSettings
from shoal.judge.summary import summarise
from shoal.runs import RunFolder, to_toml
from shoal.runs.judging import AskedOne, Counted, Entered, JudgeNote, Left
from shoal.runs.records import Note, Started
from shoal.tasks.unconfined import DirectVerifier

HOSTILE = "\x1b[2J<script>alert(1)</script>\u202e" + "x" * 60
JUDGE = "j" * 32


def judged_run(folder: Path, nodes: int = 8, rounds: int = 12) -> Path:
    """The folder of a judge that asked so many nodes; those in the swarm are right from round 4 on."""
    settings = JudgeSettings()
    with RunFolder.create(folder, to_toml(settings)) as made:
        journal = made.open_journal("judge")
        journal.append("started", 1.0, Started(0, "judge", "judge", "0.2.0", 1))
        for place in range(nodes):
            model = HOSTILE if place == 7 else "tiny:llama"
            events: list[object] = [Entered(place, f"{place}" * 32, 1, model, place % 2 == 1)]
            for number in range(rounds):
                right = place % 2 == 0 and number >= 3
                events += [
                    AskedOne(place, number + 1, "sums"),
                    Counted(place, number + 1, "sums", float(right), right, answered=number > 0),
                ]
            events += [Left(place)] if place == 0 else []
            turn = place + 1
            note = JudgeNote(turn, JUDGE, tuple(events), {"a second answer": 2}, 0, "")  # type: ignore[arg-type]
            journal.append("note", 1.0 + turn, Note(turn, msgspec.Raw(msgspec.json.encode(note))))
        journal.close()
    return folder


def test_a_board_in_numbers(tmp_path: Path) -> None:
    found = summarise(judged_run(tmp_path / "run"))
    assert (found.judge, found.asked, found.answered, found.right) == (JUDGE, 96, 88, 36)
    assert [one.rounds for one in found.entrants] == [12] * 8
    assert [one.pass_at_1 for one in found.entrants] == [0.75] * 4 + [0.0] * 4
    assert found.refused == {"a second answer": 16}
    tiny = next(one for one in found.comparisons if one.model == "tiny:llama")
    assert (tiny.nodes_swarm, tiny.nodes_alone, tiny.from_round) == (4, 3, None)
    assert "too few nodes" in tiny.found
    assert not found.finished


def test_a_board_is_shown_exported_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = judged_run(tmp_path / "run", nodes=10)
    assert main(["show", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert JUDGE in shown
    assert "pass@1" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "the swarm has more" in shown or "no difference" in shown
    assert main(["show", str(folder), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["entrants"]) == 10
    assert main(["export", str(folder), "-o", str(tmp_path / "out")]) == 0
    with (tmp_path / "out" / "rounds.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert rows[11]["cumulative"] == "9.0"
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert "<script" not in page
    assert "In the swarm and alone" in page
    assert main(["runs", str(tmp_path)]) == 0
    assert "judge" in capsys.readouterr().out
    assert main(["show", str(folder), "--best"]) == 2
    assert "judge run, which has no --best" in capsys.readouterr().err


def test_a_judge_in_one_process_ends_by_its_own_time(tmp_path: Path) -> None:
    assert run(JudgeSettings(seconds=0.2), tmp_path / "run", in_process=True) == "finished"
    found = summarise(tmp_path / "run")
    assert found.finished
    assert len(found.judge) == 32
    assert found.to_pandas is not None
    assert "<td>" not in found._repr_html_()


def test_families_that_cannot_be_asked_are_refused_before_anything_starts() -> None:
    with pytest.raises(TaskError, match="no task is called"):
        JudgeCrew(JudgeSettings(tasks=("nothing",)))
    with pytest.raises(TaskError, match="sums: unusable task"):
        check_tasks(JudgeSettings(parameters={"sums": {"nonsense": 1}}), DirectVerifier())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["judge"], "say which nodes are judged: --join ADDRESS"),
        (
            ["judge", "--swarm", "x", "--set", "parameters.bf.difficulty=1"],
            "no task of the judge is called so",
        ),
        (["judge", "--swarm", "x", "--set", "time_limit=0"], "time_limit"),
        (["train", "--models", "table:", "--judge", "any"], "a judge is another node"),
        (["train", "--models", "table:", "--judge", "me", "--swarm", "x"], "judge: 'me' is not a node id"),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()
