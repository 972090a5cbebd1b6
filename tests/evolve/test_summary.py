"""The numbers of a run, and of several runs together."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from shoal.errors import ConfigError, RunError
from shoal.evolve import Elite, load
from shoal.evolve.common import common_evaluations, fight_held_out, merge_in_common, read_programs
from shoal.evolve.crew import run
from shoal.evolve.metrics import merge_raw
from shoal.evolve.programs import export_search, holder_of
from shoal.evolve.summary import MOST_POINTS, merge_runs, summarise
from shoal.runs.search import SearchSummary
from tests.evolve.small import histories, small


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summary") / "run"
    assert run(small(calls=160, seed=4), folder, in_process=True) == "finished"
    return folder


@pytest.fixture(scope="module")
def summary(folder: Path) -> SearchSummary:
    return summarise(folder)


def test_raw_numbers_are_those_of_the_merged_archives(folder: Path, summary: SearchSummary) -> None:
    best: dict[tuple[int, ...], float] = {}
    for node in histories(folder):
        assert node.archive is not None
        for cell, elite in node.archive.items():
            best[cell] = max(best.get(cell, 0.0), node.archive.fitness(elite))
    assert {tuple(cell.cell): cell.fitness for cell in summary.cells_raw} == best
    assert summary.cells == len(best)
    assert summary.coverage == len(best) / 36
    assert summary.qd_score == pytest.approx(math.fsum(best.values()))
    assert summary.best == max(best.values())


def test_common_numbers_depend_on_the_programs_alone(folder: Path, summary: SearchSummary) -> None:
    domain = small().open_domain()
    elites = {elite.digest: elite for node in histories(folder) if node.archive for elite in node.archive}
    evaluations = common_evaluations(domain, list(elites.values()))
    fitness = {digest: one.fitness for digest, one in zip(elites, evaluations, strict=True)}
    assert all(cell.fitness == fitness[cell.digest] for cell in summary.cells_common)
    assert summary.best_common == max(fitness.values())
    assert summary.qd_score_common == pytest.approx(sum(cell.fitness for cell in summary.cells_common))
    assert domain.parse(summary.best_source).digest in fitness


def test_the_common_opponents_do_not_depend_on_the_run() -> None:
    other = small(seed=99, opponents=("dwarf",), repeats=7, rounds=9)
    domain = small().open_domain()
    program = domain.parse(domain.starters()["imp"])
    one = Elite(program.digest, program.source, ())
    assert common_evaluations(domain, [one]) == common_evaluations(other.open_domain(), [one])


def test_counts_add_up(summary: SearchSummary) -> None:
    assert summary.finished
    assert summary.calls == sum(node.calls for node in summary.nodes) == 160
    assert all(node.proposals == node.valid == 40 for node in summary.nodes)
    assert all(node.rounds == 3 and len(node.niche_novelty) == 3 for node in summary.nodes)
    assert all(node.niche_novelty[0] is None for node in summary.nodes)
    assert sum(model.first_cells for model in summary.models) == sum(
        model.last_cells for model in summary.models
    )
    assert summary.simulations > 3 * 160 * 0.8
    assert summary.shared_bytes > 0
    assert summary.microdollars == 0
    assert {cell.model for cell in summary.cells_raw} <= {*small().models, "starter"}
    assert msgspec.json.decode(msgspec.json.encode(summary), type=SearchSummary) == summary


def test_novelty_is_the_mean_over_the_rounds_for_which_something_had_arrived(
    folder: Path, summary: SearchSummary, tmp_path: Path
) -> None:
    for node, history in zip(summary.nodes, histories(folder), strict=True):
        opened = [event.note for event in history.events if event.note.step == "open"]
        heard = [note.novelty for note in opened[1:] if note.visitors]
        assert node.rounds_heard == len(heard) > 0
        assert node.novelty == pytest.approx(sum(one for one in heard if one is not None) / len(heard))
    assert run(small(calls=24, sharing="off"), tmp_path / "alone", in_process=True) == "finished"
    alone = summarise(tmp_path / "alone").nodes
    assert [(node.novelty, node.rounds_heard) for node in alone] == [(None, 0)] * 4


def test_the_curve_ends_where_the_run_does(summary: SearchSummary) -> None:
    calls = [point.calls for point in summary.curve]
    assert calls == sorted(calls)
    assert len(calls) <= MOST_POINTS + 1
    last = summary.curve[-1]
    assert (last.calls, last.coverage) == (160, summary.coverage)
    assert last.qd_score == pytest.approx(summary.qd_score)


def test_held_out_programs(folder: Path, summary: SearchSummary, tmp_path: Path) -> None:
    held = summary.held_out
    assert held is not None
    assert held.wins + held.ties + held.losses == held.opponents == len(held.per_opponent) == 4
    (tmp_path / "still.red").write_text("jmp 0\n")
    (tmp_path / "dies.red").write_text("dat 0, 0\n")
    (tmp_path / "prose.txt").write_text("this is no program, but it was in the folder\n")
    others = read_programs(tmp_path)
    found = fight_held_out(small().open_domain(), "jmp 0\n", others, "mine")
    assert (found.wins, found.ties, found.losses, found.refused) == (1, 1, 0, 1)
    assert found.points_percent == pytest.approx(100 * 4 / 6)
    again = summarise(folder, tmp_path).held_out
    assert again is not None
    assert again.name == str(tmp_path)
    assert again.opponents == 2
    with pytest.raises(ConfigError, match="cannot be read"):
        read_programs(tmp_path / "nowhere")


def test_the_best_program_is_told_as_its_maker_wrote_it(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber", "builtin:random"), calls=40, seed=4)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    found = [history.archive for history in histories(tmp_path / "run") if history.archive is not None]
    common = merge_in_common(settings.open_domain(), found)
    best = common.best
    assert best is not None
    assert ";name" not in best.source, "the archive of the receiver has the plain form"
    (cell,) = [cell for cell, elite in common.items() if elite.digest == best.digest]
    source = summarise(tmp_path / "run").best_source
    assert ";name bomber" in source
    assert source == holder_of(tmp_path / "run", cell).program.source
    export_search(tmp_path / "run", tmp_path / "out")
    (file,) = (tmp_path / "out" / "programs").glob(f"*-{best.digest[:12]}.red")
    assert file.read_text() == source


def test_a_run_that_has_just_begun_has_a_summary(tmp_path: Path) -> None:
    from shoal.runs import RunFolder, to_toml

    RunFolder.create(tmp_path / "run", to_toml(small())).close()
    summary = summarise(tmp_path / "run")
    assert not summary.finished
    assert (summary.cells, summary.calls, summary.best, summary.held_out) == (0, 0, 0.0, None)
    with pytest.raises(RunError, match="no such run folder"):
        summarise(tmp_path / "elsewhere")


def test_merging_runs_is_commutative_and_idempotent(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    run(small(calls=40, seed=6), other, in_process=True)
    one = merge_runs([folder, other], tmp_path / "merged")
    assert one.archives == 8
    assert one.coverage_common >= summarise(folder).coverage_common
    written = (tmp_path / "merged" / "archive.json").read_bytes()
    merge_runs([other, folder, other], tmp_path / "again")
    assert (tmp_path / "again" / "archive.json").read_bytes() == written
    assert len(load(written)) == one.cells == len(list((tmp_path / "merged" / "programs").iterdir()))
    nodes = [*histories(folder), *histories(other)]
    raw = merge_raw([node.archive for node in nodes if node.archive is not None])
    assert one.coverage == len(raw) / 36
    with pytest.raises(RunError, match="not empty"):
        merge_runs([folder], tmp_path / "merged")


def test_runs_of_other_rules_are_not_merged(folder: Path, tmp_path: Path) -> None:
    run(
        small(calls=8, rounds=1, options={"core_size": 400, "cycles": 400, "length": 20, "distance": 20}),
        tmp_path / "x",
        in_process=True,
    )
    with pytest.raises(ConfigError, match="do not compare"):
        merge_runs([folder, tmp_path / "x"])
