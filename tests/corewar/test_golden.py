"""Outcomes recorded from pMARS, which are checked wherever the tests run.

`tests/oracles/record_golden.py` wrote them; `tests/oracles` compares with the living program.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.corewar import Instruction, Mode, Modifier, Opcode, Settings, Warrior, fight
from shoal.corewar.mars.placement import pmars_fixed_seed, pmars_positions
from tests.oracles.pmars import CORPUS, needs_corpus

GOLDEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("golden.json").read_text())


def warrior_of(text: str, core_size: int) -> Warrior:
    """`start;op.mod amode a bmode b;…`, as the recorder writes programs."""
    start, *lines = text.split(";")
    code = []
    for line in lines:
        opcode, modifier, a_mode, a, b_mode, b = line.split(" ")
        code.append(
            Instruction(
                Opcode[opcode], Modifier[modifier], Mode(int(a_mode)), int(a), Mode(int(b_mode)), int(b)
            )
        )
    return Warrior(tuple(code), int(start), core_size=core_size)


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_a_recorded_series_ends_as_it_did_in_pmars(number: int) -> None:
    case = GOLDEN[number]
    settings = Settings(**case["settings"])
    warriors = [warrior_of(text, settings.core_size) for text in case["warriors"]]
    seed = pmars_fixed_seed(settings, case["position"])
    result = fight(
        warriors, settings, positions=pmars_positions(settings, len(warriors), case["rounds"], seed)
    )
    assert [list(standing.survived) for standing in result.standings()] == case["survived"]


@needs_corpus
def test_published_fights_end_after_exactly_so_many_instructions() -> None:
    """25 fights of 100 rounds between published warriors: results and executed instructions of pMARS."""
    from shoal.corewar import assemble

    fights = json.loads((CORPUS / "fights" / "fights.json").read_text())
    assert len(fights) == 25
    for one in fights:
        warriors = [assemble((CORPUS / "fights" / name).read_bytes()) for name in one["warriors"]]
        seed = pmars_fixed_seed(Settings(), one["seed"])
        result = fight(warriors, positions=pmars_positions(Settings(), 2, one["rounds"], seed))
        wins, losses, ties = one["wins_losses_ties"]
        standing = result.standings()[0]
        assert (standing.wins, standing.losses, standing.ties) == (wins, losses, ties), one["warriors"]
        assert result.instructions == one["instructions"], one["warriors"]
