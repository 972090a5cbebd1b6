"""The instruction set of ICWS'94 with pMARS's extensions, as plain numbers.

The integer values are part of the engine's binary interface: `mars/engine.c` uses the same order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

# CMP and SEQ execute alike, yet they are different opcodes when whole cells are compared.
Opcode = IntEnum(
    "Opcode", "DAT MOV ADD SUB MUL DIV MOD JMP JMZ JMN DJN CMP SEQ SNE SLT SPL NOP LDP STP", start=0
)
Modifier = IntEnum("Modifier", "A B AB BA F X I", start=0)


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


MODE_SYMBOLS = "#$*@{<}>"  # the character of each mode, at the mode's number


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


EMPTY = Instruction(Opcode.DAT, Modifier.F, Mode.DIRECT, 0, Mode.DIRECT, 0)  # the core before loading
