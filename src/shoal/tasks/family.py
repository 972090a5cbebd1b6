"""A family of tasks, its settings, and their one canonical form.

A family makes question and key from a seed, and scores answers, in a confined worker and never in the node's
process. Settings come from users and strangers, so each is checked, and the message says what would be right.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from shoal.errors import TaskError

MOST_PARAMETERS = 4096
"""Characters of the canonical form, as in a task's name."""
MOST_NAMED = 16
"""Names listed in a message."""


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A question with the key to score answers by. `answer` is one right answer, if there is one to show."""

    question: str
    key: Any
    answer: str = ""


@runtime_checkable
class Family(Protocol):
    """A generator with its settings.

    `safe`: `score` hands the answer to no interpreter, and so may get a stranger's text. `most_answer`: an
    answer of more characters is wrong. With `whole_text = True`, an answer without <answer> tags is the whole
    text and not its first line. A static `prepare()` of the class imports a library that takes seconds.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]:
        """All settings, defaults included: plain JSON values."""

    @property
    def safe(self) -> bool: ...
    @property
    def most_answer(self) -> int: ...

    def pose(self, seed: int) -> Puzzle:
        """The task of this seed; the same everywhere."""

    def score(self, puzzle: Puzzle, answer: str) -> float:
        """From 0 to 1; 1 is right. May raise for absurd answers: that is a 0."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `least` to `most`; a whole one if the default is."""

    default: float
    least: float
    most: float

    def read(self, where: str, value: Any) -> float:
        is_whole = isinstance(self.default, int)
        is_number = isinstance(value, int if is_whole else int | float) and not isinstance(value, bool)
        if not is_number or not self.least <= value <= self.most:
            kind = "whole number" if is_whole else "number"
            raise TaskError(f"{where} is {show(value)}: give a {kind} from {self.least} to {self.most}")
        return int(value) if is_whole else float(value)


@dataclass(frozen=True, slots=True)
class Letters:
    """Some of the characters of `allowed`, none twice; their order does not matter."""

    default: str
    allowed: str

    def read(self, where: str, value: Any) -> str:
        if not isinstance(value, str) or not value or not set(value) <= set(self.allowed):
            raise TaskError(f"{where} is {show(value)}: give one or more of the characters {self.allowed}")
        return "".join(letter for letter in self.allowed if letter in value)


FamilySettings = Mapping[str, Number | Letters]


def read_settings(family: str, given: Mapping[str, Any] | None, settings: FamilySettings) -> dict[str, Any]:
    values: dict[str, Any] = {name: setting.default for name, setting in settings.items()}
    for name, value in (given or {}).items():
        if name not in settings:
            raise TaskError(f"task {family}: there is no setting {show(name)}{hint(name, settings)}")
        values[name] = settings[name].read(f"task {family}: {name}", value)
    return values


def canonical_parameters(parameters: Mapping[str, Any] | None) -> str:
    """One text for equal settings: JSON with sorted keys and no blanks. None and {} are "{}"."""
    try:
        plain, blanks = dict(parameters or {}), (",", ":")
        text = json.dumps(plain, sort_keys=True, separators=blanks, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"the settings of a task are not plain JSON values: {error}") from None
    return _bounded(text)


def parse_parameters(text: str) -> dict[str, Any]:
    """The settings of a canonical text, or of any other JSON object; "" means none."""
    try:
        found = json.loads(_bounded(text)) if text else {}
    except (ValueError, RecursionError) as error:
        raise TaskError(f"the settings of a task are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise TaskError(f"the settings of a task are {show(found)}: give an object such as {{}}")
    return found


def _bounded(text: str) -> str:
    if len(text) > MOST_PARAMETERS:
        raise TaskError(f"the settings of a task have {len(text)} characters: at most {MOST_PARAMETERS}")
    return text


def show(value: Any) -> str:
    """A value for a message, never long."""
    text = repr(value[:50] if isinstance(value, str | list | tuple) else value)
    return text if len(text) <= 80 else text[:77] + "…"


def hint(name: str, known: Iterable[str]) -> str:
    """Names that may have been meant, for the end of a message."""
    names = sorted(known)
    if near := difflib.get_close_matches(name[:64], names, n=3, cutoff=0.6):
        return f"; did you mean {' or '.join(near)}?"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"; there are {', '.join(names[:MOST_NAMED])}{more}" if names else "; there are none"
