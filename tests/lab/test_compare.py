"""The arms of a comparison, and what is found from their summaries."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from shoal.errors import ConfigError
from shoal.evolve.settings import EvolveSettings
from shoal.lab.compare import FAMILIES, findings, plan_comparison
from shoal.lab.experiment import Experiment
from tests.lab.summaries import MODELS, comparison

SETTINGS = EvolveSettings(models=(*MODELS, "builtin:vampire"), calls=50, seed=3)


def test_solo_and_homogeneous_once_per_model_and_each_control_once() -> None:
    plan = plan_comparison(SETTINGS, 2)
    assert plan.seeds == (3, 4)
    families = [arm.family for arm in plan.arms]
    assert {family: families.count(family) for family in FAMILIES} == {
        family: 3 if family in ("solo", "homogeneous") else 1 for family in FAMILIES
    }
    assert {len(arm.settings["models"]) for arm in plan.arms if arm.family == "solo"} == {1}
    assert {len(arm.settings["models"]) for arm in plan.arms if arm.family != "solo"} == {3}
    assert {arm.settings["calls"] for arm in plan.arms} == {50}, "all arms have the same calls"


def test_a_control_differs_from_the_heterogeneous_arm_in_one_setting() -> None:
    arms = {arm.family: arm.settings for arm in plan_comparison(SETTINGS, 1).arms}
    differing = {
        family: {key for key in settings if settings[key] != arms["heterogeneous"][key]}
        for family, settings in arms.items()
    }
    assert differing == {
        "solo": {"models"},
        "homogeneous": {"models"},
        "heterogeneous": set(),
        "no-sharing": {"sharing"},
        "opponents-only": {"sharing"},
        "seeds-only": {"sharing"},
        "from-scratch": {"fresh_only"},
    }


def test_models_that_look_alike_in_a_path_have_arms_of_their_own() -> None:
    models = ("http://a/v1#m", "http://a/v1#M", "http://a/v1#m?temperature=1")
    arms = plan_comparison(EvolveSettings(models=models), 1, ["solo"]).arms
    assert [arm.name for arm in arms] == [
        "solo-http-a-v1-m",
        "solo-http-a-v1-m-2",
        "solo-http-a-v1-m-temperature-1",
    ]


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no arm is called 'duo': there are solo"):
        plan_comparison(SETTINGS, 1, ["duo"])
    with pytest.raises(ConfigError, match="two or more different models"):
        plan_comparison(EvolveSettings(models=("builtin:bomber",) * 4), 1)
    with pytest.raises(ConfigError, match="calls: 2 calls for 3 nodes"):
        plan_comparison(msgspec.structs.replace(SETTINGS, calls=2), 1)
    with pytest.raises(ConfigError, match="empty"):
        plan_comparison(msgspec.structs.replace(SETTINGS, held_out=str(tmp_path)), 1)


def test_other_held_out_programs_make_another_experiment(tmp_path: Path) -> None:
    (tmp_path / "one.red").write_text("mov 0, 1")
    settings = msgspec.structs.replace(SETTINGS, held_out=str(tmp_path))
    before = plan_comparison(settings, 1).common
    (tmp_path / "one.red").write_text("jmp 0")
    assert plan_comparison(settings, 1).common != before


def test_the_plan_has_the_content_of_the_files_that_are_given(tmp_path: Path) -> None:
    """So that all arms have the same opponents whatever becomes of the files, and a report reads none."""
    (tmp_path / "mine.red").write_text("mov 0, 1\njmp -1\n")
    given = msgspec.structs.replace(SETTINGS, opponents=(str(tmp_path / "mine.red"),))
    plan = plan_comparison(given, 1, ["solo"])
    (tmp_path / "mine.red").unlink()
    with Experiment.begin(tmp_path / "e", plan) as experiment:
        results = findings(experiment)
    assert results.beside is not None
    assert any("mine" in line for line in results.beside.departures), results.beside.departures


def test_findings_tell_what_the_numbers_allow(tmp_path: Path) -> None:
    results = findings(comparison(tmp_path / "e"))
    assert [group.name for group in results.groups] == [
        "mean-solo",
        "best-solo",
        "mean-homogeneous",
        "best-homogeneous",
    ]
    said = {sentence.partition(": ")[0]: sentence for sentence in results.sentences}
    assert len(said) == 8
    against_solo = said["heterogeneous against the mean of the solo arms"]
    assert "better in common QD-score (+" in against_solo
    assert "no difference can be shown in common coverage" in against_solo
    qd = {arm.name: arm.estimates["qd_score_common"].value for arm in results.arms}
    mean = (qd["solo-builtin-bomber"] + qd["solo-builtin-scanner"]) / 2
    (difference,) = [
        one
        for one in results.differences
        if one.metric == "qd_score_common" and one.against == "the mean of the solo arms"
    ]
    assert difference.difference.value == pytest.approx(qd["heterogeneous"] - mean)
    assert (difference.verdict, difference.difference.runs) == ("greater", 5)
    assert results.best is not None
    assert results.best.arm == "heterogeneous"
    assert {one.seed for one in results.maps} == {0}
    assert len(results.maps) == 2 * len(results.arms)
    assert results.missing == 0


def test_a_half_done_comparison_has_findings_and_says_what_is_missing(tmp_path: Path) -> None:
    results = findings(comparison(tmp_path / "e", seeds=2, left_out=12))
    assert results.missing == 12
    assert results.sentences == [
        "one seed is too few for a claim, which needs 5 or more; the numbers are shown as they are."
    ]
    empty = findings(comparison(tmp_path / "empty", seeds=1, left_out=9))
    assert (empty.metrics, empty.maps, empty.best, empty.sentences) == ([], [], None, [])


def test_the_same_runs_give_the_same_findings(tmp_path: Path) -> None:
    first = findings(comparison(tmp_path / "e"))
    again = findings(Experiment.look(tmp_path / "e"))
    assert msgspec.json.encode(first) == msgspec.json.encode(again)
