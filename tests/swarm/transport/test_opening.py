"""`open_transport`: the errors of a command line, and who gets in with which certificates."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.swarm.transport import TlsFiles, Transport, local, neighbours, open_transport
from shoal.swarm.transport.certificates import create_authority, issue_certificate
from tests.swarm.transport.conftest import eventually, free_port


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("memory", {}, "inside one process"),
        ("carrier-pigeon", {}, '"zenoh" or "nats"'),
        ("zenoh", {"join": ["nats://host"]}, 'choose the transport "nats"'),
        ("zenoh", {"join": ["tls/host:1"]}, "needs certificates"),
        ("nats", {"join": ["tcp/host:1"]}, "nats://host:port"),
        ("nats", {"listen": ["host:1"]}, "does not listen"),
        ("nats", {"degree": 4}, "a NATS node has one link"),
        ("zenoh", {"degree": 0}, "degree 0: give the number of links that a node dials, 1 to 32"),
        ("zenoh", {"degree": 33}, "degree 33"),
    ],
)
def test_errors_of_a_command_line(name: str, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_transport(name, swarm="s", node_id="n", **options)
    assert hint in str(caught.value)


def test_plain_addresses_are_refused_where_certificates_are_given(certificates: TlsFiles) -> None:
    with pytest.raises(ConfigError, match="plain TCP"):
        open_transport("zenoh", swarm="s", node_id="n", join=["tcp/127.0.0.1:1"], tls=certificates)


def test_certificate_files_are_checked_before_anything_is_opened(
    certificates: TlsFiles, tmp_path: Path
) -> None:
    other = issue_certificate(create_authority(tmp_path), tmp_path, "other")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("garbage")
    for files, hint in (
        (replace(certificates, key=tmp_path / "none"), "cannot be read"),
        (replace(certificates, authority=garbage), "not a PEM certificate"),
        (replace(certificates, key=garbage), "not a PEM private key"),
        (replace(certificates, key=other.key), "does not belong"),
    ):
        with pytest.raises(ConfigError, match=hint):
            open_transport("zenoh", swarm="s", node_id="n", listen=["127.0.0.1:0"], tls=files)


def test_keys_are_private_and_never_overwritten(certificates: TlsFiles) -> None:
    assert certificates.key.stat().st_mode & 0o777 == 0o600
    with pytest.raises(ConfigError, match="not overwritten"):
        create_authority(certificates.authority.parent)


def hears(speaker: Transport, listener: Transport, seconds: float) -> bool:
    def heard() -> bool:
        speaker.publish("news", b"anyone?")
        time.sleep(0.05)
        return bool(listener.collect())

    return eventually(heard, seconds)


def test_only_members_with_a_certificate_of_the_authority_get_in(
    certificates: TlsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    import zenoh

    from shoal.swarm.transport.neighbours import Draw
    from shoal.swarm.transport.zenoh import ZenohTransport
    from shoal.swarm.transport.zenoh_session import settings

    monkeypatch.setattr(neighbours, "LISTEN_FIRST_SECONDS", (0.0, 0.0))
    host = open_transport("zenoh", swarm="s", node_id="host", listen=["127.0.0.1:0"], tls=certificates)
    (place,) = host.endpoints()
    host.subscribe(frozenset({"news"}))
    opened = [host]
    try:
        folder = tmp_path / "foreign"
        foreign = issue_certificate(create_authority(folder, "another swarm"), folder, "node", ["127.0.0.1"])
        # A stranger who trusts the swarm's authority but holds a certificate of another one.
        stranger = replace(foreign, authority=certificates.authority)
        for files in (stranger, foreign):
            node = open_transport("zenoh", swarm="s", node_id="n", join=[place], tls=files)
            opened.append(node)
            node.subscribe(frozenset({"news"}))
            assert not hears(node, host, 0.7)
            assert not hears(host, node, 0.7)
        plain = open_transport("zenoh", swarm="s", node_id="p", join=[place.replace("tls/", "tcp/")])
        opened.append(plain)
        assert not hears(plain, host, 0.7)
        # No certificate at all.
        config = settings(Draw("client", (), (place,)), certificates)
        for name in ("connect_certificate", "connect_private_key"):
            del config["transport"]["link"]["tls"][name]
        config["transport"]["link"]["tls"]["enable_mtls"] = False
        with pytest.raises(zenoh.ZError):
            zenoh.open(zenoh.Config.from_json5(json.dumps(config)))
        member_files = issue_certificate(certificates.authority, tmp_path, "member")
        member = open_transport("zenoh", swarm="s", node_id="m", join=[place], tls=member_files)
        opened.append(member)
        assert isinstance(member, ZenohTransport)
        assert hears(member, host, 5.0)
    finally:
        for node in opened:
            node.close()


def test_a_client_waits_for_a_node_that_is_not_there_yet() -> None:
    place = f"tcp/127.0.0.1:{free_port()}"
    client = open_transport("zenoh", swarm="s", node_id="c", join=["tcp/127.0.0.1:9", place])
    try:
        assert not client.publish("news", b"to nobody")
        host = open_transport("zenoh", swarm="s", node_id="h", listen=[place])
        try:
            host.subscribe(frozenset({"news"}))
            assert hears(client, host, 8.0)
        finally:
            host.close()
    finally:
        client.close()


def test_more_nodes_than_routers_on_one_machine(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MOST_ROUTERS", 4)
    nodes = [open_transport("zenoh", swarm="s", node_id=f"{number}", runtime=runtime) for number in range(8)]
    try:
        assert [len(node.endpoints()) for node in nodes] == [1] * 4 + [0] * 4
        for node in nodes:
            node.subscribe(frozenset({"news"}))
        assert hears(nodes[7], nodes[6], 10.0)
        assert hears(nodes[6], nodes[0], 10.0)
        assert hears(nodes[1], nodes[7], 10.0)
    finally:
        for node in nodes:
            node.close()


def test_a_swarm_whose_nodes_dial_one_link_each_is_connected(runtime: Path) -> None:
    nodes = [
        open_transport("zenoh", swarm="s", node_id=f"{number}", runtime=runtime, degree=1)
        for number in range(4)
    ]
    try:
        for node in nodes:
            node.subscribe(frozenset({"news"}))
        assert all(hears(nodes[number], nodes[0], 20.0) for number in (1, 2, 3))
    finally:
        for node in nodes:
            node.close()


def test_a_process_ends_by_itself_although_its_transport_was_not_closed(runtime: Path) -> None:
    program = (
        "import pathlib, shoal.swarm.transport as t\n"
        f"n = [t.open_transport('zenoh', swarm='s', node_id=f'{{i}}', runtime=pathlib.Path({str(runtime)!r}))"
        " for i in range(2)]\n"
        "n[0].subscribe(frozenset(f'topic{i}' for i in range(16)))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr) == (0, ""), "no thread of a subscriber is left to abort it"
    assert [path.name for folder in runtime.iterdir() for path in folder.iterdir()] == [".guard"]


def test_engines_are_imported_when_they_are_opened() -> None:
    program = (
        "import sys, shoal.swarm.transport, shoal.swarm.transport.addresses\n"
        "print({'zenoh', 'nats', 'cryptography', 'asyncio'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert found.stdout.strip() == "set()"


def test_missing_package_is_explained() -> None:
    program = (
        "import sys; sys.modules['nats'] = None\n"
        "from shoal.swarm.transport import open_transport\n"
        "try: open_transport('nats', swarm='s', node_id='n')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert found.stdout.startswith("ConfigError")
    assert "pip install 'shoal-swarm[nats]'" in found.stdout
