"""The lines of a program with its EQU texts spliced in, one token at a time.

A text of several lines splits the line that uses it: what stands before the name is continued by the
text's first line, what stands behind it continues the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from shoal.corewar.redcode import limits
from shoal.corewar.redcode.reader import Line
from shoal.corewar.redcode.report import Report, shown
from shoal.corewar.redcode.tokens import GAP, Token, tokens

_UNREAD: list[Token] = []
"""Stands for a line of the program that was not cut into tokens yet."""


@dataclass(slots=True)
class _Frame:
    """A text being read: the program itself, or that of an EQU which `name` stands for."""

    lines: list[list[Token]]
    line: int
    position: int
    name: str = ""
    spaced: bool = False


Place = tuple[tuple[list[list[Token]], int, str, bool], ...]
"""The end of a line, to which a FOR loop returns."""


class Stream:
    """Reads logical lines: call `advance`, then `token` until it is None.

    Every line and token is counted against the budget, so that reading ends whatever the source is.
    """

    def __init__(self, lines: list[Line], report: Report) -> None:
        self._source = lines
        self._report = report
        self._program = _Frame([_UNREAD] * len(lines), -1, 0)
        self._frames = [self._program]
        self._open_names: set[str] = set()
        self._lines_left = limits.LINES
        self._tokens_left = limits.TOKENS
        self.floor = 1
        """Texts up to this depth must not end: an open FOR loop began in the innermost of them."""

    @property
    def depth(self) -> int:
        return len(self._frames)

    @property
    def line(self) -> Line:
        """The line of the program that is being read, also within an EQU text that it uses."""
        return self._source[min(max(self._program.line, 0), len(self._source) - 1)]

    @property
    def column(self) -> int:
        """The column, from 1, of the program's token that was read last."""
        program = self._program
        row = program.lines[program.line]
        if not row:
            return 1
        return row[max(0, min(program.position, len(row)) - 1)].column + self.line.offset + 1

    def advance(self) -> bool:
        """Goes on to the next logical line; False at the end of the program."""
        frame = self._frames[-1]
        if frame is self._program and frame.line + 1 >= len(frame.lines):
            return False
        frame.line += 1
        frame.position = 0
        if frame.lines[frame.line] is _UNREAD:
            frame.lines[frame.line] = tokens(self._source[frame.line].text)
        self._lines_left -= 1
        if self._lines_left < 0:
            raise self._report.stop(
                self.line,
                1,
                f"the source expands to more than {limits.LINES} lines",
                "Lower the counts of the FOR loops.",
            )
        return True

    def token(self) -> Token | None:
        """The next token of the logical line, None at its end."""
        while True:
            frame = self._frames[-1]
            row = frame.lines[frame.line]
            if frame.position < len(row):
                token = row[frame.position]
                self._charge(1 + len(token.text) // limits.TOKEN_LENGTH)
                frame.position += 1
                return token
            if frame is self._program or frame.line + 1 < len(frame.lines):
                return None
            if len(self._frames) <= self.floor:
                raise self._report.stop(
                    self.line,
                    self.column,
                    f"a FOR loop in the text of {shown(frame.name)} has no ROF",
                    "Put the ROF into the same EQU text as its FOR.",
                )
            self._frames.pop()
            self._open_names.discard(frame.name)
            if frame.spaced:
                return GAP

    def _charge(self, cost: int) -> None:
        self._tokens_left -= cost
        if self._tokens_left < 0:
            raise self._report.stop(
                self.line,
                self.column,
                f"the source expands to more than {limits.TOKENS} words",
                "Use fewer or shorter EQU texts and FOR loops.",
            )

    def rest(self) -> list[Token]:
        """The remaining tokens of the logical line."""
        found: list[Token] = []
        while (token := self.token()) is not None:
            found.append(token)
        return found

    def drop_text_line(self) -> None:
        """Passes over the rest of the line in the innermost text only."""
        frame = self._frames[-1]
        frame.position = len(frame.lines[frame.line])

    def insert(self, token: Token) -> None:
        """Reads `token` next."""
        self._frames.append(_Frame([[token]], 0, 0))

    def substitute(self, name: str, text: list[list[Token]], *, spaced: bool) -> bool:
        """Reads an EQU text next; False, and a problem, when the text contains itself."""
        if name in self._open_names:
            self._report.problem(
                self.line,
                self.column,
                f"the EQU {shown(name)} refers to itself",
                "Give it a text that does not lead back to its own name.",
            )
            return False
        if len(self._frames) > limits.SUBSTITUTION_DEPTH:
            raise self._report.stop(
                self.line, self.column, "EQU texts are nested too deeply", "Write the value directly."
            )
        self._frames.append(_Frame(text, 0, 0, name, spaced))
        self._open_names.add(name)
        return True

    def place(self) -> Place:
        """Where the stream stands, which is at the end of a logical line."""
        self._charge(len(self._frames) - 1)
        return tuple((frame.lines, frame.line, frame.name, frame.spaced) for frame in self._frames)

    def go_back(self, place: Place) -> None:
        """Returns to a place; the next `advance` reads the line behind it."""
        self._charge(len(place) - 1)
        lines, line, _, _ = place[0]
        self._program.line = line
        self._program.position = len(lines[line])
        self._frames = [self._program]
        for lines, line, name, spaced in place[1:]:
            self._frames.append(_Frame(lines, line, len(lines[line]), name, spaced))
        self._open_names = {frame.name for frame in self._frames[1:]}
