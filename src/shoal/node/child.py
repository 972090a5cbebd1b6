"""One node of a run as a process of its own, `python -m shoal.node.child`, started by parent.py. Orders
come as one line of JSON on standard input, so that no secret stands on a command line. When that pipe closes,
the parent is gone and the child ends at once. Its trouble is one line on standard error."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from shoal.errors import DefectError, RunError, ShoalError
from shoal.lazy import load
from shoal.node.crew import Crew, Network, private_swarm
from shoal.node.drive import Stop, run_in_field
from shoal.prctl import signal_at_parents_end
from shoal.runs import RunFolder, load_settings
from shoal.runs.lock import claim, release
from shoal.swarm import Identity
from shoal.swarm.accounts import ACCOUNTS
from shoal.swarm.live import LiveExchange
from shoal.swarm.presence import PRESENCE

CRASHED = 1
"""An exception that nobody foresaw; the last line on standard error names it."""
FAILED = 3
"""The node told its trouble, on standard error: another start would come to the same."""
STOPPED = 4
"""It was asked to stop before its node had finished; standard error has the signal."""
LOOK_EVERY = 0.1


class Orders(msgspec.Struct, frozen=True):
    """`crew` is `module:class`. `members` are the node ids of a private run, empty if the swarm is open. The
    node's identity is `key`, or `spare_key`, if one is given, while another node has that."""

    crew: str
    folder: str
    index: int
    key: str
    swarm: str
    network: Network
    members: tuple[str, ...] = ()
    spare_key: str = ""


def main() -> NoReturn:
    """Runs the node that standard input orders, and ends the process."""
    orders = msgspec.json.decode(sys.stdin.buffer.readline(), type=Orders)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    signal_at_parents_end(signal.SIGCONT)  # that thread must run then, also of a frozen process
    code, said = 0, ""
    try:
        with Stop() as stop:
            said = serve(read_crew(orders), orders, stop)
        if said:
            code = FAILED
        elif stop.requested:
            code, said = STOPPED, stop.reason
    except BaseException as error:
        is_told = isinstance(error, ShoalError) and not isinstance(error, DefectError)
        code, said = (FAILED, str(error)) if is_told else (CRASHED, _with_place(error))
    if code:
        print(" ".join(said.split()), file=sys.stderr)
    sys.stderr.flush()
    # Without winding the interpreter down: threads of the network engine that come back into it meanwhile
    # would abort the process. Journal, accounts and transport are closed already.
    os._exit(code)


def read_crew(orders: Orders) -> Crew[Any]:
    """The crew of a run, from its folder. The class is named by the parent, which runs the same code."""
    crew = load(orders.crew)
    made: Crew[Any] = crew(load_settings(crew.settings_type, Path(orders.folder)))
    return made


def serve(crew: Crew[Any], orders: Orders, stop: Stop, after_turn: Callable[[], None] = lambda: None) -> str:
    """Runs the node until it has ended or is stopped; returns its trouble, if there was any."""
    run = RunFolder.look(Path(orders.folder))
    try:
        identity, lock = _claim_identity(orders.key)
    except RunError:
        if not orders.spare_key:
            raise
        identity, lock = _claim_identity(orders.spare_key)
    trouble = ""
    try:
        exchange = _join_swarm(crew, orders, run, identity) if crew.shares else None
        try:
            with exchange or contextlib.nullcontext():
                if exchange is not None and not _has_peers(exchange, orders.network.wait_for, stop):
                    return ""
                here: dict[str, Any] = {"author": identity.node_id, "exchange": exchange}
                seat = crew.take_seat(orders.index, run, **here, now=time.time(), real_time=True)
                run_in_field(seat.node, stop, after_turn=after_turn)
                seat.close()
                trouble = seat.node.trouble
                if exchange is not None:
                    _linger(crew.linger, stop)
        except DefectError:
            raise
        except ShoalError as error:  # perhaps of the exchange's end, which is not to hide why the node ended
            trouble = trouble or str(error)
        return trouble
    finally:
        release(lock)


def _claim_identity(key: str) -> tuple[Identity, int]:
    """The identity kept at `key`, created on first use, and the lock that keeps it to this node. Two nodes
    with one identity would not hear each other: each takes the other's words for its own."""
    identity = Identity.load_or_create(key)
    refusal = f"{key} is the identity of another node that runs now: give this one another by --key."
    return identity, claim(Path(key), os.O_RDONLY, refusal)


def _has_peers(exchange: LiveExchange, wait_for: int, stop: Stop) -> bool:
    """Waits until that many peers are present; False if a stop is requested before."""
    while len(exchange.peers()) < wait_for:
        if stop.requested:
            return False
        time.sleep(LOOK_EVERY)
    return True


def _linger(seconds: float, stop: Stop) -> None:
    """Stays in the swarm for a while, so that others can fetch the items that were shared last."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and not stop.requested:
        time.sleep(min(LOOK_EVERY, seconds))


def _join_swarm(crew: Crew[Any], orders: Orders, run: RunFolder, identity: Identity) -> LiveExchange:
    if orders.members:
        exchange = private_swarm(orders.swarm, orders.members)
    else:
        exchange = orders.network.exchange_settings(orders.swarm)
    transport = orders.network.open(identity.node_id, orders.swarm)
    folder = run.node_folder(crew.names[orders.index])
    return LiveExchange(
        identity,
        transport,
        crew.kinds,
        exchange,
        accounts_path=folder / ACCOUNTS,
        presence_path=folder / PRESENCE,
    )


def _with_place(error: BaseException) -> str:
    """What a report of a defect needs, in one line."""
    *_, last = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _end_with_the_parent() -> None:
    # Not through sys.stdin, whose lock a thread must not hold when the interpreter ends.
    while os.read(0, 1 << 16):
        pass
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with the programs that the node runs
    os._exit(FAILED)


if __name__ == "__main__":
    main()
