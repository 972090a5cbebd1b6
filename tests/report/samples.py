"""Results of an experiment, small and hostile: whatever can come from outside tries to be markup."""

from __future__ import annotations

from shoal.runs.papers import (
    BesidePaper,
    PaperCell,
    PaperColumn,
    PaperRow,
    PaperTable,
    Published,
    Spread,
)
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
from shoal.runs.search import Axis, Contest, HeldOutSet, Placed

HOSTILE = "</pre></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\x00 | `*#"
SCORE = Metric("score", "QD-score", "Sum of fitness.", "", 2, "greater")
CALLS = Metric("calls", "calls", "Calls.", "", 0, "", "effort")


def beside(hostile: str = HOSTILE) -> BesidePaper:
    columns = [PaperColumn(f"rate {hostile}", "%", 1), PaperColumn("change", "", 2, True)]
    ours, paper = Spread(0.5, 0.3, 3), Published(0.7, 0.1, how="second-hand")
    rows = [
        PaperRow(f"solo {hostile}", [PaperCell(ours, paper), PaperCell(ours)]),
        PaperRow(
            "another",
            [PaperCell(Spread(2.0, None, 1), note=f"not found {hostile}"), PaperCell(None)],
            of_paper=True,
        ),
    ]
    tables = [
        PaperTable("final", f"Last round {hostile}", "Table 3", columns, rows, [f"Raw: {hostile}."]),
        PaperTable("nodes", "Each node", "", columns, rows, folded=True),
    ]
    departures = [f"models = {hostile} (published: others)", *(f"k{n} = 1 (published: 2)" for n in range(8))]
    held_out = HeldOutSet(hostile, "0123456789abcdef", [hostile, "imp"], 9, 40)
    return BesidePaper("DEI", departures, tables, held_out)


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
        charts=[
            Chart("score", f"QD-score {hostile}", "calls", "score"),
            Chart(
                "rounds",
                f"By round {hostile}",
                "round",
                "rate",
                beside_paper=True,
                source="Figure 3",
                told=f"Bands {hostile}.",
                digits=3,
            ),
        ],
        curves=[
            Curve(
                "score", "heterogeneous", [1.0, 30.0, 60.0], [0.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.5, 3.0, 4.0]
            ),
            Curve("score", hostile, [1.0, 60.0], [0.0, 1.0], [], []),
            Curve("rounds", hostile, [1.0, 2.0, 3.0], [0.5, 0.25, 0.125], [], []),
            Curve("rounds", "one round", [1.0], [0.4321], [], []),
        ],
        maps=[
            ArchiveMap("mixed", hostile, 0, evaluation, models, axes, cells)
            for evaluation in ("common", "raw")
        ],
        best=Exhibit(hostile, 3, 1.234, f"mov 0, 1 ; {hostile}\n", Contest(hostile, 20, 9, 1, 10, 46.7)),
        failures=[Failure("solo", 2, hostile)],
        missing=1,
        beside=beside(hostile),
        made=Made([Session("2026-01-01T00:00:00Z", 61.5, 2, ["shoal", hostile], {"shoal": "0.1"})], 99.0),
    )
