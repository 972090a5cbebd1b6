"""Families of reasoning-gym, a library of question generators: `gym:base_conversion` and a hundred more.

Shoal adds the settings of the SAPO paper as defaults for its nine specialties, bounds on settings and
answers, silence on standard output, and a list of the generators whose scorer interprets nothing.
"""

from __future__ import annotations

import dataclasses
import decimal
import importlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.errors import TaskError
from shoal.tasks.family import Puzzle
from shoal.tasks.gym_library import NOT_PLAIN, configuration, library, library_version, plain, silence

MOST_ANSWER = 512
MOST_OPERATORS = 48
MOST_DEPTH = 24
MOST_STRANGE_NAMES = 2
"""Names in a formula beyond those of the question."""

PAPER: Mapping[str, Mapping[str, Any]] = {
    "arc_1d": {"min_size": 10, "max_size": 30, "num_train": 3},
    "base_conversion": {"min_base": 2, "max_base": 16, "min_value": 0, "max_value": 1000},
    "basic_arithmetic": {
        "min_terms": 2,
        "max_terms": 6,
        "min_digits": 1,
        "max_digits": 4,
        "operators": ["+", "-", "*", "/"],
        "allow_parentheses": True,
        "allow_negation": True,
    },
    "bf": {"difficulty": 1},
    "binary_matrix": {"min_n": 3, "max_n": 10, "p_zero": 0.25},
    "calendar_arithmetic": {
        "year": 2023,
        "tasks": ["count_days", "weekday_of_date", "is_leap_year", "recurring_event_day"],
        "offset_upper_bound": 100,
        "leap_year_range": 200,
    },
    "decimal_arithmetic": {
        "min_num_decimal_places": 1,
        "max_num_decimal_places": 3,
        "min_terms": 2,
        "max_terms": 6,
        "precision": 5,
    },
    "fraction_simplification": {
        "min_value": 1,
        "max_value": 100,
        "min_factor": 2,
        "max_factor": 100,
        "styles": ["plain", "latex_inline", "latex_frac"],
    },
    "propositional_logic": {
        "min_vars": 2,
        "max_vars": 4,
        "min_statements": 2,
        "max_statements": 4,
        "min_complexity": 1,
        "max_complexity": 3,
    },
}
"""Settings of the paper's public recipe."""
SPECIALTIES = tuple(PAPER)
"""The nine of the SAPO paper, which may be named without `gym:`."""

DEFAULT_SCORER = frozenset(
    """aiw binary_alternation caesar_cipher count_bits count_primes course_schedule gcd largest_island lcm
    leg_counting letter_counting maze modulo_grid number_filtering number_sequence rotate_matrix
    rotten_oranges simple_equations simple_geometry string_manipulation string_splitting string_synthesis
    syllogism word_sequence_reversal""".split()
)
"""They score by `ProceduralDataset.score_answer`, which compares strings (equal, or contained) and does
nothing else. isomorphic_strings and ransom_note do too, but their questions depend on Python's hash seed."""

COMPARING_SCORER = frozenset(
    """chain_sum decimal_chain_sum family_relationships needle_haystack products sentence_reordering
    spell_backward word_sorting""".split()
)
"""Their own scorers were read: they split, lower and compare strings, or read one number by `Decimal`."""

SAFE = frozenset(PAPER) | DEFAULT_SCORER | COMPARING_SCORER
"""The generators that may score a stranger's text. All were read in 0.1.25, and tests hold them to it.

Of the nine, four have the default scorer. Those of calendar_arithmetic (`int`), decimal_arithmetic
(`Decimal`) and fraction_simplification (`re`, `int`) only read numbers. propositional_logic has a parser of
its own, kept small here. binary_matrix evaluates the answer as Python, so its scorer is replaced here.
Missing because they evaluate: spiral_matrix, string_insertion, n_queens, puzzle24, countdown, the
integrations, polynomials and codeio. Missing because a short number can cost any time: coin_flip
(`Fraction`), power_function, prime_factorization, time_intervals. The rest has not been read."""


