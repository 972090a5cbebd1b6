"""Checks of this machine and of the way to a peer, for `shoal doctor`: each says what to do if it fails.

They touch nothing but what was named: they bind and release the address to listen on, and open and close
one connection to each address to join.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from shoal.errors import ConfigError, ShoalError
from shoal.swarm.identity import Identity
from shoal.swarm.transport.addresses import Address, parse_address

CONNECT_SECONDS = 5.0
FEWEST_OPEN_FILES = 256
EARLIEST_CLOCK = 1_767_225_600.0  # 1 January 2026: a machine that says less has no clock
LATEST_CLOCK = 4_102_444_800.0  # 1 January 2100


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `remedy` is empty where all is well."""

    check: str
    found: str
    remedy: str = ""

    @property
    def well(self) -> bool:
        return not self.remedy


def check_machine(key_path: str, listen: Sequence[str], join: Sequence[str]) -> Iterator[Finding]:
    """All checks that need no running swarm, in the order of what depends on what."""
    yield clock(time.time())
    yield open_files()
    yield _guarded("identity", lambda: identity(key_path))
    yield runtime_folder()
    for text in listen:
        yield _guarded(f"listen {text}", partial(can_listen, text))
    for text in join:
        yield _guarded(f"reach {text}", partial(can_reach, text))


def clock(now: float) -> Finding:
    """Frames carry the time at which they were made, and others refuse what is too old or in the future."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)) if 0 <= now < 1e11 else f"{now}"
    if EARLIEST_CLOCK <= now <= LATEST_CLOCK:
        return Finding("clock", shown)
    return Finding("clock", shown, "set the clock of this machine: peers refuse frames from another time")


def peers_heard(heard: int, figures: Mapping[str, int]) -> Finding:
    """Whether peers were understood, from an exchange's own figures; the usual reasons are told apart."""
    refused = {
        reason: figures.get(f"rejected: {reason}", 0) for reason in ("stale", "future", "swarm", "forged")
    }
    found = f"{heard} heard" + "".join(
        f", {count} messages {reason}" for reason, count in refused.items() if count
    )
    if refused["stale"] + refused["future"] > 0:
        return Finding("peers", found, "clocks differ: turn on time synchronisation here and there")
    if heard:
        return Finding("peers", found)
    if refused["swarm"] + refused["forged"] > 0:
        return Finding(
            "peers", found, "the peers are of another swarm: check --swarm and --swarm-secret-file"
        )
    return Finding(
        "peers", found, "check that a node of this swarm runs there, or listen for longer (--seconds)"
    )


def open_files() -> Finding:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return Finding("open files", "no limit known")
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FEWEST_OPEN_FILES:
        return Finding("open files", "unlimited" if soft == resource.RLIM_INFINITY else f"at most {soft}")
    return Finding("open files", f"at most {soft}", f"raise the limit: ulimit -n {FEWEST_OPEN_FILES}")


def identity(path: str) -> Finding:
    who = Identity.load_or_create(path)
    return Finding("identity", f"{who.name} ({who.node_id})")


def runtime_folder() -> Finding:
    """Nodes of one machine meet in a folder of Unix sockets."""
    from shoal.swarm.transport.local import swarm_folder

    def check() -> Finding:
        folder = swarm_folder("doctor", None)
        if not os.access(folder, os.W_OK):
            return Finding("local swarm", str(folder), "make the folder writable, or set XDG_RUNTIME_DIR")
        return Finding("local swarm", str(folder))

    return _guarded("local swarm", check)


def can_listen(text: str) -> Finding:
    address = parse_address(text)
    host, port = _place(address)
    try:
        for family, kind, protocol, _, where in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[:1]:
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
                probe.listen(1)
    except OSError as error:
        return Finding(
            f"listen {text}",
            error.strerror or str(error),
            "choose another port, stop what uses it, or name an address of this machine",
        )
    return Finding(f"listen {text}", "the address is free")


def can_reach(text: str) -> Finding:
    address = parse_address(text)
    host, port = _place(address)
    began = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            spent = time.monotonic() - began
    except OSError as error:
        return Finding(
            f"reach {text}",
            error.strerror or str(error),
            "check host and port, that the peer listens there, and the firewalls between",
        )
    return Finding(f"reach {text}", f"connected in {spent * 1000:.0f} ms")


def _place(address: Address) -> tuple[str, int]:
    if not address.host:
        raise ConfigError(f"{address} is on this machine: nothing to check")
    return address.host.strip("[]"), address.port


def _guarded(check: str, run: Callable[[], Finding]) -> Finding:
    try:
        return run()
    except ShoalError as error:
        return Finding(check, "failed", str(error))
