"""Checks for `shoal doctor`: whatever is wrong is a finding with a remedy."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shoal.swarm.checkup import Finding, can_reach, certificates, check_machine, peers_heard
from shoal.swarm.transport import TlsFiles, neighbours, open_transport
from shoal.swarm.transport.certificates import issue_certificates


@pytest.fixture
def files(tmp_path: Path) -> dict[str, TlsFiles]:
    issued = issue_certificates(tmp_path / "tls", {"host": ["127.0.0.1"], "alice": [], "bob": []})
    return {one.name: one.files for one in issued}


def last_of(tmp_path: Path, join: list[str], tls: TlsFiles | None) -> Finding:
    return list(check_machine(str(tmp_path / "identity.key"), [], join, tls))[-1]


def test_a_wrong_file_is_a_finding_with_a_remedy(tmp_path: Path, files: dict[str, TlsFiles]) -> None:
    alice, garbage = files["alice"], tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    for wrong, remedy in (
        (replace(alice, key=tmp_path / "none"), "--tls-key"),
        (replace(alice, certificate=garbage), "--tls-certificate"),
        (replace(alice, authority=tmp_path), "--tls-authority"),
        (replace(alice, key=files["bob"].key), "files of one node"),
    ):
        found = last_of(tmp_path, ["tls/127.0.0.1:9"], wrong)
        assert found.check == "certificates", "addresses are not checked without certificates"
        assert not found.well
        assert remedy in found.remedy


def test_expired_certificates_are_told(files: dict[str, TlsFiles]) -> None:
    now = datetime.now(UTC)
    assert certificates(files["alice"], now)[1] == ""
    assert "has expired" in certificates(files["alice"], now + timedelta(days=400))[1]
    assert "check the clock" in certificates(files["alice"], now - timedelta(days=1))[1]


def test_addresses_must_fit_the_certificates(tmp_path: Path, files: dict[str, TlsFiles]) -> None:
    assert "needs certificates" in last_of(tmp_path, ["tls/127.0.0.1:9"], None).remedy
    assert "plain TCP" in last_of(tmp_path, ["tcp/127.0.0.1:9"], files["alice"]).remedy


def test_a_peer_over_tls_is_reached_with_the_right_files_only(
    tmp_path: Path, files: dict[str, TlsFiles], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.0, 0.0))
    (eve,) = issue_certificates(tmp_path / "other", {"eve": []})
    host = open_transport("zenoh", swarm="s", node_id="h", listen=["tls/127.0.0.1:0"], tls=files["host"])
    try:
        (place,) = host.endpoints()
        assert can_reach(place, files["alice"])[1] == ""
        found, remedy = can_reach(place, eve.files)
        assert "refused here" in found
        assert "--tls-authority" in remedy
        found, remedy = can_reach(place, replace(eve.files, authority=files["host"].authority))
        assert "no TLS connection" in found
        assert "authority" in remedy
        found, remedy = can_reach(place.replace("127.0.0.1", "localhost"), files["alice"])
        assert "names localhost" in remedy
    finally:
        host.close()


def test_the_reasons_why_nobody_is_heard_are_told_apart() -> None:
    assert peers_heard(1, {}) == Finding("peers", "1 peer heard")
    other = peers_heard(0, {"rejected: swarm": 30})
    assert other.found == "0 peers heard; messages refused: 30 of another swarm"
    assert "--swarm" in other.remedy
    assert "clocks differ" in peers_heard(2, {"rejected: future": 1}).remedy
    assert "runs there" in peers_heard(0, {}).remedy
