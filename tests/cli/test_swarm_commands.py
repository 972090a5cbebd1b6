"""relay, peers, invite and doctor as a person uses them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.cli import main
from shoal.runs import read
from shoal.swarm.accounts import ACCOUNTS, Accounts
from shoal.swarm.identity import Identity
from shoal.swarm.presence import PRESENCE, Presence
from tests.processes import shoal, started, wait_until

__all__ = ["started"]

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SHOAL_HOME", str(tmp_path / "home"))
    with tempfile.TemporaryDirectory(prefix="sh") as short:  # the path of a Unix socket has 107 bytes
        monkeypatch.setenv("XDG_RUNTIME_DIR", short)
        yield


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def relay() -> Iterator[str]:
    address = f"tcp/127.0.0.1:{free_port()}"
    process = start("relay", "--listen", address, "--seconds", "60")
    try:
        assert process.stdout is not None
        assert address in process.stdout.readline()
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("listen", "advertise", "shown"),
    [
        ("tcp/0.0.0.0:{}", [], "tcp/0.0.0.0:{}"),
        ("127.0.0.1:{}", [], "tcp/127.0.0.1:{}"),
        ("tcp/0.0.0.0:{}", ["--advertise", "tcp/example.org:7447"], "tcp/example.org:7447"),
    ],
)
def test_a_relay_says_where_it_listens_and_names_no_swarm(
    listen: str, advertise: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    port = free_port()
    assert main(["relay", "--listen", listen.format(port), *advertise, "--seconds", "0.1"]) == 0
    assert capsys.readouterr().out == f"relaying at {shown.format(port)}\n"


def test_an_invitation_needs_the_name_of_a_swarm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["invite", "tcp/example.org:7447", "--swarm", ""]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "shoal: --swarm is empty: give the swarm a name, e.g. --swarm herring\n"


def test_two_nodes_hear_each_other_through_a_relay(relay: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = start("peers", "--join", relay, "--seconds", "20", "--json")
    try:
        assert main(["doctor", "--join", f"shoal://{relay}/shoal", "--seconds", "8"]) == 0
        assert "1 peer heard" in capsys.readouterr().out
    finally:
        other.kill()
        other.communicate(timeout=10)


def test_peers_says_what_to_try_where_nobody_is_heard(capsys: pytest.CaptureFixture[str]) -> None:
    listening = ["peers", "--join", f"tcp/127.0.0.1:{free_port()}", "--seconds", "0.5"]
    assert main(listening) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("nobody was heard; try `shoal doctor --join ADDRESS`")
    assert main([*listening, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"peers": []}


def test_doctor_tells_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--join", f"tcp/127.0.0.1:{free_port()}"]) == 1
    shown = capsys.readouterr().out
    assert "LOOK  reach" in shown
    assert "firewalls" in shown
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["doctor", "--listen", f"tcp/127.0.0.1:{taken.getsockname()[1]}", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)
    assert next(finding["check"] for finding in findings if not finding["well"]).startswith("listen")


def test_doctor_refuses_an_identity_that_others_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "identity.key"
    Identity.load_or_create(key)
    os.chmod(key, 0o644)
    assert main(["doctor", "--key", str(key)]) == 1
    assert "LOOK  identity" in capsys.readouterr().out


def test_invite_prints_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = tmp_path / "secret"
    secret.write_text("seven seas\n")
    arguments = ["invite", "tcp/example.org:7447", "--swarm", "herring", "--swarm-secret-file", str(secret)]
    assert main(arguments) == 0
    assert capsys.readouterr().out == (
        "shoal peers --join 'shoal://tcp/example.org:7447/herring?secret=seven%20seas'\n"
    )


def test_peers_shows_the_accounts_that_were_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    accounts = Accounts()
    author = Identity.create().node_id
    for _ in range(5):
        accounts.of(author).received += 1
        accounts.credit(author, "verified")
    accounts.credit(author, "rejected", "wrong answer")
    accounts.save(tmp_path / "run" / "nodes" / "a" / "accounts.json")
    assert main(["peers", str(tmp_path / "run"), "--json"]) == 0
    (peer,) = json.loads(capsys.readouterr().out)["peers"]
    assert (peer["node_id"], peer["verified"], peer["rejected"]) == (author, 5, {"wrong answer": 1})
    assert peer["established"]
    assert main(["peers", str(tmp_path / "run")]) == 0
    assert "established" in capsys.readouterr().out


def has_verdict(journal: Path) -> bool:
    return journal.exists() and b'"kind":"verdict"' in journal.read_bytes()


def test_peers_tells_the_truth_while_a_run_goes_on(
    tmp_path: Path, started: list[subprocess.Popen[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shoal(started, "train", "--nodes", 2, "--models", "table:small", "--steps", 1_000_000, "--out", folder, "--set", "evaluate_every=0")  # fmt: skip
    journals = [folder / "nodes" / f"{number}-table-small" / "journal.jsonl" for number in (1, 2)]
    wait_until(lambda: all(has_verdict(one) for one in journals), "a verdict in both journals")
    assert main(["peers", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert started[0].poll() is None, "the run goes on, and its accounts are not written yet"
    assert found["heard"].keys() == {"1-table-small", "2-table-small"}
    assert [row["seen_by"] for row in found["peers"]] == ["1-table-small", "2-table-small"]
    for row, journal in zip(found["peers"], journals, strict=True):
        kinds = [record.kind for record in read(journal)]
        assert 0 < row["received"] <= kinds.count("arrived")
        assert 0 < row["verified"] <= kinds.count("verdict")
    assert main(["peers", str(folder)]) == 0
    assert "nobody" not in capsys.readouterr().out


def test_peers_of_a_run_in_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    arguments = [
        "train",
        "--nodes",
        "2",
        "--models",
        "table:small",
        "--steps",
        "3",
        "--in-process",
        "--quiet",
    ]
    assert main([*arguments, "--out", str(folder)]) == 0
    capsys.readouterr()
    assert main(["peers", str(folder)]) == 0
    said = capsys.readouterr().out
    assert said.count("established") == 2
    assert "1-table-small" in said


def test_peers_that_have_sent_nothing_are_not_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Accounts().save(tmp_path / ACCOUNTS)
    assert main(["peers", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "nobody was heard\n"
    Presence(tmp_path / PRESENCE, most=9).note(["b"])
    assert main(["peers", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 peer was heard, and no item of theirs has arrived yet\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["relay"], "--listen"),
        (["peers", "nowhere"], "holds no accounts"),
        (["peers", "--join", "http://x"], "not known"),
        (["peers", "--join", "shoal://nothing"], "not an invitation"),
        (["peers", "--transport", "pigeon"], "pigeon"),
        (["peers", "--join", "tls/host:1"], "certificates"),
        (["relay", "--listen", "tcp/0.0.0.0:1", "--tls-key", "x"], "all three"),
        (["evolve", "--degree", "3", "--in-process"], "--in-process has no network"),
        (
            ["train", "--degree", "3", "--join", "nats://h:1", "--transport", "nats"],
            "a NATS node has one link",
        ),
        (["invite", "example"], "no port"),
        (["invite", "tcp/a:1", "--swarm-secret-file", "missing"], "cannot be read"),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) == 1


def test_invite_makes_certificates_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "tls"
    common = ["invite", "tls/example.org:7447", "--swarm", "herring", "--tls", str(folder)]
    assert main([*common, "--node", "alice"]) == 0
    said = capsys.readouterr().out
    assert "authority.key signs the swarm's certificates" in said
    assert "shoal relay --listen tls/0.0.0.0:7447 --tls-authority authority.pem" in said
    assert "--join 'shoal://tls/example.org:7447/herring' --tls-authority authority.pem" in said
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*common, "--node", "alice", "--node", "bob=bob.example.org", "--json"]) == 0
    nodes = json.loads(capsys.readouterr().out)["nodes"]
    assert [(one["name"], one["new"]) for one in nodes] == [
        ("example.org", False),
        ("alice", False),
        ("bob", True),
    ]
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["tcp/host:7447", "--tls", "tls"], "tls/host:7447"),
        (["tls/host:7447", "--node", "alice"], "--tls DIR"),
        (["tls/host:7447", "--tls", "tls", "--node", "a", "--node", "a"], "named twice"),
        (["tls/host:7447", "--tls", "tls", "--node", "../a"], "cannot be the name"),
    ],
)
def test_invite_explains_what_is_wrong(
    arguments: list[str],
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["invite", *arguments]) == 2
    assert hint in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
