"""Words of the language, the names that a program gives, and the stream of its tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from shoal.corewar.instruction import Mode, Modifier, Opcode
from shoal.corewar.redcode import limits
from shoal.corewar.redcode.reader import Line, Place
from shoal.corewar.redcode.report import Report, shown
from shoal.corewar.settings import Settings

OPCODES = {opcode.name: opcode for opcode in Opcode}
MODIFIERS = {modifier.name: modifier for modifier in Modifier}
MODES = {mode.symbol: mode for mode in Mode}
KEYWORDS = OPCODES.keys() | {"EQU", "FOR", "ROF", "ORG", "END", "PIN"}
REFERENCE_VERSION = 92  # value of VERSION: the release of pMARS whose language this is, times 100


class Token(NamedTuple):
    """A piece of a line. `name` is empty unless it is a name; names joined by `&` are one token. `spaced`
    says that white space follows, `column` counts from 0 within the line's text."""

    text: str
    name: str
    spaced: bool
    column: int

    @property
    def colon(self) -> str:
        """The colon behind a name, if there is one."""
        return self.text[len(self.name) :] if self.name else ""


GAP = Token(" ", "", False, 0)  # stands where a substituted name was followed by white space

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"[ \t\f\v]*(?:(({_NAME}(?:&{_NAME})*):?)|([0-9]+|&&|[^ \t\f\v]))([ \t\f\v]*)")
_RESOLVED_TOKEN = re.compile(rf"({_NAME})|([0-9]+)|(&&|\|\||[^ \t\f\v])")


def tokens(text: str) -> list[Token]:
    """A line of source cut into tokens; a colon directly behind a name belongs to it."""
    return [
        Token(match[1] or match[3], match[2] or "", match[4] != "", match.start(1 if match[1] else 3))
        for match in _TOKEN.finditer(text)
    ]


def resolved_tokens(text: str) -> list[tuple[str, str, str]]:
    """An expanded operand field cut into (name, number, other), two of which are empty."""
    return _RESOLVED_TOKEN.findall(text)


Text = list[list[Token]]  # the lines that an EQU stands for


class Label(NamedTuple):
    name: str
    place: Place


class Symbols:
    """`labels` are addresses, `texts` the lines of EQUs, `values` constants and FOR counters. `pending`
    labels name nothing yet: they wait for the next instruction, EQU or FOR."""

    def __init__(self, settings: Settings, *, warriors: int, rounds: int) -> None:
        self.labels: dict[str, int] = {}
        self.texts: dict[str, Text] = {}
        self.pending: list[Label] = []
        constants = {
            "CORESIZE": settings.core_size,
            "MAXPROCESSES": settings.processes,
            "MAXCYCLES": settings.cycles,
            "MAXLENGTH": settings.length,
            "MINDISTANCE": settings.distance,
            "PSPACESIZE": settings.pspace_size,
            "VERSION": REFERENCE_VERSION,
            "WARRIORS": warriors,
            "ROUNDS": rounds,
        }
        self.constants = frozenset(constants)
        self.values = {name: str(value) for name, value in constants.items()}

    def name_address(self, address: int) -> None:
        """The pending labels name this address."""
        self.labels.update((label.name, address) for label in self.pending)
        self.pending.clear()

    def name_text(self, text: Text) -> None:
        """The pending labels stand for this text."""
        self.texts.update((label.name, text) for label in self.pending)
        self.pending.clear()

    def known(self) -> list[str]:
        """The names that a misspelt one may mean; none where there are too many to compare with."""
        if len(self.labels) + len(self.texts) + len(self.values) > limits.KNOWN_NAMES:
            return []
        return [*self.labels, *self.texts, *self.values]


_UNREAD: list[Token] = []  # stands for a line of the program that was not cut into tokens yet


@dataclass(slots=True)
class _Frame:
    """A text being read: the program itself, or that of an EQU which `name` stands for."""

    lines: Text
    line: int
    position: int
    name: str = ""
    spaced: bool = False


