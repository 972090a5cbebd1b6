"""Own question files: pinned by their hash, bounded, compared without case and blanks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from shoal.errors import ConfigError, TaskError
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.questions import MOST_LINE, QuestionFile, check_files, question_file_name
from shoal.tasks.registry import open_task
from shoal.tasks.verifier import Posed, Problem, Refused, Scored
from tests.tasks.asking import score


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "capitals.jsonl"
    pairs = {"France": "Paris", "Italy": "Rome", "Ecuador": "Quito", "Norway": "Oslo", "Türkiye": "Ankara"}
    lines = [
        json.dumps({"question": f"Capital of {land}?", "answer": city}, ensure_ascii=False)
        for land, city in pairs.items()
    ]
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    return file


def test_questions_come_from_the_file(path: Path) -> None:
    name = question_file_name(path)
    digest = name.removeprefix("file:")
    assert len(digest) == 16
    family = open_task(name, files={digest: str(path)})
    assert (family.name, family.safe, family.parameters) == (name, True, {})
    puzzles = [family.pose(seed) for seed in range(60)]
    assert len({puzzle.question for puzzle in puzzles}) == 5
    assert puzzles == [QuestionFile(digest, {digest: str(path)}).pose(seed) for seed in range(60)]
    for puzzle in puzzles:
        assert (
            family.score(puzzle, puzzle.answer)
            == family.score(puzzle, f"  {puzzle.answer.upper()} \n")
            == 1.0
        )
        assert family.score(puzzle, "") == family.score(puzzle, f"{puzzle.answer} or so") == 0.0


def test_a_file_goes_by_its_task_or_by_its_hash(path: Path) -> None:
    name = question_file_name(path)
    for key in (name, name.removeprefix("file:")):
        check_files({key: str(path)})
        assert open_task(name, files={key: str(path)}).name == name
        with WorkerVerifier(files={key: path}) as verifier:
            assert isinstance(verifier.pose(Problem(name, "", "", 3)), Posed)


def test_another_key_is_refused_with_the_one_that_works(path: Path) -> None:
    name = question_file_name(path)
    for key in ("capitals", "file:capitals", name.upper(), f"{name}0", str(path)):
        with pytest.raises(ConfigError, match=f"files.{re.escape(key[:80])}: .*, here {name}"):
            check_files({key: str(path)})
    with pytest.raises(ConfigError, match="gives it"):
        check_files({"capitals": "nowhere.jsonl"})


def test_a_changed_file_is_another_family(path: Path) -> None:
    digest = question_file_name(path).removeprefix("file:")
    path.write_text(path.read_text().replace("Oslo", "Bergen"))
    assert question_file_name(path) != f"file:{digest}"
    with pytest.raises(TaskError, match="changed"):
        open_task(f"file:{digest}", files={digest: str(path)})


def test_only_configured_files_are_read(path: Path) -> None:
    for name in ("file:0123456789abcdef", f"file:{path}", "file:../../etc/passwd"):
        with pytest.raises(TaskError, match="no file with this hash"):
            open_task(name)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "no question"),
        ("{}", "line 1"),
        ('{"question": "a", "answer": "b"}\n[1]', "line 2"),
        ('{"question": "a"}', "answer"),
        ('{"question": "a", "answer": 1}', "answer"),
        ('{"question": " ", "answer": "b"}', "empty"),
        ('{"question": "a", "answer": ""}', "empty"),
        ('{"question": "a", "answer": "' + "b" * MOST_LINE + '"}', "bytes"),
        ("[" * 5000, "line 1"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path: Path, content: str, told: str) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    with pytest.raises(TaskError, match=told):
        question_file_name(file)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        question_file_name(tmp_path / "none.jsonl")


def test_the_worker_reads_the_file_it_is_given_and_no_other(path: Path) -> None:
    other = path.with_name("other.jsonl")
    other.write_text('{"question": "a", "answer": "b"}')
    name, hidden = question_file_name(path), question_file_name(other)
    with WorkerVerifier(files={name.removeprefix("file:"): path}) as verifier:
        problem = Problem(name, "", "", 3)
        posed = verifier.pose(problem)
        assert isinstance(posed, Posed)
        verdict = score(verifier, problem, [posed.answer, "Atlantis"])
        assert isinstance(verdict, Scored)
        assert verdict.scores == (1.0, 0.0)
        assert isinstance(verifier.pose(Problem(hidden, "", "", 3)), Refused)
