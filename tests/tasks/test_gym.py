"""reasoning-gym's generators: the same questions and the same scores as in the library itself."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")

from reasoning_gym.dataset import ProceduralDataset
from reasoning_gym.factory import DATASETS, create_dataset

from shoal.errors import TaskError
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.family import canonical_parameters, parse_parameters
from shoal.tasks.gym import (
    DEFAULT_SCORER,
    MOST_ANSWER,
    PAPER,
    SAFE,
    SPECIALTIES,
    GymFamily,
    generators,
    library_version,
)
from shoal.tasks.verifier import Posed, Problem, Scored
from tests.tasks.asking import score

EVALUATING = ("spiral_matrix", "string_insertion", "n_queens", "puzzle24", "countdown", "simple_integration")
RUBBISH = [
    "",
    "x",
    "0",
    "-1",
    "None",
    "1/0",
    "NaN",
    "Infinity",
    "1e5",
    "[]",
    "P",
    "¬P",
    "(P",
    "((P ∧ Q) ∨ R)",
    "Monday",
    "monday",
    "yes",
    "No",
    "🙂",
    "0 0 0",
    "\\frac{1}{2}",
    "$1/2$",
    "a b\nc",
    "7" * 500,
]


def answers_of(right: str, rng: random.Random) -> Iterator[str]:
    yield right
    yield right.upper()
    yield right + "0"
    yield f"the answer is {right}"
    yield right[: len(right) // 2].strip()
    yield right.replace(" ", "")
    yield (
        str([[int(cell) for cell in row.split()] for row in right.split("\n")])
        if right.replace(" ", "").replace("\n", "").isdigit()
        else "[[0]]"
    )
    yield "".join(rng.sample(right, len(right))).strip()
    yield from rng.sample(RUBBISH, 5)


def or_nothing(score: Callable[..., float], *arguments: Any) -> float:
    """Raising over an answer means that it is wrong."""
    try:
        return score(*arguments)
    except Exception:
        return 0.0


@pytest.mark.parametrize("name", SPECIALTIES)
def test_scores_equal_the_library_s(name: str) -> None:
    """9 x 12 items x 13 answers. Where the library would evaluate (binary_matrix), it only gets what is
    harmless: the answers here are ours."""
    family = GymFamily(name)
    rng = random.Random(name)
    compared, right = 0, 0
    for seed in range(12):
        puzzle = family.pose(seed)
        dataset = create_dataset(name, seed=seed, size=1, **PAPER[name])
        entry = dataset[0]
        assert puzzle.question == entry["question"]
        for answer in answers_of(puzzle.answer or "P", rng):
            assert len(answer) <= MOST_ANSWER
            expected = or_nothing(dataset.score_answer, answer.strip(), entry)
            found = or_nothing(family.score, puzzle, answer)
            assert found == expected, (name, seed, answer)
            blanks = or_nothing(family.score, puzzle, f"\n {answer} ")
            assert found == blanks, "blanks around an answer do not count"
            compared += 1
            right += found >= 0.99
    assert compared == 12 * 13
    assert right >= 11


@pytest.mark.parametrize("name", SPECIALTIES)
def test_settings_are_the_paper_s_and_go_round(name: str) -> None:
    family = GymFamily(name)
    for setting, value in PAPER[name].items():
        assert family.parameters[setting] == value
    text = canonical_parameters(family.parameters)
    assert "seed" not in family.parameters
    again = GymFamily(name, parse_parameters(text))
    assert canonical_parameters(again.parameters) == text
    assert [again.pose(seed).question for seed in range(5)] == [
        family.pose(seed).question for seed in range(5)
    ]


def test_right_answers_are_shown_where_there_are_some() -> None:
    shown = [GymFamily("propositional_logic").pose(seed) for seed in range(40)]
    family = GymFamily("propositional_logic")
    assert all(family.score(puzzle, puzzle.answer) == 1.0 for puzzle in shown if puzzle.answer)
    assert sum(bool(puzzle.answer) for puzzle in shown) > 20


def test_the_worker_makes_the_same_questions() -> None:
    with WorkerVerifier() as verifier:
        for name in SPECIALTIES:
            family = GymFamily(name)
            for seed in (0, 2**61 + 12345):
                puzzle = family.pose(seed)
                problem = Problem(
                    f"gym:{name}", "reasoning_gym 0.1", canonical_parameters(family.parameters), seed
                )
                posed = verifier.pose(problem)
                assert isinstance(posed, Posed), posed
                assert (posed.question, posed.answer) == (puzzle.question, puzzle.answer)
                answers = [puzzle.answer, "7", ""]
                verdict = score(verifier, problem, answers, question=puzzle.question)
                assert isinstance(verdict, Scored)
                assert list(verdict.scores) == [family.score(puzzle, answer) for answer in answers]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    puzzle = GymFamily("bf", {"difficulty": 3}).pose(1)
    GymFamily("bf").score(puzzle, "x")
    assert capfd.readouterr().out == ""


def test_versions_that_make_the_same_questions_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.tasks import gym as module

    found = {}
    for text in ("0.1.19", "0.1.20", "0.1.25", "0.1.26", "0.2.0", "0.1.25.dev1"):
        monkeypatch.setattr(module, "installed_version", lambda _, text=text: text)
        found[text] = library_version()
    assert found["0.1.20"] == found["0.1.25"] == "reasoning_gym 0.1"
    assert len(set(found.values())) == 5


def test_the_list_of_safe_generators_holds() -> None:
    """Those listed under the default scorer have it, and none of the known evaluators is listed."""
    for name in DEFAULT_SCORER:
        assert DATASETS[name][0].score_answer is ProceduralDataset.score_answer, name
    for name in ("arc_1d", "base_conversion", "basic_arithmetic", "bf"):
        assert DATASETS[name][0].score_answer is ProceduralDataset.score_answer, name
    assert not SAFE & {
        *EVALUATING,
        "codeio",
        "polynomial_multiplication",
        "intermediate_integration",
        "number_sorting",
        "bitwise_arithmetic",
    }
    assert set(generators()) >= SAFE
    for name in EVALUATING:
        assert not GymFamily(name).safe


def test_other_generators_work_with_their_defaults() -> None:
    family = GymFamily("gcd", {"max_value": 50})
    puzzle = family.pose(3)
    assert family.score(puzzle, puzzle.answer) == 1.0
    assert family.parameters["max_value"] == 50
    assert GymFamily("countdown").pose(1).question


DIGEST = """
import hashlib
from shoal.tasks.gym import GymFamily
from shoal.tasks.gym import SAFE
for name in sorted(SAFE):
    family = GymFamily(name)
    made = [family.pose(seed) for seed in range(4)]
    print(name, hashlib.sha256(repr([(puzzle.question, puzzle.answer) for puzzle in made]).encode()).hexdigest())
