"""Pages of training runs and sweeps: from a real small run, and with text that tries to be markup."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from shoal.node.running import run_crew
from shoal.report.experiment import experiment_page, markdown
from shoal.report.page import page
from shoal.report.training import training_parts
from shoal.runs.results import Difference, Estimate, Results
from shoal.runs.training import TrainSummary
from shoal.train.crew import TrainCrew
from shoal.train.settings import TrainSettings
from shoal.train.summary import summarise
from tests.report.samples import HOSTILE, results
from tests.report.test_report import elements

SETTINGS = TrainSettings(
    nodes=3,
    models=("table:small", "table:even", "frozen:table:wide"),
    steps=6,
    local=3,
    external=3,
    group=4,
    evaluate_every=3,
    held_out=8,
)


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("train") / "run"
    assert run_crew(TrainCrew(SETTINGS), folder, in_process=True) == "finished"
    return msgspec.to_builtins(summarise(folder))


def page_of(summary: Any, name: str = "runs/one") -> str:
    found = msgspec.convert(summary, TrainSummary)
    return page(name, training_parts(name, found, msgspec.to_builtins(SETTINGS), {"shoal": "0.1"}))


def sweep(text: str = "plain") -> Results:
    """Results of a sweep with pairs that have no arm in common."""
    base = results(text)
    pairs = [("4/4", "8/0"), (text, "4/0")]
    differences = [
        Difference("score", ours, against, Estimate(1.5, 0.5, 2.5, 5), 0.9, "greater")
        for ours, against in pairs
    ]
    return msgspec.structs.replace(
        base, application="train", differences=differences, maps=[], best=None, groups=[]
    )


def hostile(value: Any) -> Any:
    """The same with every text, and every name that is not a field of ours, turned hostile."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list | tuple):
        return [hostile(one) for one in value]
    return value


def test_the_page_of_a_run_shows_every_node_and_its_curves(summary: Any) -> None:
    page = page_of(summary)
    found = elements(page)
    assert len([one for one in found if one.tag.endswith("figure")]) == 3
    for node in summary["nodes"]:
        assert page.count(node["name"]) >= 2
    for stated in ("Shoal training run", "3 nodes, 6 steps, seed 0, finished", "only contributes", "biased"):
        assert stated in page
    for heading in ("What was shared and used", "Held-out reward by task", "How it was run"):
        assert f"<h2>{heading}" in page
    for folded in ("All settings", "Installed versions"):
        assert f"<summary>{folded}" in page


def test_lines_are_of_nodes_that_learn_where_it_is_about_learning(summary: Any) -> None:
    held_out, local, batch = re.findall(r"<figure>.*?</figure>", page_of(summary), re.S)
    assert [part.count('class="curve"') for part in (held_out, local, batch)] == [2, 3, 2]


def test_many_nodes_are_drawn_as_their_mean_and_range(summary: Any) -> None:
    many = {**summary, "nodes": [{**summary["nodes"][0], "name": f"{n}-table"} for n in range(1, 21)]}
    page = page_of(many)
    assert "mean and range of 20 nodes" in page
    assert page.count('class="band"') == 3


def test_a_run_that_has_just_begun_has_a_page(summary: Any) -> None:
    bare = {
        "steps": 0, "reward_local": None, "reward_held_out": None, "reward_held_out_first": None, "costs": [],
        "curve_local": [], "curve_held_out": [], "curve_batch": [], "families": {}, "own_groups": 0, "ended": "",
        "oscillation": None, "largest_fall": None,
    }  # fmt: skip
    empty = {
        **summary,
        "finished": False,
        "reward_held_out": None,
        "nodes": [{**node, **bare} for node in summary["nodes"]],
    }
    page = page_of(empty)
    assert elements(page)
    assert "not finished" in page
    assert "<figure>" not in page


def test_foreign_text_in_a_run_never_becomes_markup(summary: Any) -> None:
    nodes = [
        {key: hostile(value) for key, value in node.items()}
        | {"dropped": {HOSTILE: 3}, "refused": {f"{HOSTILE} too": 1}, "families": {HOSTILE: 0.5}}
        for node in summary["nodes"]
    ]
    assert_harmless(page_of({**summary, "nodes": nodes}, HOSTILE))


def test_foreign_text_in_a_sweep_never_becomes_markup() -> None:
    assert_harmless(experiment_page(sweep(HOSTILE)))


def assert_harmless(page: str) -> None:
    found = elements(page)
    tags = {one.tag.rpartition("}")[2] for one in found}
    assert not tags & {"script", "img", "iframe", "link", "object", "embed", "a", "base", "form"}
    assert not [key for one in found for key in one.attrib if key.startswith("on")]
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    assert "\x00" not in page
    assert not re.findall(r"url\(|@import|src=\"|href=", page)
    assert set(re.findall(r"https?://[^\"\s<]*", page)) == {"http://www.w3.org/2000/svg"}


def test_a_sweep_says_what_it_does_not_show_and_names_both_arms_of_a_difference() -> None:
    page = experiment_page(sweep())
    assert "What it does not show" in page
    assert "They are biased" in page
    assert "4/4 − 8/0" in page
    assert "plain − 4/0" in page
    for stated in ("shoal plain", "Seeds 0, 1, 2, 3, 4", "1 run is missing"):
        assert stated in page
    assert "Archives of" not in page
    assert markdown(sweep()).startswith("# ")


def test_what_is_neither_better_nor_worse_is_not_coloured() -> None:
    metrics = [msgspec.structs.replace(metric, better="") for metric in sweep().metrics]
    page = experiment_page(msgspec.structs.replace(sweep(), metrics=metrics))
    assert "<td title=" in page
    assert ">greater<" in page
    assert 'class="better"' in experiment_page(sweep())
    assert 'class="better"' not in page


def test_a_sweep_without_any_run_has_a_page_too() -> None:
    bare = msgspec.structs.replace(
        sweep(), metrics=[], arms=[], differences=[], sentences=[], charts=[], curves=[], failures=[], missing=9
    )  # fmt: skip
    assert "nothing to compare" in experiment_page(bare)
    assert elements(experiment_page(bare))
