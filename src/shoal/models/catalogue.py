"""Which models can be used here and now: installed, with a key, reachable, at what price."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from shoal.errors import ConfigError, how_to_install
from shoal.models.keys import find_key
from shoal.models.presets import PRESETS
from shoal.models.prices import Price, price_for
from shoal.models.registry import key_variable, local_settings
from shoal.models.specification import Spec, parse_spec

Status = Literal["ready", "not installed", "no key", "unreachable", "unusable"]

KNOWN_REMOTE = ("openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
"""Examples of remote models, listed when nothing is asked for."""


class Listed(msgspec.Struct, frozen=True):
    """One model. `remedy` is what to do when it is not ready; `note` is size and licence, or who it is."""

    spec: str
    status: Status
    price: Price
    note: str = ""
    remedy: str = ""


def catalogue(
    specs: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, probe_seconds: float = 2.0
) -> list[Listed]:
    """The status of the named models; without names that of all presets and examples.

    An endpoint given by URL is ready when something accepts connections there; no request is sent and no
    key leaves this machine. Blocks for up to `probe_seconds`.
    """
    return asyncio.run(list_models(specs, environment=environment, probe_seconds=probe_seconds))


async def list_models(
    specs: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, probe_seconds: float = 2.0
) -> list[Listed]:
    """As `catalogue`, inside of an event loop."""
    names = list(specs) or [
        *(f"local:{name}" for name in PRESETS),
        *KNOWN_REMOTE,
    ]
    return list(await asyncio.gather(*(_listed(name, environment, probe_seconds) for name in names)))


async def _listed(name: str, environment: Mapping[str, str] | None, seconds: float) -> Listed:
    spec = parse_spec(name)
    listed = Listed(str(spec), "ready", price_for(spec))
    try:
        if spec.scheme == "local":
            return _local(spec, listed)
        if spec.scheme == "builtin":
            return msgspec.structs.replace(listed, note="an operator of a search's domain: no model")
        if spec.scheme in ("openai", "anthropic", "http", "https"):
            return await _remote(spec, listed, environment, seconds)
    except ConfigError as error:
        return msgspec.structs.replace(listed, status="unusable", remedy=str(error))
    return listed


def _local(spec: Spec, listed: Listed) -> Listed:
    preset = PRESETS.get(spec.name)
    if preset is not None:
        note = f"{preset.title}, {preset.size // 10**6} MB, {preset.licence}"
        listed = msgspec.structs.replace(listed, note=note)
        if preset.find() is None:
            return msgspec.structs.replace(listed, status="not installed", remedy=preset.command())
    else:
        local_settings(spec)
    if find_spec("xllamacpp") is None:
        return msgspec.structs.replace(listed, status="not installed", remedy=how_to_install("local"))
    return listed


async def _remote(
    spec: Spec, listed: Listed, environment: Mapping[str, str] | None, seconds: float
) -> Listed:
    package = "anthropic" if spec.scheme == "anthropic" else "openai"
    if find_spec(package) is None:
        return msgspec.structs.replace(listed, status="not installed", remedy=how_to_install("llm"))
    variable = key_variable(spec)
    has_key = find_key(variable, environment) is not None
    if not has_key and (spec.scheme in ("openai", "anthropic") or spec.options.key):
        return msgspec.structs.replace(listed, status="no key", remedy=f"set {variable}")
    if not spec.url:
        return listed
    parts = urlsplit(spec.url)
    port = parts.port or (443 if spec.scheme == "https" else 80)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()
    except (OSError, TimeoutError, socket.gaierror):
        remedy = f"nothing answers at {parts.hostname} port {port}: start the server"
        return msgspec.structs.replace(listed, status="unreachable", remedy=remedy)
    return listed
