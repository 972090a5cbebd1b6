"""Addresses, as people type them and as beacons carry them.

    tcp/host:port  tls/host:port  host:port      a Shoal node; without a scheme TLS if certificates are given
    unixsock-stream/PATH  unix/PATH              a Shoal node on this machine
    nats://host:port                             a NATS server

Parsing is strict: an address may come from a stranger, and a Zenoh endpoint may carry options after `?`, `#`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from shoal.errors import ConfigError

Scheme = Literal["tcp", "tls", "unixsock-stream", "nats"]

DEFAULT_PORT = 7447
NATS_PORT = 4222
MOST_SOCKET_PATH_BYTES = 107  # the kernel's limit (108 with the final zero)

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]")
_PATH = re.compile(r"/[^\x00-\x1f?#;]+")
_USER = re.compile(r"[^@/\s]+")
_FORMS = "write host:port, tcp/host:port, tls/host:port or nats://host:port"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed address: `host` and `port`, or `path` for a Unix socket. `user` is for NATS servers only."""

    scheme: Scheme
    host: str = ""
    port: int = 0
    path: str = ""
    user: str = ""

    def __str__(self) -> str:
        if self.scheme == "unixsock-stream":
            return f"unixsock-stream/{self.path}"
        if self.scheme == "nats":
            return f"nats://{self.user + '@' if self.user else ''}{self.host}:{self.port}"
        return f"{self.scheme}/{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether it means "every interface", which others cannot dial."""
        return self.host in ("0.0.0.0", "[::]")


def parse_address(text: str, *, secure: bool = False) -> Address:
    """Parses an address; `secure` says whether host:port is short for tls/ instead of tcp/."""
    text = text.strip()
    if text.startswith("nats://"):
        return _parse_nats(text)
    scheme, slash, rest = text.partition("/")
    if not slash:
        host, port = _host_and_port(text, text)
        return Address("tls" if secure else "tcp", host, port)
    if scheme in ("tcp", "tls"):
        host, port = _host_and_port(rest, text)
        return Address("tcp" if scheme == "tcp" else "tls", host, port)
    if scheme in ("unix", "unixsock-stream"):
        return _parse_path(rest, text)
    if "://" in text:
        raise ConfigError(f"address {text!r}: `{text.partition('://')[0]}://` is not known here; {_FORMS}")
    raise ConfigError(f"address {text!r}: unknown kind {scheme!r}; {_FORMS}")


def _parse_nats(text: str) -> Address:
    user, at, place = text.removeprefix("nats://").rstrip("/").rpartition("@")
    if at and not _USER.fullmatch(user):
        raise ConfigError(f"address nats://…@{place}: the part before @ must be user:password or a token")
    if ":" not in place.rpartition("]")[2]:
        place += f":{NATS_PORT}"
    host, port = _host_and_port(place, f"nats://{place}")
    return Address("nats", host, port, user=user)


def _parse_path(path: str, text: str) -> Address:
    if not _PATH.fullmatch(path):
        raise ConfigError(f"address {text!r}: the socket needs an absolute path, e.g. unix//tmp/a.sock")
    if len(path.encode()) > MOST_SOCKET_PATH_BYTES:
        raise ConfigError(
            f"address {text!r}: the path has {len(path.encode())} bytes, Unix sockets allow"
            f" {MOST_SOCKET_PATH_BYTES}; choose a shorter folder"
        )
    return Address("unixsock-stream", path=path)


def _host_and_port(place: str, text: str) -> tuple[str, int]:
    host, colon, digits = place.rpartition(":")
    if not colon or place.endswith("]"):
        raise ConfigError(f"address {text!r} has no port; write e.g. {place or 'host'}:{DEFAULT_PORT}")
    if ":" in host and not host.startswith("["):
        raise ConfigError(f"address {text!r}: put an IPv6 address in brackets, e.g. [::1]:{DEFAULT_PORT}")
    if not _HOST.fullmatch(host):
        raise ConfigError(f"address {text!r}: {host!r} is not a host name or IP address; {_FORMS}")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and int(digits) <= 65535):
        raise ConfigError(f"address {text!r}: the port must be a number from 1 to 65535, found {digits!r}")
    return host, int(digits)
