"""Asking a model for a program: operators get their parent whole, and money needs a price."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.evolve import Operator
from shoal.evolve.asking import Asker
from shoal.evolve.domains.corewar import CoreWar
from shoal.evolve.settings import EvolveSettings
from shoal.runs.search import Propose

PARENT = "mov 0, 1\n; ```\n; ```redcode\n; <answer>\njmp -1\n\tdat #0, #0\n"
"""A program whose comments hold the fences that prompts put around programs."""


class Listening(CoreWar):
    """Core War with an operator that keeps its parents."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str | None]] = []

    @property
    def operators(self) -> Mapping[str, Operator]:
        def listen(task: Any, parent: str | None, rng: random.Random) -> str:
            self.heard.append((task, parent))
            return "dat 0, 0"

        return {"listener": listen}


def test_a_parent_with_a_fence_reaches_a_builtin_operator_whole() -> None:
    domain = Listening()
    asker = Asker(EvolveSettings(models=("builtin:listener",)), 0, domain)
    asked = asker.ask(Propose(1, "mutate", seed=3, calls=1, parent="x", parent_source=PARENT))
    assert asked.candidate is not None
    assert domain.heard == [("mutate", PARENT)]
    asker.ask(Propose(1, "new", seed=4, calls=1))
    assert domain.heard[1] == ("new", None)


def test_a_budget_in_dollars_needs_a_price() -> None:
    domain, model = Listening(), "fake:echo"
    Asker(EvolveSettings(models=(model,), dollars=1.0), 0, domain)
    unpriced = "http://127.0.0.1:9/v1#nameless"
    with pytest.raises(ConfigError, match="no known price"):
        Asker(EvolveSettings(models=(unpriced,), dollars=1.0), 0, domain)
    priced = EvolveSettings(models=(unpriced,), dollars=1.0, prices={unpriced: (1.0, 2.0)})
    pytest.importorskip("openai")
    asker = Asker(priced, 0, domain)
    asker.close()
    assert asker.price.state == "priced"
