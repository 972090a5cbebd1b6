"""Certificates for a swarm: made once, added to later, never overwritten, and accepted by real nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.swarm.transport import neighbours, open_transport
from shoal.swarm.transport.certificates import issue_certificates
from tests.swarm.transport.test_opening import hears


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_two_nodes_meet_with_the_files_that_were_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.0, 0.0))
    (relay,) = issue_certificates(tmp_path, {"relay": ["127.0.0.1"]})
    (alice,) = issue_certificates(tmp_path, {"alice": []})
    host = open_transport("zenoh", swarm="s", node_id="host", listen=["tls/127.0.0.1:0"], tls=relay.files)
    try:
        host.subscribe(frozenset({"news"}))
        guest = open_transport("zenoh", swarm="s", node_id="guest", join=host.endpoints(), tls=alice.files)
        try:
            assert hears(guest, host, 10.0)
        finally:
            guest.close()
    finally:
        host.close()


def test_a_second_call_adds_nodes_and_changes_no_file(tmp_path: Path) -> None:
    issue_certificates(tmp_path, {"relay": ["example.org"], "alice": []})
    before = content(tmp_path)
    again = issue_certificates(tmp_path, {"alice": ["other.example"], "bob": []})
    assert [(one.name, one.is_new) for one in again] == [("alice", False), ("bob", True)]
    after = content(tmp_path)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"bob.pem", "bob.key"}
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == (0o600 if path.suffix == ".key" else 0o644)
    for one in again:
        one.files.check()


@pytest.mark.parametrize("name", ["", "authority", "../alice", ".alice", "a/b", "a b", "x" * 65])
def test_names_that_cannot_name_files_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be the name"):
        issue_certificates(tmp_path / "new", {"bob": [], name: []})
    assert not (tmp_path / "new").exists()


def test_half_a_pair_is_an_error_that_names_the_missing_half(tmp_path: Path) -> None:
    issue_certificates(tmp_path, {"alice": []})
    (tmp_path / "alice.key").unlink()
    with pytest.raises(ConfigError, match=r"alice.pem exists without alice.key"):
        issue_certificates(tmp_path, {"alice": []})
    (tmp_path / "authority.pem").unlink()
    with pytest.raises(ConfigError, match=r"authority.key exists without authority.pem"):
        issue_certificates(tmp_path, {"bob": []})


def test_a_damaged_authority_is_told_in_one_line(tmp_path: Path) -> None:
    issue_certificates(tmp_path, {"alice": []})
    (tmp_path / "authority.pem").write_text("garbage")
    with pytest.raises(ConfigError, match="is damaged"):
        issue_certificates(tmp_path, {"bob": []})
