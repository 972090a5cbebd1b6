"""Every refusal says where, what and what to do; and no source costs more than its budget."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from shoal.corewar.redcode import assemble, assemble_with_warnings
from shoal.corewar.redcode.limits import PROBLEMS
from shoal.corewar.settings import HILLS, Settings
from shoal.errors import AssemblyError, Problem


def problems(source: str | bytes, settings: Settings = HILLS["94"]) -> tuple[Problem, ...]:
    with pytest.raises(AssemblyError) as caught:
        assemble(source, settings)
    return caught.value.problems


@pytest.mark.parametrize(("source", "line", "column", "message", "remedy"), [
    ("dat 0\n  mov 1", 2, 3, "MOV needs two operands", "Write 'MOV A, B'."),
    ("nop", 1, 1, "NOP has no operand", "Write 'NOP A' or 'NOP A, B'."),
    ("here jmp ther", 1, 10, "'ther' is not defined", "Did you mean 'here'?"),
    ("dat foo", 1, 5, "'foo' is not defined", "define it with EQU"),
    ("mov.c 1,2", 1, 5, "there is no modifier '.c'", "The modifiers are"),
    ("mov 1,2,3", 1, 6, "there are more than two operands", "one comma"),
    ("dat 1,", 1, 1, "an operand is missing", "behind the comma"),
    ("dat ,1", 1, 5, "an operand is missing", "before the comma"),
    ("dat #", 1, 1, "an operand is missing", "behind the addressing mode"),
    ("dat 1/0", 1, 1, "division by zero", "not 0"),
    ("dat 3+", 1, 1, "a value is missing at the end", "after the last operator"),
    ("dat (1", 1, 1, "a parenthesis is not closed", "as many"),
    ("dat 1)", 1, 1, "a parenthesis is closed", "as many"),
    ("dat (1) 2", 1, 1, "an operator is missing before '2'", "operator between"),
    ("dat 1 #2", 1, 7, "'#' cannot stand in an expression", "comma separates"),
    ("dat 1.5", 1, 6, "'.' cannot stand in an expression", "whole"),
    ("dat 7-2*3==1", 1, 1, "cannot tell what '==' refers to", "parentheses"),
    ("1 dat 0", 1, 1, "'1' cannot begin an instruction", "Begin a line with"),
    ("dat mov", 1, 5, "'mov' cannot stand in an operand", "line of its own"),
    ("xx equ xx\ndat xx", 2, 5, "the EQU 'xx' refers to itself", "lead back"),
    ("dat xx\nxx equ yy\nyy equ xx", 1, 5, "the EQU 'xx' refers to itself", "lead back"),
    ("CORESIZE dat 0", 1, 1, "CORESIZE is a predefined constant", "another name"),
    ("l1 l2 l3 l4 l5 l6 l7 l8 dat 0", 1, 22, "label 'l8' is one too many", "Remove labels"),
    ("rof", 1, 1, "ROF without FOR", "FOR count"),
    ("for later\nrof\nlater equ 1", 1, 1, "the count of FOR is not usable", "defined above"),
    ("x&y dat 0", 1, 1, "'y' behind '&' is not the counter", "enclosing FOR"),
    ("x equ for 1\nx\ndat 0\nrof", 2, 1, "begins in an EQU text", "same EQU text"),
    ("dat 1\n;assert CORESIZE == 1\n", 2, 9, "demands 'CORESIZE == 1'", "reads '8000 ==1'"),
    ("dat 0\n" * 103, 101, 1, "3 instructions too long", "Shorten it to 100"),
    ("dat " + "9" * 40, 1, 1, "the number is too large", "below the core size"),
    ("x equ 1+1+1+1+1+1+1+1+1+1+1+1+1\ndat x x x x x x x x x x x", 2, 1, "more than 255 characters", "shorter"),
    ("dat 1 ;" + "1" * 300, 1, 256, "cannot begin an instruction", "break the line"),
])  # fmt: skip
def test_a_problem_tells_where_what_and_what_to_do(
    source: str, line: int, column: int, message: str, remedy: str
) -> None:
    found = problems(source)[0]
    assert message in found.message
    assert remedy in found.remedy
    assert (found.line, found.column) == (line, column) or len(source) > 300
    assert found.source.strip()
    assert len(found.source) <= 100


@pytest.mark.parametrize("source", ["nop 0", "mul 1,2", "mov.i 1,2", "mov *1,2", "dat 5", "mov 1,#2", "djn #1,2",
                                    "org 1\ndat #0", "pin 1\ndat #0"])  # fmt: skip
def test_icws_88_refuses_what_came_later(source: str) -> None:
    assert "ICWS'88" in problems(source, HILLS["88"])[0].message


def test_hills_without_p_space_refuse_its_instructions() -> None:
    assert "P-space" in problems("ldp #0, 1", HILLS["94nop"])[0].message
    assert "P-space" in problems("stp #0, 1", HILLS["94nop"])[0].message


def test_several_problems_are_reported_in_source_order() -> None:
    found = problems("mov 1\n1\ndat foo\ndat 0\ndat 1/0")
    assert [problem.line for problem in found] == [1, 2, 3, 5]


def test_a_problem_in_a_loop_is_reported_once() -> None:
    assert len(problems("for 5\ndat foo\nrof")) == 1


def test_the_number_of_problems_is_bounded() -> None:
    assert len(problems("1\n" * 1000)) == PROBLEMS


def test_the_error_names_the_program() -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(";name Dwarf\nmov 1")
    assert caught.value.name == "Dwarf"


def test_columns_count_characters_not_bytes() -> None:
    found = problems("dat 0 ; ä\nä dat 0")[0]
    assert (found.line, found.column, found.source) == (2, 1, "ä dat 0")


def test_warnings_do_not_refuse() -> None:
    assembly = assemble_with_warnings("one dat 1\none dat 2\n equ 3\n;assert later\nfor 1\nlast")
    assert len(assembly.warrior) == 1
    assert [warning.line for warning in assembly.warnings] == [2, 3, 4, 5, 6]


def joined(line: str) -> str:
    """A long line, written with a backslash at the end of each part."""
    return "\\\n".join(line[start : start + 240] for start in range(0, len(line), 240)) + "\n"


BOMBS = {
    "nested FOR": "for 1000\n" * 3 + "dat 0\n" + "rof\n" * 3,
    "nested empty FOR": "for 100000\n" * 3 + "rof\n" * 3,
    "labels from FOR": "i for 999999\nl&i equ 0\nrof",
    "billion laughs": "x0 equ 1+1\n"
    + "".join(f"x{i} equ x{i - 1}+x{i - 1}\n" for i in range(1, 40))
    + "dat x39",
    "billion empty laughs": "x0 equ \n"
    + "".join(f"x{i} equ x{i - 1} x{i - 1}\n" for i in range(1, 40))
    + "dat 1 x39",
    "laughs ahead": "dat x39\nx0 equ \n" + "".join(f"x{i} equ x{i - 1} x{i - 1}\n" for i in range(1, 40)),
    "laughing lines": "x0 equ dat 1\n"
    + "".join(f"x{i} equ x{i - 1}\n equ x{i - 1}\n" for i in range(1, 40))
    + "x39",
    "growing EQU": "x equ dat 0\nfor 1000000\n equ dat 0\nrof\nx",
    "deep EQU": "x0 equ 1\n" + "".join(f"x{i} equ x{i - 1}\n" for i in range(1, 12_000)) + "dat x11999",
    "one long line": "dat " + "1" * 10_000_000,
    "long expression": "dat " + "1+" * 120_000 + "1",
    "parentheses": "dat " + "(" * 250_000,
    "signs": "dat " + "-" * 250_000 + "1",
    "joined lines": "dat 1+\\\n" * 35_000,
    "huge count": "for " + "9" * 18 + "\nrof",
    "huge product": "for " + "*".join(["9" * 18] * 10) + "\nrof\nfor 9999*9999*9999\nrof",
    "many problems": "$\n" * 120_000,
    "many undefined names": "".join(f"dat undefined{i}\n" for i in range(11_000)),
    "hints": f"i for 3000\n{'a' * 31}&i equ 1\nrof\nfor 50\ndat {'a' * 31}zz\nrof",
    "hints for one line each": "".join(f"{'a' * 20}{i} equ 1\n" for i in range(180))
    + f"dat {'a' * 23}\n" * 50,
    "hints for opcodes": "for 70000\nmvo 1\nrof",
    "hints for labels": "".join(f"m{i:x} v{i:x}\n dat 0\n" for i in range(14_000)) + "dat 1/0",
    "long FOR count": joined(f"x equ {'L' * 3900}")
    + joined("y equ " + "x " * 1900)
    + joined("z equ " + "y " * 70)
    + "for z\nrof\ndat 0",
    "long assertion": joined(f"x equ {'L' * 3900}")
    + joined("y equ " + "x " * 1900)
    + joined("z equ " + "y " * 70)
    + ";assert z\ndat 0",
    "assertion in a loop": "for 70000\n" + joined(f";assert {'L' * 4000}") + "rof\ndat 0",
    "long joined line": ("\\\r" + "x" * 253) * 1000 + "\n$",
    "joined empty lines": "\\\n" * 131_000 + "$",
    "joined backslashes": ("\\" * 200 + "\n") * 1300,
    "loop in deep EQU": "a0 equ for 100000\n equ rof\n"
    + "".join(f"a{i} equ a{i - 1}\n" for i in range(1, 990))
    + "a989\n",
    "loops in deep EQU": "a0 equ for 1\n equ rof\n"
    + "".join(f"a{i} equ a{i - 1}\n" for i in range(1, 990))
    + "for 100000\na989\nrof",
    "long texts ahead": "for 1000\n dat t0\nrof\n"
    + "".join(joined(f"t{i} equ t{i + 1}" + " 1" * 1900) for i in range(60))
    + "t60 equ 1\n",
    "deep texts ahead": "for 1000\n dat t0\nrof\n"
    + "".join(f"t{i} equ t{i + 1}\n" for i in range(990))
    + "t990 equ 1",
    "self-reference ahead": "for 1000\n dat t0\nrof\n"
    + "".join(f"t{i} equ t{i + 1}\n" for i in range(990))
    + "t990 equ t0",
}


CHILD = """
import json, resource, sys, time
from shoal.corewar.redcode import assemble
from shoal.corewar.settings import Settings
from shoal.errors import AssemblyError

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
bombs, rules, lenient = json.load(sys.stdin)
for name, source in bombs.items():
    started = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(started) + 11, resource.RLIM_INFINITY))
    print(name, end=" ", flush=True)
    try:
        assemble(source, Settings(**rules), lenient=lenient)
    except AssemblyError:
        print("refused", end=" ")
    else:
        print("ACCEPTED", end=" ")
    print(f"after {time.process_time() - started:.2f} s", flush=True)
