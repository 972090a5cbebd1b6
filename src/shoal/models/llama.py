"""Weights on this machine, run by llama.cpp (the `xllamacpp` wheel) in this process or as a loopback server.

A process loads one set of weights once, however many nodes use it. Worker threads release the interpreter
while they compute. The engine always opens a loopback port, which only answers to a random key.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

import msgspec

from shoal.errors import ConfigError, ModelAnswerError, ModelServerError, ModelTimeoutError
from shoal.models.openai_compatible import Completion, answer_of, chat_body
from shoal.models.protocol import ChatAnswer, ChatRequest, Model
from shoal.models.remote import error_for_status, import_package

DEFAULT_CONTEXT = 4096
MOST_DEFAULT_THREADS = 4

Result = TypeVar("Result")


class LlamaSettings(msgspec.Struct, frozen=True):
    """`context` is tokens for each call, prompt and answer together; `parallel` calls run at a time. One at a
    time is the default: then an answer does not depend on the calls beside it."""

    path: str
    name: str
    chat: bool = True
    context: int = DEFAULT_CONTEXT
    parallel: int = 1
    threads: int = 0

    def load(self, key: str) -> Any:
        """The engine with its weights; ConfigError when the file cannot be used."""
        llama = import_package("xllamacpp", "local", f"local:{self.name}")
        if not Path(self.path).is_file():
            raise ConfigError(f"{self.path} is not there: name a GGUF file")
        params = llama.CommonParams()
        params.model.path = self.path
        params.model_alias = {self.name}
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.api_keys = [key]
        params.n_parallel = self.parallel
        params.n_ctx = self.context * self.parallel
        params.cpuparams.n_threads = self.threads or default_threads()
        params.verbosity = -1
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        params.offline = True
        try:
            return llama.Server(params)
        except RuntimeError as error:
            problem = str(error)
        raise ConfigError(f"{self.path} cannot be loaded ({problem.strip()}): is it a whole GGUF file?")


def default_threads() -> int:
    """Half of the processors, at most four. The engine's threads wait for each other after every step: with
    more threads than free processors it is several times slower, and battles want processors too."""
    return max(1, min(MOST_DEFAULT_THREADS, (os.cpu_count() or 1) // 2))


class _Weights:
    """Loaded weights with their worker threads; shared by all models with the same settings."""

    _loaded: ClassVar[WeakValueDictionary[LlamaSettings, _Weights]] = WeakValueDictionary()
    _lock = threading.Lock()

    def __init__(self, settings: LlamaSettings) -> None:
        self.settings = settings
        self.workers = ThreadPoolExecutor(settings.parallel, thread_name_prefix=f"llama-{settings.name}")
        self._loading = threading.Lock()
        self._engine: Any = None

    @classmethod
    def of(cls, settings: LlamaSettings) -> _Weights:
        with cls._lock:
            found = cls._loaded.get(settings)
            if found is None:
                found = cls._loaded[settings] = cls(settings)
            return found

    def engine(self) -> Any:
        """Loads on first use: naming a model costs nothing."""
        with self._loading:
            if self._engine is None:
                self._engine = self.settings.load(secrets.token_urlsafe(24))
            return self._engine

    def generate(self, body: dict[str, Any], stop: threading.Event) -> dict[str, Any]:
        """A streamed answer as a whole; the engine stops after the event is set."""
        engine = self.engine()
        texts: list[str] = []
        found: dict[str, Any] = {"finish": None, "usage": None}

        def take(piece: Any) -> bool:
            # An exception would be lost inside the engine, so any piece is taken as data.
            if isinstance(piece, dict):
                if piece.get("error"):
                    found["error"] = piece["error"]
                for choice in piece.get("choices") or ():
                    texts.append(str(choice.get("text") or (choice.get("delta") or {}).get("content") or ""))
                    found["finish"] = choice.get("finish_reason") or found["finish"]
                found["usage"] = piece.get("usage") or found["usage"]
            return stop.is_set()

        call = engine.handle_chat_completions if self.settings.chat else engine.handle_completions
        try:
            call(body, take)
        except RuntimeError as error:
            found.setdefault("error", {"code": 400, "message": str(error)})
        found["text"] = "".join(texts)
        return found


class LlamaModel(Model):
    """A GGUF model in this process. A grammar is always followed, unless it is switched off."""

    def __init__(self, spec: str, settings: LlamaSettings, *, grammar: bool = True) -> None:
        import_package("xllamacpp", "local", spec)
        self.spec, self.endpoint = spec, f"local:{settings.path}"
        self.settings = settings
        self._grammar = grammar
        self._weights: _Weights | None = None

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        started = time.monotonic()
        if self._weights is None:
            self._weights = _Weights.of(self.settings)
        work = partial(self._weights.generate, self._body(request))
        found = await in_thread(work, self._weights.workers, self.spec, timeout)
        return self._answer(found, request, time.monotonic() - started)

    async def close(self) -> None:
        """Lets go of the weights; they are freed once nobody in the process uses them."""
        self._weights = None

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        body = chat_body(request)
        if not self.settings.chat:
            # A base model continues a text: the texts of the request, one after the other.
            texts = [message["content"] for message in body.pop("messages")]
            body["prompt"] = "\n".join(texts) + "\n"
        if "seed" in body:
            body["seed"] %= (1 << 32) - 1  # the largest number stands for "draw one"
        if request.grammar and self._grammar:
            body["grammar"] = request.grammar
        limit = min(request.sampling.max_tokens, self.settings.context)
        return body | {"max_tokens": limit, "stream": True, "stream_options": {"include_usage": True}}

    def _answer(self, found: Mapping[str, Any], request: ChatRequest, latency: float) -> ChatAnswer:
        if found.get("error"):
            error = found["error"]
            code = error.get("code") if isinstance(error, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 500
            body = msgspec.json.encode({"error": error})
            raise error_for_status(status, {}, body, self.spec, "")
        if found["finish"] is None:
            raise ModelServerError(f"{self.spec} broke off: try again")
        choice = {"message": {"content": found["text"]}, "finish_reason": found["finish"]}
        whole = {"choices": [choice], "usage": found["usage"]}
        try:
            completion = msgspec.convert(whole, type=Completion, strict=False)
        except msgspec.ValidationError as error:
            raise ModelAnswerError(f"{self.spec} gave no readable answer ({error})") from None
        answer = answer_of(completion, self.settings.name)
        held = bool(request.grammar and self._grammar)
        return msgspec.structs.replace(answer, grammar=held, latency=round(latency, 6))


async def in_thread(
    work: Callable[[threading.Event], Result], workers: ThreadPoolExecutor, spec: str, timeout: float
) -> Result:
    """The result of the work, or a ModelError. The event tells the work that nobody waits for it."""
    stop = threading.Event()
    running = asyncio.get_running_loop().run_in_executor(workers, work, stop)
    try:
        async with asyncio.timeout(timeout):
            return await asyncio.shield(running)
    except TimeoutError:
        raise ModelTimeoutError(f"{spec} gave no complete answer within {timeout:g} s") from None
    except ConfigError as error:
        # Weights that cannot be loaded: nothing is spent, and waiting does not help.
        failure = ModelServerError(str(error), reached=False)
        failure.transient = False
        raise failure from None
    finally:
        stop.set()
        running.add_done_callback(lambda done: done.cancelled() or done.exception())


class LlamaServer:
    """llama.cpp's own HTTP server on a free loopback port, while a `with` block lasts. Programs with the key
    can use it at `url`."""

    def __init__(self, settings: LlamaSettings, *, key: str | None = None) -> None:
        self.settings = settings
        self._key = secrets.token_urlsafe(24) if key is None else key
        self._engine: Any = None

    def __enter__(self) -> LlamaServer:
        self._engine = self.settings.load(self._key)
        return self

    def __exit__(self, *_: object) -> None:
        self._engine = None  # the last reference: the engine stops serving and frees the weights

    @property
    def url(self) -> str:
        if self._engine is None:
            raise ConfigError("the server is not running: use it in a `with` block")
        return f"{self._engine.listening_address}/v1"

    @property
    def spec(self) -> str:
        return f"{self.url}#{self.settings.name}?key=SHOAL_KEY_LLAMA_SERVER"

    @property
    def environment(self) -> dict[str, str]:
        """The environment that gives `open_model` the key."""
        return {"SHOAL_KEY_LLAMA_SERVER": self._key}
