"""The first pass: FOR loops are unrolled, EQU texts put in, labels given their addresses.

Names that are known when a line is reached are replaced at once, by their text. A name that is defined
further down stays for the second pass, and so do labels on the line itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from shoal.corewar.redcode import limits
from shoal.corewar.redcode.expression import Evaluator, ExpressionError
from shoal.corewar.redcode.reader import Line, Place
from shoal.corewar.redcode.report import Abort, Report, shown, similar
from shoal.corewar.redcode.tokens import KEYWORDS, OPCODES, Label, Mark, Stream, Symbols, Text, Token

CURRENT_LINE = "CURLINE"
_SAME_TEXT = "Put the ROF into the same EQU text as its FOR."


_ANAGRAMS = {"".join(sorted(opcode)): opcode for opcode in OPCODES}


class Statement(NamedTuple):
    """An instruction, ORG, PIN or END with its operand field; `address` is that of the instruction."""

    keyword: str
    operands: str
    address: int
    place: Place


@dataclass(slots=True)
class _Loop:
    counter: str
    count: int
    line: Line
    depth: int
    mark: Mark
    turn: int = 1


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
        self._open_text: Text | None = None
        self._comparisons_left = limits.COMPARISONS
        self._ended = False

    def run(self) -> None:
        """Raises Abort when a budget is used up."""
        stream = self._stream
        while not self._ended and stream.advance():
            if stream.line.is_assertion and stream.depth == 1:
                self._assertion()
            else:
                self._line()
            stream.rest()
        if self._ended:
            return
        if self._loops:
            place = Place(self._loops[-1].line, 1)
            self._report.warning(place, "FOR without ROF", "Close the loop with a line ROF.")
        if self._symbols.pending:
            names = shown(" ".join(label.name for label in self._symbols.pending))
            message = f"labels that name nothing: {names}"
            self._report.warning(Place(stream.line, 1), message, "Put an instruction or END behind them.")

    def _line(self) -> None:
        """Labels in front, then a keyword."""
        stream, symbols = self._stream, self._symbols
        before = len(symbols.pending)
        while (token := stream.token()) is not None:
            if not token.name:
                if token.text == " ":
                    continue
                self._no_instruction(token)
                return
            if token.name.upper() in KEYWORDS:
                self._keyword(token.name.upper(), token)
                return
            name = self._joined(token.name)
            if name in symbols.texts:
                self._open_text = None
                if not stream.substitute(name, symbols.texts[name], token):
                    return
            elif name in symbols.labels or (name in symbols.values and name not in symbols.constants):
                self._redefined(name, symbols.pending[before:])
                stream.drop_text_line()
                self._open_text = None
            elif name in symbols.constants or name == CURRENT_LINE:
                message = f"{name} is a predefined constant and cannot be a label"
                self._report.problem(stream.place, message, "Use another name.")
                return
            elif len(symbols.pending) >= limits.LABELS_AT_ONCE:
                message = f"label {shown(name)} is one too many: {limits.LABELS_AT_ONCE} may name one thing"
                self._report.problem(stream.place, message, "Remove labels.")
            else:
                symbols.pending.append(Label(name, stream.place))
        label, meant = self._misspelt(symbols.pending[before:-1], surely=True)
        if label:
            message = f"{shown(label.name)} is read as a label: this line has no instruction"
            self._report.warning(label.place, message, f"Did you mean {meant}?")

    def _redefined(self, name: str, in_front: list[Label]) -> None:
        """A line whose label exists already is ignored, as pMARS does; often its opcode was misspelt."""
        label, meant = self._misspelt(in_front[-1:], surely=True)
        message = f"{shown(name)} is defined already, so its line is ignored"
        remedy = f"Did you mean {meant} instead of {shown(label.name)}?" if label else "Use another label."
        self._report.warning(self._stream.place, message, remedy)

    def _no_instruction(self, token: Token) -> None:
        """Something stands where an opcode should: mostly an opcode was misspelt and taken for a label. Of
        the last two labels on a line, the one before a comma is rather an operand."""
        before, last = self._symbols.pending[-2:-1], self._symbols.pending[-1:]
        if before and before[0].place.line is not self._stream.line:
            before = []
        label, meant = self._misspelt([*before, *last] if token.text == "," else [*last, *before])
        if label:
            message = f"{shown(label.name)} is not an instruction"
            remedy = f"Did you mean {meant}? A label needs an instruction behind it."
            self._report.problem(label.place, message, remedy)
        else:
            message = f"{shown(token.text)} cannot begin an instruction"
            remedy = "Begin a line with a label or an instruction; put ';' before a comment."
            self._report.problem(self._stream.place, message, remedy)

    def _keyword(self, keyword: str, token: Token) -> None:
        place = self._stream.place
        if keyword == "EQU":
            self._equ(token.colon)
            return
        self._open_text = None
        if keyword == "FOR":
            self._for(token.colon)
            return
        if keyword == "ROF":
            self._rof()
            return
        is_opcode, used = keyword in OPCODES, len(keyword) + token.spaced
        operands = self._operands(
            place, limits.EXPANDED_LENGTH, token.colon, used=used, absolute=not is_opcode
        )
        if operands is not None:
            self.statements.append(Statement(keyword, operands, self.size, place))
            self._ended = keyword == "END"
            self._symbols.name_address(self.size)
            self.size += is_opcode
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
            message = "EQU without a name: the line is ignored"
            self._report.warning(self._stream.place, message, "Write 'name EQU text'.")

    def _for(self, colon: str) -> None:
        stream, symbols = self._stream, self._symbols
        counter = symbols.pending.pop().name if symbols.pending else ""
        symbols.name_address(self.size)
        place, depth = stream.place, stream.depth
        text = self._operands(place, limits.LONG_LINE_LENGTH, colon)
        if text is None:
            stream.rest()
        count = 1
        try:
            count = self._evaluator.evaluate(text) if text is not None else 1
        except ExpressionError as error:
            message = f"the count of FOR is not usable: {error}"
            self._report.problem(place, message, f"{error.remedy} Names in it must be defined above.")
        if count <= 0:
            self._skip_loop()
            return
        if stream.depth < depth:
            message = "a FOR loop that begins in an EQU text has no ROF there"
            raise self._report.stop(place, message, _SAME_TEXT)
        if len(self._loops) >= limits.NESTED_LOOPS:
            raise self._report.stop(place, "FOR loops are nested too deeply", "Use fewer loops.")
        self._loops.append(_Loop(counter, count, place.line, stream.depth, stream.mark()))
        stream.floor = stream.depth
        if counter:
            symbols.values[counter] = "01"

    def _rof(self) -> None:
        stream = self._stream
        if not self._loops:
            self._report.problem(stream.place, "ROF without FOR", "Open the loop with 'FOR count'.")
            return
        loop = self._loops[-1]
        if loop.turn < loop.count:
            loop.turn += 1
            if loop.counter:
                self._symbols.values[loop.counter] = f"{loop.turn:02}"
            stream.floor = loop.depth
            stream.go_back(loop.mark)
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
                nested += (keyword == "FOR") - (keyword == "ROF")
                if keyword in KEYWORDS or token.colon or "&" in keyword:
                    break
            stream.rest()

    def _assertion(self) -> None:
        self._open_text = None
        line = self._stream.line
        place = Place(line, line.offset + 1)
        text = self._operands(place, limits.LONG_LINE_LENGTH)
        if text is None:
            return
        try:
            holds = self._evaluator.evaluate(text) != 0
        except ExpressionError as error:
            self._report.warning(place, f"this ;assert cannot be checked: {error}", error.remedy)
            return
        if not holds:
            self._report.problem(
                place,
                f"the program demands {shown(line.text.strip())}, which does not hold here",
                f"With these settings it reads {shown(text.strip())} ('==' compares): adapt the program "
                "and its ;assert line, or use other settings.",
            )

    def _operands(
        self, place: Place, limit: int, joint: str = "", *, used: int = 0, absolute: bool = False
    ) -> str | None:
        """The rest of the line, behind `joint`, with all known names replaced; None when it is not usable.
        White space between the tokens goes, except behind a name. Labels become distances from the
        instruction, or addresses if `absolute`. More than `limit` characters, `used` ones among them, are a
        problem."""
        stream, symbols = self._stream, self._symbols
        parts = [joint] if joint else []
        length = used + len(joint)
        after_dot, first = False, True
        while length <= limit and (token := stream.token()) is not None:
            if not token.name or (after_dot and "&" not in token.name):
                value = token.text
                after_dot, first = first and value == ".", first and value == " "
            else:
                after_dot = first = False
                name = self._joined(token.name)
                if name in symbols.texts and name not in symbols.values:
                    if not stream.substitute(name, symbols.texts[name], token):
                        return None
                    first = not parts
                    continue
                if name in symbols.values:
                    value = symbols.values[name]
                elif name in symbols.labels:
                    value = str(symbols.labels[name] - (0 if absolute else self.size))
                elif name == CURRENT_LINE:
                    value = str(self.size)
                elif name.upper() in KEYWORDS:
                    remedy = "Put each instruction on a line of its own; its name cannot be a label."
                    self._report.problem(stream.place, f"{shown(name)} cannot stand in an operand", remedy)
                    return None
                else:
                    value = name
                value += token.colon
            parts.append(value + " " if token.name and token.spaced else value)
            length += len(parts[-1])
        if length > limit:
            message = f"the line expands to more than {limit} characters"
            self._report.problem(place, message, "Use shorter EQU texts or a simpler expression.")
            return None
        return "".join(parts)

    def _joined(self, name: str) -> str:
        """`label&counter` as one name."""
        if "&" not in name:
            return name
        first, *counters = name.split("&")
        for counter in counters:
            value = self._symbols.values.get(counter)
            if value is None or counter in self._symbols.constants:
                message = f"{shown(counter)} behind '&' is not the counter of a FOR"
                remedy = "Use '&' only with the label in front of an enclosing FOR."
                self._report.problem(self._stream.place, message, remedy)
                return first
            first += value
        return first

    def _misspelt(
        self, labels: Iterable[Label], *, surely: bool = False
    ) -> tuple[Label, str] | tuple[None, str]:
        """The first of the labels that looks like a misspelt opcode, and the opcode; `surely` only if it has
        all letters of the opcode."""
        for label in labels:
            self._comparisons_left -= 1
            word = label.name.upper()
            meant = _ANAGRAMS.get("".join(sorted(word)), "")
            if not meant and self._comparisons_left >= 0:
                meant = similar(word, OPCODES)
            if meant and (not surely or set(meant) <= set(word)):
                return label, meant
        return None, ""
