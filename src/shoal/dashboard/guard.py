"""The refusals: requests that never reach the page.

- Only GET and HEAD, no body, address and headers of bounded length.
- The Host header must be a name of this server: a stranger's page whose name was pointed at this machine
  (DNS rebinding) sends its own name. Numeric addresses cannot be pointed anywhere and are let in.
- With a token: readers send it once as `?token=…`, which is answered by a cookie and a redirect that takes
  the token out of the address; or as `Authorization: Bearer …`. It is compared in constant time. The cookie
  is a hash of the token, so a stolen cookie does not open another server with the same token.
- Every answer forbids scripts and requests from elsewhere, framing, sniffing and keeping.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import urllib.parse
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.errors import ConfigError

MOST_ADDRESS = 2048
MOST_HEADER_BYTES = 16 << 10
SHORTEST_TOKEN = 8
CONTENT_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


def numeric(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that `host` is; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def check_binding(host: str, token: str | None) -> None:
    """Refuses to serve others than this machine without a token."""
    address = numeric(host)
    is_here = host == "localhost" or (address is not None and address.is_loopback)
    if token is None and not is_here:
        raise ConfigError(
            f"--host {host}: others could read these runs: give a --token-file, or leave --host away and "
            "reach this machine by `ssh -L`"
        )


def read_token(token: str | None, file: Path | None) -> str | None:
    """The token from either option; None if neither is given."""
    if token is not None and file is not None:
        raise ConfigError("--token and --token-file: give one of the two")
    if file is not None:
        try:
            token = file.read_text(encoding="utf-8")[:4096].strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {file}: this cannot be read: {error}") from error
    if token is None:
        return None
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"the token must have {SHORTEST_TOKEN} or more printable ASCII characters and no blanks, such as "
            "`openssl rand -hex 16` gives"
        )
    return token


class Guard:
    """Wraps the application. `names` are host names, besides numeric addresses, that it answers to."""

    def __init__(self, app: ASGIApp, token: str | None, names: Iterable[str], cookie: str) -> None:
        self.app = app
        self.names = {name.lower().rstrip(".") for name in ("localhost", *names)}
        self.cookie = cookie
        self._token = None if token is None else token.encode()
        self._proof = hashlib.sha256(b"shoal dashboard\0" + (self._token or b"")).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # nothing here speaks WebSocket
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        await (self._refusal(scope) or self.app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if scope["method"] not in ("GET", "HEAD"):
            return _refuse(405, "This server can only be read: use GET.", allow="GET, HEAD")
        query = scope["query_string"]
        if len(scope.get("raw_path") or b"") + len(query) > MOST_ADDRESS:
            return _refuse(414, "The address is too long.")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADER_BYTES:
            return _refuse(431, "The headers are too long.")
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            return _refuse(413, "No request here has a body.")
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._is_own_name(hosts[0].decode("latin-1")):
            return _refuse(421, "This server does not go by that name (see --allow-host).")
        if self._token is None:
            return None
        return self._check_token(self._token, scope["path"], query.decode("latin-1"), headers)

    def _check_token(
        self, token: bytes, path: str, query: str, headers: dict[bytes, bytes]
    ) -> Response | None:
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and hmac.compare_digest(given.strip(), token):
            return None
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(self.cookie)
        except CookieError:
            cookie = None
        if cookie is not None and hmac.compare_digest(cookie.value.encode(), self._proof.encode()):
            return None
        tokens = urllib.parse.parse_qs(query).get("token", []) if path == "/" else []
        if len(tokens) == 1 and hmac.compare_digest(tokens[0].encode("utf-8", "replace"), token):
            # Not "Strict": a link in a chat is a request from another site, and its redirect must work.
            crumb = f"{self.cookie}={self._proof}; Path=/; HttpOnly; SameSite=Lax"
            return _refuse(303, "See /", location="/", set_cookie=crumb)
        told = "Open the address with ?token=… that the server was started with."
        return _refuse(401, told, www_authenticate="Bearer")

    def _is_own_name(self, host: str) -> bool:
        name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        return name in self.names or numeric(name) is not None


def _refuse(status: int, text: str, **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return PlainTextResponse(f"{text}\n", status, {"connection": "close", **named})
