"""Where nodes of a search stand, from their journals: the figures are those of the summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.evolve.crew import SearchCrew, run
from shoal.evolve.history import read_run
from shoal.evolve.metrics import coverage, qd_score
from shoal.node import Stop
from shoal.node.standing import Progress
from shoal.runs import read
from tests.evolve.small import small


def test_the_figures_are_those_of_the_archives(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber", "builtin:random"), calls=41, rounds=4)
    folder, seen = tmp_path / "run", list[Progress]()
    assert run(settings, folder, in_process=True, progress=seen.append) == "finished"
    histories = read_run(folder).histories
    assert [node.spent for node in seen[-1].nodes] == [node.allowed for node in seen[-1].nodes] == [21, 20]
    for node, history in zip(seen[-1].nodes, histories, strict=True):
        assert history.archive is not None
        assert (node.name, node.model) == (history.name, history.model)
        assert (node.round, node.rounds, node.ended, node.done) == (4, 4, True, 1.0)
        assert node.coverage == coverage(history.archive)
        assert node.qd_score == pytest.approx(qd_score(history.archive))
        assert node.work * settings.repeats == history.plays, "as many battles for a retest, here"
        assert node.traffic.peers == 1
        assert node.traffic.received == history.champions_received > 0
        assert node.traffic.shared == 4
        opened = [event.note for event in history.events if event.note.step == "open"]
        assert node.traffic.used == sum(one.visitors for one in opened), "all of them may enter the archive"
        assert node.seconds_left == 0.0


def test_a_turn_without_an_archive_does_not_empty_the_view(tmp_path: Path) -> None:
    """Taking in what has arrived, between two rounds, is no news about the archive."""
    settings = small(models=("builtin:bomber", "builtin:random"), calls=40, rounds=2)
    folder, crew = tmp_path / "run", SearchCrew(settings)
    assert run(settings, folder, in_process=True) == "finished"
    whole = folder / "nodes" / "1-bomber" / "journal.jsonl"
    lines = whole.read_bytes().splitlines(keepends=True)
    drains = [at for at, line in enumerate(lines) if b'"note"' in line and b'"step":"drain"' in line]
    part = tmp_path / "journal.jsonl"
    part.write_bytes(b"".join(lines[: drains[1] + 1]))
    assert crew.watch(0, part).look().coverage > 0


def test_who_watches_changes_nothing(tmp_path: Path) -> None:
    """With and without a view every turn does the same."""
    settings = small(models=("builtin:bomber", "builtin:random"), calls=20, rounds=1)
    run(settings, tmp_path / "seen", in_process=True, progress=lambda _: None)
    run(settings, tmp_path / "unseen", in_process=True)
    for name in settings.node_names():
        paths = [tmp_path / which / "nodes" / name / "journal.jsonl" for which in ("seen", "unseen")]
        one, other = (
            [(record.time, bytes(record.payload)) for record in read(path) if record.kind == "note"]
            for path in paths
        )
        assert one == other


def test_a_resumed_run_goes_on_where_it_stood(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber", "builtin:random"), calls=400, rounds=2)
    folder, stop, seen = tmp_path / "run", Stop(), list[Progress]()

    def until_half(progress: Progress) -> None:
        seen.append(progress)
        if progress.done >= 20:
            stop.request("enough")

    assert run(settings, folder, in_process=True, stop=stop, progress=until_half) == "enough"
    stood = seen[-1]
    assert not any(node.ended for node in stood.nodes)
    seen.clear()
    run(settings, folder, in_process=True, progress=seen.append)
    for before, after in zip(stood.nodes, seen[0].nodes, strict=True):
        assert after.spent >= before.spent
        assert after.work >= before.work
        assert after.traffic.shared >= before.traffic.shared
