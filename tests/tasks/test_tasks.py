"""Names, settings and the small families; what an answer is, and what it is worth."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given, strategies as st

from shoal.errors import TaskError
from shoal.tasks import registry
from shoal.tasks.family import Family, Puzzle, canonical_parameters, parse_parameters
from shoal.tasks.gym import SPECIALTIES
from shoal.tasks.registry import canonical_name, known_families, open_task
from shoal.tasks.sums import BUILTIN
from shoal.tasks.verifier import clamp, extract_answer, rewards


@pytest.mark.parametrize("name", sorted(BUILTIN))
def test_a_small_family_keeps_its_promises(name: str) -> None:
    family = open_task(name)
    assert isinstance(family, Family)
    assert (family.name, family.safe) == (name, True)
    again = open_task(name, parse_parameters(canonical_parameters(family.parameters)))
    questions = set()
    for seed in [*range(200), 2**62 - 1]:
        puzzle = family.pose(seed)
        assert puzzle == again.pose(seed)
        assert puzzle.question.isascii()
        assert len(puzzle.question) < 40
        assert family.score(puzzle, puzzle.answer) == family.score(puzzle, f" {puzzle.answer}\n") == 1.0
        for wrong in ("", "x", puzzle.answer + "0", "-" + puzzle.answer, f"{puzzle.answer} {puzzle.answer}"):
            assert family.score(puzzle, wrong) == 0.0
        questions.add(puzzle.question)
    assert len(questions) > 40


def test_the_questions_are_fixed_for_ever() -> None:
    shown = {name: open_task(name).pose(5).question for name in BUILTIN}
    assert shown == {
        "sums": "9+4=",
        "compare": "larger of 79 and 32:",
        "reverse": "reverse 945:",
        "count": "count c in cbcbcc:",
    }


@given(
    st.integers(1, 10**9),
    st.integers(2, 8),
    st.sets(st.sampled_from("+-*"), min_size=1),
    st.integers(0, 2**62),
)
def test_sums_are_right(largest: int, terms: int, operators: set[str], seed: int) -> None:
    family = open_task("sums", {"largest": largest, "terms": terms, "operators": "".join(operators)})
    puzzle = family.pose(seed)
    products = [part.split("*") for part in puzzle.question.rstrip("=").replace("-", "+-").split("+")]
    assert sum(math.prod(map(int, factors)) for factors in products) == int(puzzle.answer)


def test_the_other_answers_are_right() -> None:
    for seed in range(100):
        puzzle = open_task("compare", {"largest": 1000}).pose(seed)
        first, second = puzzle.question.removeprefix("larger of ").rstrip(":").split(" and ")
        assert int(puzzle.answer) == max(int(first), int(second)) > min(int(first), int(second))
        puzzle = open_task("reverse", {"digits": 12, "alphabet": "ab1"}).pose(seed)
        assert puzzle.answer[::-1] == puzzle.question.removeprefix("reverse ").rstrip(":")
        puzzle = open_task("count", {"length": 30}).pose(seed)
        _, letter, _, text = puzzle.question.rstrip(":").split()
        assert text.count(letter) == int(puzzle.answer)


def test_parameters_have_one_form() -> None:
    assert canonical_parameters(None) == canonical_parameters({}) == "{}"
    assert canonical_parameters({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'
    first = open_task("sums", {"operators": "-+", "terms": 3})
    second = open_task("sums", {"terms": 3, "operators": "+-"})
    assert canonical_parameters(first.parameters) == canonical_parameters(second.parameters)
    for bad in ({"a": float("nan")}, {"a": object()}, {"a": "x" * 5000}):
        with pytest.raises(TaskError):
            canonical_parameters(bad)


def test_names() -> None:
    assert canonical_name("base_conversion") == "gym:base_conversion"
    assert canonical_name(" sums ") == "sums"
    assert {*BUILTIN, "corewar:beat", "gym:bf"} <= set(known_families())
    assert len(SPECIALTIES) == 9
    for wrong, meant in {
        "summs": "sums",
        "basic_arithmetics": "basic_arithmetic",
        "corewar:beats": "corewar:beat",
    }.items():
        with pytest.raises(TaskError, match=f"did you mean .*{meant}"):
            canonical_name(wrong)
    for wrong in ("", "x" * 129, "su\nms", "os:system", "module:Class"):
        with pytest.raises(TaskError):
            canonical_name(wrong)


@pytest.mark.parametrize(
    "settings",
    [
        {"terms": 1},
        {"terms": 2.0},
        {"terms": True},
        {"terms": "2"},
        {"operators": "/"},
        {"operators": ""},
        {"term": 2},
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any]) -> None:
    with pytest.raises(TaskError, match="sums"):
        open_task("sums", settings)


class Parrot:
    """Say the number: what a third party may write."""

    name = "parrot"
    version = "1"
    safe = True
    most_answer = 20

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = {"largest": 9, **parameters}

    def pose(self, seed: int) -> Puzzle:
        number = str(random.Random(seed).randint(0, self.parameters["largest"]))
        return Puzzle(f"say {number}:", number, number)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        return float(answer.strip() == puzzle.key)


def test_a_package_registers_a_family(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("parrot", f"{__name__}:Parrot", registry.GROUP),
        EntryPoint("sums", f"{__name__}:Parrot", registry.GROUP),
        EntryPoint("lost", "no_such_module:Thing", registry.GROUP),
        EntryPoint("mute", f"{__name__}:test_names", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: entries)
    registry._registered.cache_clear()
    try:
        family = open_task("parrot", {"largest": 3})
        assert family.score(family.pose(1), family.pose(1).answer) == 1.0
        assert "parrot" in known_families()
        assert open_task("sums").pose(5).question == "9+4=", "our own names cannot be taken"
        for name in ("lost", "mute"):
            with pytest.raises(TaskError, match=name):
                open_task(name)
        entries.append(EntryPoint("parrot", "another:Parrot", registry.GROUP))
        registry._registered.cache_clear()
        with pytest.raises(TaskError, match="more than once"):
            open_task("parrot")
    finally:
        monkeypatch.undo()
        registry._registered.cache_clear()


def test_an_own_family_is_given_by_its_place() -> None:
    family = open_task("mine", {}, families={"mine": f"{__name__}:Parrot"})
    assert family.pose(1).question.startswith("say ")


def test_opening_a_small_family_imports_little() -> None:
    program = (
        "import sys; from shoal.tasks.registry import open_task; open_task('sums'); "
        "print(sorted({'numpy', 'torch', 'reasoning_gym', 'zenoh', 'cryptography'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=120,
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "lenient", "tags"),
    [
        ("7", "7", ""),
        ("  7 \n and so on", "7", ""),
        ("<answer> 7 </answer>", "7", "7"),
        ("<answer>1</answer> no: <answer>2\n3</answer> done", "2\n3", "2\n3"),
        ("<answer>1</answer> <answer>2", "1", "1"),
        ("<answer><answer>5</answer>", "5", "5"),
        ("</answer>", "</answer>", ""),
        ("</answer><answer>", "</answer><answer>", ""),
        ("<answer></answer>", "", ""),
        ("", "", ""),
        ("\n\n", "", ""),
    ],
)
def test_the_answer_within_a_text(text: str, lenient: str, tags: str) -> None:
    assert extract_answer(text) == lenient
    assert extract_answer(text, "tags") == tags


@pytest.mark.timeout(60)  # anything worse than linear takes hours
def test_extraction_is_linear() -> None:
    for piece in ("<answer>", "</answer>", "<answer></answer>", "<", " ", "\n", "<answer"):
        extract_answer(piece * ((1 << 24) // len(piece)))
    assert extract_answer("x" * 10**6 + "<answer>9</answer>") == "9"


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    for answer in (extract_answer(text), extract_answer(text, "tags")):
        assert answer == answer.strip()
        assert answer in text


@pytest.mark.parametrize(
    ("score", "binary", "raw"),
    [
        (1.0, 1.0, 1.0),
        (0.99, 1.0, 0.99),
        (0.98, 0.0, 0.98),
        (0.0, 0.0, 0.0),
        (-1.0, 0.0, 0.0),
        (7.0, 1.0, 1.0),
        (math.nan, 0.0, 0.0),
        (math.inf, 1.0, 1.0),
        (-math.inf, 0.0, 0.0),
    ],
)
def test_rewards(score: float, binary: float, raw: float) -> None:
    assert rewards([score]) == (binary,)
    assert rewards([score], "raw") == (clamp(score),) == (raw,)
    assert rewards([score, 1.0]) == (binary, 1.0)