class GymFamily:
    """One generator with its settings. `version` is the library's; `parameters` are all settings."""

    most_answer = MOST_ANSWER
    prepare = staticmethod(library)

    def __init__(self, generator: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.name = f"gym:{generator}"
        self.version = library_version()
        self.safe = generator in SAFE
        self._generator = generator
        self._settings = configuration(generator, {**PAPER.get(generator, {}), **(parameters or {})})
        self.parameters: Mapping[str, Any] = {
            name: known for name, value in self._settings.items() if (known := plain(value)) is not NOT_PLAIN
        }
        self._score = OWN_SCORERS.get(generator, _library_score)

    def pose(self, seed: int) -> Puzzle:
        """The library's item 0 under this seed. Some generators take 32 bits only, so all of them get the
        lowest 32."""
        random.seed(seed)  # for generators that draw from the module's own state, if there are any
        decimal.setcontext(decimal.Context())  # some generators change it for all that follow
        with silence():
            dataset = library().create_dataset(self._generator, seed=seed % 2**32, size=1, **self._settings)
            entry = dataset[0]
        answer = entry["answer"]
        if isinstance(answer, str) and len(answer) > self.most_answer:
            raise TaskError(
                f"task {self.name}: the right answer has {len(answer)} characters, and at most "
                f"{self.most_answer} are scored: choose smaller settings"
            )
        key = Key(dataset, entry)
        if answer is None:
            answer = _proven(key)
        return Puzzle(str(entry["question"]), key, answer if isinstance(answer, str) else "")

    def score(self, puzzle: Puzzle, answer: str) -> float:
        """The library's score of the stripped answer."""
        with silence():
            return float(self._score(answer.strip(), puzzle.key))


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """The library's item, and the dataset that made it: both are needed to score."""

    dataset: Any
    entry: Mapping[str, Any]


def _library_score(answer: str, key: Key) -> float:
    return float(key.dataset.score_answer(answer, key.entry))


def _score_matrix(answer: str, key: Key) -> float:
    """The library's score for rows of numbers (1) and for nested lists in JSON form (0.1)."""
    if answer == key.entry["answer"]:
        return 1.0
    if not answer.startswith("["):
        return 0.0
    try:
        rows = msgspec.json.decode(answer.encode(), type=list[list[int | str]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return 0.0
    return 0.1 if "\n".join(" ".join(map(str, row)) for row in rows) == key.entry["answer"] else 0.0


def _score_logic(answer: str, key: Key) -> float:
    """The library's score of formulas of reasonable size. Its parser is quadratic and recursive, and its
    truth table has 2^n rows for n names, whatever they are: larger formulas are wrong."""
    depth = deepest = 0
    for character in answer:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    operators = sum(map(answer.count, "¬∧∨→↔"))
    if deepest > MOST_DEPTH or operators > MOST_OPERATORS:
        return 0.0
    read = importlib.import_module("reasoning_gym.logic.propositional_logic").Expression.from_string
    try:
        names = key.dataset._collect_variables([read(answer)])
    except (ValueError, AttributeError):  # the library scores these 0 too
        return 0.0
    if len(names) > len(key.entry["metadata"]["variables"]) + MOST_STRANGE_NAMES:
        return 0.0
    return _library_score(answer, key)


OWN_SCORERS: Mapping[str, Callable[[str, Key], float]] = {
    "binary_matrix": _score_matrix,
    "propositional_logic": _score_logic,
}


def _proven(key: Key) -> str:
    """The example of a task with several right answers, if it is right: the library's may be wrong."""
    example = key.entry.get("metadata", {}).get("example_answer")
    if not isinstance(example, str) or len(example) > MOST_ANSWER:
        return ""
    return example if _library_score(example, key) >= 1 else ""
