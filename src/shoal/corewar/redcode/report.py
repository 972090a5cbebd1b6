"""Collecting the problems of a source, so that one pass reports several of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from shoal.corewar.redcode.limits import LINE_LENGTH, PROBLEMS, REPEATED_PROBLEMS, SIMILAR_LENGTH
from shoal.corewar.redcode.reader import Line, Place, readable
from shoal.errors import AssemblyError, Problem

SHOWN = 100  # most characters of a source line, a name or a number in a report


class Abort(Exception):
    """Assembling ends here: the problem is already in the report."""


def shown(text: str) -> str:
    """`text` in quotes, for a message: cut to a sane length, control characters made visible."""
    text = readable(text)
    if len(text) > SHOWN:
        text = text[: SHOWN - 1] + "…"
    return "'" + "".join(c if c.isprintable() else "\ufffd" for c in text) + "'"


def similar(word: str, known: Iterable[str]) -> str:
    """The known word that is most like this one; "" if none is like it."""
    close = get_close_matches(word, known, n=1, cutoff=0.6) if len(word) <= SIMILAR_LENGTH else []
    return close[0] if close else ""


class Report:
    """Problems and warnings of one source. The same finding on the same line is kept once."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []
        self._seen: set[tuple[int, str]] = set()
        self._repeated = 0

    def problem(self, place: Place, message: str, remedy: str, token: str = "") -> None:
        """A problem at `token` behind `place`, or at `place` itself. Raises Abort when the report is full."""
        if not self.repeats(place.line, message):
            self._seen.add((place.line.number, message))
            self.problems.append(located(_token_place(place, token), message, remedy))
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

    def warning(self, place: Place, message: str, remedy: str) -> None:
        key = (place.line.number, message)
        if len(self.warnings) < PROBLEMS and key not in self._seen:
            self._seen.add(key)
            self.warnings.append(located(place, message, remedy))

    def stop(self, place: Place, message: str, remedy: str) -> Abort:
        """Records a problem after which going on makes no sense; the caller raises the result."""
        self.problem(place, message, remedy)
        return Abort()

    def raise_problems(self, name: str) -> None:
        if self.problems:
            raise AssemblyError(sorted(self.problems, key=lambda problem: problem.line), name)


def _token_place(place: Place, token: str) -> Place:
    """The place of `token` from `place` on, as a whole word if it is one; else `place`."""
    line, column = place
    pattern = re.escape(token)
    if token[:1].isascii() and (token[:1].isalpha() or token[:1] == "_"):
        pattern = rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"
    match = re.compile(pattern).search(line.text, max(0, column - 1 - line.offset)) if token else None
    return Place(line, match.start() + line.offset + 1) if match else place


def located(place: Place, message: str, remedy: str) -> Problem:
    line, column = place
    source = readable(line.source)
    if len(source) != len(line.source):
        column = len(readable(line.source[: column - 1])) + 1
    column = min(column, len(source) + 1)
    if line.offset >= LINE_LENGTH:
        remedy += (
            f" (The line is longer than {LINE_LENGTH} characters, and the rest of it is read as a line of its"
            " own: break the line.)"
        )
    if len(source) > SHOWN:
        start = max(0, min(column - SHOWN // 2, len(source) - SHOWN))
        source, column = source[start : start + SHOWN], column - start
    source = "".join(c if c.isprintable() else " " for c in source)
    return Problem(line.number, max(1, column), message, remedy, source)