"""


def test_questions_do_not_depend_on_the_hash_seed() -> None:
    found = []
    for number in ("1", "2"):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": number}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=120,
        )
        found.append(run.stdout.splitlines())
    assert found[0] == found[1]
    assert len(found[0]) == len(SAFE)


def test_the_questions_of_this_version_are_known() -> None:
    """Another release that makes other questions must not call itself the same version."""
    made = [GymFamily(name).pose(seed) for name in SPECIALTIES for seed in range(10)]
    digest = hashlib.sha256(repr([(puzzle.question, puzzle.answer) for puzzle in made]).encode()).hexdigest()
    assert library_version() != "reasoning_gym 0.1" or digest[:16] == "ddb85c3506772450"


@pytest.mark.parametrize(
    "settings",
    [
        {"max_bas": 3},
        {"max_base": 99},
        {"max_base": "16"},
        {"max_base": 1.5},
        {"max_base": True},
        {"seed": 1},
        {"size": 1},
        {"max_value": 10**30},
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="base_conversion"):
        GymFamily("base_conversion", settings)


def test_an_unknown_generator_is_told() -> None:
    with pytest.raises(TaskError, match="did you mean base_conversion"):
        GymFamily("base_conversio")


@pytest.mark.parametrize(
    "answer", ["¬" * 500, "(" * 256 + ")" * 256, "∧".join("abcdefghijklmnopqrstuvwxyz"), "P∧" * 250 + "P"]
)
def test_formulas_that_would_run_away_are_wrong(answer: str) -> None:
    family = GymFamily("propositional_logic")
    assert family.score(family.pose(1), answer) == 0.0
