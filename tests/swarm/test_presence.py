"""The file that says how many peers a node has heard of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.swarm.presence import PRESENCE, Presence, peers_seen


def test_peers_are_counted_once_and_stay_seen(tmp_path: Path) -> None:
    path = tmp_path / PRESENCE
    presence = Presence(path, most=3)
    presence.note([])
    assert peers_seen(path) == 0
    presence.note(["a", "b"])
    presence.note(["b"])
    assert json.loads(path.read_bytes()) == {"version": 1, "seen": 2, "present": 1}
    presence.note(["c", "d", "e"])
    assert peers_seen(path) == 3, "no more than it was told to tell apart"


def test_it_is_written_only_when_a_number_changes(tmp_path: Path) -> None:
    path = tmp_path / PRESENCE
    presence = Presence(path, most=10)
    presence.note(["a"])
    path.unlink()
    presence.note(["a"])
    assert not path.exists()
    presence.note(["b"])
    assert peers_seen(path) == 2


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Presence(tmp_path / "file" / PRESENCE, most=10).note(["a"])


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version":1,"seen":"3","present":1}', b"\xff" * 9000, b'{"seen":1}']
)
def test_anything_else_is_no_peers(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / PRESENCE
    path.write_bytes(content)
    assert peers_seen(path) == 0
    assert peers_seen(tmp_path / "nowhere") == 0
