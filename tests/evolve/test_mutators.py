"""The builtin mutators: programs every time, the same from the same seed, and different from each other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st

from shoal.corewar import (
    Instruction,
    Mode,
    Modifier,
    Opcode,
    Settings,
    Warrior,
    assemble,
    disassemble,
    hill,
    starter_names,
    starter_source,
)
from shoal.errors import ConfigError
from shoal.evolve import Archive, elite_of, open_domain
from shoal.evolve.mutators import CHANGES, STYLES, Program, builtin_mutators, relinked
from shoal.evolve.mutators.styles import imp_step, step

MUTATORS = builtin_mutators()
NAMES = sorted(MUTATORS)


def test_there_are_styles_enough() -> None:
    assert {"bomber", "replicator", "scanner", "imp", "clear", "vampire", "quickscan", "random"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_text_assembles_and_every_mutation_differs(name: str) -> None:
    rng = random.Random(7)
    same = 0
    for _ in range(30):
        source = MUTATORS[name]("new", None, rng)
        digest = assemble(source).digest
        for _ in range(4):
            source = MUTATORS[name]("mutate", source, rng)
            changed = assemble(source).digest
            same += changed == digest
            digest = changed
    assert same == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rules", ["nano", "tiny", "94x", "lp", "94nop"])
def test_other_hills_have_programs_too(name: str, rules: str) -> None:
    mutator, rng = builtin_mutators(hill(rules))[name], random.Random(3)
    for _ in range(6):
        source = mutator("new", None, rng)
        for _ in range(4):
            assert 1 <= len(assemble(source, hill(rules))) <= hill(rules).length
            source = mutator("mutate", source, rng)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_texts(name: str) -> None:
    def texts() -> list[str]:
        rng = random.Random(5)
        first = MUTATORS[name]("new", None, rng)
        return [first, *(MUTATORS[name]("mutate", first, rng) for _ in range(5))]

    assert texts() == texts()


def test_a_parent_that_is_no_program_gives_a_new_one() -> None:
    for parent in (None, "", "rubbish (", "; only a comment"):
        assert assemble(MUTATORS["bomber"]("mutate", parent, random.Random(1))).name.startswith("bomber")


def test_any_program_can_be_a_parent() -> None:
    rng = random.Random(1)
    for starter in starter_names():
        for name in NAMES:
            assemble(MUTATORS[name]("mutate", starter_source(starter), rng))


def test_the_older_standard_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="94"):
        builtin_mutators(hill("88"))


instructions = st.builds(
    Instruction,
    st.sampled_from(Opcode),
    st.sampled_from(Modifier),
    st.sampled_from(Mode),
    st.integers(0, 79),
    st.sampled_from(Mode),
    st.integers(0, 79),
)


@given(
    st.lists(instructions, min_size=1, max_size=8),
    st.sampled_from(sorted(CHANGES)),
    st.sampled_from(STYLES),
    st.randoms(use_true_random=False),
)
@settings(max_examples=150)
def test_any_change_leaves_a_program_within_its_limits(
    code: list[Instruction], kind: str, style: object, rng: random.Random
) -> None:
    from dataclasses import replace

    rules = Settings(core_size=80, length=8, distance=8)
    changed = replace(style, taste={kind: 1})  # type: ignore[type-var]
    program = Program(list(code), rng.randrange(len(code)), changed, rules, rng)
    program.edit()
    assert 1 <= len(program.code) <= 8
    assert 0 <= program.start < len(program.code)
    warrior = Warrior(tuple(program.code), program.start, core_size=80, name="x", author="y")
    assert assemble(disassemble(warrior), rules) == warrior


def test_inserting_keeps_addresses_right() -> None:
    """loop: add, mov @, jmp loop with an instruction put in front of the jump still loops."""
    code = list(assemble("loop add.ab #4, bomb\nmov.i bomb, @bomb\njmp loop\nbomb dat 0, 0").code)
    moved = relinked(code, lambda old: old + (old >= 2), Settings())
    moved.insert(2, code[1])
    assert [(str(i.opcode.name), i.a, i.b) for i in moved] == [
        ("ADD", 4, 4),
        ("MOV", 3, 3),
        ("MOV", 2, 2),
        ("JMP", 7997, 0),
        ("DAT", 0, 0),
    ]


def test_steps() -> None:
    import math

    rng = random.Random(1)
    for spacing in (1, 4, 5, 8, 10):
        assert all(math.gcd(step(rng, Settings(), spacing), 8000) == spacing for _ in range(50))
    assert imp_step(rng, Settings(), 3) == 2667
    assert imp_step(rng, Settings(), 7) * 7 % 8000 == 1
    assert imp_step(rng, Settings(core_size=81, length=9, distance=9), 3) == 1


def test_styles_fill_different_cells() -> None:
    """Different priors in miniature: no two of these styles fill the same cells with programs from scratch."""
    domain = open_domain("corewar")
    opponents = [domain.parse(domain.starters()[name]) for name in ("imp", "dwarf", "paper")]
    evaluator = domain.evaluator(opponents, seed=1, rounds=2)
    cells = {}
    for name in NAMES:
        rng = random.Random(1)
        some = [domain.parse(MUTATORS[name]("new", None, rng)) for _ in range(25)]
        found = domain.evaluate(some, opponents, seed=1, rounds=2)
        archive = Archive(domain.axes, evaluator, [elite_of(c, e) for c, e in zip(some, found, strict=True)])
        cells[name] = frozenset(cell for cell, _ in archive.items())
    assert len(set(cells.values())) == len(NAMES)
    assert len(frozenset().union(*cells.values())) > max(map(len, cells.values()))
