"""The language, feature by feature. The expected programs were recorded from pMARS 0.9.2."""

from __future__ import annotations

import pytest

from shoal.corewar.instruction import Opcode
from shoal.corewar.redcode import assemble, assemble_with_warnings
from shoal.corewar.redcode.listing import signed
from shoal.corewar.settings import HILLS, Settings
from shoal.errors import AssemblyError

STANDARD = HILLS["94"]
ICWS_88 = HILLS["88"]


def program(source: str, settings: Settings = STANDARD, **options: int) -> list[str]:
    """The instructions, one text each; `>` marks where execution begins. Empty programs are allowed, as in
    pMARS."""
    warrior = assemble(source, settings, allow_empty=True, **options)
    lines = []
    for index, (opcode, modifier, a_mode, a, b_mode, b) in enumerate(warrior.code):
        a, b = signed(a, warrior.core_size), signed(b, warrior.core_size)
        mark = ">" if index == warrior.start else " "
        lines.append(f"{mark}{opcode.name}.{modifier.name} {a_mode.symbol}{a}, {b_mode.symbol}{b}")
    return lines


def value(expression: str) -> int:
    """The value of an expression in the B-operand."""
    return int(program(f"dat #0, {expression}")[0].rpartition("$")[2])


NOTHING = [
    "",
    b"",
    "; only a comment\n\n",
    ";name x\n org 5",
    "one two",
    "for 0\ndat 1\nrof",
    "end 3",
    "x equ 1",
]


@pytest.mark.parametrize("source", NOTHING)
def test_a_source_without_instructions_is_an_error(source: str | bytes) -> None:
    for lenient in (False, True):
        with pytest.raises(AssemblyError, match="the program has no instructions") as caught:
            assemble(source, lenient=lenient)
        assert len(caught.value.problems) == 1


@pytest.mark.parametrize("source", NOTHING)
def test_an_empty_program_is_accepted_where_it_is_allowed(source: str | bytes) -> None:
    assembly = assemble_with_warnings(source, allow_empty=True)
    assert (assembly.warrior.code, assembly.warrior.start) == ((), 0)
    assert "no instructions" in assembly.warnings[-1].message


def test_every_opcode_has_its_default_modifier() -> None:
    assert program("\n".join(f"{opcode.name} 1, 2" for opcode in Opcode)) == [
        ">DAT.F $1, $2", " MOV.I $1, $2", " ADD.F $1, $2", " SUB.F $1, $2", " MUL.F $1, $2",
        " DIV.F $1, $2", " MOD.F $1, $2", " JMP.B $1, $2", " JMZ.B $1, $2", " JMN.B $1, $2",
        " DJN.B $1, $2", " CMP.I $1, $2", " SEQ.I $1, $2", " SNE.I $1, $2", " SLT.B $1, $2",
        " SPL.B $1, $2", " NOP.F $1, $2", " LDP.B $1, $2", " STP.B $1, $2",
    ]  # fmt: skip


def test_an_immediate_operand_changes_the_default_modifier() -> None:
    source = "mov #1,2\nmov 1,#2\nadd #1,2\nadd 1,#2\nslt #1,2\nslt 1,#2\n"
    source += "seq #1,2\nsne 1,#2\nldp #1,2\njmz 1,#2\ndat #1,#2"
    assert program(source) == [
        ">MOV.AB #1, $2", " MOV.B $1, #2", " ADD.AB #1, $2", " ADD.B $1, #2",
        " SLT.AB #1, $2", " SLT.B $1, #2",
        " SEQ.AB #1, $2", " SNE.B $1, #2", " LDP.AB #1, $2", " JMZ.B $1, #2", " DAT.F #1, #2",
    ]  # fmt: skip


def test_modifiers_in_either_case_and_apart() -> None:
    assert program("mov.a 1,2\nMOV.Ab 1,2\nmov .ba 1,2\nmov . x 1,2\nmov.f#1,2") == [
        ">MOV.A $1, $2", " MOV.AB $1, $2", " MOV.BA $1, $2", " MOV.X $1, $2", " MOV.F #1, $2",
    ]  # fmt: skip


def test_every_addressing_mode() -> None:
    assert program("dat #1,$2\ndat *3,@4\ndat {5,<6\ndat }7,>8\ndat < 1 , > 2") == [
        ">DAT.F #1, $2", " DAT.F *3, @4", " DAT.F {5, <6", " DAT.F }7, >8", " DAT.F <1, >2",
    ]  # fmt: skip


def test_a_single_operand() -> None:
    """DAT takes it as B; JMP, SPL and NOP as A."""
    assert program("dat 5\njmp 1\nspl 1\nnop 0") == [
        ">DAT.F #0, $5", " JMP.B $1, $0", " SPL.B $1, $0", " NOP.F $0, $0",
    ]  # fmt: skip


