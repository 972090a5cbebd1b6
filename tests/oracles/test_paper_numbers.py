"""The numbers of the papers' tables, worked out a second time: from the journals as lines of JSON, with nothing of
the searcher, the archive, the metrics or the summaries. Battles are fought by the reference simulator."""

from __future__ import annotations

import json
import statistics
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shoal.corewar import Settings, assemble, fight
from shoal.runs.papers import PaperTable
from shoal.runs.results import Results
from tests.corewar import reference

RULES = {"core_size": 800, "cycles": 120, "processes": 100, "length": 20, "distance": 20}
EDGES = {"spawned": (1, 10, 100, 1000, 10_000), "coverage": (10, 100, 500, 1000, 4000)}
SEED, ROUNDS = 20_260_527, 40
HELD_OUT = {
    "bomber": "add #5, 3\nmov 2, @2\njmp -2\ndat 0, 0\n",
    "imp": "mov 0, 1\n",
    "splitter": "spl 0\nmov 2, <-3\njmp -1\ndat 0, -9\n",
}


# The searches.


def lines(folder: Path, node: str) -> list[dict[str, Any]]:
    text = (folder / "nodes" / node / "journal.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


class Told:
    """One node's journal by round: fitness by cell, cells of what arrived, the champion's source."""

    def __init__(self, folder: Path, node: str) -> None:
        self.cells: dict[int, dict[tuple[int, ...], float]] = defaultdict(dict)
        self.arrived: dict[int, list[tuple[int, ...]]] = {}
        self.champions: dict[int, str] = {}
        asked = {}
        for line in lines(folder, node):
            payload = line["payload"]
            if line["kind"] == "asked":
                asked[payload["turn"]] = payload["request"]
            if line["kind"] == "answered":
                self._take(asked[payload["turn"]], payload["answer"])

    def _take(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        number, found = request["round"], answer.get("evaluations") or [answer.get("evaluation")]
        if request["type"] == "close":
            tested = zip(found, request["finalists"], strict=True)
            best = max(tested, key=lambda pair: (pair[0]["mean"], pair[1]["digest"]))
            self.champions[number] = best[1]["source"]
            return
        places = [self._place(number, one) for one in found if one is not None]
        if request["type"] == "open":
            self.arrived[number] = places[len(request["entrants"]) :]

    def _place(self, number: int, evaluation: dict[str, Any]) -> tuple[int, ...]:
        cell = tuple(bisect_right(edges, evaluation["measures"][name]) for name, edges in EDGES.items())
        self.cells[number][cell] = max(evaluation["mean"], self.cells[number].get(cell, 0.0))
        return cell

    def novelty(self, number: int) -> float | None:
        """Arrived champions whose cell was empty the round before, as a share."""
        arrived, before = self.arrived[number], self.cells[number - 1]
        return sum(cell not in before for cell in arrived) / len(arrived) if arrived and number else None


@cache
def contest(source: str) -> tuple[int, int, int]:
    """Programs defeated, tied with and lost to, over rounds of the reference simulator."""
    settings = Settings(**RULES, stop="play-on")
    outcomes = []
    for other in HELD_OUT.values():
        warriors = [assemble(source, settings), assemble(other, settings)]
        places = fight(warriors, settings, ROUNDS, seed=SEED).positions.tolist()
        own = theirs = 0.0
        for one in reference.play(warriors, places, settings):
            lived = [settings.cycles if fighter.queue else fighter.executed - 1 for fighter in one.fighters]
            for cycle in range(settings.cycles):
                alive = [cycle < end for end in lived]
                own += alive[0] / max(1, sum(alive))
                theirs += alive[1] / max(1, sum(alive))
        outcomes.append(0 if abs(own - theirs) < 1e-6 else 1 if own > theirs else -1)
    return outcomes.count(1), outcomes.count(0), outcomes.count(-1)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    from shoal.evolve.settings import EvolveSettings
    from shoal.lab.compare import findings, plan_comparison

    here = tmp_path_factory.mktemp("dei")
    (here / "held").mkdir()
    for name, text in HELD_OUT.items():
        (here / "held" / f"{name}.red").write_text(text)
    settings = EvolveSettings(
        models=("builtin:bomber", "builtin:replicator"), calls=48, rounds=3, repeats=3, retest_repeats=3,
        options=RULES, held_out=str(here / "held"), held_out_size="all", seed=2,
    )  # fmt: skip
    plan = plan_comparison(settings, 2, ("solo", "homogeneous", "heterogeneous"))
    return here / "e", done(here / "e", plan, findings)


def done(folder: Path, plan: Any, findings: Any) -> Results:
    from shoal.lab.experiment import Experiment
    from shoal.lab.running import run_arm
    from shoal.node.drive import Stop

    with Experiment.begin(folder, plan) as experiment:
        for trial in experiment.trials():
            found = run_arm(trial, Stop(), lambda _: None)
            assert found is not None
            experiment.record(trial, found, 1.0)
        results: Results = findings(experiment)
    return results


def table(results: Results, name: str) -> dict[str, dict[str, tuple[float, float | None, int]]]:
    """Row → column → mean, deviation, count of ours."""
    assert results.beside is not None
    (found,) = [one for one in results.beside.tables if one.name == name]
    return _plain(found)


def _plain(found: PaperTable) -> dict[str, dict[str, tuple[float, float | None, int]]]:
    return {
        row.title: {
            column.title: (cell.ours.mean, cell.ours.deviation, cell.ours.count)
            for column, cell in zip(found.columns, row.cells, strict=True)
            if cell.ours is not None
        }
        for row in found.rows
    }


def spread(values: list[float]) -> Any:
    mean = sum(values) / len(values)
    deviation = (sum((one - mean) ** 2 for one in values) / (len(values) - 1)) ** 0.5
    return pytest.approx((mean, deviation, len(values)), abs=1e-9)


SEEDS = (2, 3)
ARMS = {
    "solo, builtin:bomber": ["1-bomber"],
    "solo, builtin:replicator": ["1-replicator"],
    "homogeneous, 2 × builtin:bomber": ["1-bomber", "2-bomber"],
    "homogeneous, 2 × builtin:replicator": ["1-replicator", "2-replicator"],
    "heterogeneous": ["1-bomber", "2-replicator"],
}
FOLDERS = {
    "solo, builtin:bomber": "solo-builtin-bomber",
    "solo, builtin:replicator": "solo-builtin-replicator",
    "homogeneous, 2 × builtin:bomber": "homogeneous-builtin-bomber",
    "homogeneous, 2 × builtin:replicator": "homogeneous-builtin-replicator",
    "heterogeneous": "heterogeneous",
}


def nodes(folder: Path, arm: str, seed: int) -> list[Told]:
    return [Told(folder / "runs" / FOLDERS[arm] / str(seed), name) for name in ARMS[arm]]


def peak(node: Told) -> float:
    return max(contest(source)[0] for source in node.champions.values()) / len(HELD_OUT)


def heard(node: Told) -> list[float]:
    return [value for number in (1, 2) if (value := node.novelty(number)) is not None]


def test_raw_coverage_and_qd_score_of_the_last_round(compared: tuple[Path, Results]) -> None:
    folder, results = compared
    ours = table(results, "final")
    for title, arms in {
        "Solo: mean of 2 arms": list(ARMS)[:2],
        "Homo, merged: mean of 2 arms": list(ARMS)[2:4],
        "Diverse, merged": list(ARMS)[4:],
    }.items():
        filled, scores = [], []
        for seed in SEEDS:
            merged = []
            for arm in arms:
                best: dict[tuple[int, ...], float] = {}
                for node in nodes(folder, arm, seed):
                    for cell, fitness in node.cells[2].items():
                        best[cell] = max(fitness, best.get(cell, 0.0))
                merged.append(best)
            filled.append(100 * statistics.mean(len(one) / 36 for one in merged))
            scores.append(statistics.mean(sum(one.values()) for one in merged))
        assert ours[title]["raw coverage"] == spread(filled)
        assert ours[title]["raw QD-score"] == spread(scores)


def test_every_champions_contest_by_the_reference_simulator(compared: tuple[Path, Results]) -> None:
    folder, _ = compared
    seen = set()
    for arm in ARMS:
        for seed in SEEDS:
            outcome = json.loads((folder / "outcomes" / FOLDERS[arm] / f"{seed}.json").read_text())["result"]
            assert outcome["held_out_set"]["programs"] == sorted(HELD_OUT)
            for told, node in zip(outcome["nodes"], nodes(folder, arm, seed), strict=True):
                for one in told["by_round"]:
                    found = tuple(one["contest"][key] for key in ("wins", "ties", "losses"))
                    assert found == contest(node.champions[one["round"]])
                    seen.add(found)
    assert len(seen) > 1, "the champions differ, so equal numbers say something"


def test_peaks_and_niche_novelty_by_model(compared: tuple[Path, Results]) -> None:
    folder, results = compared
    ours = table(results, "models")
    for model in ("bomber", "replicator"):
        row = ours[f"builtin:{model}"]
        for column, arm in {
            "Solo generality": f"solo, builtin:{model}",
            "Homo generality": f"homogeneous, 2 × builtin:{model}",
            "Diverse generality": "heterogeneous",
        }.items():
            peaks = [
                statistics.mean(
                    peak(node)
                    for node, name in zip(nodes(folder, arm, seed), ARMS[arm], strict=True)
                    if model in name
                )
                for seed in SEEDS
            ]
            assert row[column] == spread(peaks), (model, column)
    told = table(results, "nodes")
    by_round = table(results, "novelty-rounds")
    some = 0
    for arm in list(ARMS)[2:]:
        for place, name in enumerate(ARMS[arm]):
            model = f" (builtin:{name[2:]})" if arm == "heterogeneous" else ""
            title = f"{arm}, node {place + 1}{model}"
            runs = [nodes(folder, arm, seed)[place] for seed in SEEDS]
            assert told[title]["rounds heard"] == spread([float(len(heard(run))) for run in runs])
            assert told[title]["η, all rounds"] == spread([sum(heard(run)) / 2 for run in runs])
            if all(map(heard, runs)):
                some += 1
                assert told[title]["η"] == spread([statistics.mean(heard(run)) for run in runs])
            for number in (1, 2):
                values = [value for run in runs if (value := run.novelty(number)) is not None]
                if len(values) == 2:
                    assert by_round[title][f"round {number + 1}"] == spread(values)
    assert some > 2
    assert not {"η", "η, all rounds", "rounds heard"} & told["solo, builtin:bomber"].keys()


# The trainings.

STEPS, EXTERNAL = 130, {"2/0": 0, "1/1": 1}
WINDOW = 100


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    from shoal.lab.sweep import SweepSettings, plan_sweep, sweep_findings

    settings = SweepSettings(
        nodes=3, models=("table:small",), steps=STEPS, group=4, evaluate_every=65, held_out=4, seed=5
    )
    folder = tmp_path_factory.mktemp("sapo") / "e"
    return folder, done(folder, plan_sweep(settings, 2, ("2/0", "1/1"), ["mix"]), sweep_findings)


def rewards(folder: Path, mix: str, seed: int, *, foreign: bool) -> list[list[float]]:
    """Node by node and step by step the mean over own completions, and over those of the first informative foreign
    groups if `foreign`."""
    run = folder / "runs" / f"mix-{mix.replace('/', '-')}" / str(seed)
    found = []
    for node in sorted(path.name for path in (run / "nodes").iterdir()):
        own: dict[int, list[float]] = {}
        others: dict[int, list[list[float]]] = defaultdict(list)
        for line in lines(run, node):
            payload = line["payload"]
            if line["kind"] == "answered" and payload["answer"]["type"] == "sampled":
                groups = payload["answer"]["groups"]
                own[payload["turn"]] = [float(one == 1.0) for group in groups for one in group["scores"]]
            if line["kind"] == "verdict" and len(set(payload["evidence"]["rewards"])) > 1:
                others[payload["turn"]].append(payload["evidence"]["rewards"])
        used = EXTERNAL[mix] if foreign else 0
        found.append(
            [
                statistics.mean([*mine, *(one for group in others[turn][:used] for one in group)])
                for turn, mine in sorted(own.items())
            ]
        )
    return found


def moving(values: list[float]) -> list[float]:
    return [sum(values[max(0, end - WINDOW) : end]) / min(end, WINDOW) for end in range(1, len(values) + 1)]


@pytest.mark.parametrize(("name", "foreign"), [("totals", True), ("local", False)])
def test_totals_means_and_spikes(swept: tuple[Path, Results], name: str, foreign: bool) -> None:
    folder, results = swept
    ours = table(results, name)
    totals = {}
    for mix in EXTERNAL:
        runs = [rewards(folder, mix, seed, foreign=foreign) for seed in (5, 6)]
        assert all(len(run) == 3 and all(len(node) == STEPS for node in run) for run in runs)
        totals[mix] = [sum(map(sum, run)) for run in runs]
        assert ours[mix]["total"] == spread(totals[mix])
        assert ours[mix]["mean of a node and step"] == spread([one / 3 / STEPS for one in totals[mix]])
        assert ours[mix]["highest of a node and step"] == spread([max(map(max, run)) for run in runs])
    gains = [100 * (one / other - 1) for one, other in zip(totals["1/1"], totals["2/0"], strict=True)]
    assert ours["1/1"]["total against 2/0"] == spread(gains)
    assert "total against 2/0" not in ours["2/0"]


def test_smoothed_rewards_by_step_and_their_bands(swept: tuple[Path, Results]) -> None:
    folder, results = swept
    ours = table(results, "smoothed")
    for mix in EXTERNAL:
        smooth = [[moving(node) for node in rewards(folder, mix, seed, foreign=True)] for seed in (5, 6)]
        for published, step in ((0, 1), (250, 17), (1000, 66), (1850, 121)):
            values = [statistics.mean(node[step - 1] for node in run) for run in smooth]
            assert ours[f"step {step}; the paper's {published:,}"][mix] == spread(values)
        (drawn,) = [one for one in results.curves if (one.chart, one.title) == ("smoothed-batch", mix)]
        assert drawn.x[-1] == STEPS
        for x, mean, low, high in zip(drawn.x, drawn.value, drawn.low, drawn.high, strict=True):
            at = [node[int(x) - 1] for run in smooth for node in run]
            assert (mean, low, high) == pytest.approx((statistics.mean(at), min(at), max(at)))
