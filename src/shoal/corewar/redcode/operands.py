"""The second pass: from an operand field to an instruction."""

from __future__ import annotations

import difflib

from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.redcode import limits
from shoal.corewar.redcode.defaults import check_88, default_modifier
from shoal.corewar.redcode.expansion import Statement
from shoal.corewar.redcode.expression import Evaluator, ExpressionError
from shoal.corewar.redcode.limits import EXPANDED_LENGTH, SUBSTITUTION_DEPTH
from shoal.corewar.redcode.report import Report, column_of, shown
from shoal.corewar.redcode.symbols import Symbols
from shoal.corewar.redcode.tokens import MODES, MODIFIERS, OPCODES, Token, resolved_tokens
from shoal.corewar.settings import Settings

Piece = tuple[str, str, str]
_SINGLE_OPERAND = frozenset((Opcode.DAT, Opcode.JMP, Opcode.SPL, Opcode.NOP))
_OPERATORS = frozenset(("&&", "||", *"+-*/%()<>=!"))
_UNMISTAKABLE_MODES = frozenset("#$@{}")


class Encoder:
    """Turns statements into instructions and numbers; what is wrong goes to the report."""

    def __init__(
        self, settings: Settings, symbols: Symbols, evaluator: Evaluator, report: Report, *, lenient: bool
    ) -> None:
        self._settings = settings
        self._symbols = symbols
        self._evaluator = evaluator
        self._report = report
        self._lenient = lenient
        self._texts: dict[int, list[Piece]] = {}
        self._pieces_left = limits.TOKENS

    def number(self, statement: Statement) -> int | None:
        """The value behind ORG, PIN or END; None without one."""
        if self._settings.standard == "88" and statement.keyword != "END":
            self._problem(
                statement,
                "",
                f"{statement.keyword} is not part of ICWS'88",
                "Use 'END start' to say where execution begins.",
            )
            return None
        pieces = self._resolved(statement, absolute=True)
        return self._value(statement, pieces) if pieces else None

    def instruction(self, statement: Statement) -> Instruction | None:
        """None when the statement is not usable."""
        opcode = OPCODES[statement.keyword]
        pieces = self._resolved(statement, absolute=False)
        if pieces is None:
            return None
        modifier: Modifier | None = None
        if pieces and pieces[0][2] == ".":
            modifier = MODIFIERS.get(pieces[1][0].upper()) if len(pieces) > 1 else None
            if modifier is None:
                written = "".join(pieces[1]) if len(pieces) > 1 else ""
                self._problem(
                    statement,
                    written or ".",
                    f"there is no modifier {shown('.' + written)}",
                    "The modifiers are .A .B .AB .BA .F .X .I.",
                )
                return None
            del pieces[:2]
        if not pieces and not (self._lenient and opcode in _SINGLE_OPERAND):
            self._problem(statement, "", f"{statement.keyword} has no operand", _usage(opcode))
            return None
        operands = self._split(statement, pieces)
        if operands is None:
            return None
        read = [self._operand(statement, operand, last) for operand, last in operands]
        if None in read:
            return None
        (a_mode, a), *others = [operand for operand in read if operand is not None]
        if others:
            b_mode, b = others[0]
        elif opcode == Opcode.DAT and pieces:
            a_mode, a, b_mode, b = Mode.IMMEDIATE, 0, a_mode, a
        elif opcode in _SINGLE_OPERAND:
            b_mode, b = Mode.DIRECT, 0
        else:
            self._problem(statement, "", f"{statement.keyword} needs two operands", _usage(opcode))
            return None
        if self._settings.standard == "94nop" and opcode in (Opcode.LDP, Opcode.STP):
            self._problem(
                statement,
                "",
                f"{opcode.name} is not allowed: this hill has no P-space",
                "Keep the value in the program's own cells.",
            )
            return None
        if self._settings.standard == "88":
            objection = check_88(opcode, modifier, a_mode, b_mode)
            if objection:
                self._problem(statement, "", *objection)
                return None
        if modifier is None:
            modifier = default_modifier(opcode, a_mode, b_mode)
        size = self._settings.core_size
        return Instruction(opcode, modifier, a_mode, a % size, b_mode, b % size)

    def _resolved(self, statement: Statement, *, absolute: bool) -> list[Piece] | None:
        """The operand field in pieces, names replaced; a single letter without meaning stays."""
        symbols = self._symbols
        found: list[Piece] = []
        waiting: list[tuple[list[Piece], int, str]] = [(resolved_tokens(statement.operands), 0, "")]
        open_names: set[str] = set()
        budget = 4 * EXPANDED_LENGTH
        while waiting:
            pieces, position, owner = waiting.pop()
            while position < len(pieces):
                piece = pieces[position]
                position += 1
                budget -= 1
                if owner:
                    self._charge(statement, piece)
                name = piece[0]
                if not name or (len(found) == 1 and found[0][2] == "."):
                    found.append(piece)
                elif name in symbols.texts:
                    if name in open_names:
                        self._problem(
                            statement,
                            name,
                            f"the EQU {shown(name)} refers to itself",
                            "Give it a text that does not lead back to its own name.",
                        )
                        return None
                    waiting.append((pieces, position, owner))
                    pieces, position, owner = self._text(name), 0, name
                    open_names.add(name)
                elif name in symbols.labels:
                    found.extend(
                        resolved_tokens(str(symbols.labels[name] - (0 if absolute else statement.address)))
                    )
                elif name in symbols.constants:
                    found.append(("", symbols.values[name], ""))
                elif len(name) == 1 and name != "_":
                    found.append(piece)
                else:
                    self._undefined(statement, name)
                    return None
                if budget < 0 or len(waiting) > SUBSTITUTION_DEPTH:
                    self._problem(
                        statement, "", "the operands expand to too long a text", "Use shorter EQU texts."
                    )
                    return None
            open_names.discard(owner)
        return found

    def _text(self, name: str) -> list[Piece]:
        """The first line of an EQU text in pieces."""
        line = self._symbols.texts[name][0]
        if id(line) not in self._texts:
            self._texts[id(line)] = resolved_tokens(_written(line))
        return self._texts[id(line)]

    def _charge(self, statement: Statement, piece: Piece) -> None:
        self._pieces_left -= 1 + len(piece[0] or piece[1]) // limits.TOKEN_LENGTH
        if self._pieces_left < 0:
            raise self._report.stop(
                statement.line,
                statement.column,
                f"EQU texts that stand below their use expand to more than {limits.TOKENS} words",
                "Put the EQU lines above the instructions that use them.",
            )

    def _undefined(self, statement: Statement, name: str) -> None:
        message = f"{shown(name)} is not defined"
        if self._report.repeats(statement.line, message):
            return
        close: list[str] = []
        if len(name) <= limits.SIMILAR_LENGTH and self._symbols.known_count() <= limits.KNOWN_NAMES:
            close = difflib.get_close_matches(name, self._symbols.known(), n=1, cutoff=0.6)
        hint = f"Did you mean {shown(close[0])}? " if close else ""
        self._problem(
            statement,
            name,
            message,
            f"{hint}Write {shown(name)} in front of the instruction it stands for, or define it "
            "with EQU; upper and lower case differ.",
        )

    def _split(self, statement: Statement, pieces: list[Piece]) -> list[tuple[list[Piece], bool]] | None:
        """The one or two operands, each with whether it is the last."""
        commas = [index for index, piece in enumerate(pieces) if piece[2] == ","]
        if self._lenient and not commas:
            for index, piece in enumerate(pieces):
                if index and piece[2] in _UNMISTAKABLE_MODES:
                    return [(pieces[:index], False), (pieces[index:], True)]
        if not commas:
            return [(pieces, True)]
        if len(commas) > 1:
            self._problem(
                statement, ",", "there are more than two operands", "Separate the two operands by one comma."
            )
            return None
        return [(pieces[: commas[0]], False), (pieces[commas[0] + 1 :], True)]

    def _operand(self, statement: Statement, pieces: list[Piece], last: bool) -> tuple[Mode, int] | None:
        """The mode and the value. A mode alone means 0 before a comma, and is a mistake elsewhere."""
        mode = MODES.get(pieces[0][2]) if pieces else None
        if mode is not None:
            pieces = pieces[1:]
        if not pieces:
            if self._lenient and last and not statement.operands.strip(" "):
                return Mode.DIRECT, 0
            if mode is not None and not last:
                return mode, 0
            self._problem(
                statement,
                "," if not last else "",
                "an operand is missing",
                f"Write a value {'behind' if last else 'before'} the comma."
                if "," in statement.operands
                else "Write a value behind the addressing mode.",
            )
            return None
        value = self._value(statement, pieces)
        return None if value is None else (mode if mode is not None else Mode.DIRECT, value)

    def _value(self, statement: Statement, pieces: list[Piece]) -> int | None:
        if len(pieces) == 1 and pieces[0][1]:
            text = pieces[0][1]
        else:
            for piece in pieces:
                if piece[2] and piece[2] not in _OPERATORS:
                    self._problem(
                        statement,
                        piece[2],
                        f"{shown(piece[2])} cannot stand in an expression",
                        _misplaced(piece[2]),
                    )
                    return None
            text = "".join(number + " " if number else name or other for name, number, other in pieces)
        if len(text) > EXPANDED_LENGTH:
            self._problem(
                statement,
                "",
                f"an expression expands to more than {EXPANDED_LENGTH} characters",
                "Use shorter EQU texts or a simpler expression.",
            )
            return None
        try:
            value = self._evaluator.evaluate(text)
        except ExpressionError as error:
            self._problem(statement, "", str(error), error.remedy)
            return None
        for remark, remedy in self._evaluator.remarks:
            self._report.warning(statement.line, statement.column, remark, remedy)
        self._evaluator.remarks.clear()
        return value

    def _problem(self, statement: Statement, token: str, message: str, remedy: str) -> None:
        if not self._report.repeats(statement.line, message):
            self._report.problem(
                statement.line, column_of(statement.line, token, statement.column), message, remedy
            )


def _written(line: list[Token]) -> str:
    return "".join(token.text + " " if token.spaced else token.text for token in line)


def _usage(opcode: Opcode) -> str:
    name = opcode.name
    return f"Write '{name} A' or '{name} A, B'." if opcode in _SINGLE_OPERAND else f"Write '{name} A, B'."


def _misplaced(character: str) -> str:
    if character in MODES:
        return "An addressing mode stands once, in front of its operand; a comma separates the operands."
    if character == ":":
        return "A colon stands only behind a label at the beginning of a line."
    if character == ".":
        return "A modifier stands directly behind the instruction; numbers are whole."
    return "Use numbers, labels, + - * / %, comparisons, && || ! and parentheses."