def test_a_mode_without_a_value_before_a_comma_means_zero() -> None:
    assert program("mov #, 1") == [">MOV.AB #0, $1"]


def test_numbers_are_reduced_to_the_core() -> None:
    assert program("dat 8000,4000\ndat 4001,-4000\ndat 99999999999,-1") == [
        ">DAT.F $0, $4000", " DAT.F $-3999, $4000", " DAT.F $-1, $-1",
    ]  # fmt: skip


def test_labels_with_and_without_colon_and_on_lines_of_their_own() -> None:
    assert program("a1\nb1 c1: dat a1,c1\nd1:e1 dat b1,d1\n  jmp e1") == [
        ">DAT.F $0, $0", " DAT.F $-1, $0", " JMP.B $-1, $0",
    ]  # fmt: skip


def test_a_label_may_stand_at_the_end() -> None:
    assert program("dat last\nlast end") == [">DAT.F #0, $1"]


def test_a_line_with_a_label_that_exists_is_ignored() -> None:
    assert program("one dat 1\none dat 2\ndat 3") == [">DAT.F #0, $1", " DAT.F #0, $3"]


def test_single_letters_are_registers_unless_they_are_labels() -> None:
    assert program("dat (a=3), a\ndat A, b\nb dat 0") == [">DAT.F $3, $3", " DAT.F $3, $1", " DAT.F #0, $0"]
    assert value("1+a=5") == 6
    assert value("2*a=3+1") == 8


def test_equ_puts_in_text_not_values() -> None:
    assert program("sum equ 2+1\ndat sum*2") == [">DAT.F #0, $4"]


def test_equ_may_be_used_before_it_is_defined() -> None:
    assert program("dat size\nsize equ other\nother equ 5") == [">DAT.F #0, $5"]


def test_equ_of_several_lines() -> None:
    assert program("twice equ dat 1\n equ dat 2\nlabel twice\n jmp label") == [
        ">DAT.F #0, $1", " DAT.F #0, $2", " JMP.B $-2, $0",
    ]  # fmt: skip


def test_equ_may_hold_any_piece_of_a_line() -> None:
    source = "copy equ mov\nboth equ 1,2\nwhole equ jmp -1\nway equ #\nkind equ .f\n"
    source += "copy both\nwhole\ndat way 3\nmov kind 1,2"
    assert program(source) == [">MOV.I $1, $2", " JMP.B $-1, $0", " DAT.F #0, #3", " MOV.F $1, $2"]


def test_two_names_of_one_equ() -> None:
    assert program("one two equ 7\ndat one,two") == [">DAT.F $7, $7"]


def test_for_with_a_counter() -> None:
    assert program("n for 3\ndat n, n*2\nrof") == [">DAT.F $1, $2", " DAT.F $2, $4", " DAT.F $3, $6"]


def test_counters_are_joined_to_labels_with_two_digits() -> None:
    assert program("n for 11\nlabel&n dat label01\nrof\ndat label11,label02")[-2:] == [
        " DAT.F #0, $-10", " DAT.F $-1, $-10",
    ]  # fmt: skip


def test_nested_loops_use_outer_counters() -> None:
    assert program("n for 2\nm for n\nx&n&m dat n,m\nrof\nrof\ndat x0201") == [
        ">DAT.F $1, $1", " DAT.F $2, $1", " DAT.F $2, $2", " DAT.F #0, $-2",
    ]  # fmt: skip


def test_for_zero_is_a_comment() -> None:
    assert program("for 0\n\"any text, even 'this\nfor 7\nrof\nrof ignored words\ndat 1") == [">DAT.F #0, $1"]


def test_a_label_above_for_names_the_first_instruction() -> None:
    assert program("here\nn for 2\ndat here\nrof") == [">DAT.F #0, $0", " DAT.F #0, $-1"]


def test_for_depends_on_constants() -> None:
    assert program("for MAXLENGTH >= 100\ndat 1\nrof\nfor CORESIZE < 100\ndat 2\nrof") == [">DAT.F #0, $1"]


def test_arithmetic() -> None:
    texts = ("2+3*4", "2*3+4", "2-3-4", "100/10/2", "(1+2)*3", "-7/2", "-7%4", "7%-4")
    assert [value(text) for text in texts] == [14, 10, -5, 5, 9, -3, -3, 3]


def test_a_product_takes_in_what_follows_as_in_pmars() -> None:
    texts = ("20-3*4-5", "20-3*4-5-1", "100-2*3-4<9", "20-(3*4)-5", "9-2*3-1*2-1")
    assert [value(text) for text in texts] == [13, 14, 99, 3, 4]


