"""One process of the swarm benchmarks: `python -m bench.swarm_node FORM FOLDER INDEX NODES ITEMS`.

FORM is `exchange` (share and gather with every check), `puts` (the bare engine, one put per item), `batches`
(the bare engine, the same bytes in puts of 60 KB), `nats` (bare NATS, one message per item, through the
server whose address is in FOLDER/server) or `idle` (a node that only takes part). Says "ready" when it has
heard all others, waits for a line on standard input, and prints its measurements.
"""

from __future__ import annotations

import asyncio
import json
import queue
import random
import sys
import time
from pathlib import Path

import msgspec

from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.live import LiveExchange
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport import open_transport

SIZE = 4096
PER_BATCH = 14
SHARED_AT_ONCE = 224
AHEAD = 448
"""A node shares sixteen frames at once, and is never further ahead of the items it gathered: an engine drops
messages that it cannot carry, and the benchmark would then measure repair."""
TURN_SECONDS = 0.01
LIMIT_SECONDS = 60.0
ENDLESS = 1 << 40
NATS_AT_ONCE = 16


class Load(msgspec.Struct, array_like=True, frozen=True):
    text: bytes


def generous() -> ExchangeSettings:
    """Every check executed, quotas raised: the benchmark is one loud swarm of strangers."""
    return ExchangeSettings(
        frames_per_second=1e9,
        frames_burst=ENDLESS,
        bytes_per_minute=ENDLESS,
        verifications_per_second=1e9,
        keep_frames=1024,
        keep_author_bytes=ENDLESS,
        keep_bytes=ENDLESS,
        inbox_items=ENDLESS,
        inbox_bytes=ENDLESS,
        inbox_author_items=ENDLESS,
        probation_share=0.99,
        newcomers_per_minute=1e12,
        outbox_items=ENDLESS,
        outbox_bytes=ENDLESS,
        serve_bytes_per_second=1e12,
    )


def start_together() -> float:
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic()


def run_exchange(folder: Path, index: int, nodes: int, items: int) -> dict[str, float]:
    identity = Identity.create()
    kinds = Kinds([Kind("load", Load, 8192, "log")])
    transport = open_transport("zenoh", swarm="bench", node_id=identity.node_id, runtime=folder)
    with LiveExchange(identity, transport, kinds, generous()) as exchange:
        while len(exchange.peers()) < nodes - 1:
            time.sleep(0.05)
        rng = random.Random(index)
        load = [Load(rng.randbytes(SIZE)) for _ in range(SHARED_AT_ONCE)]
        began = start_together()
        cpu = time.process_time()
        wanted, got, shared = items * (nodes - 1), 0, 0
        while (shared < items or got < wanted) and time.monotonic() - began < LIMIT_SECONDS:
            got += len(exchange.gather())
            if shared < items and (shared - AHEAD) * (nodes - 1) <= got:
                for item in load:
                    exchange.share(Load(shared.to_bytes(8, "big") + item.text[8:]))
                    shared += 1
            time.sleep(TURN_SECONDS)
        seconds = time.monotonic() - began
        spent = time.process_time() - cpu
        print(json.dumps({"got": got, "wanted": wanted, "seconds": seconds, "cpu": spent}), flush=True)
        sys.stdin.readline()  # stays to answer pulls until all are done
        return exchange.figures()


