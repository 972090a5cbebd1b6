"""A judge's board as tables for other programs."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.judge.summary import summarise
from shoal.runs.judging import rounds_of
from shoal.runs.records import reads_run
from shoal.runs.tables import Rows


@reads_run
def export_judge(run: Path, out: Path) -> dict[str, Rows]:
    """The tables `board`, `rounds` (one row per node and round) and `comparisons`; no files of their own."""
    summary = summarise(run)
    out.mkdir(parents=True, exist_ok=True)
    board = [
        {
            "author": one.author,
            "run": one.run,
            "model": one.model,
            "alone": one.alone,
            "rounds": one.rounds,
            "asked": one.asked,
            "answered": one.answered,
            "right": one.right,
            "pass_at_1": one.pass_at_1,
            "reward": one.reward,
            "left": one.left,
        }
        for one in summary.entrants
    ]
    tests = [
        {"model": one.model, **msgspec.structs.asdict(test)}
        for one in summary.comparisons
        for test in one.tests
    ]
    return {"board": board, "rounds": rounds_of(summary.entrants), "comparisons": tests}
