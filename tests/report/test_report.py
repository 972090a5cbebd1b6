"""The page is one well-formed file that asks nobody for anything, and shows foreign text as text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from shoal.errors import RunError
from shoal.report.experiment import experiment_page, markdown, write_report
from shoal.report.page import page, program
from shoal.report.plots import bin_label, chart_figure, fitness_figure, ticks
from shoal.report.search import search_parts
from shoal.runs.markup import Markup, element, escaped, number
from shoal.runs.results import ArchiveMap, Results, read_results, write_results
from shoal.runs.search import Axis, Placed, SearchSummary, Words
from tests.report.samples import HOSTILE, beside, results

EXPERIMENTS = Path(__file__).parents[2] / "docs" / "experiments"

NODE = {
    "name": HOSTILE, "model": HOSTILE, "calls": 60, "tokens": 0, "proposals": 60, "valid": 50, "duplicates": 1,
    "timeouts": 0, "accepted": 9, "champions_received": 3, "cells": 4, "rounds": 2, "niche_novelty": [None],
    "ended": "",
}  # fmt: skip
RUN = {
    "finished": True, "coverage": 0.5, "coverage_common": 0.4, "qd_score": 9.0, "qd_score_common": 4.0,
    "best": 2.0, "best_common": 1.5, "best_source": HOSTILE, "best_model": HOSTILE, "calls": 60, "tokens": 0,
    "microdollars": None, "cells": 1, "capacity": 6, "simulations": 900, "shared_bytes": 1000, "models": [],
    "axes": [{"measure": HOSTILE, "edges": [1, 10]}, {"measure": "coverage", "edges": [5]}],
    "cells_raw": [{"cell": [0, 1], "fitness": 2.0, "model": HOSTILE, "node": "1", "digest": "ab"}],
    "cells_common": [{"cell": [2, 0], "fitness": 1.5, "model": HOSTILE, "node": "1", "digest": "ab"}],
    "curve": [{"calls": n, "coverage": n / 100, "qd_score": n / 10} for n in range(1, 60)], "held_out": None,
    "nodes": [NODE],
}  # fmt: skip
SUMMARY = msgspec.convert(RUN, SearchSummary)


def elements(page: str) -> list[ElementTree.Element]:
    """Every element; fails unless the page is well-formed."""
    return list(ElementTree.fromstring(page.removeprefix("<!doctype html>")).iter())


def pages() -> list[str]:
    return [
        experiment_page(results()),
        page(HOSTILE, search_parts(HOSTILE, SUMMARY, {"calls": 60, HOSTILE: HOSTILE}, {"shoal": HOSTILE})),
    ]


def test_a_map_has_its_first_axis_upward_and_the_second_across() -> None:
    axes = [Axis("spawned", (1, 10)), Axis("coverage", (5,))]
    cells = [Placed((0, 0), 0.1, model="m"), Placed((2, 0), 0.2, model="m"), Placed((0, 1), 0.3, model="m")]
    drawn = fitness_figure(ArchiveMap("", "t", 0, "common", [], axes, cells), 1.0)
    places = {
        "".join(one.itertext()): (float(one.attrib["x"]), float(one.attrib["y"]))
        for one in elements(str(drawn))
        if one.tag.rpartition("}")[2] == "text"
    }
    origin, above, beside = places["0.10"], places["0.20"], places["0.30"]
    assert above[0] == origin[0]
    assert above[1] < origin[1], "y grows downward in a drawing"
    assert beside[0] > origin[0]
    assert beside[1] == origin[1]
    assert places["≥10"][1] == above[1]
    assert abs(places["≥5"][0] - beside[0]) < 2
    assert places["spawned"][0] < origin[0]
    assert places["coverage"][1] > origin[1]


@pytest.mark.parametrize("text", pages(), ids=["experiment", "run"])
def test_foreign_text_is_shown_and_never_becomes_markup(text: str) -> None:
    found = elements(text)
    tags = {one.tag.rpartition("}")[2] for one in found}
    assert not tags & {"script", "img", "iframe", "link", "object", "embed", "a", "base", "form"}
    assert not [key for one in found for key in one.attrib if key.startswith("on")]
    shown = "".join("".join(one.itertext()) for one in found if one.tag == "pre")
    assert "<script>alert(1)</script>" in shown
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("text", pages(), ids=["experiment", "run"])
def test_nothing_is_asked_of_anybody(text: str) -> None:
    assert not re.findall(r"url\(|@import|src=\"|href=", text)
    assert set(re.findall(r"https?://[^\"\s<]*", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src &#x27;none&#x27;" in text


def test_the_page_states_how_it_was_made() -> None:
    text = experiment_page(results(hostile="plain"))
    for stated in ("shoal plain", "shoal 0.1", "Seeds 0, 1, 2, 3, 4", "62 s", "core_size = 8000"):
        assert stated in text
    for shown in ("9 won, 1 tied, 10 lost", "46.7 % of all points", "mov 0, 1", "&lt;1", "≥10k", "1–10"):
        assert shown in text
    assert "1 run is missing" in text
    assert "solo, seed 2 failed: plain" in text


def test_an_experiment_without_any_run_has_a_page_too() -> None:
    bare = msgspec.structs.replace(
        results("plain"), metrics=[], arms=[], groups=[], differences=[], sentences=[], charts=[], curves=[],
        maps=[], best=None, failures=[], missing=9, beside=None,
    )  # fmt: skip
    assert "nothing to compare" in experiment_page(bare)
    assert elements(experiment_page(bare))
    assert "|" not in markdown(bare)


def test_the_table_for_pasting_keeps_its_columns_whatever_is_in_it() -> None:
    rows = [line for line in markdown(results()).splitlines() if line.startswith("|")]
    own = rows[: rows.index(next(row for row in rows if row.startswith("| |")))]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in own} == {4}
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[len(own) :]} == {4}
    assert "<script>" not in markdown(results())
    assert "| heterogeneous | 5 | 2.50 [1.00, 4.00] |" in markdown(results())


def test_the_papers_numbers_stand_beside_ours_with_the_name_of_the_table() -> None:
    text = experiment_page(results("plain"))
    found = " ".join("".join(one.itertext()) for one in elements(text) if one.tag in ("td", "h3", "summary"))
    assert "0.5 ± 0.3" in found
    assert "paper 0.7 ± 0.1" in found
    assert "paper: not found plain" in found
    assert "+0.50 ± 0.30" in found
    assert "of 3" in found, "a mean over fewer seeds than there are says so"
    assert "Last round plain DEI, Table 3" in found
    assert "Each node (not in the DEI paper)" in found
    assert "The 2 programs of the held-out set" in found
    assert "DEI, Figure 3" in text
    pasted = markdown(results("plain"))
    assert "### Last round plain (DEI, Table 3)" in pasted
    assert "| solo plain | 0.5 ± 0.3 (paper 0.7 ± 0.1) | +0.50 ± 0.30 |" in pasted


def test_departures_warn_before_the_tables_are_read() -> None:
    text = experiment_page(results("plain"))
    assert "This is not the paper's experiment" in text.replace("&#x27;", "'")
    assert "9 published choices" in text
    assert text.index("models = plain") < text.index("Last round plain")
    assert "3 more" in text
    kept = msgspec.structs.replace(results("plain"), beside=msgspec.structs.replace(beside(), departures=[]))
    assert "not the paper" not in experiment_page(kept)
    assert "keep every choice of the DEI paper" in experiment_page(kept)


def test_results_of_an_earlier_release_have_a_page_without_the_paper() -> None:
    old = msgspec.json.decode(msgspec.json.encode(results("plain")))
    del old["beside"]
    for chart in old["charts"]:
        for name in ("beside_paper", "source", "told", "digits"):
            chart.pop(name, None)
    read = msgspec.convert(old, Results)
    assert read.beside is None
    assert "Beside the" not in experiment_page(read)
    assert "Beside the" not in markdown(read)


def test_rounds_have_whole_numbers_and_a_single_one_is_a_dot() -> None:
    chart = next(one for one in results().charts if one.name == "rounds")
    curves = [one for one in results("plain").curves if one.chart == "rounds"]
    drawn = str(chart_figure(chart, curves, {"plain": 0, "one round": 1}, source="DEI, Figure 3"))
    ticks_of = [one.text for one in elements(drawn) if one.get("class") == "tick"]
    assert [one for one in ticks_of if one in ("1", "2", "3", "1.5", "2.5")] == ["1", "2", "3"]
    assert len([one for one in elements(drawn) if one.tag.endswith("circle")]) == 1
    assert "one round: 0.432 at the end" in drawn


def test_results_survive_the_disk_and_what_is_not_results_is_refused(tmp_path: Path) -> None:
    write_results(tmp_path, results())
    assert read_results(tmp_path) == results()
    assert write_report(tmp_path).read_text().startswith("<!doctype html>")
    assert (tmp_path / "results.md").is_file()
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(RunError, match="not the results of an experiment"):
        read_results(tmp_path)
    with pytest.raises(RunError, match="cannot be read"):
        read_results(tmp_path / "nowhere")
    other = msgspec.structs.replace(results(), version=99)
    (tmp_path / "results.json").write_bytes(msgspec.json.encode(other))
    with pytest.raises(RunError, match="version 99"):
        read_results(tmp_path)


def test_a_domain_has_its_own_words_on_the_page() -> None:
    words = msgspec.convert({"program": "tour", "programs": "tours", "plays": "trips"}, Words)
    text = page("run", search_parts("run", msgspec.structs.replace(SUMMARY, words=words), {}, {}))
    assert "900 trips" in text
    assert "The best tour" in text


@given(st.text())
def test_any_text_is_well_formed_and_reads_as_it_was(text: str) -> None:
    parsed = ElementTree.fromstring(element("p", text, title=escaped(text)))
    shown = parsed.text or ""
    assert len(shown) == len(text)
    assert all(a == b or b in "�␡" or "␀" <= b <= "␟" for a, b in zip(text, shown, strict=True))


def test_only_markup_is_not_escaped() -> None:
    assert element("p", "<b>", Markup("<i/>"), class_="x") == '<p class="x">&lt;b&gt;<i/></p>'
    assert element("line", x1=1.25, stroke_width=2, id=None) == '<line x1="1.2" stroke-width="2"/>'


def test_a_very_long_program_is_cut() -> None:
    assert len(program("x" * 1_000_000)) < 30_000


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_ticks_are_few_evenly_spaced_and_around_the_values(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = ticks([low, high])
    slack = 1e-6 * max(abs(low), abs(high), 1e-9)
    assert 2 <= len(found) <= 9
    assert found[0] <= low + slack
    assert found[-1] >= high - slack
    assert found == sorted(set(found))


def test_numbers_and_bins_for_people() -> None:
    assert [number(-0.0001, 2), number(-1.5, 1), number(12345.0, 0), number(2.5)] == [
        "0.00",
        "−1.5",
        "12,345",
        "2.5",
    ]
    axis = Axis("spawned", (1.0, 10.0, 10_000.0))
    assert [bin_label(axis, n) for n in range(4)] == ["<1", "1–10", "10–10k", "≥10k"]


def test_the_format_is_stable() -> None:
    assert isinstance(msgspec.json.decode(msgspec.json.encode(results()), type=Results), Results)


@pytest.mark.parametrize(
    "folder", sorted(EXPERIMENTS.glob("*/results.json")), ids=lambda path: path.parent.name
)
def test_the_results_of_our_experiments_have_a_page(folder: Path) -> None:
    """They were written before some fields existed."""
    found = read_results(folder.parent)
    text = experiment_page(found)
    assert elements(text)
    assert all(escaped(arm.title) in text for arm in found.arms)
    assert found.title in markdown(found).replace("\\", "")
