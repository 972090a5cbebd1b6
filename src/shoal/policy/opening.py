"""From the text that names a policy to the policy: `open_policy("tiny:llama")`.

    tiny:llama                a small model of its own, made on first use
    table:                    no model at all, for tests and demonstrations
    local:smollm2             weights on this machine: a preset, a GGUF file or a model folder
    local:./folder?lora=8     train adapters of rank 8 instead of the weights

Options follow a question mark: `lora` (rank of the adapters), `device` (auto, cpu, cuda, mps), `server`
(address of a completions endpoint that samples for it), `name` (of the model there), `refresh` (off: the
server keeps the weights that it was started with).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import ConfigError
from shoal.models.remote import import_package
from shoal.policy.base import Policy

if TYPE_CHECKING:
    from shoal.policy.language_model import LanguageModelPolicy

SCHEMES = ("tiny", "table", "local")
OPTIONS = ("lora", "device", "server", "name", "refresh")
EXAMPLES = "tiny:llama, local:smollm2, local:./folder?lora=8"
MOST_RANK = 1024


def open_policy(
    spec: str, *, rendering: str = "plain", examples: Sequence[tuple[str, str]] = (), device: str = "auto"
) -> Policy:
    """The policy that a spec names, ready to sample; ConfigError in one line says what is missing.
    `rendering` is plain, chat or few-shot (with `examples`); the spec's own device goes before `device`."""
    scheme, name, options = parse_policy(spec)
    if scheme == "table":
        from shoal.policy.table import TablePolicy

        return TablePolicy(name)
    for package in ("torch", "transformers", "safetensors"):
        import_package(package, "train", spec)
    from shoal.policy.language_model import LanguageModelPolicy
    from shoal.policy.loading import load, weights_folder
    from shoal.policy.rendering import rendering as find_rendering

    loaded = load(
        _tiny(name) if scheme == "tiny" else weights_folder(name),
        spec,
        device=options.get("device", device),
        lora=_rank(options.get("lora", "0"), spec),
    )
    policy = LanguageModelPolicy(spec, loaded, find_rendering(rendering, loaded.tokenizer, examples))
    if "server" not in options:
        return policy
    return _served(policy, name, options, spec)


def check_policy(spec: str) -> None:
    """The ConfigError of `open_policy`, as far as it can be told without loading or making anything."""
    scheme, name, options = parse_policy(spec)
    if scheme == "table":
        from shoal.policy.table import TablePolicy

        TablePolicy(name)
        return
    _check_options(options, spec)
    if scheme == "tiny":
        from shoal.policy.tiny import check_tiny

        check_tiny(name)
    else:
        from shoal.policy.loading import check_weights

        check_weights(name)


def folder_to_make(spec: str) -> Path | None:
    """Where the model that a spec names is kept once it has been made on first use; None for those that need
    no making, and for what names no policy at all."""
    try:
        scheme, name, _ = parse_policy(spec)
    except ConfigError:
        return None
    if scheme == "tiny":
        from shoal.policy.tiny import RECIPES, tiny_path

        return tiny_path(name) if name in RECIPES else None
    if scheme == "local":
        from shoal.policy.loading import unpacked_preset

        return unpacked_preset(name)
    return None


def make_policy_folder(spec: str, tell: Callable[[float], None]) -> None:
    """Makes what `folder_to_make` names; `tell` hears how much of it is done, from 0 to 1."""
    scheme, name, _ = parse_policy(spec)
    for package in ("torch", "transformers", "safetensors"):
        import_package(package, "train", spec)
    if scheme == "tiny":
        from shoal.policy.tiny import tiny_folder

        tiny_folder(name, tell)
    elif scheme == "local":
        from shoal.policy.loading import weights_folder

        weights_folder(name)


def parse_policy(spec: str) -> tuple[str, str, dict[str, str]]:
    """Scheme, name and options of a spec; ConfigError says what is wrong with it and how one looks."""
    scheme, colon, rest = spec.strip().partition(":")
    name, _, query = rest.partition("?")
    if not colon or scheme not in SCHEMES:
        raise ConfigError(f"{spec!r} does not name a policy: write for example {EXAMPLES}")
    if not name and scheme != "table":
        raise ConfigError(f"{spec!r} names no model after the colon: write for example {EXAMPLES}")
    options: dict[str, str] = {}
    for part in filter(None, query.split("&")):
        option, _, value = part.partition("=")
        if option not in OPTIONS or scheme == "table":
            raise ConfigError(f"{spec!r} has the option {option!r}: known are {', '.join(OPTIONS)}")
        if option in options:
            raise ConfigError(f"{spec!r} gives the option {option!r} twice")
        options[option] = value
    return scheme, name, options


def _served(policy: LanguageModelPolicy, name: str, options: dict[str, str], spec: str) -> Policy:
    """The policy with a server that samples for it; it learns here."""
    from shoal.policy.served import CompletionServer, ServedPolicy

    _check_options(options, spec)
    refreshes = _refreshes(options)
    server = CompletionServer(options["server"], options.get("name", name))
    adapters = Path(tempfile.mkdtemp(prefix="shoal-adapters-")) if refreshes else None
    return ServedPolicy(policy, server, adapters)


def _check_options(options: dict[str, str], spec: str) -> None:
    rank = _rank(options.get("lora", "0"), spec)
    if "server" in options and _refreshes(options) and rank == 0:
        raise ConfigError(
            f"{spec!r}: a server takes over adapters only: add &lora=8, or &refresh=off to sample from the "
            "weights that it was started with"
        )


def _refreshes(options: dict[str, str]) -> bool:
    return options.get("refresh", "on") != "off"


def _tiny(name: str) -> Path:
    from shoal.policy.tiny import tiny_folder

    return tiny_folder(name)


def _rank(text: str, spec: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= MOST_RANK:
        raise ConfigError(f"{spec!r}: lora is {text!r}: give a rank from 1 to {MOST_RANK}")
    return int(text)
