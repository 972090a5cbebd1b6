"""The server: one page, its files, a stream of messages, and programs and replays when they are asked for.

    GET /                                  the page
    GET /static/<name>                     its files, by name from a table
    GET /api/everything                    one message with everything, for programs
    GET /api/events                        the same as server-sent events, then the changes
    GET /api/runs/<i>/programs/<digest>    a program and its ancestors
    GET /api/runs/<i>/replay?program=&opponent=&seed=&cycles=

Nothing in a request is ever used as a path: runs go by number, everything else is looked up in tables.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from shoal.dashboard.guard import MOST_HEADER_BYTES, Guard, numeric
from shoal.dashboard.messages import Cursor
from shoal.dashboard.replay import USUAL_CYCLES, NoReplay, play, sources_of
from shoal.dashboard.run_view import RunView
from shoal.dashboard.single_file import assets
from shoal.dashboard.watcher import Watcher
from shoal.errors import ConfigError

MOST_STREAMS = 32
PERIOD = 0.4  # seconds between messages to one page, at the least
BEAT = 10.0  # seconds between signs of life, at the most
MOST_REPLAYS_AT_ONCE = 2


class Dashboard:
    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.streams = 0
        self.stops: Callable[[], bool] = lambda: False
        self._replays = asyncio.Semaphore(MOST_REPLAYS_AT_ONCE)

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/", self.static),
                Route("/static/{name}", self.static),
                Route("/api/everything", self.everything),
                Route("/api/events", self.events),
                Route("/api/runs/{run}/programs/{digest}", self.program),
                Route("/api/runs/{run}/replay", self.replay),
            ]
        )

    async def static(self, request: Request) -> Response:
        found = assets().get(request.path_params.get("name", "index.html"))
        if found is None:
            raise HTTPException(404, "There is no such file.")
        return Response(found[0], media_type=found[1])

    async def everything(self, request: Request) -> Response:
        return _json(await run_in_threadpool(self.watcher.message, Cursor()))

    async def events(self, request: Request) -> Response:
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, f"{MOST_STREAMS} pages are open already: close some.")
        self.streams += 1  # before anything is awaited, or a burst of pages would all find room
        return _Stream(self)

    async def stream(self) -> AsyncIterator[bytes]:
        """A page that comes back gets everything anew: it is small, and cannot be wrong."""
        cursor, silent = Cursor(), 0.0
        yield b"retry: 1000\n\n"
        while not self.stops():  # a server that is asked to stop waits for its answers to end
            told = await run_in_threadpool(self.watcher.message, cursor)
            if told is not None or silent >= BEAT:
                told = told or {"kind": "beat"}
                if self.watcher.failure:
                    told["failure"] = self.watcher.failure
                # JSON has no raw line feeds, so one data line holds it.
                yield b"id: %d\ndata: %b\n\n" % (cursor.number, msgspec.json.encode(told))
                silent = 0.0
            await asyncio.sleep(PERIOD)
            silent += PERIOD

    async def program(self, request: Request) -> Response:
        found = await run_in_threadpool(self._lineage, self._run(request), request.path_params["digest"])
        if not found:
            raise HTTPException(404, "This program is not kept any more.")
        return _json(found)

    async def replay(self, request: Request) -> Response:
        run, asked = self._run(request), request.query_params
        try:
            seed, cycles = int(asked.get("seed", "0")[:12]), int(asked.get("cycles", str(USUAL_CYCLES))[:12])
            program, opponent = asked["program"], asked["opponent"]
        except (KeyError, ValueError) as error:
            raise HTTPException(400, "Give program, opponent, seed and cycles.") from error
        async with self._replays:
            try:
                found = await run_in_threadpool(self._play, run, program, opponent, seed, cycles)
            except NoReplay as error:
                raise HTTPException(404, str(error)) from error
        return Response(found, media_type="application/octet-stream")

    def _lineage(self, run: RunView, digest: str) -> list[dict[str, Any]]:
        with self.watcher.lock:
            return run.lineage(digest)

    def _play(self, run: RunView, program: str, opponent: str, seed: int, cycles: int) -> bytes:
        with self.watcher.lock:
            sources = sources_of(run, program, opponent)
        return play(run, sources, seed, cycles)

    def _run(self, request: Request) -> RunView:
        numbered = {str(number): run for number, run in enumerate(self.watcher.runs)}
        run = numbered.get(request.path_params["run"])
        if run is None:
            raise HTTPException(404, "There is no such run.")
        return run


class _Stream(StreamingResponse):
    """Counts as open until the answer is over, also if its page went away before the first byte."""

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__(dashboard.stream(), media_type="text/event-stream")
        self._dashboard = dashboard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._dashboard.streams -= 1


def serve(
    watcher: Watcher,
    *,
    host: str,
    port: int,
    token: str | None,
    names: Iterable[str] = (),
    ready: Callable[[str, uvicorn.Server], None] = lambda address, server: None,
) -> None:
    """Serves until interrupted. `ready` is told the address once it is bound. Port 0: any free one."""
    listening = _bind(host, port)
    port = listening.getsockname()[1]
    dashboard = Dashboard(watcher)
    own_names = [*names, *([host] if numeric(host) is None else []), socket.gethostname()]
    guarded = Guard(dashboard.application(), token, own_names, f"shoal-dashboard-{port}")
    config = uvicorn.Config(
        guarded, log_level="warning", access_log=False, server_header=False, lifespan="off", ws="none",
        loop="asyncio", http="h11", h11_max_incomplete_event_size=MOST_HEADER_BYTES, limit_concurrency=128,
        timeout_keep_alive=15, timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(config)
    dashboard.stops = lambda: server.should_exit
    watcher.start()
    try:
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/", server)
        server.run(sockets=[listening])
    finally:
        watcher.stop()
        listening.close()


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(128)
    except OSError as error:
        raise ConfigError(
            f"--host {host} --port {port}: cannot be bound: {error.strerror or error}"
        ) from error
    return listening


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
