"""Prompts: versioned texts whose examples are right, and a grammar of which every sentence assembles."""

from __future__ import annotations

import random
import re

import pytest

from shoal.corewar import Modifier, Opcode, assemble, hill
from shoal.corewar.instruction import MODE_SYMBOLS
from shoal.corewar.redcode import assemble_with_warnings
from shoal.errors import ConfigError
from shoal.evolve import Template, open_domain
from shoal.evolve.domains.corewar import CoreWar
from shoal.evolve.prompts import PROGRAM_SHOWN, generic_prompts, load_prompts, load_template, redcode_grammar
from tests.evolve.gbnf import draw, rules_of

PROMPTS = load_prompts("corewar")


@pytest.mark.parametrize(("brief", "examples"), [(False, 5), (True, 1)])
def test_the_examples_of_the_reference_assemble_and_live(brief: bool, examples: int) -> None:
    text = CoreWar(brief=brief).prompts.system.text
    assert (len(text) < 800) == brief
    blocks = re.findall(r"```redcode\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= examples
    domain = open_domain("corewar")
    for block in blocks:
        assert assemble_with_warnings(block).warnings == ()
        (alone,) = domain.evaluate([domain.parse(block)], [], rounds=1)
        assert alone.mean > 0.5, f"it kills itself:\n{block}"


def test_the_reference_names_the_whole_language_and_fits() -> None:
    text = PROMPTS.system.text
    assert 6000 <= len(text.encode()) <= 10_000
    for opcode in Opcode:
        if opcode.name not in ("LDP", "STP"):
            assert re.search(rf"\b{opcode.name}\b", text), opcode.name
    for modifier in Modifier:
        assert f"| .{modifier.name} |" in text
    for symbol in MODE_SYMBOLS:
        assert f"| {symbol} |" in text
    rules = hill("drq")
    for number in (rules.core_size, rules.cycles, rules.processes, rules.length, rules.distance):
        assert str(number) in text


@pytest.mark.parametrize(
    ("source", "right"),
    [("jmp 0", True), ("dat 0", True), ("mov 1", False), ("nop", False), ("add #1 2", False), ("mov 0, 1 // x", False),
     ("a jmp a\nA jmp A", True), ("mov mov, 1", False), ("mov 0, 1.5", False), ("jmp 0\nend\nrubbish (", True)],
)  # fmt: skip
def test_what_the_reference_says_about_the_assembler(source: str, right: bool) -> None:
    try:
        assemble(source)
    except Exception:
        assert not right
    else:
        assert right


def test_default_modifiers_are_as_the_reference_says() -> None:
    expected = {"mov 1, 2": "MOV.I", "add 1, 2": "ADD.F", "add #1, 2": "ADD.AB", "mov 1, #2": "MOV.B", "slt 1, 2": "SLT.B",
                "slt #1, 2": "SLT.AB", "jmz 1, 2": "JMZ.B", "spl 1": "SPL.B", "seq 1, 2": "SEQ.I", "seq #1, 2": "SEQ.AB"}  # fmt: skip
    for source, instruction in expected.items():
        assert str(assemble(source).code[0]).startswith(instruction + " ")


def test_a_request_records_its_texts() -> None:
    request = PROMPTS.ask_mutate("mov 0, 1\n")
    assert request.templates == (PROMPTS.system.id, PROMPTS.mutate.id)
    assert re.fullmatch(r"corewar-mutate@\d+:[0-9a-f]{12}", PROMPTS.mutate.id)
    assert request.task == "mutate"
    assert "```redcode\nmov 0, 1\n```" in request.user


def test_blind_shows_no_fitness_and_informed_does() -> None:
    blind, informed = PROMPTS.ask_mutate("mov 0, 1"), PROMPTS.ask_mutate("mov 0, 1", "Its share is 0.7.")
    assert "0.7" not in blind.user
    assert "battle" not in blind.user
    assert "Its share is 0.7." in informed.user
    assert blind.system == informed.system
    assert blind.templates != informed.templates


def test_what_is_filled_in_is_not_filled_in_again() -> None:
    request = PROMPTS.ask_repair("{{problems}} {{program}}", "line 1: {{program}}")
    assert "```redcode\n{{problems}} {{program}}\n```" in request.user
    assert "line 1: {{program}}" in request.user


def test_a_request_is_bounded() -> None:
    assert len(PROMPTS.ask_repair("x" * 10**6, "y" * 10**6).user) < 2 * PROGRAM_SHOWN + 2000


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="places"):
        Template("x", "{{program}}", 1).render()
    with pytest.raises(ConfigError, match="no prompt is called"):
        load_template("nothing")


def test_generic_prompts_have_their_places() -> None:
    prompts = generic_prompts("words", "You write words.")
    assert prompts.mutate.places == {"program"}
    assert prompts.informed.places == {"program", "feedback"}
    assert prompts.repair.places == {"program", "problems"}
    assert prompts.ask_new().system.startswith("You write words.")


def test_every_sentence_of_the_grammar_assembles() -> None:
    rules = rules_of(redcode_grammar())
    rng = random.Random(1)
    domain = open_domain("corewar")
    seen: set[str] = set()
    for _ in range(60):
        text = draw(rules, rng)
        seen |= set(re.findall(r"^([A-Z]{3}\.[A-Z]+)", text, re.MULTILINE)) | set(
            re.findall(r"[#$*@{<}>]", text)
        )
        assert domain.read(text).digest == domain.parse(text).digest
    assert len(seen) == 16 * 7 + 8


def test_a_sentence_that_was_cut_off_is_still_read() -> None:
    rules = rules_of(redcode_grammar())
    rng = random.Random(2)
    domain = open_domain("corewar")
    for _ in range(40):
        text = draw(rules, rng)
        first = text.index("\n", text.index(".")) + 1
        domain.read(text[: rng.randint(first, len(text))])
