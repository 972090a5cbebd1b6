"""`corewar:beat`: opponents by seed, scores by battle."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.corewar import starter_names, starter_source
from shoal.errors import TaskError
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.corewar import BeatWarrior
from shoal.tasks.family import canonical_parameters, parse_parameters
from shoal.tasks.registry import open_task
from shoal.tasks.verifier import Posed, Problem, Scored
from tests.tasks.asking import score

IMP = "mov 0, 1"
SUICIDE = "dat 0, 0"


def test_opponents_follow_from_the_seed() -> None:
    family = open_task("corewar:beat")
    questions = [family.pose(seed).question for seed in range(40)]
    again = BeatWarrior(parse_parameters(canonical_parameters(family.parameters)))
    assert questions == [again.pose(seed).question for seed in range(40)]
    assert len(set(questions)) > 25
    assert all(
        "Write a warrior that beats this one" in question and ";" not in question.split("this one:")[1]
        for question in questions
    )
    assert len(
        {open_task("corewar:beat", {"mutations": 0}).pose(seed).question for seed in range(100)}
    ) <= len(starter_names())


def test_points_are_wins_and_ties() -> None:
    family = BeatWarrior({"opponents": [SUICIDE + "\ndat 1, 1"], "mutations": 0})
    puzzle = family.pose(1)
    assert family.score(puzzle, IMP) == family.score(puzzle, f"```redcode\n{IMP}\n```") == 1.0
    assert family.score(puzzle, SUICIDE) == pytest.approx(0.45), "who moves first dies first, in turns"
    tie = BeatWarrior({"opponents": ["jmp 0, 0"], "mutations": 0, "tie": 0.5})
    assert tie.score(tie.pose(1), "jmp 0\njmp 0") == pytest.approx(0.45)
    lenient = BeatWarrior({"opponents": ["jmp 0, 0"], "mutations": 0, "threshold": 0.5})
    assert lenient.score(lenient.pose(1), "jmp 0\njmp 0") == 1.0
    strict = BeatWarrior({"opponents": ["jmp 0, 0"], "mutations": 0, "tie": 0.0})
    assert strict.score(strict.pose(1), "jmp 0\njmp 0") == 0.0


@pytest.mark.parametrize(
    "answer", ["", "hello", "mov", "mov 0, 1\n" * 101, ";name x", "for 9999999\nmov 0,1\nrof"]
)
def test_what_is_no_warrior_scores_nothing(answer: str) -> None:
    family = BeatWarrior()
    assert family.score(family.pose(1), answer) == 0.0


def test_all_opponents_can_be_met_and_a_parent_given() -> None:
    family = BeatWarrior(
        {"opponents": ["dwarf", IMP], "all": 1, "parent": "mov 0, 1\njmp -1", "mutations": 0}
    )
    puzzle = family.pose(1)
    assert "beats these" in puzzle.question
    assert "Start from this one" in puzzle.question
    assert 0.0 <= family.score(puzzle, starter_source("paper")) <= 1.0
    assert len(canonical_parameters(family.parameters)) < 4096


def test_a_small_hill_takes_given_opponents() -> None:
    family = BeatWarrior({"hill": "nano", "opponents": [IMP], "rounds": 50})
    assert family.score(family.pose(2), "mov 2, <2\njmp -1\ndat 0, 3") >= 0.0
    assert BeatWarrior({"hill": "nano"}).pose(1).question, "the starters that fit"


@pytest.mark.parametrize(
    "settings",
    [
        {"opponents": "dwarf"},
        {"opponents": ["dwarff"]},
        {"opponents": ["not redcode"]},
        {"opponents": [IMP] * 9},
        {"opponents": [1]},
        {"parent": 5},
        {"hill": "94x"},
        {"rounds": 0},
        {"rounds": 100},
        {"threshold": float("nan")},
        {"tie": 2},
        {"round": 1},
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="corewar:beat"):
        BeatWarrior(settings)


def test_the_worker_scores_alike() -> None:
    family = BeatWarrior()
    with WorkerVerifier() as verifier:
        for seed in range(4):
            problem = Problem("corewar:beat", "1", canonical_parameters(family.parameters), seed)
            puzzle = family.pose(seed)
            answers = [starter_source(name) for name in ("paper", "mice", "scanner", "imp")]
            own = [family.score(puzzle, answer) for answer in answers]
            posed = verifier.pose(problem)
            assert isinstance(posed, Posed)
            assert posed.question == puzzle.question
            verdict = score(verifier, problem, answers, question=puzzle.question)
            assert isinstance(verdict, Scored)
            assert list(verdict.scores) == own
