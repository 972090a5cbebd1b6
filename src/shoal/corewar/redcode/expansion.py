"""The first pass: FOR loops are unrolled, EQU texts put in, labels given their addresses.

What is known when a line is reached is put in at once, by its text; a name that is defined further
down stays for the second pass. So do labels on the line itself.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from shoal.corewar.redcode import limits
from shoal.corewar.redcode.expression import Evaluator, ExpressionError
from shoal.corewar.redcode.reader import Line
from shoal.corewar.redcode.report import Abort, Report, shown
from shoal.corewar.redcode.stream import Place, Stream
from shoal.corewar.redcode.symbols import Symbols
from shoal.corewar.redcode.tokens import CURRENT_LINE, KEYWORDS, OPCODES, Token


class Statement(NamedTuple):
    """An instruction, ORG, PIN or END with its operand field; `address` is that of the instruction."""

    keyword: str
    operands: str
    address: int
    line: Line
    column: int


class _Loop:
    __slots__ = ("count", "counter", "depth", "line", "place", "turn")

    def __init__(self, counter: str, count: int, line: Line, depth: int, place: Place) -> None:
        self.counter, self.count, self.line = counter, count, line
        self.depth, self.place, self.turn = depth, place, 1


class Expansion:
    """Expands a source into `statements`; `size` of them are instructions."""

    def __init__(
        self, lines: list[Line], symbols: Symbols, evaluator: Evaluator, report: Report, length: int
    ) -> None:
        self.statements: list[Statement] = []
        self.size = 0
        self._symbols = symbols
        self._evaluator = evaluator
        self._report = report
        self._most = length + limits.SURPLUS_INSTRUCTIONS
        self._stream = Stream(lines, report)
        self._loops: list[_Loop] = []
        self._open_text: list[list[Token]] | None = None
        self._label_place: tuple[Line, int] | None = None
        """Where the newest of the pending labels stands."""
        self._ended = False

    def run(self) -> None:
        """Raises Abort when a budget is used up."""
        stream = self._stream
        while not self._ended and stream.advance():
            if stream.line.is_assertion and stream.depth == 1:
                self._assertion()
            else:
                self._line()
            while stream.token() is not None:
                pass
        if self._ended:
            return
        if self._loops:
            self._report.warning(
                self._loops[-1].line, 1, "FOR without ROF", "Close the loop with a line ROF."
            )
        if self._symbols.pending:
            self._report.warning(
                stream.line,
                1,
                f"labels that name nothing: {shown(' '.join(self._symbols.pending))}",
                "Put an instruction or END behind them.",
            )

    def _line(self) -> None:
        """Labels in front, then a keyword."""
        stream, symbols, report = self._stream, self._symbols, self._report
        while (token := stream.token()) is not None:
            if not token.name:
                if token.text == " ":
                    continue
                self._no_instruction(token)
                return
            name = token.name
            keyword = name.upper()
            if keyword in KEYWORDS:
                self._keyword(keyword, token)
                return
            if "&" in name:
                name = self._joined(name)
            if name in symbols.texts:
                if token.text.endswith(":"):
                    stream.insert(Token(":", "", token.spaced, 0))
                self._open_text = None
                if not stream.substitute(name, symbols.texts[name], spaced=token.spaced):
                    return
            elif name in symbols.labels or (name in symbols.values and name not in symbols.constants):
                report.warning(
                    stream.line,
                    stream.column,
                    f"{shown(name)} is defined already, so its line is ignored",
                    "Use another label.",
                )
                stream.drop_text_line()
                self._open_text = None
            elif name in symbols.constants or name == CURRENT_LINE:
                report.problem(
                    stream.line,
                    stream.column,
                    f"{name} is a predefined constant and cannot be a label",
                    "Use another name.",
                )
                return
            elif not symbols.await_meaning(name):
                report.problem(
                    stream.line,
                    stream.column,
                    f"label {shown(name)} is one too many: at most {limits.LABELS_AT_ONCE} name one thing",
                    "Remove labels.",
                )
            else:
                self._label_place = stream.line, stream.column

    def _no_instruction(self, token: Token) -> None:
        """Something stands where an opcode should: mostly an opcode was misspelt and taken for a label."""
        pending = self._symbols.pending[-1] if self._symbols.pending else ""
        meant = []
        if len(pending) <= limits.SIMILAR_LENGTH:
            meant = get_close_matches(pending.upper(), OPCODES, n=1, cutoff=0.6)
        if meant:
            message = f"{shown(pending)} is not an instruction"
            remedy = f"Did you mean {meant[0]}? A label needs an instruction behind it."
        else:
            message = f"{shown(token.text)} cannot begin an instruction"
            remedy = "Begin a line with a label or an instruction; put ';' before a comment."
        place = self._label_place if meant else None
        line, column = place or (self._stream.line, self._stream.column)
        self._report.problem(line, column, message, remedy)

    def _keyword(self, keyword: str, token: Token) -> None:
        stream, symbols = self._stream, self._symbols
        line, column = stream.line, stream.column
        colon = token.text[len(token.name) :]
        if keyword == "EQU":
            self._equ(colon)
            return
        self._open_text = None
        if keyword == "FOR":
            self._for(colon)
        elif keyword == "ROF":
            self._rof()
        else:
            operands = self._operands(
                limits.EXPANDED_LENGTH,
                used=len(keyword) + token.spaced,
                absolute=keyword not in OPCODES,
                joint=colon,
            )
            if operands is None:
                return
            self.statements.append(Statement(keyword, operands, self.size, line, column))
            if keyword == "END":
                self._ended = True
            symbols.name_address(self.size)
            if keyword in OPCODES:
                self.size += 1
                if self.size > self._most:
                    raise Abort

    def _equ(self, colon: str) -> None:
        text = self._stream.rest()
        if colon:
            text.insert(0, Token(colon, "", False, 0))
        if self._symbols.pending:
            self._open_text = [text]
            self._symbols.name_text(self._open_text)
        elif self._open_text is not None:
            self._open_text.append(text)
        else:
            self._report.warning(
                self._stream.line,
                self._stream.column,
                "EQU without a name: the line is ignored",
                "Write 'name EQU text'.",
            )

    def _for(self, colon: str) -> None:
        stream, symbols = self._stream, self._symbols
        counter = symbols.pending.pop() if symbols.pending else ""
        symbols.name_address(self.size)
        line, column, depth = stream.line, stream.column, stream.depth
        text = self._operands(limits.LONG_LINE_LENGTH, absolute=False, joint=colon)
        if text is None:
            stream.rest()
        try:
            count = self._evaluator.evaluate(text) if text is not None else 1
        except ExpressionError as error:
            self._report.problem(
                line,
                column,
                f"the count of FOR is not usable: {error}",
                f"{error.remedy} Names in it must be defined above.",
            )
            count = 1
        if count <= 0:
            self._skip_loop()
            return
        if stream.depth < depth:
            raise self._report.stop(
                line,
                column,
                "a FOR loop that begins in an EQU text has no ROF there",
                "Put the ROF into the same EQU text as its FOR.",
            )
        if len(self._loops) >= limits.NESTED_LOOPS:
            raise self._report.stop(line, column, "FOR loops are nested too deeply", "Use fewer loops.")
        self._loops.append(_Loop(counter, count, line, stream.depth, stream.place()))
        stream.floor = stream.depth
        if counter:
            symbols.values[counter] = "01"

    def _rof(self) -> None:
        stream = self._stream
        if not self._loops:
            self._report.problem(
                stream.line, stream.column, "ROF without FOR", "Open the loop with 'FOR count'."
            )
            return
        loop = self._loops[-1]
        if loop.turn < loop.count:
            loop.turn += 1
            if loop.counter:
                self._symbols.values[loop.counter] = f"{loop.turn:02}"
            stream.floor = loop.depth
            stream.go_back(loop.place)
            return
        self._loops.pop()
        self._symbols.values.pop(loop.counter, None)
        stream.floor = self._loops[-1].depth if self._loops else 1

    def _skip_loop(self) -> None:
        """Passes over the lines of a loop that runs no times; they need not be Redcode."""
        stream = self._stream
        nested = 1
        stream.rest()
        while nested and stream.advance():
            if stream.line.is_assertion and stream.depth == 1:
                continue
            while (token := stream.token()) is not None and (token.name or token.text == " "):
                keyword = token.name.upper()
                if keyword == "FOR":
                    nested += 1
                    break
                if keyword == "ROF":
                    nested -= 1
                    break
                if keyword in KEYWORDS or token.text.endswith(":") or "&" in keyword:
                    break
            stream.rest()

    def _assertion(self) -> None:
        self._open_text = None
        line = self._stream.line
        text = self._operands(limits.LONG_LINE_LENGTH, absolute=False)
        if text is None:
            return
        try:
            holds = self._evaluator.evaluate(text) != 0
        except ExpressionError as error:
            self._report.warning(
                line, line.offset + 1, f"this ;assert cannot be checked: {error}", error.remedy
            )
            return
        if not holds:
            self._report.problem(
                line,
                line.offset + 1,
                f"the program demands {shown(line.text.strip())}, which does not hold here",
                f"With these settings it reads {shown(text.strip())} ('==' compares): adapt the program "
                "and its ;assert line, or use other settings.",
            )

    def _operands(self, limit: int, *, used: int = 0, absolute: bool, joint: str = "") -> str | None:
        """The rest of the line with everything put in that is known; None when it is not usable.

        White space between the tokens goes, except behind a name. Labels become distances from the
        instruction, or addresses if `absolute`. More than `limit` characters, `used` ones among them,
        are a problem.
        """
        stream, symbols = self._stream, self._symbols
        line, column = stream.line, stream.column
        parts = [joint] if joint else []
        length = used + len(joint)
        after_dot = False
        first = True
        while (token := stream.token()) is not None:
            name = token.name
            if not name or (after_dot and "&" not in name):
                parts.append(token.text + " " if name and token.spaced else token.text)
                length += len(parts[-1])
                if length > limit:
                    break
                after_dot = first and token.text == "."
                first = first and token.text == " "
                continue
            first = after_dot = False
            if "&" in name:
                name = self._joined(name)
            if name in symbols.values:
                value = symbols.values[name]
            elif name in symbols.texts:
                if token.text.endswith(":"):
                    stream.insert(Token(":", "", token.spaced, 0))
                if not stream.substitute(name, symbols.texts[name], spaced=token.spaced):
                    return None
                first = not parts
                continue
            elif name in symbols.labels:
                value = str(symbols.labels[name] - (0 if absolute else self.size))
            elif name == CURRENT_LINE:
                value = str(self.size)
            elif name.upper() in KEYWORDS:
                self._report.problem(
                    stream.line,
                    stream.column,
                    f"{shown(name)} cannot stand in an operand",
                    "Put each instruction on a line of its own; an instruction's name cannot be a label.",
                )
                return None
            else:
                value = name
            if token.text.endswith(":"):
                value += ":"
            parts.append(value + " " if token.spaced else value)
            length += len(parts[-1])
            if length > limit:
                break
        if length > limit:
            self._report.problem(
                line,
                column,
                f"the line expands to more than {limit} characters",
                "Use shorter EQU texts or a simpler expression.",
            )
            return None
        return "".join(parts)

    def _joined(self, name: str) -> str:
        """`label&counter` as one name."""
        first, *counters = name.split("&")
        for counter in counters:
            value = self._symbols.values.get(counter)
            if value is None or counter in self._symbols.constants:
                self._report.problem(
                    self._stream.line,
                    self._stream.column,
                    f"{shown(counter)} behind '&' is not the counter of a FOR",
                    "Use '&' only with the label in front of an enclosing FOR.",
                )
                return first
            first += value
        return first
