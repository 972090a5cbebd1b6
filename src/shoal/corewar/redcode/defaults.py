"""The modifier of an instruction that names none, and what ICWS'88 allows."""

from __future__ import annotations

from shoal.corewar.instruction import Mode, Modifier, Opcode

_WHOLE = frozenset((Opcode.MOV, Opcode.SEQ, Opcode.SNE, Opcode.CMP))
_ARITHMETIC = frozenset((Opcode.ADD, Opcode.SUB, Opcode.MUL, Opcode.DIV, Opcode.MOD))
_TO_B_FIELD = frozenset((Opcode.SLT, Opcode.LDP, Opcode.STP))


def default_modifier(opcode: Opcode, a_mode: Mode, b_mode: Mode) -> Modifier:
    """ICWS'94's translation of '88 instructions, with pMARS's choice for the later opcodes."""
    if opcode in (Opcode.DAT, Opcode.NOP):
        return Modifier.F
    if opcode in _WHOLE or opcode in _ARITHMETIC or opcode in _TO_B_FIELD:
        if a_mode == Mode.IMMEDIATE:
            return Modifier.AB
        if b_mode == Mode.IMMEDIATE or opcode in _TO_B_FIELD:
            return Modifier.B
        return Modifier.I if opcode in _WHOLE else Modifier.F
    return Modifier.B


_MOVES = ("#$@<", "$@<")
_JUMPS = ("$@<", "#$@<")
MODES_88: dict[Opcode, tuple[str, str]] = {
    Opcode.DAT: ("#<", "#<"),
    Opcode.MOV: _MOVES,
    Opcode.ADD: _MOVES,
    Opcode.SUB: _MOVES,
    Opcode.CMP: _MOVES,
    Opcode.SLT: ("#$@<", "#$@<"),
    Opcode.JMP: _JUMPS,
    Opcode.JMZ: _JUMPS,
    Opcode.JMN: _JUMPS,
    Opcode.DJN: _JUMPS,
    Opcode.SPL: _JUMPS,
}
"""The opcodes of ICWS'88 with the modes that their A- and B-operand may have."""


def check_88(opcode: Opcode, modifier: Modifier | None, a_mode: Mode, b_mode: Mode) -> tuple[str, str] | None:
    """What ICWS'88 has against an instruction, and the remedy; None when it is legal."""
    if opcode not in MODES_88:
        return (
            f"{opcode.name} is not part of ICWS'88",
            f"Use one of {' '.join(known.name for known in MODES_88)}.",
        )
    if modifier is not None:
        return "modifiers are not part of ICWS'88", f"Write {opcode.name} without a modifier."
    a_modes, b_modes = MODES_88[opcode]
    for side, mode, allowed in (("A", a_mode, a_modes), ("B", b_mode, b_modes)):
        if mode.symbol not in allowed:
            return (
                f"ICWS'88 does not allow the mode {mode.symbol} in the {side}-operand of {opcode.name}",
                f"Use one of {' '.join(allowed)} there.",
            )
    return None
