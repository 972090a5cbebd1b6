"""From the text that names a model to the model: `open_model("local:smollm2")`; and the models that can be
used here and now: `catalogue()`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from shoal.errors import ConfigError, how_to_install
from shoal.models.anthropic_native import ANTHROPIC_URL, AnthropicModel
from shoal.models.cassette import Cassette, Recording, Replaying
from shoal.models.endpoint import ENDPOINTS, Endpoints
from shoal.models.instant import Fake
from shoal.models.keys import find_key, host_variable
from shoal.models.llama import DEFAULT_CONTEXT, LlamaModel, LlamaSettings
from shoal.models.openai_compatible import OPENAI_URL, OpenAICompatible
from shoal.models.presets import PRESETS, package_folder
from shoal.models.prices import Price, price_for
from shoal.models.protocol import ChatAnswer, ChatRequest, Model, Wrapper
from shoal.models.specification import Options, Spec, parse_spec
from shoal.models.transformers_folder import TransformersModel

Status = Literal["ready", "not installed", "no key", "unreachable", "unusable"]
Environment = Mapping[str, str] | None

KNOWN_REMOTE = ("openai:gpt-5-mini", "anthropic:claude-sonnet-4-5")
"""Examples of remote models, listed when nothing is asked for."""


def open_model(
    spec: str | Spec,
    *,
    environment: Environment = None,
    endpoints: Endpoints = ENDPOINTS,
    record: str | Path | None = None,
    replay: str | Path | None = None,
) -> Model:
    """The model that a spec names, ready to be called; ConfigError names what is missing and the remedy.
    Nothing is loaded, downloaded or sent before the first call. `record` names a cassette that every attempt
    is written to. With `replay` the answers come from one, and neither key nor package is needed.
    """
    parsed = parse_spec(spec) if isinstance(spec, str) else spec
    if replay is not None:
        return _replaying(Path(replay), str(parsed))
    if parsed.scheme in ("builtin", "fake", "cassette") and parsed.options != Options():
        raise ConfigError(f"{parsed}: {parsed.scheme} models take no options")
    model = _open(parsed, environment, endpoints)
    if parsed.options.temperature is not None or parsed.options.max_tokens is not None:
        model = Adjusted(model, parsed.options)
    return model if record is None else Recording(model, Cassette.at(record))


def check_model(spec: str) -> None:
    """ConfigError if a model cannot be used here: no such file, no key, no cassette. No weights are read, so
    this takes no time. Builtin models are left to their application."""
    parsed = parse_spec(spec)
    if parsed.scheme == "local":
        preset = PRESETS.get(parsed.name)
        if preset is None:
            _find_weights(parsed.name)
        else:
            preset.installed()
    elif parsed.scheme != "builtin":
        open_model(parsed, endpoints=Endpoints())


class Adjusted(Wrapper):
    """A model whose spec sets the temperature, or the most tokens of an answer."""

    def __init__(self, model: Model, options: Options) -> None:
        super().__init__(model)
        self._options = options

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        options, sampling = self._options, request.sampling
        if options.temperature is not None:
            sampling = msgspec.structs.replace(sampling, temperature=options.temperature)
        most = min(options.max_tokens or sampling.max_tokens, sampling.max_tokens)
        sampling = msgspec.structs.replace(sampling, max_tokens=most)
        adjusted = msgspec.structs.replace(request, sampling=sampling)
        return await self._model.answer(adjusted, timeout=timeout)


def key_variable(spec: Spec) -> str:
    if spec.options.key:
        return spec.options.key
    if not spec.url:
        return f"{spec.scheme.upper()}_API_KEY"
    return host_variable(urlsplit(spec.url).hostname or "")


def local_settings(spec: Spec) -> LlamaSettings | Path:
    """The GGUF file that a `local:` spec means, or the folder of a transformers model."""
    preset = PRESETS.get(spec.name)
    path = _find_weights(spec.name) if preset is None else preset.file()
    if path.is_dir():
        return path
    name, chat = (path.stem, True) if preset is None else (preset.name, preset.chat)
    own, context = spec.options, spec.options.context or DEFAULT_CONTEXT
    return LlamaSettings(str(path), name, chat, context, own.concurrency or 1, own.threads or 0)


def _find_weights(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.exists() and name.replace("-", "").replace("_", "").isalnum():
        path = package_folder(name.replace("-", "_")) or path
    if path.is_file() or (path / "config.json").is_file():
        return path
    if (trained := _trained_policy(path)) is not None:
        return trained
    files = sorted(path.glob("*.gguf"))
    if len(files) == 1:
        return files[0]
    if files:
        raise ConfigError(f"{path} holds {len(files)} GGUF files: name one of them, such as local:{files[0]}")
    raise ConfigError(
        f"local:{name} is not a GGUF file, a model folder, a run of training with a checkpoint, an installed "
        f"package with a GGUF file, or one of the presets: {', '.join(PRESETS)}"
    )


def _trained_policy(folder: Path) -> Path | None:
    """The newest policy of a training run's node, given the node's folder or the run's (the first node)."""
    nodes = [folder] if folder.parent.name == "nodes" else sorted((folder / "nodes").glob("*"))
    found = (sorted(node.glob("checkpoint-*/policy/config.json")) for node in nodes)
    return next((policies[-1].parent for policies in found if policies), None)


