"""Finding the program in what models really write."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shoal.evolve import extract_program, extract_programs
from shoal.evolve.domains.corewar import CoreWar
from shoal.evolve.extraction import ANSWER_SIZE

DOMAIN = CoreWar()
DWARF = """;redcode-94
;name Dwarf
        org     loop
loop    add.ab  #4, bomb
        mov.i   bomb, @bomb
        jmp     loop
bomb    dat     #0, #0
        end
"""
DIGEST = DOMAIN.parse(DWARF).digest
OLD = "mov.i $0, $1\n"

ANSWERS = {
    "bare": DWARF,
    "fence": f"```redcode\n{DWARF}```",
    "fence without a language": f"```\n{DWARF}\n```\n",
    "tildes": f"~~~asm\n{DWARF}~~~",
    "prose around a fence": f"Sure! Here's a warrior:\n\n```redcode\n{DWARF}```\n\nIt throws bombs, e.g. `dat #0, #0`, and mov.",
    "prose without a fence": f"Sure! Here is an improved warrior for you.\n\n{DWARF}\nThis program throws bombs at every 4th cell, and wins.",
    "old before new": f"The original:\n```redcode\n{OLD * 4}```\nThe improved one:\n```redcode\n{DWARF}```",
    "excerpt after": f"```redcode\n{DWARF}```\nThe important line is\n```redcode\nmov.i bomb, @bomb\n```",
    "never closed": f"Here:\n```redcode\n{DWARF}",
    "cut in the middle of a line": "```redcode\n" + DWARF.replace("        end\n", "        mov.i bo"),
    "closing fence on the last line": f"```\n{DWARF.rstrip()}```",
    "indented": "Here:\n\n" + "".join(f"    {line}\n" for line in DWARF.splitlines()),
    "indented fence": "1. Do this:\n   ```redcode\n"
    + "".join(f"   {line}\n" for line in DWARF.splitlines())
    + "   ```\n",
    "carriage returns": f"```redcode\n{DWARF}```".replace("\n", "\r\n"),
    "old line ends": f"```redcode\n{DWARF}```".replace("\n", "\r"),
    "thought": f"<think>\nMaybe an imp?\n```redcode\n{OLD}```\nNo.\n</think>\n```redcode\n{DWARF}```",
    "end of a thought only": f"Maybe an imp?\n```\n{OLD}```\n</think>\n\n```redcode\n{DWARF}```",
    "thought that never ends": f"<think>I will write\n```redcode\n{DWARF}```",
    "entities": f"```redcode\n{DWARF}```".replace("@", "&commat;").replace("#", "&#35;"),
    "numbered": "```\n"
    + "".join(f"{number}: {line}\n" for number, line in enumerate(DWARF.splitlines(), 1))
    + "```",
    "quoted": "".join(f"> {line}\n" for line in DWARF.splitlines()),
    "bullets of inline code": "".join(f"- `{line.strip()}`\n" for line in DWARF.splitlines()),
    "typography": DWARF.replace(" ", "\u00a0").replace("-94", "\u221294"),
    "byte order mark": "\ufeff" + DWARF,
    "label on its own line": "```\n" + DWARF.replace("loop    add", "loop:\n        add") + "```",
    "blank lines": DWARF.replace("\n", "\n\n"),
    "fence twice opened": f"```\n```redcode\n{DWARF}```\n```",
    "one before, prose after in a fence": f"```redcode\n{DWARF}```\n\n```text\nBombs every fourth cell.\nWins often.\n```",
    "after the end": f"```redcode\n{DWARF}\nThis warrior throws bombs.\n```",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_the_program_is_found(answer: str) -> None:
    assert DOMAIN.read(answer).digest == DIGEST


def test_less_and_greater_as_entities() -> None:
    found = DOMAIN.read("```\nspl #0, &lt;-20\nmov.i 1, &gt;-3\njmp -1, }4\n```")
    assert found.digest == DOMAIN.parse("spl #0, <-20\nmov.i 1, >-3\njmp -1, }4\n").digest


def test_an_ampersand_of_redcode_is_left_alone() -> None:
    source = "n for 2\nx&n jmp x&n, n\nrof\n jmp x02, 0 ;&lt\n"
    assert extract_program(f"```\n{source}```") == source


@pytest.mark.parametrize(
    "answer", ["", "   \n", "```\n```", "<think>", "</think>", "I cannot help with that.", "\x00"]
)
def test_no_program_is_no_program(answer: str) -> None:
    assert extract_program(answer, DOMAIN.looks_like_code) == ""


@given(st.text(max_size=400), st.text("`~<>&;#\n\r thinkmov0,1/", max_size=400))
def test_any_text_gives_texts(one: str, other: str) -> None:
    for text in (one, other, one + other):
        found = extract_programs(text, DOMAIN.looks_like_code)
        assert all(program.strip() and program.endswith("\n") for program in found)
        assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 500_000,
        "<think>" * 300_000,
        "mov 0, 1\n" * 300_000,
        "&lt;" * 500_000,
        "`" * 2_000_000,
        "a " * 10**6,
        "a\n" * 10**6,
        "> " * 10**6,
    ],
)
@pytest.mark.timeout(60)  # anything worse than linear takes hours
def test_long_answers_take_bounded_time(text: str) -> None:
    found = extract_programs(text, DOMAIN.looks_like_code)
    assert sum(map(len, found)) <= 70 * ANSWER_SIZE


@pytest.mark.parametrize(
    "line",
    ["mov 0, 1", "loop: add.ab #4, bomb", "  JMP loop", "step equ 3055", "org start", "end", "END start", "; words of any kind here.",
     "x y spl 1", "start", "for 3", "rof", "dat", "seq *ptr, @ptr ; compare the two cells", "mov.i 1,>2", "d equ ((CORESIZE+1)/3)"],
)  # fmt: skip
def test_lines_of_code(line: str) -> None:
    assert DOMAIN.looks_like_code(line)


@pytest.mark.parametrize(
    "line",
    ["", "Here is the program:", "End of the program.", "For more information, see below.", "add 3 to the pointer", "Mov copies the cell.",
     "The jmp goes back.", "**Strategy**", "1. Bomb", "Add speed!", "---", "I hope that helps."],
)  # fmt: skip
def test_lines_of_prose(line: str) -> None:
    assert not DOMAIN.looks_like_code(line)
