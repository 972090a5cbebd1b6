"""Families of reasoning-gym, a library of question generators: `gym:base_conversion` and a hundred more.

Shoal adds settings like the SAPO paper's for its nine specialties, bounds on settings and answers, silence on
standard output, and a list of safe scorers. Only the verifier's process imports the library.
"""

from __future__ import annotations

import contextlib
import dataclasses
import decimal
import importlib
import io
import math
import random
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import version as installed_version
from types import ModuleType
from typing import Any

import msgspec

from shoal.errors import TaskError, UnknownTaskError, how_to_install
from shoal.tasks.family import Puzzle, hint, show

MOST_ANSWER = 512
MOST_OPERATORS = 48
MOST_DEPTH = 24
MOST_STRANGE_NAMES = 2
"""Names in a formula beyond those of the question."""
MOST_WHOLE = 2**53
MOST_TEXT = 64
MOST_ENTRIES = 64
SAME_VERSIONS = range(20, 26)
"""0.1.20 to 0.1.25 make the same questions, keys and scores, so they count as one version."""
PLOTTING = (
    *("matplotlib", "matplotlib.animation", "matplotlib.collections", "matplotlib.pyplot"),
    *("mpl_toolkits", "mpl_toolkits.mplot3d"),
)
STARTED = ("reasoning_gym", "cellpylib")
NOT_PLAIN = object()
KINDS: tuple[tuple[Any, Any, str], ...] = (
    (bool, bool, "true or false"),
    (int, int, "a number like {}"),
    (float, int | float, "a number like {}"),
    (str, str, "a text like {!r}"),
    (list | tuple, list | tuple, "a list"),
)
"""Kinds of defaults, the values that each accepts, and their description."""


def _between(**bounds: tuple[int, int]) -> dict[str, Any]:
    """The settings `min_NAME` and `max_NAME` of each name."""
    return {f"{side}_{name}": pair[side == "max"] for name, pair in bounds.items() for side in ("min", "max")}


PAPER: Mapping[str, Mapping[str, Any]] = {
    "arc_1d": {**_between(size=(10, 30)), "num_train": 3},
    "base_conversion": _between(base=(2, 16), value=(0, 1000)),
    "basic_arithmetic": {
        **_between(terms=(2, 6), digits=(1, 4)),
        "operators": ["+", "-", "*", "/"],
        "allow_parentheses": True,
        "allow_negation": True,
    },
    "bf": {"difficulty": 1},
    "binary_matrix": {**_between(n=(3, 10)), "p_zero": 0.25},
    "calendar_arithmetic": {
        "year": 2023,
        "tasks": ["count_days", "weekday_of_date", "is_leap_year", "recurring_event_day"],
        "offset_upper_bound": 100,
        "leap_year_range": 200,
    },
    "decimal_arithmetic": {**_between(num_decimal_places=(1, 3), terms=(2, 6)), "precision": 5},
    "fraction_simplification": {
        **_between(value=(1, 100), factor=(2, 100)),
        "styles": ["plain", "latex_inline", "latex_frac"],
    },
    "propositional_logic": _between(vars=(2, 4), statements=(2, 4), complexity=(1, 3)),
}
"""Shoal's defaults for these generators: those of the paper's public recipe, but for `format_style` of
basic_arithmetic and the `styles` of fraction_simplification. The preset `sapo` has these too."""
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


@cache
def library() -> Any:
    try:
        try:
            with _no_plotting():
                return _imported()
        except (ImportError, AttributeError, TypeError):  # a release that needs more than empty modules
            for name in [name for name in sys.modules if name.partition(".")[0] in STARTED]:
                del sys.modules[name]
            return _imported()
    except ImportError as error:
        found = f"gym: tasks need reasoning-gym, which cannot be imported ({error})"
        raise UnknownTaskError(f"{found}: {how_to_install('tasks')}") from error


def _imported() -> Any:
    importlib.import_module("reasoning_gym.factory")
    return importlib.import_module("reasoning_gym")


@contextlib.contextmanager
def _no_plotting() -> Iterator[None]:
    """Puts empty modules in the place of matplotlib. A dependency of the library imports it for plots that
    nobody draws here; it takes a third of the import time and wants threads and a writable folder."""
    places = () if "matplotlib" in sys.modules else PLOTTING
    sys.modules.update({name: _Nothing(name) for name in places})
    try:
        yield
    finally:
        for name in places:
            del sys.modules[name]