def _remote(spec: Spec, environment: Environment, endpoints: Endpoints) -> Model:
    variable = key_variable(spec)
    key = find_key(variable, environment)
    if key is None and (spec.options.key or not spec.url):
        raise ConfigError(f"{spec} needs a key: set {variable}, or SHOAL_KEY_FILE to a file that holds it")
    kind = AnthropicModel if spec.scheme == "anthropic" else OpenAICompatible
    url = spec.url or (ANTHROPIC_URL if spec.scheme == "anthropic" else OPENAI_URL)
    endpoint = endpoints.get(url)
    endpoint.limit(spec.options.concurrency, spec.options.rpm)
    capabilities = endpoint.capabilities(spec.name)
    if spec.scheme == "openai":
        capabilities.grammar = "none"
        if not capabilities.refused:
            capabilities.token_limit = "max_completion_tokens"
    elif spec.url and spec.options.grammar in ("off", "llama.cpp", "vllm"):
        dialect = "none" if spec.options.grammar == "off" else spec.options.grammar
        capabilities = msgspec.structs.replace(capabilities, grammar=dialect)
    return kind(str(spec), url=url, model=spec.name, key=key, variable=variable, capabilities=capabilities)


def _local(spec: Spec, endpoints: Endpoints) -> Model:
    found = local_settings(spec)
    if isinstance(found, Path):
        endpoints.get(f"local:{found}").limit(1, None)
        return TransformersModel(str(spec), found)
    model = LlamaModel(str(spec), found, grammar=spec.options.grammar != "off")
    endpoints.get(model.endpoint).limit(found.parallel, spec.options.rpm)
    return model


def _cassette(spec: Spec) -> Model:
    path, _, recorded = spec.name.partition("#")
    models = Cassette.at(path).models()
    if not recorded and len(models) > 1:
        listed = ", ".join(models)
        raise ConfigError(f"{path} holds models {listed}: name one, as in cassette:{path}#{models[0]}")
    return _replaying(Path(path), recorded or (models[0] if models else str(spec)))


def _replaying(path: Path, recorded: str) -> Model:
    if not path.expanduser().is_file():
        raise ConfigError(f"there is no cassette at {path}: record one first")
    return Replaying(recorded, Cassette.at(path))


def _open(spec: Spec, environment: Environment, endpoints: Endpoints) -> Model:
    match spec.scheme:
        case "local":
            return _local(spec, endpoints)
        case "builtin":
            raise ConfigError(f"{spec} is an operator of a domain: `shoal evolve` opens it, nothing else can")
        case "fake":
            return Fake(spec.name, str(spec))
        case "cassette":
            return _cassette(spec)
        case _:
            return _remote(spec, environment, endpoints)


class Listed(msgspec.Struct, frozen=True):
    """One model. `note` describes it; `remedy` says what to do if it is not ready."""

    spec: str
    status: Status
    price: Price
    note: str = ""
    remedy: str = ""


def catalogue(
    specs: Iterable[str] = (), *, environment: Environment = None, probe_seconds: float = 2.0
) -> list[Listed]:
    """The status of the named models; without names that of all presets and examples. An endpoint given by
    URL is ready if something accepts connections there; no request and no key is sent. Blocks for up to
    `probe_seconds`, so it must not be called inside an event loop.
    """

    async def all_of(names: Iterable[str]) -> list[Listed]:
        return list(await asyncio.gather(*(_listed(name, environment, probe_seconds) for name in names)))

    return asyncio.run(all_of(list(specs) or [*(f"local:{name}" for name in PRESETS), *KNOWN_REMOTE]))


async def _listed(name: str, environment: Environment, seconds: float) -> Listed:
    spec = parse_spec(name)
    note = "an operator of a search's domain: no model" if spec.scheme == "builtin" else ""
    if spec.scheme == "local" and (preset := PRESETS.get(spec.name)) is not None:
        note = f"{preset.title}, {preset.size // 10**6} MB, {preset.licence}"
    try:
        status, remedy = await _status(spec, environment, seconds)
    except ConfigError as error:
        status, remedy = "unusable", str(error)
    return Listed(str(spec), status, price_for(spec), note, remedy)


async def _status(spec: Spec, environment: Environment, seconds: float) -> tuple[Status, str]:
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
