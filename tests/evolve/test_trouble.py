"""What goes wrong at one node is one clear line, and the others do not notice."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from shoal.errors import ConfigError, RunError
from shoal.evolve.crew import SearchStanding, run
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop
from shoal.node.standing import Progress
from shoal.runs import parse
from tests.evolve.small import archives, histories, small
from tests.models.server import Misbehaving

GOOD = "builtin:bomber"


def ended(folder: Path, settings: EvolveSettings) -> tuple[str, dict[str, SearchStanding]]:
    seen: list[Progress[SearchStanding]] = []
    reason = run(settings, folder, in_process=True, progress=seen.append)
    return reason, {node.model: node for node in seen[-1].nodes}


def test_misbehaving_endpoints_stop_only_their_own_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Misbehaving() as server:
        monkeypatch.setenv("KEY_OF_A_TEST", "sk-very-secret")
        bad = {
            name: f"{server.root}/v1#{name}?key=KEY_OF_A_TEST"
            for name in ("unauthorized", "hang", "broken", "garbage", "missing")
        }
        bad["dead"] = "http://127.0.0.1:9/v1#dead"
        settings = small(
            models=(GOOD, *bad.values()), calls=70, deadline=1.0, attempts=2, look_ahead=2, give_up_after=2
        )
        reason, nodes = ended(tmp_path / "run", settings)
        lines = {name: nodes[spec].trouble for name, spec in bad.items()}
    assert all(lines.values())
    assert all("\n" not in line for line in lines.values())
    assert "key" in lines["unauthorized"]
    assert "sk-very-secret" not in reason
    assert "hang" in lines["hang"]
    assert "missing" in lines["missing"]
    assert server.calls["unauthorized"] == 2  # both that were under way, and no more
    good, *others = histories(tmp_path / "run")
    assert good.done
    assert good.spent["calls"] == 10
    assert all(node.spent.get("calls", 0) <= 10 for node in others)
    hung = others[list(bad).index("hang")]
    assert hung.timeouts == hung.proposals >= 2
    assert not any(b"sk-very-secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    # The endpoint is mended, and the run goes on where it was.
    with Misbehaving() as server:
        mended = small(models=(f"{server.root}/v1#fine",), calls=9, deadline=5.0)
        assert run(mended, tmp_path / "fine", in_process=True) == "finished"
        (node,) = histories(tmp_path / "fine")
    assert (node.spent["calls"], node.valid, node.spent["tokens"]) == (9, 9, 9 * 17)


def test_a_node_that_gave_up_tries_again_when_it_is_resumed(tmp_path: Path) -> None:
    with Misbehaving() as server:
        settings = small(
            models=(GOOD, f"{server.root}/v1#broken-twice"),
            calls=40,
            attempts=1,
            give_up_after=2,
            look_ahead=1,
        )
        reason, _ = ended(tmp_path / "run", settings)
        assert "broken-twice" in reason
        assert [node.done for node in histories(tmp_path / "run")] == [True, False]
        assert run(settings, tmp_path / "run", in_process=True) == "finished"
        assert server.calls["broken-twice"] == 20
    assert [node.spent["calls"] for node in histories(tmp_path / "run")] == [20, 20]


def test_an_endpoint_that_refuses_settings_one_by_one_is_learnt_and_used(tmp_path: Path) -> None:
    with Misbehaving() as server:
        settings = small(models=(f"{server.root}/v1#picky",), calls=40, attempts=2)
        assert run(settings, tmp_path / "run", in_process=True) == "finished"
        assert server.calls["picky"] == 40
    (node,) = histories(tmp_path / "run")
    assert node.spent["calls"] == 40
    assert node.valid > 20


def test_rubbish_is_recorded_and_costs_its_calls(tmp_path: Path) -> None:
    with Misbehaving() as server:
        settings = small(models=(GOOD, f"{server.root}/v1#echo-answer"), calls=24)
        assert run(settings, tmp_path / "run", in_process=True) == "finished"
    good, rubbish = histories(tmp_path / "run")
    assert (rubbish.proposals, rubbish.valid, rubbish.spent["calls"]) == (12, 0, 12)
    assert good.valid == 12
    assert rubbish.done


def test_a_full_disk_stops_one_node_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = small(models=(GOOD, "builtin:random"), calls=60, sharing="off")
    assert run(settings, tmp_path / "whole", in_process=True) == "finished"
    write, room = os.write, 20_000

    def limited(descriptor: int, data: bytes) -> int:
        nonlocal room
        if "2-random/journal" in os.readlink(f"/proc/self/fd/{descriptor}"):
            room -= len(data)
            if room < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", limited)
    reason, nodes = ended(tmp_path / "run", settings)
    assert "No space left on device" in nodes["builtin:random"].trouble
    assert "2-random" in reason
    assert "\n" not in reason
    assert [node.done for node in histories(tmp_path / "run")] == [True, False]
    monkeypatch.setattr(os, "write", write)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    assert [node.spent["calls"] for node in histories(tmp_path / "run")] == [30, 30]
    assert archives(tmp_path / "run")[0] == archives(tmp_path / "whole")[0]


def test_a_run_that_was_stopped_goes_on(tmp_path: Path) -> None:
    stop = Stop()

    def watch(progress: Progress) -> None:
        if progress.done >= 10:
            stop.request("enough")

    settings = small(calls=480)  # long enough that somebody looks at it before it has ended
    assert run(settings, tmp_path / "run", in_process=True, stop=stop, progress=watch) == "enough"
    before = [node.events for node in histories(tmp_path / "run")]
    assert 10 <= sum(node.spent["calls"] for node in histories(tmp_path / "run")) < 480
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    nodes = histories(tmp_path / "run")
    assert sum(node.spent["calls"] for node in nodes) == 480
    for node, earlier in zip(nodes, before, strict=True):
        assert node.events[: len(earlier)] == earlier
    assert run(settings, tmp_path / "run", in_process=True) == "finished"  # nothing is left to do
    assert [node.events for node in histories(tmp_path / "run")] == [node.events for node in nodes]


def test_another_run_in_the_folder_is_not_touched(tmp_path: Path) -> None:
    run(small(calls=12), tmp_path / "run", in_process=True)
    with pytest.raises(RunError, match=r"other settings here \(calls, seed\)"):
        run(small(calls=13, seed=3), tmp_path / "run", in_process=True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rouns = 3", "rouns: there is no such setting. Did you mean rounds?"),
        ("new_share = 2.0", "new_share"),
        ('sharing = "some"', "sharing"),
        ("[corewar]\ncore_size = 800", "corewar: there is no such setting. It is called options now."),
        ("battles = 3", "battles: there is no such setting. It is called repeats now."),
        ("calls = -1", "calls"),
        ("calls = 1_000_000_001", "calls: Expected `int` <= 1000000000"),
        ("rounds = 1_000_001", "rounds: Expected `int` <= 1000000"),
        ("repeats = 100_001", "repeats: Expected `int` <= 100000"),
        ("look_ahead = 1001", "look_ahead: Expected `int` <= 1000"),
    ],
)
def test_an_illegal_config_names_the_key(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(EvolveSettings, text)
    assert words in str(caught.value)
