"""One node of a run as a process of its own: `python -m shoal.evolve.child`, started by processes.py.

Its orders come as one line of JSON on standard input, so that no secret stands on a command line. When that
pipe closes, the parent is gone, however it ended, and the child ends at once; its journal is whole at any
moment. What stops it is one line on standard error.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path

import msgspec

from shoal.errors import ShoalError
from shoal.evolve.champion import champion_kinds
from shoal.evolve.network import Network
from shoal.evolve.running import load_settings
from shoal.evolve.seat import private_swarm, take_seat
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop, run_in_field
from shoal.runs import RunFolder
from shoal.swarm import ExchangeSettings, Identity
from shoal.swarm.live import LiveExchange
from shoal.swarm.transport import TlsFiles, open_transport

FAILED = 3


class Orders(msgspec.Struct, frozen=True):
    """`members` are the node ids of a private run, empty where the swarm is open to others."""

    folder: str
    index: int
    key: str
    swarm: str
    network: Network
    members: tuple[str, ...] = ()


def main() -> int:
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    try:
        with Stop() as stop:
            trouble = serve(orders, stop)
    except ShoalError as error:
        trouble = str(error)
    if trouble:
        print(" ".join(trouble.split()), file=sys.stderr)
    return FAILED if trouble else 0


def serve(orders: Orders, stop: Stop) -> str:
    """Runs the node until it has ended or is stopped; says what went wrong, if anything did."""
    folder = Path(orders.folder)
    settings = load_settings(folder)
    run = RunFolder.look(folder)
    exchange = _join_swarm(settings, orders, run) if settings.sharing != "off" else None
    trouble = ""
    try:
        with exchange or contextlib.nullcontext():
            seat = take_seat(
                settings,
                orders.index,
                run,
                domain=settings.open_domain(),
                now=time.time(),
                exchange=exchange,
                real_time=True,
            )
            run_in_field(seat.node, stop)
            seat.close()
            trouble = seat.why_it_ended()
    except ShoalError as error:  # perhaps of the exchange's end, which is not to hide why the node ended
        trouble = trouble or str(error)
    return trouble


def _join_swarm(settings: EvolveSettings, orders: Orders, run: RunFolder) -> LiveExchange:
    identity, network = Identity.load(orders.key), orders.network
    if orders.members:
        exchange = private_swarm(orders.swarm, orders.members)
    else:
        exchange = ExchangeSettings(swarm=orders.swarm, secret=network.secret, allow=network.allow)
    transport = open_transport(
        network.transport,
        swarm=orders.swarm,
        node_id=identity.node_id,
        listen=network.listen,
        join=network.join,
        advertise=network.advertise,
        tls=_tls_files(network),
    )
    accounts = run.node_folder(settings.node_names()[orders.index]) / "accounts.json"
    return LiveExchange(identity, transport, champion_kinds(), exchange, accounts_path=accounts)


def _tls_files(network: Network) -> TlsFiles | None:
    if network.tls is None:
        return None
    authority, certificate, key = map(Path, network.tls)
    return TlsFiles(authority, certificate, key)


def _end_with_the_parent() -> None:
    # Not through sys.stdin, whose lock a thread must not hold when the interpreter ends.
    while os.read(0, 1 << 16):
        pass
    os._exit(FAILED)


if __name__ == "__main__":
    code = main()
    sys.stderr.flush()
    # Without winding the interpreter down: threads of the network engine that come back into it meanwhile
    # would abort the process. Journal, accounts and transport are closed already.
    os._exit(code)
