"""A comparison beside the DEI paper: whose number stands in which cell, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from shoal.evolve.settings import EvolveSettings
from shoal.lab.compare import FAMILIES, findings, plan_comparison
from shoal.lab.experiment import Experiment
from shoal.lab.published import DEI_CHANGES, DEI_FINAL, DEI_NODES
from shoal.lab.search_tables import (
    last,
    made_by_itself,
    novelty_of_all_rounds,
    paper_model,
    peak,
    peak_points,
    peak_with_ties,
)
from shoal.runs.papers import BesidePaper, PaperCell, PaperTable, Published, Spread
from shoal.runs.results import Results
from shoal.runs.search import Contest, HeldOutSet, NodeRound, SearchNodeSummary, SearchSummary
from tests.lab.summaries import comparison, summary

FOUR = ("openai:gpt-5.4-mini", "anthropic:claude-sonnet-4-6", "openai:gpt-5.2", "anthropic:claude-haiku-4-5")
HELD_OUT = HeldOutSet("people", "0123456789abcdef", ["a", "b", "c", "d"], 9, 40)


def fought(wins: int, ties: int) -> Contest:
    losses = 4 - wins - ties
    return Contest("people", 4, wins, ties, losses, 100 * (3 * wins + ties) / 12)


def node(model: str, wins: tuple[int, ...] = (1, 3, 2), novelty: float | None = 0.5) -> SearchNodeSummary:
    """A node of three rounds. In the second `novelty` arrived, in the third nothing did."""
    rounds = [
        NodeRound(number, int(number == 1), novelty if number == 1 else None, f"{won}", model, fought(won, 1))
        for number, won in enumerate(wins)
    ]
    plain = summary((model,), 0).nodes[0]
    return msgspec.structs.replace(
        plain, model=model, by_round=rounds, novelty=novelty, rounds_heard=int(novelty is not None)
    )


def run_of(models: tuple[str, ...], seed: int, held_out: HeldOutSet = HELD_OUT) -> SearchSummary:
    """A run whose nodes win one more with the next seed."""
    wins = (seed, 1 + seed, seed)
    nodes = [node(model, wins, (seed + 1) / 4) for model in models]
    return msgspec.structs.replace(summary(models, seed), nodes=nodes, held_out_set=held_out)


def found(
    folder: Path,
    models: tuple[str, ...] = FOUR,
    families: tuple[str, ...] = FAMILIES,
    held_out: HeldOutSet = HELD_OUT,
) -> Results:
    plan = plan_comparison(EvolveSettings(models=models, calls=40, rounds=3), 2, families)
    with Experiment.begin(folder, plan) as experiment:
        for trial in experiment.trials():
            made = run_of(tuple(trial.settings["models"]), trial.seed, held_out)
            experiment.record(trial, msgspec.json.encode(made), 1.0)
        return findings(experiment)


def beside(results: Results) -> BesidePaper:
    assert results.beside is not None
    return results.beside


def table(results: Results, name: str) -> PaperTable:
    (one,) = [table for table in beside(results).tables if table.name == name]
    return one


def cell(results: Results, name: str, row: str, column: str) -> PaperCell:
    chosen = table(results, name)
    (cells,) = [one.cells for one in chosen.rows if one.title == row]
    (place,) = [place for place, one in enumerate(chosen.columns) if one.title == column]
    return cells[place]


def test_numbers_of_a_node_by_hand() -> None:
    one = node("m")
    assert (peak(one), last(one), peak_with_ties(one)) == (0.75, 0.5, 1.0)
    assert peak_points(one) == pytest.approx(100 * 10 / 12)
    assert novelty_of_all_rounds(one) == 0.25, "the third round, without an arrival, counts as 0"
    assert made_by_itself(one) == 100.0
    others = [msgspec.structs.replace(round_, maker="other") for round_ in one.by_round[:1]]
    assert made_by_itself(msgspec.structs.replace(one, by_round=[*others, *one.by_round[1:]])) == (
        pytest.approx(200 / 3)
    )
    old = summary(("m",), 0).nodes[0]
    assert [of(old) for of in (peak, last, peak_points, novelty_of_all_rounds, made_by_itself)] == [None] * 5


def test_the_papers_models_stand_in_one_row_with_ours(tmp_path: Path) -> None:
    results = found(tmp_path / "e")
    assert [row.title for row in table(results, "models").rows] == [*FOUR, "all models; the paper's range"]
    sonnet = cell(results, "models", "anthropic:claude-sonnet-4-6", "Solo generality")
    # Of the seeds 0 and 1 the peaks are 1/4 and 2/4.
    assert sonnet.ours == Spread(0.375, pytest.approx(0.25 / 2**0.5), 2)
    assert sonnet.paper == Published(0.775, 0.035, how="second-hand")
    missing = cell(results, "models", "openai:gpt-5.4-mini", "Solo generality")
    assert (missing.paper, missing.note) == (None, "not found; below Homo")
    assert cell(results, "models", "openai:gpt-5.2", "Diverse η").ours == Spread(
        0.375, pytest.approx(0.25 / 2**0.5), 2
    )
    homo = cell(results, "models", "all models; the paper's range", "Homo η").paper
    assert homo is not None
    assert (homo.value, homo.highest) == (0.09, 0.35)


def test_other_models_never_share_a_row_with_the_papers(tmp_path: Path) -> None:
    results = found(tmp_path / "e", ("builtin:bomber", "builtin:scanner"))
    rows = table(results, "models").rows
    ours = [row for row in rows if not row.of_paper]
    assert [row.title for row in ours] == [
        "builtin:bomber",
        "builtin:scanner",
        "all models; the paper's range",
    ]
    assert all(one.paper is None and not one.note for row in ours[:2] for one in row.cells)
    assert [row.title for row in rows if row.of_paper] == list(DEI_NODES)
    assert all(one.ours is None for row in rows if row.of_paper for one in row.cells)
    assert any(line.startswith('models = ["builtin:bomber"') for line in beside(results).departures)
    assert any(line.startswith("calls = 40 ") for line in beside(results).departures)
    assert "solo arms have 13.3333 calls a round (published: 250)" in beside(results).departures


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("openai:gpt-5.4-mini", "GPT-5.4-mini"),
        ("openai:gpt-5.2", "GPT-5.2"),
        ("openai:gpt-5.2-mini", None),
        ("openai:gpt-5", None),
        ("anthropic:claude-sonnet-4-6-20260217", "Claude Sonnet 4.6"),
        ("anthropic:claude-haiku-4-5?temperature=1", "Claude Haiku 4.5"),
        ("http://localhost:8000/v1#anthropic/claude-haiku-4.5", "Claude Haiku 4.5"),
        ("builtin:bomber", None),
    ],
)
def test_the_papers_models_are_known_by_their_names(spec: str, name: str | None) -> None:
    assert paper_model(spec) == name


def test_the_last_round_beside_table_3(tmp_path: Path) -> None:
    results = found(tmp_path / "e", ("builtin:bomber", "builtin:scanner"))
    solo = cell(results, "final", "Solo: mean of 2 arms", "raw QD-score")
    values = [
        sum(summary((model,), seed).qd_score for model in ("builtin:bomber", "builtin:scanner")) / 2
        for seed in (0, 1)
    ]
    assert solo.ours is not None
    assert solo.ours.mean == pytest.approx(sum(values) / 2)
    assert solo.ours.deviation == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    assert solo.paper is not None
    assert solo.paper.value == 20.46
    assert cell(results, "final", "Diverse, merged", "common QD-score").paper is None
    assert cell(results, "final", "heterogeneous, no sharing", "raw coverage").paper is None
    change = cell(results, "changes", "Diverse against Homo", "raw QD-score")
    assert change.paper is not None
    assert change.paper.value == 54


def test_conditions_that_were_not_run_stand_with_the_papers_numbers_alone(tmp_path: Path) -> None:
    results = found(tmp_path / "e", families=("heterogeneous",))
    rows = table(results, "final").rows
    assert [(row.title, row.of_paper) for row in rows] == [
        ("Diverse, merged", False),
        ("Solo", True),
        ("Homo", True),
    ]
    assert "changes" not in [one.name for one in beside(results).tables]
    assert not [one for one in results.curves if one.chart == "champions-controls"], "there is no control"


def test_without_held_out_programs_the_columns_say_starters(tmp_path: Path) -> None:
    starters = msgspec.structs.replace(HELD_OUT, name="the starter set", is_starters=True)
    results = found(tmp_path / "e", held_out=starters)
    titles = [column.title for column in table(results, "models").columns]
    assert titles[:2] == ["Solo generality (starters)", "Homo generality (starters)"]
    assert any("no test on unseen programs" in line for line in table(results, "models").notes)
    assert any("champions met the 4 starters" in line for line in beside(results).departures)
    charts = [chart for chart in results.charts if chart.name.startswith("champions")]
    assert {chart.y_title for chart in charts} == {"share of starters defeated"}


def test_the_column_of_the_best_program_says_starters_too(tmp_path: Path) -> None:
    plan = plan_comparison(EvolveSettings(models=FOUR[:2], calls=40, rounds=2), 1, ("solo",))
    with Experiment.begin(tmp_path / "e", plan) as experiment:
        for trial in experiment.trials():
            one = summary(tuple(trial.settings["models"]), trial.seed)
            assert one.held_out is not None
            met = msgspec.structs.replace(one.held_out, name="the starter set")
            made = msgspec.structs.replace(one, held_out=met)
            experiment.record(trial, msgspec.json.encode(made), 1.0)
        results = findings(experiment)
    assert "generality (starters)" in [metric.title for metric in results.metrics]


def test_runs_of_an_earlier_release_have_the_tables_that_they_can_have(tmp_path: Path) -> None:
    results = findings(comparison(tmp_path / "e"))
    assert beside(results).held_out is None
    names = [one.name for one in beside(results).tables]
    assert names == ["final", "changes", "models", "nodes"]
    assert any("finished by an earlier release" in line for line in table(results, "models").notes)
    assert not [chart for chart in results.charts if chart.beside_paper]


def test_rounds_have_columns_and_curves(tmp_path: Path) -> None:
    results = found(tmp_path / "e", ("builtin:bomber", "builtin:scanner"))
    by_round = table(results, "generality-rounds")
    assert [column.title for column in by_round.columns] == ["round 1", "round 2", "round 3"]
    assert by_round.folded
    novelty = table(results, "novelty-rounds")
    assert [column.title for column in novelty.columns] == ["round 2", "round 3"]
    titles = [row.title for row in novelty.rows]
    assert "heterogeneous, node 2 (builtin:scanner)" in titles
    assert not [title for title in titles if "no sharing" in title or title.startswith("solo")]
    drawn = {(one.chart, one.title): one for one in results.curves}
    line = drawn["champions-baselines", "solo"]
    assert (line.x, line.value) == ([1.0, 2.0, 3.0], [0.125, 0.375, 0.125])
    assert drawn["arrivals", "heterogeneous"].x == [2.0], "nothing arrived before the third round"
    assert ("arrivals", "solo") not in drawn
    assert drawn["champions-0", "homogeneous"].value == [0.125, 0.375, 0.125]


def test_many_rounds_are_thinned_evenly(tmp_path: Path) -> None:
    plan = plan_comparison(EvolveSettings(models=FOUR[:2], calls=200, rounds=100), 1, ("solo",))
    with Experiment.begin(tmp_path / "e", plan) as experiment:
        for trial in experiment.trials():
            models = tuple(trial.settings["models"])
            nodes = [node(model, (1,) * 100) for model in models]
            made = msgspec.structs.replace(run_of(models, 0), nodes=nodes)
            experiment.record(trial, msgspec.json.encode(made), 1.0)
        results = findings(experiment)
    titles = [column.title for column in table(results, "generality-rounds").columns]
    assert len(titles) == 24
    assert (titles[0], titles[-1]) == ("round 1", "round 100")
    assert any("left out" in line for line in table(results, "generality-rounds").notes)


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    found(tmp_path / "e")
    one, other = (findings(Experiment.look(tmp_path / "e")) for _ in range(2))
    assert msgspec.json.encode(one) == msgspec.json.encode(other)


def test_published_numbers_agree_with_each_other() -> None:
    """What is marked as computed follows from what is printed, and so do the stated differences."""
    for one in DEI_FINAL.values():
        per_cell = one["qd_score"].value / (one["coverage"].value / 100 * 36)
        assert per_cell == pytest.approx(one["per_cell"].value, abs=0.006)
        assert one["per_cell"].how == "computed"
    for (ours, other), change in DEI_CHANGES.items():
        mine, theirs = DEI_FINAL[ours], DEI_FINAL[other]
        gain = 100 * (mine["qd_score"].value / theirs["qd_score"].value - 1)
        assert gain == pytest.approx(change["qd_score"].value, abs=0.6)
        points = mine["coverage"].value - theirs["coverage"].value
        assert points == pytest.approx(change["coverage"].value, abs=0.05)
