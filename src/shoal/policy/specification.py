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

from shoal.errors import ConfigError
from shoal.models.remote import import_package
from shoal.policy.base import Policy, Precision
from shoal.policy.system import OWN, system_text
from shoal.policy.table import TablePolicy, check_precision
from shoal.policy.tiny import CHAT_TEMPLATE, RECIPES, check_tiny, tiny_folder, tiny_path
from shoal.policy.weights import check_weights, load, unpacked_preset, weights_folder

SCHEMES = ("tiny", "table", "local")
OPTIONS = ("lora", "device", "server", "name", "refresh")
EXAMPLES = "tiny:llama, local:smollm2, local:./folder?lora=8"
MOST_RANK = 1024


def open_policy(
    spec: str,
    *,
    rendering: str = "plain",
    examples: Sequence[tuple[str, str]] = (),
    system: str = OWN,
    device: str = "auto",
    precision: Precision = "auto",
) -> Policy:
    """The policy that a spec names, ready to sample; ConfigError in one line says what is missing.
    `rendering` is plain, chat (with the prompt `system`, see system.py) or few-shot (with `examples`); the
    spec's own device goes before `device`. A table reads the question alone."""
    scheme, name, options = parse_policy(spec)
    if scheme == "table":
        check_precision(spec, precision)
        return TablePolicy(name)
    _import_torch(spec)
    from shoal.policy.language_model import LanguageModelPolicy
    from shoal.policy.prompt import rendering as find_rendering
    from shoal.policy.server import CompletionServer, ServedPolicy

    folder = tiny_folder(name) if scheme == "tiny" else weights_folder(name)
    device, rank = options.get("device", device), _rank(options, spec)
    loaded = load(folder, spec, device=device, lora=rank, precision=precision)
    if scheme == "tiny" and rendering == "chat":
        loaded.tokenizer.chat_template = CHAT_TEMPLATE  # in the folder of a checkpoint too
    render = find_rendering(rendering, loaded.tokenizer, examples, system_text(system))
    policy = LanguageModelPolicy(spec, loaded, render)
    if "server" not in options:
        return policy
    _check_options(options, spec)
    server = CompletionServer(options["server"], options.get("name", name))
    adapters = Path(tempfile.mkdtemp(prefix="shoal-adapters-")) if options.get("refresh") != "off" else None
    return ServedPolicy(policy, server, adapters)


def check_policy(spec: str) -> None:
    """Raises the ConfigError of `open_policy`, as far as it is known without loading or making anything."""
    scheme, name, options = parse_policy(spec)
    _check_options(options, spec)
    if scheme == "table":
        TablePolicy(name)
    elif scheme == "tiny":
        check_tiny(name)
    else:
        check_weights(name)


def folder_to_make(spec: str) -> Path | None:
    """The folder of a model that is made on first use; None if there is none to make, or no such policy."""
    try:
        scheme, name, _ = parse_policy(spec)
    except ConfigError:
        return None
    if scheme == "tiny":
        return tiny_path(name) if name in RECIPES else None
    return unpacked_preset(name) if scheme == "local" else None


def make_policy_folder(spec: str, tell: Callable[[float], None]) -> None:
    """Makes the folder of `folder_to_make`; `tell` is told the part that is done, from 0 to 1."""
    scheme, name, _ = parse_policy(spec)
    _import_torch(spec)
    if scheme == "tiny":
        tiny_folder(name, tell)
    elif scheme == "local":
        weights_folder(name)


def parse_policy(spec: str) -> tuple[str, str, dict[str, str]]:
    """Scheme, name and options of a spec; ConfigError says what is wrong with it."""
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


def _import_torch(spec: str) -> None:
    for package in ("torch", "transformers", "safetensors"):
        import_package(package, "train", spec)


def _check_options(options: dict[str, str], spec: str) -> None:
    rank = _rank(options, spec)
    if "server" in options and options.get("refresh") != "off" and rank == 0:
        remedy = "add &lora=8, or &refresh=off to keep the weights that it was started with"
        raise ConfigError(f"{spec!r}: a server takes over adapters only: {remedy}")


def _rank(options: dict[str, str], spec: str) -> int:
    text = options.get("lora", "0")
    if not text.isdecimal() or not 0 <= int(text) <= MOST_RANK:
        raise ConfigError(f"{spec!r}: lora is {text!r}: give a rank from 1 to {MOST_RANK}")
    return int(text)
