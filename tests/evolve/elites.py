"""Elites for the tests. Under one evaluator an evaluation is a function of the program, as in life."""

from __future__ import annotations

import hashlib
import random

from hypothesis import strategies as st

from shoal.evolve import Archive, Axis, Elite, Evaluation, Origin

AXES = (Axis("width", (1, 3)), Axis("depth", (0.5, 1, 2)))


def evaluation(program: int, evaluator: str = "now") -> Evaluation:
    """Few different fitness values and cells, so that ties and collisions are common."""
    rng = random.Random(f"{program}/{evaluator}")
    measures = {"width": float(rng.randrange(4)), "depth": rng.choice((0.0, 0.5, 1.5, 9.0))}
    return Evaluation(evaluator, "them", 4, rng.choice((0.0, 0.5, 1.0, 2.5)), 0.25, measures)


def elite(program: int, model: str = "m", evaluator: str = "now") -> Elite:
    digest = hashlib.sha256(str(program).encode()).hexdigest()
    return Elite(digest, f"program {program}", (evaluation(program, evaluator),), Origin(model, "n", 1, None))


elites = st.builds(elite, st.integers(0, 30), st.sampled_from(["m", "other"]))
batches = st.lists(elites, max_size=25)


def archive(some: list[Elite]) -> Archive:
    return Archive(AXES, "now", some)
