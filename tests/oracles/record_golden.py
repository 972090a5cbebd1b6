"""Records tests/corewar/golden.json from pMARS: `python -m tests.oracles.record_golden`."""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import asdict
from pathlib import Path

from shoal.corewar import Settings, Warrior
from tests.corewar.generator import random_warrior
from tests.oracles.test_pmars_battles import SHAPES, scores_of_pmars

GOLDEN = Path(__file__).parents[1] / "corewar" / "golden.json"


def text_of(warrior: Warrior) -> str:
    """The form that test_golden.py reads."""
    lines = [
        f"{i.opcode.name} {i.modifier.name} {int(i.a_mode)} {i.a} {int(i.b_mode)} {i.b}" for i in warrior.code
    ]
    return ";".join([str(warrior.start), *lines])


def main() -> None:
    rng = random.Random(94)
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for count, core_size, processes, length, distance, cycles in SHAPES * 3:
            if count > 12:
                continue
            settings = Settings(core_size, cycles, processes, length, distance)
            pspace = rng.random() < 0.3
            warriors = [
                random_warrior(rng, core_size, most=min(12, length), pspace=pspace) for _ in range(count)
            ]
            warriors = [Warrior(w.code, w.start, None, core_size=core_size) for w in warriors]
            position = rng.randint(distance, core_size - distance)
            survived = scores_of_pmars(warriors, settings, 20, Path(folder), ["-F", str(position)])
            chosen = {
                name: value for name, value in asdict(settings).items() if value != getattr(Settings(), name)
            }
            cases.append(
                {
                    "settings": chosen,
                    "position": position,
                    "rounds": 20,
                    "warriors": [text_of(warrior) for warrior in warriors],
                    "survived": survived,
                }
            )
    GOLDEN.write_text(json.dumps(cases, indent=1) + "\n")
    print(f"{len(cases)} series recorded in {GOLDEN.name}")


if __name__ == "__main__":
    main()
