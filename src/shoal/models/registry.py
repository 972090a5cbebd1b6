"""From the text that names a model to the model: `open_model("local:smollm2")`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from shoal.errors import ConfigError
from shoal.models.anthropic_native import ANTHROPIC_URL, AnthropicModel
from shoal.models.cassette import Cassette, Recording, Replaying
from shoal.models.endpoint import ENDPOINTS, Endpoints
from shoal.models.instant import Fake
from shoal.models.keys import find_key, host_variable
from shoal.models.llama import DEFAULT_CONTEXT, LlamaModel, LlamaSettings
from shoal.models.openai_compatible import OPENAI_URL, OpenAICompatible
from shoal.models.presets import PRESETS, package_folder
from shoal.models.protocol import ChatAnswer, ChatRequest, Model, Wrapper
from shoal.models.specification import Options, Spec, parse_spec
from shoal.models.transformers_folder import TransformersModel


def open_model(
    spec: str | Spec,
    *,
    environment: Mapping[str, str] | None = None,
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
    """A model whose spec sets sampling of its own."""

    def __init__(self, model: Model, options: Options) -> None:
        super().__init__(model)
        self._options = options

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        return await self._model.answer(adjust(request, self._options), timeout=timeout)


def adjust(request: ChatRequest, options: Options) -> ChatRequest:
    """The request with the spec's temperature, and with no more tokens than the spec allows."""
    sampling = request.sampling
    if options.temperature is not None:
        sampling = msgspec.structs.replace(sampling, temperature=options.temperature)
    if options.max_tokens is not None:
        sampling = msgspec.structs.replace(sampling, max_tokens=min(options.max_tokens, sampling.max_tokens))
    return msgspec.structs.replace(request, sampling=sampling)


def key_variable(spec: Spec) -> str:
    """The variable that holds the key of a remote model."""
    if spec.options.key:
        return spec.options.key
    if not spec.url:
        return f"{spec.scheme.upper()}_API_KEY"
    return host_variable(urlsplit(spec.url).hostname or "")


def local_settings(spec: Spec) -> LlamaSettings | Path:
    """The GGUF file that a `local:` spec means, or the folder of a transformers model."""
    options = spec.options
    name, chat = spec.name, True
    preset = PRESETS.get(name)
    if preset is not None:
        path, chat = preset.file(), preset.chat
    else:
        path = _find_weights(name)
        name = path.stem if path.is_file() else path.name
    if path.is_dir():
        return path
    return LlamaSettings(
        str(path),
        name,
        chat,
        options.context or DEFAULT_CONTEXT,
        options.concurrency or 1,
        options.threads or 0,
    )


def _find_weights(name: str) -> Path:
    path = Path(name).expanduser()
    if not path.exists() and name.replace("-", "").replace("_", "").isalnum():
        path = package_folder(name.replace("-", "_")) or path
    if path.is_file():
        return path
    if path.is_dir() and (path / "config.json").is_file():
        return path
    if path.is_dir() and (trained := _trained_policy(path)) is not None:
        return trained
    files = sorted(path.glob("*.gguf")) if path.is_dir() else []
    if len(files) == 1:
        return files[0]
    known = ", ".join(PRESETS)
    if files:
        raise ConfigError(f"{path} holds {len(files)} GGUF files: name one of them, such as local:{files[0]}")
    raise ConfigError(
        f"local:{name} is not a GGUF file, a model folder, a run of training with a checkpoint, an installed "
        f"package with a GGUF file, or one of the presets: {known}"
    )


def _trained_policy(folder: Path) -> Path | None:
    """The newest policy of a node of a training run, given the node's folder or the run's: there the first
    node that has one."""
    nodes = [folder] if folder.parent.name == "nodes" else sorted((folder / "nodes").glob("*"))
    for node in nodes:
        policies = sorted(node.glob("checkpoint-*/policy/config.json"))
        if policies:
            return policies[-1].parent
    return None


def _remote(spec: Spec, environment: Mapping[str, str] | None, endpoints: Endpoints) -> Model:
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


def _open(spec: Spec, environment: Mapping[str, str] | None, endpoints: Endpoints) -> Model:
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