def test_comparisons_and_logic() -> None:
    texts = (
        "1==1",
        "1!=1",
        "1<2",
        "2>=3",
        "3>2>1",
        "1==2<1",
        "5&&3",
        "0||0",
        "1||0&&0",
        "!5",
        "!0+1",
        "1-!1",
        "--1",
    )
    assert [value(text) for text in texts] == [1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 2, 1, 1]


def test_both_sides_of_logic_are_evaluated() -> None:
    assert program("dat 0&&(a=5), a") == [">DAT.F $0, $5"]


def test_numbers_are_64_bit() -> None:
    assert value("3037000500*3037000500/1000000000000000") == -1223


def test_digits_apart_are_one_number() -> None:
    assert program("dat 1 2, 3") == [">DAT.F $12, $3"]


def test_predefined_constants() -> None:
    source = "dat CORESIZE-1,MAXPROCESSES-1\ndat MAXCYCLES/10,MAXLENGTH\n"
    source += "dat MINDISTANCE,PSPACESIZE\ndat VERSION,WARRIORS\ndat CURLINE,ROUNDS"
    assert program(source, rounds=0) == [
        ">DAT.F $-1, $-1", " DAT.F $0, $100", " DAT.F $100, $500", " DAT.F $92, $1", " DAT.F $4, $0",
    ]  # fmt: skip
    assert program("dat WARRIORS,ROUNDS", warriors=2, rounds=100) == [">DAT.F $2, $100"]


def test_org_and_end_say_where_execution_begins() -> None:
    assert program("org there\ndat 0\nthere dat 1") == [" DAT.F #0, $0", ">DAT.F #0, $1"]
    assert program("dat 0\nthere dat 1\nend there\nnot read") == [" DAT.F #0, $0", ">DAT.F #0, $1"]
    assert program("org 1\ndat 0\ndat 1\nend 0") == [" DAT.F #0, $0", ">DAT.F #0, $1"]


def test_a_start_outside_of_the_program_is_only_a_warning() -> None:
    warrior, warnings = assemble_with_warnings("dat 0\norg -1")
    assert warrior.start == 7999
    assert [warning.message for warning in warnings] == ["execution begins outside of the program"]


def test_pin() -> None:
    assert assemble("pin 5\nldp #0, 1").pin == 5
    assert assemble("pin -8001\nldp #0, 1").pin == -8001
    assert assemble("ldp #0, 1").pin is None


def test_text_around_the_program_is_ignored() -> None:
    assert program("Dear hill, $%&\n;redcode-94\ndat 1\n;redcode\ndat 2") == [">DAT.F #0, $1"]


def test_name_author_and_strategy() -> None:
    warrior = assemble(
        ";redcode\n;name  Dwarf \n;Author A. K. Dewdney\n;strategy bombs\n; strategy more\ndat 0"
    )
    assert (warrior.name, warrior.author, warrior.strategy) == ("Dwarf ", "A. K. Dewdney", "bombs\nmore")


def test_names_are_utf_8_or_latin_1() -> None:
    assert assemble(";name Königstuhl\ndat 0").name == "Königstuhl"
    assert assemble(";name Königstuhl\ndat 0".encode("latin-1")).name == "Königstuhl"


def test_assertions_that_hold_or_cannot_be_checked() -> None:
    assert program(";assert CORESIZE==8000 && MAXLENGTH>=100\n;assert unknown\ndat 1") == [">DAT.F #0, $1"]


def test_a_backslash_joins_lines_and_a_carriage_return_ends_one() -> None:
    assert program("dat 1+\\\n2\r\ndat 4\r ignored") == [">DAT.F #0, $3", " DAT.F #0, $4"]


def test_a_long_line_goes_on_as_a_new_line() -> None:
    assert program("dat 1" + " " * 250 + "dat 2") == [">DAT.F #0, $1", " DAT.F #0, $2"]


def test_icws_88() -> None:
    assert program("dat #1,<2\nmov #1,2\nslt #1,#2\njmp @1\ncmp 1,<2\nend 1", ICWS_88) == [
        " DAT.F #1, <2", ">MOV.AB #1, $2", " SLT.AB #1, #2", " JMP.B @1, $0", " CMP.I $1, <2",
    ]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), [
    ("nop", ">NOP.F $0, $0"), ("spl", ">SPL.B $0, $0"), ("jmp ; here", ">JMP.B $0, $0"),
    ("dat", ">DAT.F $0, $0"),
    ("mov #1 $2", ">MOV.AB #1, $2"), ("mov.i $0 @1+2", ">MOV.I $0, @3"),
    ("dat 1 ;" + "1" * 300, ">DAT.F #0, $1"),
])  # fmt: skip
def test_lenient_accepts_a_little_more(source: str, expected: str) -> None:
    """pMARS has no such mode: each of these it refuses."""
    with pytest.raises(AssemblyError, match="line 1"):
        assemble(source)
    assert program(source, lenient=True) == [expected]
