"""Summaries as a search would give them, drawn from a seed, for tests of what is made of them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.evolve.settings import EvolveSettings
from shoal.lab.compare import FAMILIES, plan_comparison
from shoal.lab.experiment import Experiment
from shoal.runs import derive
from shoal.runs.search import (
    Axis,
    Contest,
    ModelSummary,
    Placed,
    SearchNodeSummary,
    SearchPoint,
    SearchSummary,
)

MODELS = ("builtin:bomber", "builtin:scanner")
AXES = [Axis("spawned", (1, 10)), Axis("coverage", (10, 100))]


def summary(
    models: tuple[str, ...], seed: int, bonus: float = 0.0, source: str = "mov 0, 1\n"
) -> SearchSummary:
    """A finished run of 40 calls whose common numbers are raised by `bonus`."""
    rng = derive(seed, *models, f"{bonus}")
    cells = [
        Placed((i, j), rng.random() + bonus, f"{i}{j}", rng.choice(models), "1-node")
        for i in range(3)
        for j in range(3)
        if rng.random() < 0.6
    ]
    score = sum(cell.fitness for cell in cells)
    nodes = [
        SearchNodeSummary(
            f"{n}-node", model, 40 // len(models), 0, 20, 15, 1, 0, 5, 2, 4, 2, [None, 0.5], "finished"
        )
        for n, model in enumerate(models, start=1)
    ]
    return SearchSummary(
        finished=True,
        coverage=len(cells) / 9,
        cells=len(cells),
        capacity=9,
        qd_score=2 * score,
        qd_score_common=score,
        coverage_common=len(cells) / 9,
        best=2.0 + bonus,
        best_common=max((cell.fitness for cell in cells), default=0.0),
        best_source=source,
        best_model=models[0],
        calls=40,
        tokens=0,
        microdollars=None,
        simulations=800,
        shared_bytes=100 * (len(models) - 1),
        nodes=nodes,
        models=[ModelSummary(model, 20, 0, 0.75, 1, 1, 1) for model in dict.fromkeys(models)],
        axes=AXES,
        cells_raw=cells,
        cells_common=cells,
        curve=[SearchPoint(calls, calls / 90, calls / 10 + bonus) for calls in range(1, 41, 3)],
        held_out=Contest("corpus", 20, 10, 2, 8, 53.3 + bonus, []),
    )


def comparison(folder: Path, seeds: int = 5, *, bonus: float = 5.0, left_out: int = 0) -> Experiment:
    """A comparison whose heterogeneous arm is better by about `bonus`; the last `left_out` runs are missing."""
    plan = plan_comparison(EvolveSettings(models=MODELS, calls=40, rounds=2), seeds, FAMILIES)
    experiment = Experiment.begin(folder, plan)
    trials = experiment.trials()
    for trial in trials[: len(trials) - left_out]:
        extra = bonus if trial.arm == "heterogeneous" else 0.0
        made = summary(tuple(trial.settings["models"]), trial.seed, extra)
        experiment.record(trial, msgspec.json.encode(made), 1.5)
    return experiment
