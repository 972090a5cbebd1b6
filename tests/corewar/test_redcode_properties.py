"""Laws of the assembler, on random programs and on random text."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st

from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.redcode import assemble, disassemble, listing
from shoal.corewar.redcode.encoding import MODES_88, default_modifier
from shoal.corewar.redcode.expression import Evaluator, ExpressionError
from shoal.corewar.settings import MAX_CORE_SIZE, Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import AssemblyError, Problem

sizes = st.sampled_from((1, 2, 7, 80, 800, 8000, 8001, 55_440, MAX_CORE_SIZE))
names = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0"), min_size=1, max_size=50).filter(
    lambda text: text.strip(" \t\f\v") == text and not text.endswith("\\")
)


@st.composite
def warriors(draw: st.DrawFn) -> Warrior:
    size = draw(sizes)
    numbers = st.integers(0, size - 1)
    instructions = st.builds(
        Instruction,
        st.sampled_from(Opcode), st.sampled_from(Modifier),
        st.sampled_from(Mode), numbers, st.sampled_from(Mode), numbers,
    )  # fmt: skip
    code = tuple(draw(st.lists(instructions, min_size=1, max_size=12)))
    return Warrior(
        code=code,
        start=draw(st.integers(0, len(code) - 1)),
        pin=draw(st.none() | st.integers(-(1 << 63), (1 << 63) - 1)),
        name=draw(names),
        author=draw(names),
        strategy="\n".join(draw(st.lists(names, max_size=3))),
        core_size=size,
    )


def rules(size: int) -> Settings:
    length = min(size, 100)
    return Settings(core_size=size, length=length, distance=length)


@settings(deadline=None)
@given(warriors())
def test_a_disassembled_warrior_assembles_to_itself(warrior: Warrior) -> None:
    if len(warrior) <= warrior.core_size:
        again = assemble(disassemble(warrior), rules(warrior.core_size))
        assert again == warrior
        assert again.digest == warrior.digest


@settings(deadline=None)
@given(warriors())
def test_a_listing_assembles_to_the_same_code_and_start(warrior: Warrior) -> None:
    if len(warrior) <= warrior.core_size:
        again = assemble(listing(warrior), rules(warrior.core_size))
        assert (again.code, again.start) == (warrior.code, warrior.start)
        assert (again.name, again.author) == (warrior.name, warrior.author)
        assert listing(again) == listing(warrior)


def test_a_listing_with_names_longer_than_a_line_is_read() -> None:
    name = "𐀀" * 60
    warrior = Warrior(assemble("mov 0, 1").code, name=name, author=name)
    again = assemble(listing(warrior))
    assert (again.code, again.name, again.author) == (warrior.code, name, name)


def test_names_cannot_smuggle_code_into_a_listing() -> None:
    code = assemble("mov 0, 1").code
    for name in ('x" (length 1) by "y"\nmov 9,9\nend\n', "x\rmov 9,9", "x\0y", "x\\"):
        for warrior in (Warrior(code, name=name, author="z"), Warrior(code, name="z", author=name)):
            assert listing(warrior).count("\n") == 5
            assert assemble(listing(warrior)).code == code
            assert assemble(disassemble(warrior)).code == code


def test_a_backslash_behind_a_name_does_not_swallow_the_next_line() -> None:
    warrior = Warrior(assemble("mov 0, 1").code, name="a\\", author="b\\", strategy="c\\\nd\\")
    again = assemble(disassemble(warrior))
    assert (again.name, again.author, again.strategy) == ("a\\ ", "b\\ ", "c\\ \nd\\ ")


@settings(deadline=None)
@given(warriors())
def test_names_do_not_change_the_digest(warrior: Warrior) -> None:
    renamed = Warrior(warrior.code, warrior.start, warrior.pin, "x", "y", "z", warrior.core_size)
    assert renamed.canonical == warrior.canonical
    assert renamed.digest == warrior.digest


@settings(deadline=None)
@given(st.data())
def test_an_88_listing_assembles_under_88_rules(data: st.DataObject) -> None:
    opcode = data.draw(st.sampled_from(list(MODES_88)))
    a_modes, b_modes = ([mode for mode in Mode if mode.symbol in side] for side in MODES_88[opcode])
    a_mode, b_mode = data.draw(st.sampled_from(a_modes)), data.draw(st.sampled_from(b_modes))
    cell = Instruction(opcode, default_modifier(opcode, a_mode, b_mode), a_mode, 7999, b_mode, 4001)
    warrior = Warrior((cell, cell), start=1)
    again = assemble(listing(warrior, standard="88"), Settings(standard="88"))
    assert (again.code, again.start) == (warrior.code, warrior.start)


def check_problems(problems: tuple[Problem, ...]) -> None:
    assert problems
    for problem in problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
        assert problem.remedy
        assert len(problem.source) <= 100
        assert all(line.isprintable() for line in str(problem).split("\n"))


def assembles_or_refuses(source: str | bytes, **options: bool) -> None:
    try:
        warrior = assemble(source, **options)
    except AssemblyError as error:
        check_problems(error.problems)
    else:
        assert len(warrior) <= 100
        assert all(0 <= cell.a < 8000 and 0 <= cell.b < 8000 for cell in warrior.code)
        assert assemble(disassemble(warrior)).canonical == warrior.canonical


@settings(deadline=None)
@given(st.binary(max_size=400) | st.text(st.characters(), max_size=400), st.booleans())
def test_any_text_is_a_warrior_or_an_assembly_error(source: str | bytes, lenient: bool) -> None:
    assembles_or_refuses(source, lenient=lenient)


labels = st.sampled_from(("here", "there", "n", "i", "x1", "CORESIZE", "CURLINE", "a", "here&n", "x&i"))
values = st.integers(-20, 9000).map(str) | labels
expressions = st.recursive(
    values,
    lambda inner: st.builds(
        "{}{}{}".format, inner,
        st.sampled_from(("+", "-", "*", "/", "%", "==", "<", "&&", "||", " - ", " ", "=", "!", "&")), inner,
    )
    | inner.map("({})".format) | inner.map("!{}".format) | inner.map("(a={})".format),
    max_leaves=5,
)  # fmt: skip
operands = st.builds(
    "{}{}".format, st.sampled_from(("", "#", "$", "@", "<", ">", "*", "{", "}")), expressions
)
instructions = st.builds(
    "{}{} {}{}{}".format,
    st.sampled_from([opcode.name for opcode in Opcode]),
    st.sampled_from(("", "", ".i", ".AB", ".q")),
    operands, st.sampled_from((",", " , ", "", " ")), operands,
)  # fmt: skip
plain_lines = (
    instructions
    | st.builds("{} {}".format, labels, instructions)
    | st.builds("{} equ {}".format, labels, expressions | instructions | operands)
    | st.builds(" equ {}".format, instructions)
    | st.builds("{} {}".format, st.sampled_from(("org", "end", "pin", ";assert", ";name", "rof")), expressions)
    | labels | st.sampled_from(("", ";redcode", "rof", "here: there:", "\\", "dat 1 \\"))
)  # fmt: skip
blocks = st.recursive(
    st.lists(plain_lines, max_size=6),
    lambda inner: st.builds(
        lambda label, count, body, close: [f"{label} for {count}", *body, close],
        labels | st.just(""), st.integers(-1, 4).map(str) | expressions, inner, st.sampled_from(("rof", "rof", "")),
    )
    | st.builds(list.__add__, inner, inner),
    max_leaves=5,
)  # fmt: skip


@settings(deadline=None)
@given(blocks.map("\n".join), st.booleans())
def test_any_mixture_of_fragments_is_a_warrior_or_an_assembly_error(source: str, lenient: bool) -> None:
    assembles_or_refuses(source, lenient=lenient)


@settings(deadline=None)
@given(st.text("0123456789+-*/%()<>=!&|a b", max_size=60))
def test_any_expression_has_a_64_bit_value_or_an_error(text: str) -> None:
    try:
        value = Evaluator().evaluate(text)
    except ExpressionError:
        return
    assert -(1 << 63) <= value < 1 << 63
