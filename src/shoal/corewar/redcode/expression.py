"""Evaluating an operand: a small parser of its own, so that no source text is ever run as code.

Numbers are 64-bit and wrap around; division and remainder round toward zero. From loosest to tightest: `||`,
`&&`, the six comparisons (all equal), `+ -`, `* / %`, and the signs `+ - !`. Both sides of `&&` and `||` are
always evaluated. A single letter that is not a label is a register, which `a=expression` sets wherever a
value may stand. Registers are 0 at first, but s and w hold the number of warriors, as in pMARS.

Operators are grouped as pMARS groups them, because the published warriors were tuned with it: from left to
right, but once a tighter operator follows, its result takes in the rest as well, up to an operator that is
looser than the one before. So `10-2-1` is 7, and `10-2*3-1` is `10-(2*3-1)`, that is 5. Where pMARS loses
its way on such a return and refuses, so does this evaluator. A single `=` that sets no register swallows the
next character and compares: `8000=8000` is `8000==000`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import add, eq, ge, gt, le, lt, mul, ne, sub

from shoal.corewar.redcode.reader import WHITE_SPACE
from shoal.corewar.redcode.report import shown

_TOKEN = re.compile(r"[ \t\f\v]*(?:([0-9]+)|([A-Za-z])|(&&|\|\||[=!<>]=|[-+*/%<>!=()]))")
_SMALLEST = -(1 << 63)
_DEEPEST = 130
_DIGITS = 19
_AS_MANY = "Write as many ')' as there are '('."


class ExpressionError(Exception):
    """The text is not an expression, for the reason in the message; `remedy` is the advice."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero", "Divide by a number that is not 0.")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_OPERATORS: dict[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda left, right: left != 0 or right != 0),
    "&&": (2, lambda left, right: left != 0 and right != 0),
    "==": (3, eq), "!=": (3, ne), "<": (3, lt), ">": (3, gt), "<=": (3, le), ">=": (3, ge),
    "+": (4, add), "-": (4, sub),
    "*": (5, mul), "/": (5, _quotient), "%": (5, lambda left, right: left - _quotient(left, right) * right),
}  # fmt: skip
_PRECEDENCE = {sign: precedence for sign, (precedence, _) in _OPERATORS.items()}


class Evaluator:
    """Evaluates expressions with one set of registers. `remarks` are pairs of an oddity and a remedy."""

    def __init__(self, warriors: int = 1) -> None:
        self.registers: dict[str, int] = {"s": warriors, "w": warriors}
        self.remarks: list[tuple[str, str]] = []
        self._tokens: list[tuple[str, str, str]] = []
        self._next = 0
        self._returns = 0

    def evaluate(self, text: str) -> int:
        """Raises ExpressionError when `text` is not an expression or divides by zero."""
        if len(text) < _DIGITS and text.isascii() and text.isdigit():
            return int(text)
        self._tokens = self._read(text)
        self._next = self._returns = 0
        value = self._whole(0)
        if self._next < len(self._tokens):
            token = "".join(self._tokens[self._next])
            if token == ")":
                raise ExpressionError("a parenthesis is closed that was not opened", _AS_MANY)
            raise ExpressionError(
                f"an operator is missing before {shown(token)}",
                "Write an operator between two values, and a comma between the operands.",
            )
        return value

    def _read(self, text: str) -> list[tuple[str, str, str]]:
        """The expression as (number, register, operator), two of which are empty."""
        tokens: list[tuple[str, str, str]] = []
        position = 0
        text = text.rstrip(WHITE_SPACE)
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise ExpressionError(
                    f"{shown(text[position:].lstrip(WHITE_SPACE)[0])} cannot stand there",
                    "Use numbers, labels, + - * / %, comparisons, && || ! and parentheses.",
                )
            number, register, sign = match[1] or "", match[2] or "", match[3] or ""
            position = match.end()
            if sign == "=" and tokens and not tokens[-1][1]:
                sign = "=="
                position += 1
                message = "a single '=' compares with the text behind the next character"
                self.remarks.append((message, "Write '==' to compare."))
            tokens.append((number, register, sign))
        return tokens

    def _whole(self, depth: int) -> int:
        """Everything up to the end or to a closing parenthesis."""
        value = self._value(depth)
        while self._operator():
            value = self._chain(value, 0, depth)
        return value

    def _chain(self, left: int, outer: int, depth: int) -> int:
        """`left` and the operators behind it; `outer` is the precedence of the one before, or 0."""
        while True:
            sign = self._operator()
            self._next += 1
            right = self._value(depth)
            following = self._operator()
            if not following:
                return self._apply(sign, left, right)
            if _PRECEDENCE[following] > _PRECEDENCE[sign]:
                right = self._chain(right, _PRECEDENCE[sign], depth + 1)
                left = self._apply(sign, left, right)
                following = self._operator()
                if not (following and outer and _PRECEDENCE[following] >= outer):
                    return left
            else:
                left = self._apply(sign, left, right)
                if _PRECEDENCE[following] < outer:
                    self._returns += 1
                    if following == "==" or (self._returns > 1 and len(following) == 2):
                        raise ExpressionError(
                            f"pMARS cannot tell what '{following}' refers to here",
                            f"Put the part before '{following}' into parentheses.",
                        )
                    return left
            outer = 0

    def _peek(self) -> str:
        """The next token if it is an operator or a parenthesis, else nothing."""
        return self._tokens[self._next][2] if self._next < len(self._tokens) else ""

    def _operator(self) -> str:
        """The next token if it is an operator between two values, else nothing."""
        return sign if (sign := self._peek()) in _PRECEDENCE else ""

    def _value(self, depth: int) -> int:
        signs: list[str] = []
        while (sign := self._peek()) in ("+", "-", "!"):
            signs.append(sign)
            self._next += 1
        value = self._primary(depth)
        for sign in reversed(signs):
            if sign == "-":
                value = self._wrapped(-value)
            elif sign == "!":
                value = int(value == 0)
        return value

    def _primary(self, depth: int) -> int:
        if depth > _DEEPEST:
            raise ExpressionError("the expression is nested too deeply", "Remove parentheses.")
        if self._next >= len(self._tokens):
            remedy = "Write a number or a label after the last operator."
            raise ExpressionError("a value is missing at the end of the expression", remedy)
        number, register, sign = self._tokens[self._next]
        self._next += 1
        if number:
            return self._wrapped(_number(number))
        if register:
            register = register.lower()
            if self._peek() == "=":
                self._next += 1
                self.registers[register] = self._whole(depth + 1)
            return self.registers.get(register, 0)
        if sign != "(":
            remedy = "Write a number, a label or a parenthesis there."
            raise ExpressionError(f"a value is missing before '{sign}'", remedy)
        value = self._whole(depth + 1)
        if self._peek() != ")":
            raise ExpressionError("a parenthesis is not closed", _AS_MANY)
        self._next += 1
        return value

    def _apply(self, sign: str, left: int, right: int) -> int:
        return self._wrapped(int(_OPERATORS[sign][1](left, right)))

    def _wrapped(self, value: int) -> int:
        if _SMALLEST <= value < -_SMALLEST:
            return value
        if not self.remarks:
            self.remarks.append(("a value exceeds 64 bits and wraps around", "Use smaller numbers."))
        return (value - _SMALLEST & (1 << 64) - 1) + _SMALLEST


def _number(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    if len(digits) > _DIGITS or int(digits) > -_SMALLEST:
        remedy = "Use a number below the core size: larger ones are reduced to it anyway."
        raise ExpressionError("the number is too large", remedy)
    return int(digits)
