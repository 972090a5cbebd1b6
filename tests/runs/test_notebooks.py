"""Results in a notebook: small tables of escaped text, and data frames."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from typing import Any

import msgspec
import pytest

from shoal.errors import ConfigError
from shoal.runs.search import SearchSummary
from shoal.runs.training import TrainSummary
from tests.report.samples import HOSTILE, results
from tests.report.test_report import SUMMARY

NODE = {
    "name": HOSTILE, "model": HOSTILE, "trains": True, "tasks": [HOSTILE], "steps": 2, "reward_local": 0.5,
    "reward_held_out": None, "reward_held_out_first": 0.25, "reward_external": None, "reward_cumulative": 1.0,
    "reward_local_cumulative": 1.0, "own_groups": 4, "own_informative": 2, "shared_groups": 4, "foreign_seen": 8,
    "foreign_verified": 8, "foreign_informative": 3, "foreign_used": 1234, "oldest_used": 0, "dropped": {},
    "refused": {}, "tokens": 10, "trained_tokens": 10, "cpu": 0.1, "oscillation": None, "largest_fall": None,
    "costs": [], "families": {}, "curve_local": [[1, 0.25], [2, 0.75]], "curve_held_out": [[0, 0.25], [2, 0.5]],
    "curve_batch": [[1, 0.5]], "ended": "", "last": HOSTILE,
}  # fmt: skip
TRAINING = msgspec.convert(
    {
        "application": "train", "finished": False, "seed": 3, "nodes": [NODE, {**NODE, "name": "2-b"}],
        "reward_held_out": None, "reward_held_out_first": None, "reward_local": None, "reward_cumulative": 0.0,
        "tokens": 20, "cpu": 0.2, "oscillation": None, "largest_fall": None,
        "spreading": {"tasks": 0, "median_delay": None, "reached_all": None},
    },
    TrainSummary,
)  # fmt: skip
EVERYTHING = {"search": SUMMARY, "training": TRAINING, "experiment": results()}


@pytest.mark.parametrize("name", EVERYTHING)
def test_hostile_names_stay_text(name: str) -> None:
    found: Any = EVERYTHING[name]
    html = found._repr_html_()
    assert isinstance(html, str)
    assert len(html) < 20_000
    elements = list(ElementTree.fromstring(html).iter())
    assert {one.tag for one in elements} <= {"div", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert not [key for one in elements for key in one.attrib if key not in ("class", "tabindex", "scope")]
    assert "<script>alert(1)</script>" in "".join(elements[0].itertext())
    assert "\x1b" not in html


def test_a_long_archive_is_cut_in_a_notebook_but_not_in_a_frame() -> None:
    many = [msgspec.structs.replace(SUMMARY.cells_common[0], fitness=float(n)) for n in range(500)]
    summary = msgspec.structs.replace(SUMMARY, cells_common=many)
    assert summary._repr_html_().count("<tr>") == 51
    pytest.importorskip("pandas")
    assert len(summary.to_pandas()) == 500


def test_a_search_has_a_row_per_cell() -> None:
    pytest.importorskip("pandas")
    frame = SUMMARY.to_pandas()
    assert list(frame.columns) == ["cell", HOSTILE, "coverage", "fitness", "model", "node", "digest"]
    assert frame.to_dict("records") == [
        {
            "cell": (2, 0),
            HOSTILE: "≥10",
            "coverage": "<5",
            "fitness": 1.5,
            "model": HOSTILE,
            "node": "1",
            "digest": "ab",
        }
    ]
    empty = msgspec.structs.replace(SUMMARY, cells_common=[])
    assert list(empty.to_pandas().columns) == list(frame.columns)


def test_training_has_a_row_per_node_and_step() -> None:
    pandas = pytest.importorskip("pandas")
    frame = TRAINING.to_pandas()
    assert list(frame.columns) == ["node", "step", "local", "held_out", "batch"]
    own = frame[frame["node"] == "2-b"]
    assert list(own["step"]) == [0, 1, 2]
    assert list(own["held_out"].dropna()) == [0.25, 0.5]
    assert pandas.isna(own["local"].iloc[0])


def test_an_experiment_has_a_row_per_arm_seed_and_metric() -> None:
    pytest.importorskip("pandas")
    frame = results().to_pandas()
    assert list(frame.columns) == ["arm", "seed", "metric", "value"]
    assert len(frame) == 12
    assert set(frame["arm"]) == {"mixed", "solo"}
    assert frame[(frame.arm == "mixed") & (frame.metric == "score")]["value"].mean() == 2.0


@pytest.mark.parametrize("name", EVERYTHING)
def test_without_pandas_it_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    found: Any = EVERYTHING[name]
    with pytest.raises(ConfigError, match="pip install pandas"):
        found.to_pandas()


def test_the_format_of_a_summary_is_its_fields_alone() -> None:
    again = msgspec.json.decode(msgspec.json.encode(SUMMARY), type=SearchSummary)
    assert again == SUMMARY