Mark = tuple[tuple[Text, int, str, bool], ...]  # the end of a line, to which a FOR loop returns


class Stream:
    """The lines of a program with its EQU texts spliced in: call `advance`, then `token` until it is None. A
    text of several lines splits the line that uses it, around the name. Every line and token is counted
    against the budget, so reading ends whatever the source is."""

    def __init__(self, lines: list[Line], report: Report) -> None:
        self._source = lines
        self._report = report
        self._program = _Frame([_UNREAD] * len(lines), -1, 0)
        self._frames = [self._program]
        self._open_names: set[str] = set()
        self._lines_left = limits.LINES
        self._tokens_left = limits.TOKENS
        self.line = Line(1, "", "")
        """The line of the program that is being read, also within an EQU text that it uses."""
        self.floor = 1
        """Texts up to this depth must not end: an open FOR loop began in the innermost of them."""

    @property
    def depth(self) -> int:
        return len(self._frames)

    @property
    def place(self) -> Place:
        """The program's token that was read last."""
        line, row = self.line, self._program.lines[self._program.line]
        if not row:
            return Place(line, 1)
        last = row[max(0, min(self._program.position, len(row)) - 1)]
        return Place(line, last.column + line.offset + 1)

    def advance(self) -> bool:
        """Goes on to the next logical line; False at the end of the program."""
        frame = self._frames[-1]
        if frame is self._program and frame.line + 1 >= len(frame.lines):
            return False
        frame.line += 1
        frame.position = 0
        if frame.lines[frame.line] is _UNREAD:
            frame.lines[frame.line] = tokens(self._source[frame.line].text)
        self.line = self._source[self._program.line]
        self._lines_left -= 1
        if self._lines_left < 0:
            message = f"the source expands to more than {limits.LINES} lines"
            raise self._report.stop(Place(self.line, 1), message, "Lower the counts of the FOR loops.")
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
                    self.place,
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
            message = f"the source expands to more than {limits.TOKENS} words"
            raise self._report.stop(self.place, message, "Use fewer or shorter EQU texts and FOR loops.")

    def rest(self) -> list[Token]:
        """The remaining tokens of the logical line."""
        return list(iter(self.token, None))

    def drop_text_line(self) -> None:
        """Passes over the rest of the line in the innermost text only."""
        frame = self._frames[-1]
        frame.position = len(frame.lines[frame.line])

    def substitute(self, name: str, text: Text, token: Token) -> bool:
        """Reads an EQU text in place of `token` next; False, and a problem, when the text contains itself."""
        if token.colon:
            self._frames.append(_Frame([[Token(":", "", token.spaced, 0)]], 0, 0))
        if name in self._open_names:
            message = f"the EQU {shown(name)} refers to itself"
            self._report.problem(self.place, message, "Give it a text that does not lead back to it.")
            return False
        if len(self._frames) > limits.SUBSTITUTION_DEPTH:
            message = "EQU texts are nested too deeply"
            raise self._report.stop(self.place, message, "Write the value directly.")
        self._frames.append(_Frame(text, 0, 0, name, token.spaced))
        self._open_names.add(name)
        return True

    def mark(self) -> Mark:
        """The place of the stream, at the end of a logical line."""
        self._charge(len(self._frames) - 1)
        return tuple((frame.lines, frame.line, frame.name, frame.spaced) for frame in self._frames)

    def go_back(self, mark: Mark) -> None:
        """Returns to a mark; the next `advance` reads the line behind it."""
        self._charge(len(mark) - 1)
        (lines, line, _, _), *texts = mark
        self._program.line, self._program.position = line, len(lines[line])
        self.line = self._source[line]
        self._frames = [self._program]
        self._frames += [_Frame(text, at, len(text[at]), name, spaced) for text, at, name, spaced in texts]
        self._open_names = {frame.name for frame in self._frames[1:]}
