"""Results of an experiment, small and hostile: whatever can come from outside tries to be markup."""

from __future__ import annotations

from shoal.runs.results import (
    ArchiveMap,
    ArmResults,
    Chart,
    Curve,
    Difference,
    Estimate,
    Exhibit,
    Failure,
    Group,
    Made,
    Metric,
    Results,
    RunValues,
    Session,
)
from shoal.runs.search import Axis, Contest, Placed

HOSTILE = "</pre></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\x00 | `*#"
SCORE = Metric("score", "QD-score", "Sum of fitness.", "", 2, "greater")
CALLS = Metric("calls", "calls", "Calls.", "", 0, "", "effort")


def results(hostile: str = HOSTILE) -> Results:
    estimates = {"score": Estimate(2.5, 1.0, 4.0, 5), "calls": Estimate(60.0, 60.0, 60.0, 5)}
    runs = [RunValues(seed, {"score": float(seed), "calls": 60.0}) for seed in range(5)]
    axes = [Axis(f"spawned {hostile}", (1.0, 10.0, 10_000.0)), Axis("coverage", (10.0, 100.0))]
    cells = [Placed((0, 0), 0.5, model="builtin:bomber"), Placed((3, 2), 1.5, model=hostile)]
    models = ["builtin:bomber", hostile]
    return Results(
        title=f"4 nodes: {hostile}",
        seeds=[0, 1, 2, 3, 4],
        settings={"calls": 60, "models": [hostile], "options": {"core_size": 8000}, "informed": False},
        metrics=[SCORE, CALLS],
        arms=[
            ArmResults("mixed", "heterogeneous", "heterogeneous", runs, estimates),
            ArmResults("solo", f"solo, {hostile}", "solo", runs[:1], {"score": Estimate(1.0, None, None, 1)}),
            ArmResults("none", "nothing yet", "solo", [], {}),
        ],
        groups=[Group("mean-solo", "mean of the solo arms", estimates)],
        differences=[
            Difference("score", "heterogeneous", hostile, Estimate(1.5, 0.5, 2.5, 5), 0.9, "greater"),
            Difference(
                "score", "heterogeneous", "others", Estimate(-0.001, -1.0, 1.0, 5), 0.5, "no difference"
            ),
        ],
        sentences=[f"heterogeneous against {hostile}: better."],
        charts=[Chart("score", f"QD-score {hostile}", "calls", "score")],
        curves=[
            Curve(
                "score", "heterogeneous", [1.0, 30.0, 60.0], [0.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.5, 3.0, 4.0]
            ),
            Curve("score", hostile, [1.0, 60.0], [0.0, 1.0], [], []),
        ],
        maps=[
            ArchiveMap("mixed", hostile, 0, evaluation, models, axes, cells)
            for evaluation in ("common", "raw")
        ],
        best=Exhibit(hostile, 3, 1.234, f"mov 0, 1 ; {hostile}\n", Contest(hostile, 20, 9, 1, 10, 46.7)),
        failures=[Failure("solo", 2, hostile)],
        missing=1,
        made=Made([Session("2026-01-01T00:00:00Z", 61.5, 2, ["shoal", hostile], {"shoal": "0.1"})], 99.0),
    )
