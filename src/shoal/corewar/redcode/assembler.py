"""From Redcode to a warrior: reading, expanding, encoding."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from shoal.corewar.instruction import Instruction
from shoal.corewar.redcode.encoding import Encoder, Unusable
from shoal.corewar.redcode.expansion import Expansion
from shoal.corewar.redcode.expression import Evaluator
from shoal.corewar.redcode.limits import SOURCE_SIZE
from shoal.corewar.redcode.reader import Line, Place, as_characters, read
from shoal.corewar.redcode.report import Abort, Report, located
from shoal.corewar.redcode.tokens import OPCODES, Symbols
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import Problem


class Assembly(NamedTuple):
    """A warrior, and warnings that its author should look at although it assembles."""

    warrior: Warrior
    warnings: tuple[Problem, ...]


def assemble(
    source: str | bytes,
    settings: Settings = Settings(),
    *,
    warriors: int = 1,
    rounds: int = 1,
    lenient: bool = False,
    allow_empty: bool = False,
) -> Warrior:
    """The program of a Redcode source: ICWS'94 with pMARS's extensions, or the standard of `settings`. Any
    text or bytes give either a warrior or an AssemblyError with the problems in source order, within bounded
    time and memory. `warriors` and `rounds` are only the values of the constants WARRIORS and ROUNDS.

    `lenient` accepts three things more, and only those: DAT, JMP, SPL and NOP without any operand (each
    missing operand is $0); a missing comma where the second operand begins with one of the modes # $ @ { };
    and lines of up to 4096 characters. `allow_empty` accepts a source without any instruction as pMARS does:
    the warrior has no code and dies in its first cycle."""
    return assemble_with_warnings(
        source, settings, warriors=warriors, rounds=rounds, lenient=lenient, allow_empty=allow_empty
    ).warrior


def assemble_with_warnings(
    source: str | bytes,
    settings: Settings = Settings(),
    *,
    warriors: int = 1,
    rounds: int = 1,
    lenient: bool = False,
    allow_empty: bool = False,
) -> Assembly:
    """Like `assemble`, with warnings of things that are legal but probably not meant."""
    report = Report()
    start_of_source = Place(Line(1, "", ""), 1)
    if len(source) > SOURCE_SIZE:
        message = f"the source has more than {SOURCE_SIZE} characters"
        report.problem(start_of_source, message, "Shorten it.")
        report.raise_problems("")
    text = read(as_characters(source), split_long_lines=not lenient)
    last_line = Place(text.lines[-1], 1) if text.lines else start_of_source
    symbols = Symbols(settings, warriors=warriors, rounds=rounds)
    evaluator = Evaluator(warriors)
    expansion = Expansion(text.lines, symbols, evaluator, report, settings.length)
    code: list[Instruction] = []
    start, pin = 0, None
    try:
        expansion.run()
        if expansion.size:
            encoder = Encoder(settings, symbols, evaluator, report, lenient=lenient)
            code, start, pin = _encode(expansion, encoder, settings)
        elif allow_empty:
            report.warning(last_line, "the program has no instructions", "Write some.")
        elif not report.problems:
            remedy = "Write one, such as MOV 0, 1: a word without an instruction behind it is only a label."
            report.problem(last_line, "the program has no instructions", remedy)
    except Abort:
        pass
    if expansion.size > settings.length:
        surplus = next(
            s for s in expansion.statements if s.keyword in OPCODES and s.address == settings.length
        )
        message = (
            f"the program is {expansion.size - settings.length} instructions too long: "
            f"at most {settings.length} are allowed"
        )
        remedy = f"Shorten it to {settings.length} instructions, or raise the length in the settings."
        report.problems.append(located(surplus.place, message, remedy))  # also where the report is full
    report.raise_problems(text.name)
    if code and start >= len(code):
        report.warning(last_line, "execution begins outside of the program", "Check ORG and END.")
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
    numbers: dict[str, int] = {}
    for statement in expansion.statements:
        with suppress(Unusable):
            if statement.keyword in OPCODES:
                code.append(encoder.instruction(statement))
            elif (number := encoder.number(statement)) is not None:
                numbers[statement.keyword] = number
    starts = (numbers.get(keyword, 0) % settings.core_size for keyword in ("ORG", "END"))
    return code, next(filter(None, starts), 0), numbers.get("PIN")