"""


@pytest.mark.parametrize(("rules", "lenient"), [
    ({}, False), ({"core_size": 65533, "length": 65533, "distance": 65533}, True)
])  # fmt: skip
def test_bombs_end_in_time_and_memory(rules: dict[str, int], lenient: bool) -> None:
    """Each has 10 s of CPU time, far more than any needs, and 1 GB."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps((BOMBS, rules, lenient)),
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert child.returncode == 0, child.stdout[-200:] + child.stderr[-2000:]
    assert child.stdout.count(" refused after ") == len(BOMBS), child.stdout


@pytest.mark.parametrize("source", [b";assert \xb2\ndat 0", b";assert 1\xb2\ndat 0", b";assert 1\xa0\ndat 0"])
def test_an_assertion_with_other_than_ascii_cannot_be_checked(source: bytes) -> None:
    (warning,) = assemble_with_warnings(source).warnings
    assert "cannot be checked" in warning.message
    assert "cannot stand there" in warning.message


@pytest.mark.parametrize("source", [
    b"for \xb2\ndat 0\nrof", b"for 2\xb9\ndat 0\nrof", b"for 1\xa0\ndat 0\nrof", b"for 1\x1c\ndat 0\nrof",
    b"\xa0\ndat 0", b"\x85\ndat 0", b"\x1c\ndat 0", b"dat \xb2", b"dat 1\xa0",
])  # fmt: skip
def test_only_ascii_counts_as_white_space_and_digit(source: bytes) -> None:
    (problem,) = problems(source)
    assert problem.line == 1
    assert "cannot" in problem.message
    assert str(problem).replace("\n", "").isprintable()


