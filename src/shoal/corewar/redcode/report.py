"""Collecting what is wrong with a source, so that one pass reports several problems."""

from __future__ import annotations

import re

from shoal.corewar.redcode.limits import LINE_LENGTH, PROBLEMS, REPEATED_PROBLEMS
from shoal.corewar.redcode.reader import Line, readable
from shoal.errors import AssemblyError, Problem

SHOWN = 100
"""Characters of a source line, of a name or of a number that are repeated in a report."""


class Abort(Exception):
    """Assembling ends here: the problem is already in the report."""


def shown(text: str) -> str:
    """`text` in quotes, for a message: cut to a sane length, control characters made visible."""
    text = readable(text)
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return "'" + "".join(c if c.isprintable() else "\ufffd" for c in text) + "'"


class Report:
    """Problems and warnings of one source. The same finding on the same line is kept once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._seen: set[tuple[int, str]] = set()
        self._repeated = 0

    def problem(self, line: Line, column: int, message: str, remedy: str) -> None:
        """Raises Abort when the report is full."""
        if not self.repeats(line, message):
            self._seen.add((line.number, message))
            self.problems.append(_located(line, column, message, remedy))
            if len(self.problems) >= PROBLEMS:
                raise Abort

    def repeats(self, line: Line, message: str) -> bool:
        """Whether this problem is in the report already. Raises Abort when that happens too often."""
        if (line.number, message) not in self._seen:
            return False
        self._repeated += 1
        if self._repeated > REPEATED_PROBLEMS:
            raise Abort
        return True

    def warning(self, line: Line, column: int, message: str, remedy: str) -> None:
        key = (line.number, message)
        if len(self.warnings) < PROBLEMS and key not in self._seen:
            self._seen.add(key)
            self.warnings.append(_located(line, column, message, remedy))

    def overflow(self, line: Line, column: int, message: str, remedy: str) -> None:
        """Records a problem of the program as a whole, also when the report is full."""
        self.problems.append(_located(line, column, message, remedy))

    def stop(self, line: Line, column: int, message: str, remedy: str) -> Abort:
        """Records a problem after which going on makes no sense; the caller raises the result."""
        self.problem(line, column, message, remedy)
        return Abort()

    def raise_problems(self, name: str) -> None:
        if self.problems:
            raise AssemblyError(sorted(self.problems, key=lambda problem: problem.line), name)


def column_of(line: Line, token: str, fallback: int) -> int:
    """Where `token` stands in a source line, as a whole word if it is one; else `fallback`."""
    if not token:
        return fallback
    pattern = re.escape(token)
    if token[0].isascii() and (token[0].isalpha() or token[0] == "_"):
        pattern = rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"
    match = re.compile(pattern).search(line.text, max(0, fallback - 1 - line.offset))
    return match.start() + line.offset + 1 if match else fallback


def _located(line: Line, column: int, message: str, remedy: str) -> Problem:
    source = readable(line.source)
    if len(source) != len(line.source):
        column = len(readable(line.source[: column - 1])) + 1
    column = min(column, len(source) + 1)
    if line.offset >= LINE_LENGTH:
        remedy += (
            f" (The line is longer than {LINE_LENGTH} characters, and what follows is read as a line of its"
            " own: break the line.)"
        )
    if len(source) > SHOWN:
        start = max(0, min(column - SHOWN // 2, len(source) - SHOWN))
        source, column = source[start : start + SHOWN], column - start
    source = "".join(c if c.isprintable() else " " for c in source)
    return Problem(line.number, max(1, column), message, remedy, source)