def run_bare(folder: Path, index: int, nodes: int, items: int, batch: int) -> dict[str, float]:
    """The engine as it comes, in the same form: router sessions over Unix sockets, no checks at all."""
    import zenoh

    from shoal.swarm.transport.local import LocalNeighbours
    from shoal.swarm.transport.zenoh_session import settings

    neighbours = LocalNeighbours("bare", f"node-{index}", random.Random(index), folder)
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings(neighbours.draw(), None))))
    arrived: queue.SimpleQueue[int] = queue.SimpleQueue()
    heard: set[bytes] = set()
    subscribers = [
        session.declare_subscriber("bare/load", lambda sample: arrived.put(len(sample.payload.to_bytes()))),
        session.declare_subscriber("bare/hello", lambda sample: heard.add(sample.payload.to_bytes())),
    ]
    drop = zenoh.CongestionControl.DROP
    hello = session.declare_publisher(
        "bare/hello", congestion_control=drop, allowed_destination=zenoh.Locality.REMOTE
    )
    publisher = session.declare_publisher(
        "bare/load", congestion_control=drop, allowed_destination=zenoh.Locality.REMOTE
    )
    for _ in range(400):
        hello.put(str(index).encode())
        time.sleep(0.05)
        if len(heard) >= nodes - 1:
            break
    message = random.Random(index).randbytes(SIZE * batch)
    began = start_together()
    cpu = time.process_time()
    for _ in range(items // batch):
        publisher.put(message)
    wanted, got, last = items // batch * batch * (nodes - 1), 0, time.monotonic()
    while got < wanted and time.monotonic() - last < 2.0:
        try:
            got += arrived.get(timeout=0.2) // SIZE
            last = time.monotonic()
        except queue.Empty:
            pass
    seconds = last - began
    spent = time.process_time() - cpu
    print(json.dumps({"got": got, "wanted": wanted, "seconds": seconds, "cpu": spent}), flush=True)
    sys.stdin.readline()
    del subscribers
    session.close()
    return {}


async def run_nats(folder: Path, index: int, nodes: int, items: int) -> None:
    """NATS as it comes: each item is one message, counted by a callback, no checks at all."""
    import nats
    from nats.aio.msg import Msg

    got = 0
    heard: set[bytes] = set()

    async def arrive(message: Msg) -> None:
        nonlocal got
        got += 1

    async def greet(message: Msg) -> None:
        heard.add(message.data)

    client = await nats.connect((folder / "server").read_text(), no_echo=True)
    await client.subscribe("load", cb=arrive)
    await client.subscribe("hello", cb=greet)
    for _ in range(400):
        await client.publish("hello", str(index).encode())
        await asyncio.sleep(0.05)
        if len(heard) >= nodes - 1:
            break
    item = random.Random(index).randbytes(SIZE)
    began = await asyncio.to_thread(start_together)
    cpu = time.process_time()
    wanted, sent = items * (nodes - 1), 0
    while (sent < items or got < wanted) and time.monotonic() - began < LIMIT_SECONDS:
        while sent < items and (sent - AHEAD) * (nodes - 1) <= got:
            for _ in range(NATS_AT_ONCE):
                await client.publish("load", item)
            sent += NATS_AT_ONCE
            await asyncio.sleep(0)  # the same loop takes in the messages of others
        await asyncio.sleep(0.001)
    seconds = time.monotonic() - began
    spent = time.process_time() - cpu
    print(json.dumps({"got": got, "wanted": wanted, "seconds": seconds, "cpu": spent}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await client.close()


def run_idle(folder: Path, nodes: int, seconds: int) -> None:
    identity = Identity.create()
    transport = open_transport("zenoh", swarm="idle", node_id=identity.node_id, runtime=folder)
    with LiveExchange(identity, transport, Kinds(), ExchangeSettings(swarm="idle")) as exchange:
        while len(exchange.peers()) < nodes - 1:
            time.sleep(0.1)
        began = start_together()
        cpu = time.process_time()
        time.sleep(seconds)
        used = time.process_time() - cpu
        print(json.dumps({"cpu": used, "seconds": time.monotonic() - began}), flush=True)
        sys.stdin.readline()


def main() -> None:
    form, folder, (index, nodes, items) = sys.argv[1], Path(sys.argv[2]), map(int, sys.argv[3:6])
    if form == "exchange":
        run_exchange(folder, index, nodes, items)
    elif form == "nats":
        asyncio.run(run_nats(folder, index, nodes, items))
    elif form == "idle":
        run_idle(folder, nodes, items)
    else:
        run_bare(folder, index, nodes, items, 1 if form == "puts" else PER_BATCH)


if __name__ == "__main__":
    main()
