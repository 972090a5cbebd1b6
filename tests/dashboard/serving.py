"""A dashboard in a thread of this process, on a port of this machine."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shoal.cli.dashboard import watch
from shoal.dashboard.server import serve


class Served(NamedTuple):
    port: int
    address: str


@contextmanager
def served(*runs: Path, port: int = 0, token: str | None = None) -> Iterator[Served]:
    found: dict[str, Any] = {}
    is_ready = threading.Event()

    def ready(address: str, server: Any) -> None:
        found.update(address=address, server=server)
        is_ready.set()

    thread = threading.Thread(
        target=serve,
        args=(watch(list(runs)),),
        kwargs={"host": "127.0.0.1", "port": port, "token": token, "ready": ready},
        daemon=True,
    )
    thread.start()
    assert is_ready.wait(30), "the server did not start"
    address = str(found["address"])
    try:
        yield Served(int(address.rstrip("/").rpartition(":")[2]), address)
    finally:
        found["server"].should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    port: int,
    path: str,
    headers: dict[str, str] | None = None,
    method: str = "GET",
    body: bytes | None = None,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return Answer(
            answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        )
    finally:
        connection.close()
