"""Checks of this machine and of the way to a peer, for `shoal doctor`. Each failure comes with a remedy.

They read the certificates, bind and release the address to listen on, and connect to each address to join.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from shoal.errors import ConfigError, ShoalError
from shoal.swarm.identity import Identity
from shoal.swarm.transport import TlsFiles, node_address
from shoal.swarm.transport.addresses import parse_address

CONNECT_SECONDS = 5.0
REFUSAL_SECONDS = 0.5  # for a peer to refuse our certificate: in TLS 1.3 it does so after the handshake
FEWEST_OPEN_FILES = 256
EARLIEST_CLOCK = 1_767_225_600.0  # 1 January 2026: a machine that says less has no clock
LATEST_CLOCK = 4_102_444_800.0  # 1 January 2100
REFUSED = {
    "stale": "too old",
    "future": "from the future",
    "swarm": "of another swarm",
    "forged": "with a wrong signature",
}


class Finding(msgspec.Struct, frozen=True):
    """The result of one check; `remedy` is empty if all is well."""

    check: str
    found: str
    remedy: str = ""

    @property
    def well(self) -> bool:
        return not self.remedy


def check_machine(
    key_path: str, listen: Sequence[str], join: Sequence[str], tls: TlsFiles | None = None
) -> Iterator[Finding]:
    """All checks that need no running swarm. Without usable certificates, addresses are not checked."""
    checks: list[tuple[str, Callable[[], tuple[str, str]]]] = [
        ("clock", lambda: clock(time.time())),
        ("open files", open_files),
        ("identity", lambda: identity(key_path)),
        ("local swarm", runtime_folder),
    ]
    if tls is not None:
        checks.append(("certificates", lambda: certificates(tls, datetime.now(UTC))))
    checks += [(f"listen {text}", partial(can_listen, text, tls)) for text in listen]
    checks += [(f"reach {text}", partial(can_reach, text, tls)) for text in join]
    for name, check in checks:
        try:
            finding = Finding(name, *check())
        except ShoalError as error:
            finding = Finding(name, "failed", str(error))
        yield finding
        if name == "certificates" and not finding.well:
            return


def clock(now: float) -> tuple[str, str]:
    """Peers refuse frames that are too old or from the future."""
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now)) if 0 <= now < 1e11 else f"{now}"
    if EARLIEST_CLOCK <= now <= LATEST_CLOCK:
        return shown, ""
    return shown, "set the clock of this machine: peers refuse frames from another time"


def peers_heard(heard: int, figures: Mapping[str, int]) -> Finding:
    """Whether peers were understood, from an exchange's own figures. Tells the usual reasons apart."""
    refused = {reason: figures.get(f"rejected: {reason}", 0) for reason in REFUSED}
    found = "1 peer heard" if heard == 1 else f"{heard} peers heard"
    if any(refused.values()):
        reasons = ", ".join(f"{count} {REFUSED[reason]}" for reason, count in refused.items() if count)
        found += f"; messages refused: {reasons}"
    remedy = "check that a node of this swarm runs there, or listen for longer (--seconds)"
    if refused["stale"] + refused["future"] > 0:
        remedy = "clocks differ: turn on time synchronisation here and there"
    elif heard:
        remedy = ""
    elif refused["swarm"] + refused["forged"] > 0:
        remedy = "the peers are of another swarm: check --swarm and --swarm-secret-file"
    return Finding("peers", found, remedy)


def open_files() -> tuple[str, str]:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return "no limit known", ""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return "unlimited", ""
    return f"at most {soft}", "" if soft >= FEWEST_OPEN_FILES else f"raise it: ulimit -n {FEWEST_OPEN_FILES}"


def identity(path: str) -> tuple[str, str]:
    who = Identity.load_or_create(path)
    return f"{who.name} ({who.node_id})", ""


def runtime_folder() -> tuple[str, str]:
    """Nodes of one machine meet in a folder of Unix sockets."""
    from shoal.swarm.transport.local import swarm_folder

    folder = swarm_folder("doctor", None)
    writable = os.access(folder, os.W_OK)
    return str(folder), "" if writable else "make the folder writable, or set XDG_RUNTIME_DIR"


def certificates(tls: TlsFiles, now: datetime) -> tuple[str, str]:
    """Whether the three files belong together and are valid now."""
    certificate = tls.check()
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    found = f"{certificate.subject.rfc4514_string()}, valid until {last:%Y-%m-%d}"
    if now > last:
        return found, f"{tls.certificate} has expired: ask for a new one (shoal invite --tls)"
    early = f"it is not valid before {first:%Y-%m-%d %H:%M} UTC: check the clock"
    return found, early if now < first else ""


def can_listen(text: str, tls: TlsFiles | None = None) -> tuple[str, str]:
    host, port = _place(text, tls)
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen(1)
    except OSError as error:
        remedy = "choose another port, stop the program that uses it, or name an address of this machine"
        return error.strerror or str(error), remedy
    return "the address is free", ""


def can_reach(text: str, tls: TlsFiles | None = None) -> tuple[str, str]:
    host, port = _place(text, tls)
    began = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS) as connection:
            spent = time.monotonic() - began
            if tls is not None and not _is_nats(text):  # a NATS server begins unencrypted
                _shake_hands(connection, host, tls)
    except ssl.SSLCertVerificationError as error:
        remedy = f"check --tls-authority, and that the peer's certificate names {host}"
        return f"the peer's certificate is refused here: {error.verify_message}", remedy
    except ssl.SSLError as error:
        remedy = "the peer refuses this certificate or speaks no TLS: use files of its own authority"
        return f"no TLS connection: {error.reason or error}", remedy
    except OSError as error:
        remedy = "check host and port, that the peer listens there, and the firewalls between"
        return error.strerror or str(error), remedy
    return f"connected in {spent * 1000:.0f} ms", ""


def _shake_hands(connection: socket.socket, host: str, tls: TlsFiles) -> None:
    with tls.client_context().wrap_socket(connection, server_hostname=host) as secure:
        secure.settimeout(REFUSAL_SECONDS)
        # A peer that accepts the certificate says nothing before our first message.
        with contextlib.suppress(TimeoutError):
            if not secure.recv(1):
                raise ConnectionResetError("the peer closed the connection")


def _is_nats(text: str) -> bool:
    return text.startswith("nats://")


def _place(text: str, tls: TlsFiles | None) -> tuple[str, int]:
    address = parse_address(text) if _is_nats(text) else node_address(text, tls)
    if not address.host:
        raise ConfigError(f"{address} is on this machine: nothing to check")
    return address.host.strip("[]"), address.port