class _Nothing(ModuleType):
    """An empty module, in the place of one that is imported and never used."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


def library_version() -> str:
    text = installed_version("reasoning-gym")
    parts = text.split(".")
    if parts[:2] == ["0", "1"] and len(parts) == 3 and parts[2].isdigit() and int(parts[2]) in SAME_VERSIONS:
        return "reasoning_gym 0.1"
    return f"reasoning_gym {text}"[:64]


def generators() -> list[str]:
    """All generators of the installed library, except `composite`, which combines others."""
    return sorted(name for name in library().factory.DATASETS if name != "composite")


def configuration(generator: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the generator with those given, each of the same kind as its default, or TaskError."""
    if generator not in generators():
        known = hint(generator, generators())
        raise UnknownTaskError(f"reasoning-gym has no generator {show(generator)}{known}")
    kind = library().factory.DATASETS[generator][1]
    defaults = {field.name: field for field in dataclasses.fields(kind) if field.name not in ("seed", "size")}
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name not in defaults:
            raise TaskError(f"task gym:{generator}: there is no setting {show(name)}{hint(name, defaults)}")
        default, factory = defaults[name].default, defaults[name].default_factory
        if default is dataclasses.MISSING:
            default = None if factory is dataclasses.MISSING else factory()
        settings[name] = _checked(f"task gym:{generator}: {name}", value, default)
    try:
        made = kind(**settings)
        if hasattr(made, "validate"):
            made.validate()
    except Exception as error:  # the library asserts, and raises what it likes
        raise TaskError(f"task gym:{generator}: {type(error).__name__}: {show(str(error))}") from error
    return {name: getattr(made, name) for name in defaults}


def _checked(where: str, value: Any, default: Any, depth: int = 0) -> Any:
    """The value if it is plain, small and of the default's kind."""
    if depth > 3:
        raise TaskError(f"{where} is nested too deeply")
    for kind, accepted, form in KINDS:
        if isinstance(default, kind):
            if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
                raise TaskError(f"{where} is {show(value)}: give {form.format(default)}")
            break
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= MOST_WHOLE):
        raise TaskError(f"{where} is {show(value)}: give a number up to {MOST_WHOLE}")
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise TaskError(f"{where} is {show(value)}: at most {MOST_TEXT} characters")
    if isinstance(value, list | tuple | dict) and len(value) > MOST_ENTRIES:
        raise TaskError(f"{where} has {len(value)} entries: at most {MOST_ENTRIES}")
    if isinstance(value, list | tuple):
        entries = [_checked(where, entry, None, depth + 1) for entry in value]
        return tuple(entries) if isinstance(default, tuple) else entries
    if isinstance(value, dict) and all(isinstance(name, str) and len(name) <= MOST_TEXT for name in value):
        return {name: _checked(where, entry, None, depth + 1) for name, entry in value.items()}
    if value is None or isinstance(value, int | float | str):
        return value
    raise TaskError(f"{where} is {show(value)}: give a plain value")


def plain(value: Any) -> Any:
    """The value in JSON. NOT_PLAIN if it has no such form: then it can only be the library's default."""
    if isinstance(value, Enum) or (isinstance(value, float) and not math.isfinite(value)):
        return NOT_PLAIN
    if isinstance(value, list | tuple):
        entries = [plain(entry) for entry in value]
        return NOT_PLAIN if NOT_PLAIN in entries else entries
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        named = {name: plain(entry) for name, entry in value.items()}
        return NOT_PLAIN if NOT_PLAIN in named.values() else named
    return value if value is None or isinstance(value, int | float | str) else NOT_PLAIN


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
        """The library's item 0 under the lowest 32 bits of the seed: some generators take no more."""
        random.seed(seed)  # for generators that draw from the module's own state, if there are any
        decimal.setcontext(decimal.Context())  # some generators change it for all that follow
        with _silence():
            dataset = library().create_dataset(self._generator, seed=seed % 2**32, size=1, **self._settings)
            entry = dataset[0]
        answer = entry["answer"]
        if isinstance(answer, str) and len(answer) > self.most_answer:
            found = f"the right answer has {len(answer)} characters, more than {self.most_answer}"
            raise TaskError(f"task {self.name}: {found}: choose smaller settings")
        key = Key(dataset, entry)
        if answer is None:
            answer = _proven(key)
        return Puzzle(str(entry["question"]), key, answer if isinstance(answer, str) else "")

    def score(self, puzzle: Puzzle, answer: str) -> float:
        with _silence():
            return float(self._score(answer.strip(), puzzle.key))


def _silence() -> contextlib.redirect_stdout[io.StringIO]:
    """Swallows standard output: some generators print, and it may be a channel."""
    return contextlib.redirect_stdout(io.StringIO())


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
    if deepest > MOST_DEPTH or sum(map(answer.count, "¬∧∨→↔")) > MOST_OPERATORS:
        return 0.0
    read = importlib.import_module("reasoning_gym.logic.propositional_logic").Expression.from_string
    try:
        names = key.dataset._collect_variables([read(answer)])
    except (ValueError, AttributeError):  # the library scores these 0 too
        return 0.0
    if len(names) > len(key.entry["metadata"]["variables"]) + MOST_STRANGE_NAMES:
        return 0.0
    return _library_score(answer, key)


OWN_SCORERS = {"binary_matrix": _score_matrix, "propositional_logic": _score_logic}


def _proven(key: Key) -> str:
    """The example of a task with several right answers, if it is right: the library's may be wrong."""
    example = key.entry.get("metadata", {}).get("example_answer")
    if not isinstance(example, str) or len(example) > MOST_ANSWER:
        return ""
    return example if _library_score(example, key) >= 1 else ""
