"""The second pass: from an operand field to an instruction; default modifiers and the limits of ICWS'88."""

from __future__ import annotations

from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.redcode import limits
from shoal.corewar.redcode.expansion import Statement
from shoal.corewar.redcode.expression import Evaluator, ExpressionError
from shoal.corewar.redcode.limits import EXPANDED_LENGTH
from shoal.corewar.redcode.report import Report, shown, similar
from shoal.corewar.redcode.tokens import MODES, MODIFIERS, OPCODES, Symbols, resolved_tokens
from shoal.corewar.settings import Settings

Piece = tuple[str, str, str]  # (name, number, other), two of which are empty

_SINGLE_OPERAND = frozenset((Opcode.DAT, Opcode.JMP, Opcode.SPL, Opcode.NOP))
_OPERATORS = frozenset(("&&", "||", *"+-*/%()<>=!"))
_UNMISTAKABLE_MODES = frozenset("#$@{}")

_WHOLE = frozenset((Opcode.MOV, Opcode.SEQ, Opcode.SNE, Opcode.CMP))
_ARITHMETIC = frozenset((Opcode.ADD, Opcode.SUB, Opcode.MUL, Opcode.DIV, Opcode.MOD))
_TO_B_FIELD = frozenset((Opcode.SLT, Opcode.LDP, Opcode.STP))

# The opcodes of ICWS'88 with the modes that their A- and B-operand may have.
MODES_88: dict[Opcode, tuple[str, str]] = {
    Opcode.DAT: ("#<", "#<"),
    **dict.fromkeys((Opcode.MOV, Opcode.ADD, Opcode.SUB, Opcode.CMP), ("#$@<", "$@<")),
    Opcode.SLT: ("#$@<", "#$@<"),
    **dict.fromkeys((Opcode.JMP, Opcode.JMZ, Opcode.JMN, Opcode.DJN, Opcode.SPL), ("$@<", "#$@<")),
}


def default_modifier(opcode: Opcode, a_mode: Mode, b_mode: Mode) -> Modifier:
    """The modifier of an instruction that names none: ICWS'94's, and pMARS's for the later opcodes."""
    if opcode in (Opcode.DAT, Opcode.NOP):
        return Modifier.F
    if opcode in _WHOLE or opcode in _ARITHMETIC or opcode in _TO_B_FIELD:
        if a_mode == Mode.IMMEDIATE:
            return Modifier.AB
        if b_mode != Mode.IMMEDIATE and opcode not in _TO_B_FIELD:
            return Modifier.I if opcode in _WHOLE else Modifier.F
    return Modifier.B


def _objection_88(
    opcode: Opcode, modifier: Modifier | None, a_mode: Mode, b_mode: Mode
) -> tuple[str, str] | None:
    """The reason for which ICWS'88 refuses an instruction, and the remedy; None when it is legal."""
    if opcode not in MODES_88:
        known = " ".join(known.name for known in MODES_88)
        return f"{opcode.name} is not part of ICWS'88", f"Use one of {known}."
    if modifier is not None:
        return "modifiers are not part of ICWS'88", f"Write {opcode.name} without a modifier."
    for side, mode, allowed in zip("AB", (a_mode, b_mode), MODES_88[opcode], strict=True):
        if mode.symbol not in allowed:
            message = f"ICWS'88 does not allow the mode {mode.symbol} in the {side}-operand of {opcode.name}"
            return message, f"Use one of {' '.join(allowed)} there."
    return None


class Unusable(Exception):
    """The statement at hand cannot be encoded: the problem is already in the report."""