def test_a_problem_in_joined_lines_shows_the_first() -> None:
    (problem,) = problems("dat 0\n  mov 1 + \\\n  foo, 2")
    assert (problem.line, problem.source) == (2, "  mov 1 + \\")
    assert 1 <= problem.column <= len(problem.source) + 1


def test_problems_that_repeat_end_the_assembly() -> None:
    large = Settings(core_size=65533, length=65533, distance=65533)
    assert len(problems("for 1000\ndat foo\nrof\ndat 1/0", large)) == 2
    assert len(problems("for 1100\ndat foo\nrof\ndat 1/0", large)) == 1


def test_a_deep_but_honest_expression_is_evaluated() -> None:
    assert assemble("dat " + "(" * 120 + "1" + ")" * 120).code[0].b == 1


def test_source_text_is_never_run_as_python() -> None:
    for text in ('dat __import__("os")', "dat len('abc')", "dat 2**3", "dat 1 if 1 else 2", "dat [1][0]"):
        problems(text)


@pytest.mark.parametrize(
    ("source", "line", "column"),
    [
        ("mvo 0, 1", 1, 1),
        ("   mvo 0, 1", 1, 4),
        ("\tmvo\t0, 1", 1, 2),
        ("start: mvo 0, 1", 1, 8),
        ("dat 0\nmvo\n 0, 1", 2, 1),
        ("for 2\n mvo 0\nrof", 2, 2),
        ("step equ 4\n mvo step, 1", 2, 2),
        ("bomb dat 0\n dat 1\nmvo other, @bomb", 3, 1),
        ("mvo bomb, @bomb", 1, 1),
        ("start: mvo bomb, @bomb\nbomb dat 0", 1, 8),
        ("loop mvo.i bomb, >bomb", 1, 6),
        ("mvo bomb+1, 2", 1, 1),
        ("mvo jump, 2", 1, 1),
        ("jump mvo @bomb", 1, 6),
    ],
)
def test_a_misspelt_opcode_is_told_from_a_label(source: str, line: int, column: int) -> None:
    with pytest.raises(AssemblyError) as caught:
        assemble(source)
    (problem, *_) = caught.value.problems
    assert "'mvo' is not an instruction" in problem.message
    assert (problem.line, problem.column) == (line, column)
    assert "MOV" in problem.remedy


@pytest.mark.parametrize(
    ("source", "line", "message", "remedy"),
    [
        (
            "bomb dat 0\nmvo bomb, @bomb\ndat 0",
            2,
            "'bomb' is defined already",
            "Did you mean MOV instead of 'mvo'?",
        ),
        ("bomb dat 0\nlone bomb, @bomb\ndat 0", 2, "'bomb' is defined already", "Use another label."),
        ("start jpm start\ndat 0", 1, "'jpm' is read as a label", "Did you mean JMP?"),
    ],
)
def test_a_misspelt_opcode_that_pmars_accepts_is_a_warning(
    source: str, line: int, message: str, remedy: str
) -> None:
    (warning,) = assemble_with_warnings(source).warnings
    assert (warning.line, warning.remedy) == (line, remedy)
    assert message in warning.message


def test_plain_labels_are_not_taken_for_opcodes() -> None:
    assert assemble_with_warnings("new start\nsteps dat 0\nend\n").warnings == ()
