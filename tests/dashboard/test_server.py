"""The server answers readers of this machine, and refuses everybody and everything else."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("starlette", reason="the extra `web` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `web` is not installed")

from shoal.cli import main
from shoal.corewar import Settings, assemble, record, starter_source
from shoal.dashboard.guard import check_binding, read_token
from shoal.dashboard.server import MOST_STREAMS
from shoal.errors import ConfigError
from tests.dashboard.samples import NodeWriter, training, two_node_search
from tests.dashboard.serving import Served, ask, served

TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    return two_node_search(tmp_path_factory.mktemp("dashboard") / "run")


@pytest.fixture(scope="module")
def server(run: tuple[Path, dict[str, str]]) -> Iterator[Served]:
    with served(run[0]) as one:
        wait_for_data(one)
        yield one


def wait_for_data(one: Served, headers: dict[str, str] | None = None) -> None:
    until = time.monotonic() + 30
    while json.loads(ask(one.port, "/api/everything", headers).body)["reading"]["behind"] or not json.loads(
        ask(one.port, "/api/everything", headers).body
    ).get("nodes"):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_every_answer_forbids_what_is_not_ours(server: Served) -> None:
    for path in ("/", "/static/app.js", "/api/everything", "/nothing"):
        headers = ask(server.port, path).headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_page_names_nothing_from_elsewhere_and_has_no_inline_script(server: Served) -> None:
    page = ask(server.port, "/").body.decode()
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page)
    assert not re.search(r"<script(?![^>]*src=)", page)
    assert not re.search(r"\son\w+=", page)
    assert "style=" not in page


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_can_only_be_read(server: Served, method: str) -> None:
    assert ask(server.port, "/api/everything", method=method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/%2e%2e/config.toml",
        "/static//etc/passwd",
        "/static/app.js%00.css",
        "/api/runs/../programs/x",
        "/api/runs/-1/programs/x",
        "/api/runs/99/programs/x",
        "/api/runs/0/programs/..%2f..%2fconfig.toml",
        "/api/runs/%D9%A3/programs/x",
        "/config.toml",
    ],
)
def test_no_path_leads_to_a_file(server: Served, path: str) -> None:
    answer = ask(server.port, path)
    assert answer.status in (400, 404)
    assert b"models" not in answer.body


def test_oversize_requests_are_refused(server: Served) -> None:
    assert ask(server.port, "/?" + "x" * 3000).status == 414
    assert ask(server.port, "/", body=b"x").status == 413
    for size in (20_000, 100_000, 1_000_000):
        with contextlib.suppress(http.client.HTTPException, OSError):  # the connection may be closed on it
            assert ask(server.port, "/", {"X-Large": "x" * size}).status in (400, 431)
    assert ask(server.port, "/").status == 200, "and it goes on answering"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", ""])
def test_a_name_that_is_not_ours_is_refused(server: Served, host: str) -> None:
    assert ask(server.port, "/", {"Host": host}).status == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "LOCALHOST:9", "[::1]:80"])
def test_names_of_this_machine_are_let_in(server: Served, host: str) -> None:
    assert ask(server.port, "/", {"Host": host}).status == 200


def test_without_the_token_nothing_is_answered(run: tuple[Path, dict[str, str]]) -> None:
    with served(run[0], token=TOKEN) as one:
        for headers in (
            {},
            {"Authorization": "Bearer wrong-token"},
            {"Authorization": TOKEN},
            {"Cookie": f"shoal-dashboard-{one.port}={TOKEN}"},
        ):
            for path in (
                "/",
                "/static/app.js",
                "/api/everything",
                "/?token=wrong",
                "/?token=%ff",
                f"/api/everything?token={TOKEN}",
            ):
                answer = ask(one.port, path, headers)
                assert answer.status == 401, (path, headers)
                assert TOKEN.encode() not in answer.body
        assert ask(one.port, "/api/everything", {"Authorization": f"Bearer {TOKEN}"}).status == 200
        opened = ask(one.port, f"/?token={TOKEN}")
        assert (opened.status, opened.headers["location"]) == (303, "/")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert TOKEN not in cookie
        assert ask(one.port, "/api/everything", {"Cookie": cookie.partition(";")[0]}).status == 200


def test_it_does_not_listen_to_others_without_a_token(
    capsys: pytest.CaptureFixture[str], run: tuple[Path, dict[str, str]]
) -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(ConfigError, match="token"):
            check_binding(host, None)
        check_binding(host, TOKEN)
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        check_binding(host, None)
    assert main(["dashboard", str(run[0]), "--host", "0.0.0.0"]) == 2
    said = capsys.readouterr().err
    assert "--token-file" in said
    assert len(said.strip().splitlines()) == 1


def test_tokens_must_be_fit_to_be_ones(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(None, file) == TOKEN
    assert read_token(None, None) is None
    for token in ("", "short", "with a blank in it", "ümlaute-sind-schön", "tab\tinside-it"):
        with pytest.raises(ConfigError):
            read_token(token, None)
    with pytest.raises(ConfigError, match="one of the two"):
        read_token(TOKEN, file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token(None, tmp_path / "none")


def test_a_port_that_is_taken_is_named(
    run: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["dashboard", str(run[0]), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be bound" in capsys.readouterr().err


def test_a_missing_extra_teaches_how_to_install_it(
    run: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.delitem(sys.modules, "shoal.dashboard.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["dashboard", str(run[0])]) == 2
    assert "pip install 'shoal-swarm[web]'" in capsys.readouterr().err


def test_a_replay_is_the_round_that_the_seed_gives(server: Served, run: tuple[Path, dict[str, str]]) -> None:
    path = f"/api/runs/0/replay?program={run[1]['parent']}&opponent=starter:imp&seed=7&cycles=500"
    one, other = ask(server.port, path), ask(server.port, path)
    assert one.status == 200
    assert one.body == other.body
    head, _, words = one.body.partition(b"\n")
    assert json.loads(head)["seed"] == 7
    rules = Settings(stop="play-on")
    expected = record(
        [assemble(starter_source(name), rules) for name in ("dwarf", "imp")], rules, seed=7, steps=1000
    )
    assert np.array_equal(np.frombuffer(words, "<u4"), expected.events)
    elite = ask(
        server.port, f"/api/runs/0/replay?program={run[1]['parent']}&opponent=program:{run[1]['own']}"
    )
    assert elite.status == 200
    assert len(elite.body) < 2_000_000


@pytest.mark.parametrize(
    "query",
    [
        "",
        "program=x&opponent=starter:imp",
        "program={parent}&opponent=starter:../imp",
        "program={parent}&opponent=file:/etc/passwd",
        "program={parent}&opponent=starter:imp&cycles=99999999",
        "program={parent}&opponent=starter:imp&seed=-1",
        "program={parent}&opponent=starter:imp&seed=x",
        "program={parent}&opponent=program:unknown",
    ],
)
def test_a_replay_that_cannot_be_is_refused(
    server: Served, run: tuple[Path, dict[str, str]], query: str
) -> None:
    assert ask(server.port, f"/api/runs/0/replay?{query.format(**run[1])}").status in (400, 404)


def test_a_program_that_does_not_assemble_has_no_replay(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    writer = NodeWriter(run, "1-bomber")
    writer.turn = 4
    digest = writer.propose((0, 0), 1.0, "this is no program <script>")
    writer.close()
    with served(run) as one:
        wait_for_data(one)
        answer = ask(one.port, f"/api/runs/0/replay?program={digest}&opponent=starter:imp")
    assert answer.status == 404
    assert b"does not assemble" in answer.body


def test_streams_begin_with_everything_and_go_on_with_changes(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    with served(run, training(tmp_path / "training")) as one:
        wait_for_data(one)
        connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=30)
        connection.request("GET", "/api/events", headers={"Last-Event-ID": "99999"})
        stream = connection.getresponse()
        assert stream.headers["content-type"].startswith("text/event-stream")

        def told() -> dict:
            while not (line := stream.readline()).startswith(b"data: "):
                assert line
            return json.loads(line[6:])

        first = told()
        assert first["kind"] == "everything"
        assert [about["title"] for about in first["runs"]] == [
            f"{tmp_path.name}/run",
            f"{tmp_path.name}/training",
        ]
        writer = NodeWriter(run, "2-scanner")
        writer.turn = 4
        writer.propose((4, 4), 3.0, "one more", round_number=1)
        changed: list = []
        while not changed:
            changed = [node["grids"]["now"]["cells"] for node in told().get("nodes", [])]
        assert changed[0][0][0] == [4, 4]
        writer.close()
        connection.close()


def test_a_burst_of_streams_keeps_the_limit(run: tuple[Path, dict[str, str]]) -> None:
    with served(run[0]) as one:
        assert burst(one.port, 60) == MOST_STREAMS
        until = time.monotonic() + 60
        while (granted := burst(one.port, 60)) < MOST_STREAMS:  # streams whose pages are gone end by and by
            assert time.monotonic() < until
        assert granted == MOST_STREAMS


def burst(port: int, count: int) -> int:
    """Asks for `count` streams before any answer is read; returns how many were granted, and closes them."""
    sockets = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(count)]
    for connection in sockets:
        connection.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answers = [connection.recv(12) for connection in sockets]
    for connection in sockets:
        connection.close()
    assert set(answers) <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    return answers.count(b"HTTP/1.1 200")
