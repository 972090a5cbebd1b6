"""The instruction set of ICWS'94 with pMARS's extensions, as plain numbers.

The integer values are part of the engine's binary interface: `mars/engine.c` uses the same order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Opcode(IntEnum):
    """CMP and SEQ execute alike, yet they are different opcodes when whole cells are compared."""

    DAT = 0
    MOV = 1
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    MOD = 6
    JMP = 7
    JMZ = 8
    JMN = 9
    DJN = 10
    CMP = 11
    SEQ = 12
    SNE = 13
    SLT = 14
    SPL = 15
    NOP = 16
    LDP = 17
    STP = 18


class Modifier(IntEnum):
    A = 0
    B = 1
    AB = 2
    BA = 3
    F = 4
    X = 5
    I = 6  # noqa: E741 - the standard's own name


class Mode(IntEnum):
    IMMEDIATE = 0
    DIRECT = 1
    A_INDIRECT = 2
    B_INDIRECT = 3
    A_DECREMENT = 4
    B_DECREMENT = 5
    A_INCREMENT = 6
    B_INCREMENT = 7

    @property
    def symbol(self) -> str:
        return MODE_SYMBOLS[self]


MODE_SYMBOLS = "#$*@{<}>"
"""The character of each mode, at the mode's number."""


class Instruction(NamedTuple):
    """One cell of the core. `a` and `b` are already reduced modulo the core size."""

    opcode: Opcode
    modifier: Modifier
    a_mode: Mode
    a: int
    b_mode: Mode
    b: int

    def __str__(self) -> str:
        return (
            f"{self.opcode.name}.{self.modifier.name} "
            f"{self.a_mode.symbol}{self.a}, {self.b_mode.symbol}{self.b}"
        )


EMPTY = Instruction(Opcode.DAT, Modifier.F, Mode.DIRECT, 0, Mode.DIRECT, 0)
"""What the core is filled with before the warriors are loaded."""