class Encoder:
    """Turns statements into instructions and numbers. Raises Unusable once a problem is in the report."""

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
        """The value behind ORG, PIN or END; None where there is none."""
        if self._settings.standard == "88" and statement.keyword != "END":
            message = f"{statement.keyword} is not part of ICWS'88"
            raise self._unusable(statement, message, "Use 'END start' to say where execution begins.")
        pieces = self._resolved(statement, absolute=True)
        return self._value(statement, pieces) if pieces else None

    def instruction(self, statement: Statement) -> Instruction:
        opcode, size = OPCODES[statement.keyword], self._settings.core_size
        pieces = self._resolved(statement, absolute=False)
        modifier: Modifier | None = None
        if pieces and pieces[0][2] == ".":
            written = "".join(pieces[1]) if len(pieces) > 1 else ""
            modifier = MODIFIERS.get(written.upper())
            if modifier is None:
                message = f"there is no modifier {shown('.' + written)}"
                remedy = "The modifiers are .A .B .AB .BA .F .X .I."
                raise self._unusable(statement, message, remedy, written or ".")
            del pieces[:2]
        if not pieces and not (self._lenient and opcode in _SINGLE_OPERAND):
            raise self._unusable(statement, f"{statement.keyword} has no operand", _usage(opcode))
        operands = []
        unusable: Unusable | None = None
        for operand, last in self._split(statement, pieces):
            try:
                operands.append(self._operand(statement, operand, last))
            except Unusable as error:
                unusable = error  # the other operand may have a problem of its own
        if unusable:
            raise unusable
        a_mode, a = operands[0]
        if len(operands) == 2:
            b_mode, b = operands[1]
        elif opcode == Opcode.DAT and pieces:
            a_mode, a, b_mode, b = Mode.IMMEDIATE, 0, a_mode, a
        elif opcode in _SINGLE_OPERAND:
            b_mode, b = Mode.DIRECT, 0
        else:
            raise self._unusable(statement, f"{statement.keyword} needs two operands", _usage(opcode))
        if self._settings.standard == "94nop" and opcode in (Opcode.LDP, Opcode.STP):
            message = f"{opcode.name} is not allowed: this hill has no P-space"
            raise self._unusable(statement, message, "Keep the value in the program's own cells.")
        if self._settings.standard == "88":
            objection = _objection_88(opcode, modifier, a_mode, b_mode)
            if objection:
                raise self._unusable(statement, *objection)
        if modifier is None:
            modifier = default_modifier(opcode, a_mode, b_mode)
        return Instruction(opcode, modifier, a_mode, a % size, b_mode, b % size)

    def _resolved(self, statement: Statement, *, absolute: bool) -> list[Piece]:
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
                        message = f"the EQU {shown(name)} refers to itself"
                        remedy = "Give it a text that does not lead back to it."
                        raise self._unusable(statement, message, remedy, name)
                    waiting.append((pieces, position, owner))
                    pieces, position, owner = self._text(name), 0, name
                    open_names.add(name)
                elif name in symbols.labels:
                    address = symbols.labels[name] - (0 if absolute else statement.address)
                    found.extend(resolved_tokens(str(address)))
                elif name in symbols.constants:
                    found.append(("", symbols.values[name], ""))
                elif len(name) == 1 and name != "_":
                    found.append(piece)
                else:
                    raise self._undefined(statement, name)
                if budget < 0 or len(waiting) > limits.SUBSTITUTION_DEPTH:
                    message = "the operands expand to too long a text"
                    raise self._unusable(statement, message, "Use shorter EQU texts.")
            open_names.discard(owner)
        return found

    def _text(self, name: str) -> list[Piece]:
        """The first line of an EQU text in pieces."""
        line = self._symbols.texts[name][0]
        if id(line) not in self._texts:
            written = "".join(token.text + " " if token.spaced else token.text for token in line)
            self._texts[id(line)] = resolved_tokens(written)
        return self._texts[id(line)]

    def _charge(self, statement: Statement, piece: Piece) -> None:
        self._pieces_left -= 1 + len(piece[0] or piece[1]) // limits.TOKEN_LENGTH
        if self._pieces_left < 0:
            raise self._report.stop(
                statement.place,
                f"EQU texts that stand below their use expand to more than {limits.TOKENS} words",
                "Put the EQU lines above the instructions that use them.",
            )

    def _undefined(self, statement: Statement, name: str) -> Unusable:
        message = f"{shown(name)} is not defined"
        if self._report.repeats(statement.place.line, message):
            return Unusable()  # looking for a similar name takes time
        close = similar(name, self._symbols.known())
        hint = f"Did you mean {shown(close)}? " if close else ""
        remedy = (
            f"{hint}Write {shown(name)} in front of the instruction it stands for, or define it with EQU; "
            "upper and lower case differ."
        )
        return self._unusable(statement, message, remedy, name)

    def _split(self, statement: Statement, pieces: list[Piece]) -> list[tuple[list[Piece], bool]]:
        """The one or two operands, each with whether it is the last."""
        commas = [index for index, piece in enumerate(pieces) if piece[2] == ","]
        if len(commas) > 1:
            message = "there are more than two operands"
            raise self._unusable(statement, message, "Separate the two operands by one comma.", ",")
        if commas:
            return [(pieces[: commas[0]], False), (pieces[commas[0] + 1 :], True)]
        if self._lenient:
            for index, piece in enumerate(pieces):
                if index and piece[2] in _UNMISTAKABLE_MODES:
                    return [(pieces[:index], False), (pieces[index:], True)]
        return [(pieces, True)]

    def _operand(self, statement: Statement, pieces: list[Piece], last: bool) -> tuple[Mode, int]:
        """The mode and the value. A mode alone means 0 before a comma, and is a mistake elsewhere."""
        mode = MODES.get(pieces[0][2]) if pieces else None
        if mode is not None:
            pieces = pieces[1:]
        if pieces:
            return Mode.DIRECT if mode is None else mode, self._value(statement, pieces)
        if self._lenient and last and not statement.operands.strip(" "):
            return Mode.DIRECT, 0
        if mode is not None and not last:
            return mode, 0
        where = "behind the addressing mode"
        if "," in statement.operands:
            where = "behind the comma" if last else "before the comma"
        token = "" if last else ","
        raise self._unusable(statement, "an operand is missing", f"Write a value {where}.", token)

    def _value(self, statement: Statement, pieces: list[Piece]) -> int:
        if len(pieces) == 1 and pieces[0][1]:
            text = pieces[0][1]
        else:
            for _, _, other in pieces:
                if other and other not in _OPERATORS:
                    message = f"{shown(other)} cannot stand in an expression"
                    raise self._unusable(statement, message, _misplaced(other), other)
            text = "".join(number + " " if number else name or other for name, number, other in pieces)
        if len(text) > EXPANDED_LENGTH:
            message = f"an expression expands to more than {EXPANDED_LENGTH} characters"
            remedy = "Use shorter EQU texts or a simpler expression."
            raise self._unusable(statement, message, remedy)
        try:
            value = self._evaluator.evaluate(text)
        except ExpressionError as error:
            raise self._unusable(statement, str(error), error.remedy) from None
        for remark, remedy in self._evaluator.remarks:
            self._report.warning(statement.place, remark, remedy)
        self._evaluator.remarks.clear()
        return value

    def _unusable(self, statement: Statement, message: str, remedy: str, token: str = "") -> Unusable:
        """Records a problem; the caller raises the result."""
        self._report.problem(statement.place, message, remedy, token)
        return Unusable()


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
