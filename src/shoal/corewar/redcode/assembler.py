"""From Redcode to a warrior: reading, expanding, encoding."""

from __future__ import annotations

from typing import NamedTuple

from shoal.corewar.instruction import Instruction
from shoal.corewar.redcode.expansion import Expansion
from shoal.corewar.redcode.expression import Evaluator
from shoal.corewar.redcode.limits import SOURCE_SIZE
from shoal.corewar.redcode.operands import Encoder
from shoal.corewar.redcode.reader import Line, as_characters, read
from shoal.corewar.redcode.report import Abort, Report
from shoal.corewar.redcode.symbols import Symbols
from shoal.corewar.redcode.tokens import OPCODES
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import Problem


class Assembly(NamedTuple):
    """A warrior, and what its author should look at although it assembles."""

    warrior: Warrior
    warnings: tuple[Problem, ...]


def assemble(
    source: str | bytes,
    settings: Settings = Settings(),
    *,
    warriors: int = 1,
    rounds: int = 1,
    lenient: bool = False,
) -> Warrior:
    """The program of a Redcode source: ICWS'94 with pMARS's extensions, or what `settings` demand.

    `warriors` and `rounds` are only the values of the constants WARRIORS and ROUNDS. Raises
    AssemblyError with the problems in source order; any text or bytes give either a warrior or that
    error, within bounded time and memory.

    `lenient` accepts three things more, and only those: DAT, JMP, SPL and NOP without any operand
    (each missing operand is $0); a missing comma where the second operand begins with one of the
    modes # $ @ { }; and lines of up to 4096 characters.
    """
    return assemble_with_warnings(source, settings, warriors=warriors, rounds=rounds, lenient=lenient).warrior


def assemble_with_warnings(
    source: str | bytes,
    settings: Settings = Settings(),
    *,
    warriors: int = 1,
    rounds: int = 1,
    lenient: bool = False,
) -> Assembly:
    """Like `assemble`, and tells what is legal but probably not meant."""
    report = Report()
    nowhere = Line(1, "", "")
    if len(source) > SOURCE_SIZE:
        report.problem(nowhere, 1, f"the source has more than {SOURCE_SIZE} characters", "Shorten it.")
        report.raise_problems("")
    text = read(as_characters(source), split_long_lines=not lenient)
    symbols = Symbols(settings, warriors=warriors, rounds=rounds)
    evaluator = Evaluator(warriors)
    expansion = Expansion(text.lines, symbols, evaluator, report, settings.length)
    code: list[Instruction] = []
    start, pin = 0, None
    try:
        expansion.run()
        if expansion.size == 0:
            report.warning(
                text.lines[-1] if text.lines else nowhere, 1, "the program has no instructions", "Write some."
            )
        else:
            encoder = Encoder(settings, symbols, evaluator, report, lenient=lenient)
            code, start, pin = _encode(expansion, encoder, settings)
    except Abort:
        pass
    if expansion.size > settings.length:
        surplus = next(
            s for s in expansion.statements if s.keyword in OPCODES and s.address == settings.length
        )
        report.overflow(
            surplus.line,
            surplus.column,
            f"the program is {expansion.size - settings.length} instructions too long: "
            f"at most {settings.length} are allowed",
            f"Shorten it to {settings.length} instructions, or raise the length in the settings.",
        )
    report.raise_problems(text.name)
    if code and start >= len(code):
        report.warning(text.lines[-1], 1, "execution begins outside of the program", "Check ORG and END.")
    warrior = Warrior(
        code=tuple(code),
        start=start,
        pin=pin,
        name=text.name,
        author=text.author,
        strategy="\n".join(text.strategy),
        core_size=settings.core_size,
    )
    return Assembly(warrior, tuple(report.warnings))


def _encode(
    expansion: Expansion, encoder: Encoder, settings: Settings
) -> tuple[list[Instruction], int, int | None]:
    """The instructions, the start and the PIN. An ORG of 0 leaves the choice to END."""
    code: list[Instruction] = []
    org = end = pin = None
    for statement in expansion.statements:
        if statement.keyword in OPCODES:
            instruction = encoder.instruction(statement)
            if instruction is not None:
                code.append(instruction)
            continue
        number = encoder.number(statement)
        if number is None:
            continue
        if statement.keyword == "ORG":
            org = number % settings.core_size
        elif statement.keyword == "END":
            end = number % settings.core_size
        else:
            pin = number
    return code, org or end or 0, pin
