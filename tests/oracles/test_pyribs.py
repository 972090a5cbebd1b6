"""Coverage, QD-score, normalised QD-score, best and mean equal pyribs' numbers on the same data."""

from __future__ import annotations

import importlib.util
import os
import random

import pytest

from shoal.evolve import Archive, Axis, Elite, Evaluation
from shoal.evolve.metrics import summarise_archive

AXES = (Axis("spawned", (1, 10, 100, 1000, 10_000)), Axis("coverage", (10, 100, 500, 1000, 4000)))


@pytest.fixture(autouse=True)
def _ribs() -> None:
    if importlib.util.find_spec("ribs") is None:
        reason = "pyribs is not installed: pip install ribs"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.mark.parametrize("offset", [0.0, -2.0])
@pytest.mark.parametrize("adds", [1, 40, 400])
def test_the_same_numbers_as_pyribs(adds: int, offset: float) -> None:
    from ribs.archives import GridArchive

    rng = random.Random(adds)
    # pyribs has even bins only, so it is given the numbers of our bins.
    theirs = GridArchive(solution_dim=1, dims=[6, 6], ranges=[(-0.5, 5.5)] * 2, qd_score_offset=offset)
    ours = Archive(AXES, "now")
    for number in range(adds):
        fitness = rng.choice((rng.uniform(-2, 3), rng.uniform(0, 1)))
        measures = {"spawned": 10 ** rng.uniform(-1, 5), "coverage": 10 ** rng.uniform(0, 3.9)}
        elite = Elite(f"{number:04}", "", (Evaluation("now", "", 1, fitness, 0, measures),))
        cell = ours.cell(elite)
        status = ours.add(elite).status
        added = theirs.add_single([float(number)], fitness, [float(index) for index in cell])
        assert {"rejected": 0, "improved": 1, "new": 2}[status] == int(added["status"])
    found, stats = summarise_archive(ours, offset), theirs.stats
    assert found.filled == stats.num_elites
    assert found.coverage == pytest.approx(float(stats.coverage), abs=1e-12)
    assert found.qd_score == pytest.approx(float(stats.qd_score), rel=1e-5)
    assert found.normalised_qd_score == pytest.approx(float(stats.norm_qd_score), rel=1e-5)
    assert found.best == pytest.approx(float(stats.obj_max), rel=1e-6)
    assert found.mean == pytest.approx(float(stats.obj_mean), rel=1e-5)
    cells = {tuple(int(i) for i in theirs.int_to_grid_index([index])[0]) for index in theirs.data("index")}
    assert cells == {cell for cell, _ in ours.items()}
