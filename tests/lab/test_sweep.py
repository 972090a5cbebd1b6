"""The arms of a sweep, what is found from real small runs, and that an interruption changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import ConfigError, TaskError
from shoal.lab.experiment import Experiment, Plan
from shoal.lab.running import run_arm, run_trials
from shoal.lab.sweep import (
    FAMILIES,
    MEASURES,
    Pair,
    SweepSettings,
    held_out_by_completions,
    held_out_curve,
    pairs,
    plan_sweep,
    sweep_findings,
)
from shoal.node.drive import Stop
from shoal.runs.results import Results
from shoal.runs.training import TrainSummary
from shoal.train.settings import NodeSettings, TrainSettings
from shoal.train.summary import summarise

SETTINGS = SweepSettings(models=("table:small", "table:wide"), tasks=("sums", "compare"), steps=100, seed=3)
SMALL = TrainSettings(
    nodes=3, models=("table:small",), steps=8, group=4, evaluate_every=4, held_out=8, checkpoint_every=0
)


def small_plan(seeds: int = 1) -> Plan:
    return plan_sweep(SMALL, seeds, ("4/0", "2/2"), ["mix"])


def values(results: Results) -> Any:
    """All that is found but the time it took."""
    found = json.loads(msgspec.json.encode(results))
    del found["made"]
    for arm in found["arms"]:
        del arm["estimates"]["cpu"]
        for run in arm["runs"]:
            del run["values"]["cpu"]
    return found


def do_here(experiment: Experiment) -> None:
    """The unfinished runs in this process, which is sooner done than in one for each."""
    for trial in experiment.unfinished():
        found = run_arm(trial, Stop(), lambda _: None)
        assert found is not None
        experiment.record(trial, found, 1.0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    with Experiment.begin(tmp_path_factory.mktemp("sweep") / "e", small_plan(seeds=2)) as experiment:
        do_here(experiment)
    return experiment


def test_every_family_has_its_arms() -> None:
    plan = plan_sweep(SETTINGS, 2)
    assert plan.seeds == (3, 4)
    assert [arm.title for arm in plan.arms] == [
        "8/0",
        "6/2",
        "4/4",
        "2/6",
        "8/0 filtered",
        "8/0 with the completions of 4/4",
        "4/4 with the completions of 8/0",
        "4/0",
        "different models 8/0",
        "different models 4/4",
        "different tasks 8/0",
        "different tasks 4/4",
        "4/4, one only contributes",
    ]
    assert {arm.family for arm in plan.arms} == set(FAMILIES)
    assert {arm.settings["nodes"] for arm in plan.arms} == {8}


def test_an_arm_differs_from_what_it_is_compared_with_in_what_it_is_about() -> None:
    plan = plan_sweep(SETTINGS, 1)
    of = {arm.name: arm.settings for arm in plan.arms}
    differing = {
        pair: {key for key in of[pair.ours] if of[pair.ours][key] != of[pair.against][key]}
        for pair in pairs(plan)
    }
    mix = {"local", "external", "sharing"}
    assert differing == {
        Pair("mix-6-2", "mix-8-0"): mix,
        Pair("mix-4-4", "mix-8-0"): mix,
        Pair("mix-2-6", "mix-8-0"): mix,
        Pair("filtered-8-0", "mix-8-0"): {"filter_own"},
        Pair("mix-4-4", "filtered-8-0"): mix | {"filter_own"},
        Pair("mix-4-4", "equal-completions-8-0"): mix | {"steps"},
        Pair("equal-completions-4-4", "mix-8-0"): mix | {"steps"},
        Pair("mix-4-4", "own-only-4-0"): {"external", "sharing"},
        Pair("different-models-4-4", "different-models-8-0"): mix,
        Pair("different-tasks-4-4", "different-tasks-8-0"): mix,
        Pair("contributor-4-4", "mix-4-4"): {"models"},
    }


def test_arms_with_equal_completions_have_them() -> None:
    generated = {
        arm.name: arm.settings["nodes"] * arm.settings["steps"] * arm.settings["local"]
        for arm in plan_sweep(SETTINGS, 1).arms
    }
    assert generated["equal-completions-8-0"] == generated["mix-4-4"] == generated["mix-8-0"] / 2
    assert generated["equal-completions-4-4"] == generated["mix-8-0"]
    assert generated["own-only-4-0"] == generated["mix-4-4"]


def test_what_the_settings_do_not_allow_is_left_out_or_said() -> None:
    one = msgspec.structs.replace(SETTINGS, models=("table:small",), tasks=("sums",))
    assert {arm.family for arm in plan_sweep(one, 1).arms} == set(FAMILIES) - {
        "different-models",
        "different-tasks",
    }
    alone = plan_sweep(one, 1, ["8/0"])
    assert [arm.title for arm in alone.arms] == ["8/0", "8/0 filtered"]
    with pytest.raises(ConfigError, match="different-models: needs two or more different models"):
        plan_sweep(one, 1, families=["different-models"])
    with pytest.raises(ConfigError, match="contributor: needs a mix with foreign groups"):
        plan_sweep(one, 1, ["8/0"], ["contributor"])


def test_the_mix_without_sharing_is_always_there_and_mixes_may_have_any_size() -> None:
    plan = plan_sweep(SETTINGS, 1, ["1/2", "2/1", "1/2"], ["mix"])
    assert [arm.title for arm in plan.arms] == ["3/0", "1/2", "2/1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: plan_sweep(SETTINGS, 1, ["4-4"]), "mix '4-4': write own and foreign groups"),
        (lambda: plan_sweep(SETTINGS, 1, ["8/0", "2/2"]), "mix 2/2 trains on 4 groups and 8/0 on 8"),
        (lambda: plan_sweep(SETTINGS, 1, ["0/8"]), "mix 0/8: nobody would sample"),
        (lambda: plan_sweep(SETTINGS, 1, []), "mix: name one or more"),
        (lambda: plan_sweep(SETTINGS, 1, families=["duo"]), "no arm is called 'duo': there are mix"),
        (lambda: plan_sweep(replaced(nodes=1), 1), "nodes: sharing needs two or more"),
        (lambda: plan_sweep(replaced(adaptive=True), 1), "adaptive"),
        (lambda: plan_sweep(replaced(sharing="off"), 1), "sharing: off"),
        (lambda: plan_sweep(replaced(each=(NodeSettings(local=2),)), 1), "each: the nodes of a sweep"),
        (lambda: plan_sweep(replaced(models=("frozen:table:small",)), 1), "does not learn"),
        (lambda: plan_sweep(replaced(models=("gpt",)), 1), "does not name a policy"),
    ],
)
def test_what_cannot_be_compared_is_refused(change: Callable[[], Plan], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        change()


def test_a_task_that_nobody_knows_is_refused_before_anything_runs() -> None:
    with pytest.raises(TaskError, match="no task is called"):
        plan_sweep(replaced(tasks=("summs",)), 1)


def replaced(**changes: Any) -> TrainSettings:
    return msgspec.structs.replace(SETTINGS, **changes)


def test_findings_have_intervals_and_differences_by_seed(finished: Experiment) -> None:
    results = sweep_findings(finished)
    assert results.application == "train"
    assert [arm.title for arm in results.arms] == ["4/0", "2/2"]
    alone, mixed = results.arms
    for arm in results.arms:
        held_out = arm.estimates["held_out"]
        assert held_out.runs == 2
        assert held_out.low is not None
        assert held_out.high is not None
        assert held_out.low <= held_out.value <= held_out.high
    assert alone.estimates["own_groups"].value == 3 * 8 * 4 == 2 * mixed.estimates["own_groups"].value
    assert alone.estimates["foreign_used"].value == 0 < mixed.estimates["foreign_used"].value
    (difference,) = [one for one in results.differences if one.metric == "held_out"]
    assert (difference.ours, difference.against, difference.difference.runs) == ("2/2", "4/0", 2)
    assert difference.difference.value == pytest.approx(
        mixed.estimates["held_out"].value - alone.estimates["held_out"].value
    )
    assert results.sentences == [
        "2 seeds are too few for a claim, which needs 5 or more; the numbers are shown as they are."
    ]
    assert {curve.chart for curve in results.curves} == {
        "held_out-mixes",
        "completions-mixes",
        "local-mixes",
        "batch-mixes",
        "smoothed-batch",
        "smoothed-local",
        "smoothed-paper",
    }
    assert all(curve.low for curve in results.curves if curve.chart != "smoothed-paper")


def test_without_foreign_groups_the_biased_reward_is_the_local_one(finished: Experiment) -> None:
    alone, mixed = sweep_findings(finished).arms
    assert alone.estimates["batch_mean"].value == pytest.approx(alone.estimates["local_mean"].value)
    assert mixed.estimates["batch_mean"].value > mixed.estimates["local_mean"].value, "the bias is gone?"


def test_an_interrupted_run_is_done_anew_and_nothing_differs(finished: Experiment, tmp_path: Path) -> None:
    with Experiment.begin(tmp_path / "e", small_plan()) as experiment:
        (first, second) = experiment.trials()
        stop = Stop()
        assert run_arm(first, stop, lambda _: stop.request("test")) is None, "it was asked to stop"
        assert Path(first.folder, "config.toml").is_file()
        assert run_trials(experiment, run_arm, workers=1, stop=Stop())
        before = Path(second.folder, "config.toml").stat().st_mtime_ns
    with Experiment.begin(tmp_path / "e", small_plan(seeds=2)) as experiment:
        assert len(experiment.unfinished()) == 2, "a seed was added"
        do_here(experiment)
        assert values(sweep_findings(experiment)) == values(sweep_findings(finished))
    assert Path(second.folder, "config.toml").stat().st_mtime_ns == before, "what was done is not done again"


def test_a_half_done_sweep_has_findings_and_says_what_is_missing(tmp_path: Path) -> None:
    with Experiment.begin(tmp_path / "e", small_plan()) as experiment:
        results = sweep_findings(experiment)
    assert (results.missing, results.metrics, results.curves, results.sentences) == (2, [], [], [])


def test_curves_along_completions_end_with_all_of_them(finished: Experiment) -> None:
    summary = summarise(Path(finished.trials()[0].folder))
    by_step, by_completions = held_out_curve(summary), held_out_by_completions(summary, SMALL.group)
    assert [step for step, _ in by_step] == [0, 4, 8]
    assert [done for done, _ in by_completions] == [0, 3 * 4 * 4 * 4, 3 * 8 * 4 * 4]
    assert [value for _, value in by_step] == [value for _, value in by_completions]


def test_a_level_counts_where_all_nodes_reached_it(finished: Experiment) -> None:
    tokens_to = next(one.of for one in MEASURES if one.metric.name == "tokens_to_10")
    summary = summarise(Path(finished.trials()[0].folder))

    def reached(tokens: list[list[int]]) -> TrainSummary:
        nodes = [
            {
                **msgspec.to_builtins(node),
                "costs": [{"reward": 0.1, "step": 1, "tokens": n, "cpu": 0.0} for n in one],
            }
            for node, one in zip(summary.nodes, tokens, strict=True)
        ]
        return msgspec.convert({**msgspec.to_builtins(summary), "nodes": nodes}, TrainSummary)

    assert tokens_to(reached([[10], [20], [60]])) == 30
    assert tokens_to(reached([[10], [20], []])) is None
