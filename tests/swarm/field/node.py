"""One node of a field test: a process that shares a numbered note every so often and says what it has.

    python node.py '{"name": "a", "engine": "zenoh", "swarm": "s", "key": "a.key", ...}'

Prints one JSON line per period: how many notes it shared, how many of each author it has, which authors were
silent on the direct path, and what the process costs. It ends with its parent.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import msgspec

from shoal.swarm.exchange import Exchange
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.live import LiveExchange
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport import open_transport


class Note(msgspec.Struct, array_like=True):
    author: str
    number: int
    filling: bytes


def end_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() == 1:
        sys.exit("the parent is gone")


def silences(exchange: Exchange, now: float) -> dict[str, float]:
    """Seconds since a frame of each author came by itself instead of being fetched."""
    return {
        author.node_id: round(now - author.pushed_at, 1)
        for author in exchange._context.authors
        if author.pushed_at and author is not exchange._sender.own
    }


def main() -> None:
    end_with_parent()
    options = json.loads(sys.argv[1])
    identity = Identity.load_or_create(options["key"])
    transport = open_transport(
        options["engine"],
        swarm=options["swarm"],
        node_id=identity.node_id,
        listen=options.get("listen", ()),
        join=options.get("join", ()),
        runtime=Path(options["runtime"]) if "runtime" in options else None,
    )
    kinds = Kinds([Kind("note", Note, max_bytes=65536, keep="log")])
    settings = ExchangeSettings(swarm=options["swarm"], probation_items=0, **options.get("settings", {}))
    life = f"{options['name']}/{time.time_ns()}"
    every, limit = options.get("every", 0.5), options.get("notes", 1 << 60)
    filling = bytes(options.get("size", 200))
    have: dict[str, set[int]] = {}
    shared = 0
    live = LiveExchange(identity, transport, kinds, settings, accounts_path=options["key"] + ".accounts")
    next_note, next_line = time.monotonic() + every, 0.0
    while True:
        now = time.monotonic()
        if now >= next_note and shared < limit:
            # After a freeze the missed notes are not made up for: time has passed for this author.
            next_note = max(next_note + every, now)
            live.share(Note(life, shared, filling))
            shared += 1
        if not options.get("lazy"):
            for received in live.gather():
                note = received.item
                assert isinstance(note, Note)
                have.setdefault(note.author, set()).add(note.number)
        if now >= next_line:
            next_line = now + options.get("period", 0.5)
            peers = live.peers()
            with live._lock:
                silent = silences(live._exchange, time.time())
            usage = resource.getrusage(resource.RUSAGE_SELF)
            line = {
                "node": identity.node_id,
                "life": life,
                "shared": shared,
                "have": {author: len(numbers) for author, numbers in have.items()},
                "peers": len(peers),
                "silent": silent,
                "cpu": usage.ru_utime + usage.ru_stime,
                "rss": usage.ru_maxrss // 1024,
                "stats": {name: getattr(transport.stats(), name) for name in transport.stats().__slots__},
                "figures": live.figures(),
            }
            print(json.dumps(line), flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    main()
