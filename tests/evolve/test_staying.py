"""A node that is done stays for others: gather rounds without calls, in virtual time, on resume and on replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.evolve.crew import SearchCrew, run
from shoal.evolve.summary import summarise
from shoal.node import Stop
from shoal.node.lockstep import Lockstep
from shoal.runs import RunFolder, read, to_toml
from shoal.runs.records import Asked, Sent, content_of
from tests.evolve.small import archives, histories, small

TWO = ("builtin:bomber", "builtin:replicator")


def kinds_of(folder: Path) -> list[list[str]]:
    """The steps of each node's turns."""
    return [[event.note.step for event in node.events] for node in histories(folder)]


def test_nodes_that_stay_take_in_the_last_champions_and_spend_nothing(tmp_path: Path) -> None:
    plain = small(models=TWO, calls=40, rounds=2)
    assert run(plain, tmp_path / "plain", in_process=True) == "finished"
    assert (
        run(small(models=TWO, calls=40, rounds=2, linger_rounds=1), tmp_path / "stay", in_process=True)
        == "finished"
    )
    for before, after, node in zip(kinds_of(tmp_path / "plain"), kinds_of(tmp_path / "stay"), summarise(tmp_path / "stay").nodes, strict=True):  # fmt: skip
        assert after[: len(before)] == before, "its own rounds are what they were"
        assert after[len(before) :] in (["drain", "open", "close"], ["drain"])
        assert (node.rounds, node.calls) == (2, 20)
    stayed = summarise(tmp_path / "stay").nodes
    assert sum(node.gather_rounds for node in stayed) > 0
    gone = summarise(tmp_path / "plain").nodes
    assert all(node.gather_rounds == 0 for node in gone)
    assert sum(node.champions_received for node in stayed) > sum(node.champions_received for node in gone)


def test_own_rounds_are_the_same_bit_for_bit_and_no_call_follows_them(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=40, rounds=2, linger_rounds=3)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    for node, history in zip(settings.node_names(), histories(tmp_path / "run"), strict=True):
        contents = [
            content_of(record) for record in read(tmp_path / "run" / "nodes" / node / "journal.jsonl")
        ]
        asked = [one for one in contents if isinstance(one, Asked)]
        assert sum(one.reserve.get("calls", 0) > 0 for one in asked) == 20
        assert not [one for one in contents if isinstance(one, Sent)]
        assert history.spent["calls"] == 20
        late = [event for event in history.events if event.note.round >= 2]
        assert not [event for event in late if event.note.step == "propose"]


def test_the_same_settings_give_the_same_run(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=40, rounds=2, linger_rounds=2, until="3s")
    for name in ("a", "b"):
        assert run(settings, tmp_path / name, in_process=True) == "finished"
    assert archives(tmp_path / "a") == archives(tmp_path / "b")
    assert kinds_of(tmp_path / "a") == kinds_of(tmp_path / "b")


def test_the_elites_of_the_last_own_round_stay_in_a_gather_round(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=60, rounds=2, linger_rounds=1)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    for history in histories(tmp_path / "run"):
        opened = [event for event in history.events if event.note.step == "open"]
        closed = [event for event in history.events if event.note.step == "close"]
        if len(opened) > 2:
            assert opened[2].note.evaluations >= closed[1].note.cells
            assert history.archive is not None
            assert len(history.archive) > 1


def test_until_is_a_span_of_the_runs_own_clock_in_one_process(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=8, rounds=1, until="20s")
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    for name in settings.node_names():
        times = [record.time for record in read(tmp_path / "run" / "nodes" / name / "journal.jsonl")]
        assert times[-1] - times[0] == pytest.approx(20.0, abs=0.1)
        assert len(times) < 80, "nothing is written while nothing arrives"
    with pytest.raises(ConfigError, match="a run in one process has its own"):
        run(small(models=TWO, calls=8, rounds=1, until="23:30"), tmp_path / "other", in_process=True)


def test_without_sharing_nobody_waits(tmp_path: Path) -> None:
    plain, staying = small(sharing="off"), small(sharing="off", linger_rounds=9, until="9h")
    for name, settings in (("a", plain), ("b", staying)):
        assert run(settings, tmp_path / name, in_process=True) == "finished"
    assert archives(tmp_path / "a") == archives(tmp_path / "b")
    assert kinds_of(tmp_path / "a") == kinds_of(tmp_path / "b")


def test_a_run_that_was_stopped_while_its_nodes_stay_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=40, rounds=2, linger_rounds=2)
    assert run(settings, tmp_path / "whole", in_process=True) == "finished"
    folder = tmp_path / "cut"
    stop = Stop()

    def stop_once_own_rounds_are_done(standings) -> None:  # type: ignore[no-untyped-def]
        if all(one.spent == one.allowed for one in standings()):
            stop.request()

    with RunFolder.create(folder, to_toml(settings)) as made:
        Lockstep(SearchCrew(settings), made).run(stop, stop_once_own_rounds_are_done)
    assert run(settings, folder, in_process=True) == "finished"
    for node in summarise(folder).nodes:
        assert (node.rounds, node.calls) == (2, 20)
    assert all(history.done for history in histories(folder))


@pytest.mark.parametrize(("changes", "words"), [({"until": "soon"}, "until: 'soon' is no moment")])
def test_a_mistake_is_told_before_anything_starts(changes: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        small(**changes).check()


def test_a_proposal_is_never_made_after_the_own_rounds(tmp_path: Path) -> None:
    settings = small(models=TWO, calls=24, rounds=3, linger_rounds=5)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    for history in histories(tmp_path / "run"):
        steps = [event.note for event in history.events]
        assert max(note.round for note in steps if note.step == "propose") == 2
        assert history.proposals == 12
