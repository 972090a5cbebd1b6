"""Own questions from a file: `file:HASH`, one JSON object with "question" and "answer" per line.

The name holds 16 digits of the file's SHA-256, so nodes with that name have the same questions. Each node has
its own path, configured by the name or by the hash alone.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError, TaskError, UnknownTaskError
from shoal.tasks.family import Puzzle, read_settings, show

DIGITS = 16
_KEY = re.compile(r"(file:)?[0-9a-f]{16}")
MOST_BYTES = 32 << 20
MOST_LINE = 1 << 16
"""Bytes of one line."""
MOST_ANSWER = 4096


class Question(msgspec.Struct, frozen=True):
    """One line; other fields are ignored."""

    question: str
    answer: str


class QuestionFile:
    """The questions of one file. An answer is right if it is the file's, apart from case and blanks."""

    version = "1"
    safe = True
    most_answer = MOST_ANSWER

    def __init__(
        self, digest: str, files: Mapping[str, str], parameters: Mapping[str, Any] | None = None
    ) -> None:
        self.name = f"file:{digest}"
        self.parameters: Mapping[str, Any] = read_settings(self.name, parameters, {})
        path = files.get(self.name) or files.get(digest)
        if path is None:
            raise UnknownTaskError(
                f"task {show(self.name)}: no file with this hash is configured here; the table [files] names "
                "the path of each file by its task, and `question_file_name(PATH)` gives the name"
            )
        self._questions = _read(path, digest)

    def pose(self, seed: int) -> Puzzle:
        question = self._questions[random.Random(seed).randrange(len(self._questions))]
        return Puzzle(question.question, normal(question.answer), question.answer)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        return 1.0 if normal(answer) == puzzle.key else 0.0


def normal(text: str) -> str:
    """The text without differences of case and blank space."""
    return " ".join(text.casefold().split())


def check_files(files: Mapping[str, str]) -> None:
    """ConfigError unless each file goes by its task's name, or by its hash. No file need be there."""
    for key, path in files.items():
        if not _KEY.fullmatch(key):
            right = ""
            with suppress(TaskError):
                right = f", here {question_file_name(path)}"
            raise ConfigError(
                f"files.{key[:80]}: a file goes by the name of its task, file: and {DIGITS} digits of its "
                f"hash{right or '; `question_file_name(PATH)` gives it'}"
            )


def question_file_name(path: str | Path) -> str:
    """The name of a file's family: `file:` and its hash. The file is read and checked."""
    content, digest = _content(path)
    _parse(content, str(path))
    return f"file:{digest}"


@lru_cache(maxsize=8)
def _read(path: str, digest: str) -> tuple[Question, ...]:
    content, found = _content(path)
    if found != digest:
        raise UnknownTaskError(
            f"{path} has the hash {found} and not {digest}: it was changed, or is another file"
        )
    return _parse(content, path)


def _content(path: str | Path) -> tuple[bytes, str]:
    """The content and its digest."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnknownTaskError(
            f"the questions of {path} cannot be read: {error.strerror or error}"
        ) from error
    if len(content) > MOST_BYTES:
        raise TaskError(f"{path} is larger than {MOST_BYTES >> 20} MiB: split it")
    return content, hashlib.sha256(content).hexdigest()[:DIGITS]


def _parse(content: bytes, path: str) -> tuple[Question, ...]:
    decode = msgspec.json.Decoder(Question).decode
    questions = []
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        if len(line) > MOST_LINE:
            raise TaskError(f"{where}: it has {len(line)} bytes, at most {MOST_LINE} are allowed")
        try:
            question = decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            form = '{"question": "…", "answer": "…"}'
            raise TaskError(f"{where}: {error}; write {form} on each line") from None
        if not question.question.strip() or not 0 < len(normal(question.answer)) <= MOST_ANSWER:
            raise TaskError(f"{where}: question or answer is empty, or the answer is over {MOST_ANSWER}")
        questions.append(question)
    if not questions:
        raise TaskError(f"{path} holds no question")
    return tuple(questions)
