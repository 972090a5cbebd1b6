"""The models that can be used here and now: installed, with a key, reachable, at what price."""

from __future__ import annotations

import asyncio
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
Environment = Mapping[str, str] | None

KNOWN_REMOTE = ("openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
"""Examples of remote models, listed when nothing is asked for."""


class Listed(msgspec.Struct, frozen=True):
    """One model. `note` describes it; `remedy` says what to do where it is not ready."""

    spec: str
    status: Status
    price: Price
    note: str = ""
    remedy: str = ""


def catalogue(
    specs: Iterable[str] = (), *, environment: Environment = None, probe_seconds: float = 2.0
) -> list[Listed]:
    """The status of the named models; without names that of all presets and examples.

    An endpoint given by URL is ready if something accepts connections there. No request is sent and no key
    leaves this machine. Blocks for up to `probe_seconds`, so it is not for the inside of an event loop.
    """

    async def all_of(names: Iterable[str]) -> list[Listed]:
        return list(await asyncio.gather(*(_listed(name, environment, probe_seconds) for name in names)))

    return asyncio.run(all_of(list(specs) or [*(f"local:{name}" for name in PRESETS), *KNOWN_REMOTE]))


async def _listed(name: str, environment: Environment, seconds: float) -> Listed:
    spec, note = parse_spec(name), ""
    if spec.scheme == "builtin":
        note = "an operator of a search's domain: no model"
    elif spec.scheme == "local" and (preset := PRESETS.get(spec.name)) is not None:
        note = f"{preset.title}, {preset.size // 10**6} MB, {preset.licence}"
    try:
        status, remedy = await _status(spec, environment, seconds)
    except ConfigError as error:
        status, remedy = "unusable", str(error)
    return Listed(str(spec), status, price_for(spec), note, remedy)


async def _status(spec: Spec, environment: Environment, seconds: float) -> tuple[Status, str]:
    """The status of a model, and the remedy."""
    if spec.scheme == "local":
        return _local_status(spec)
    if spec.scheme not in ("openai", "anthropic", "http", "https"):
        return "ready", ""
    package = "anthropic" if spec.scheme == "anthropic" else "openai"
    if find_spec(package) is None:
        return "not installed", how_to_install("llm")
    variable = key_variable(spec)
    needs_key = not spec.url or spec.options.key is not None
    if needs_key and find_key(variable, environment) is None:
        return "no key", f"set {variable}"
    return await _reached(spec, seconds) if spec.url else ("ready", "")


def _local_status(spec: Spec) -> tuple[Status, str]:
    preset = PRESETS.get(spec.name)
    if preset is None:
        local_settings(spec)
    elif preset.find() is None:
        return "not installed", preset.command()
    if find_spec("xllamacpp") is None:
        return "not installed", how_to_install("local")
    return "ready", ""


async def _reached(spec: Spec, seconds: float) -> tuple[Status, str]:
    parts = urlsplit(spec.url)
    port = parts.port or (443 if spec.scheme == "https" else 80)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()
    except (OSError, TimeoutError):
        return "unreachable", f"nothing answers at {parts.hostname} port {port}: start the server"
    return "ready", ""
