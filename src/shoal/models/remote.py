"""One attempt over HTTP, whatever the vendor: bounded in time and memory, and every failure has a name.

The vendors' packages build the request and keep the connections; their retries are off. A hook on requests
passes a fixed set of headers and adds the key, so that nothing of the environment reaches a foreign endpoint.
A hook on answers cuts the body at `MOST_ANSWER_BYTES` and never unpacks it: a small packed answer could fill
the memory. Redirects are not followed. Messages quote one line of a server's text, without the key.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import re
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import msgspec

from shoal.errors import (
    ConfigError,
    ModelAnswerError,
    ModelAuthenticationError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelSettingError,
    ModelTimeoutError,
    how_to_install,
)
from shoal.models.endpoint import Capabilities
from shoal.models.keys import Key
from shoal.models.protocol import ChatAnswer, ChatRequest, Model

MOST_ANSWER_BYTES = 4 << 20
CONNECT_SECONDS = 10.0
MOST_QUOTED_CHARACTERS = 200
MOST_RETRY_AFTER_SECONDS = 24 * 3600.0
PASSING_HEADERS = frozenset(
    {"host", "content-type", "content-length", "transfer-encoding", "accept", "connection", "user-agent"}
)
_SETTING_WORDS = (
    ("max_completion_tokens", r"max_completion_tokens"),
    ("max_tokens", r"max_tokens|max_new_tokens"),
    ("temperature", r"temperature"),
    ("top_p", r"top_p"),
    ("seed", r"\bseed\b"),
    ("stop", r"\bstop\b|stop_sequences"),
    ("grammar", r"grammar|structured_outputs|guided"),
    ("system", r"system (?:role|prompt|message|instruction)|role.{0,20}system"),
)


class RemoteModel(Model):
    """A model behind HTTP. Subclasses say how one request is sent and how its body is read."""

    package: str
    path: str
    client_class: str
    headers: ClassVar[Mapping[str, str]] = {}
    """Headers that are sent as they are, besides the key."""

    def __init__(
        self, spec: str, *, url: str, model: str, key: Key | None, variable: str, capabilities: Capabilities
    ) -> None:
        """`variable` is named when the key is refused."""
        self.spec, self.endpoint, self.model = spec, url, model
        self.capabilities = capabilities
        self._key = key or Key("")
        self._variable = variable
        self._sdk = import_package(self.package, "llm", spec)
        self._http = import_package("httpx2", "llm", spec)
        errors = (self._sdk.APIError, self._http.HTTPError, OSError, ValueError, RecursionError)
        self._foreseen: tuple[type[Exception], ...] = errors
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()

    @abstractmethod
    def body(self, request: ChatRequest) -> dict[str, Any]:
        """The request in the vendor's words."""

    async def prepare(self, client: Any, request: ChatRequest) -> None:
        """Asks the server for facts that the request depends on."""
        return

    @abstractmethod
    def read(self, body: bytes, request: ChatRequest) -> ChatAnswer:
        """The answer in a body; ModelAnswerError or msgspec's errors if it has none."""

    @abstractmethod
    def key_header(self, key: Key) -> tuple[str, str]:
        """The header that carries the key."""

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        """One attempt. A ModelError comes without its cause, which holds the request with its headers."""
        client = self._client()
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                await self.prepare(client, request)
                options = {"timeout": self._http.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))}
                kind, body = self._http.Response, self.body(request)
                response = await client.post(self.path, cast_to=kind, body=body, options=options)
            answer = self.read(self._checked_body(response), request)
            text, model = self._key.scrub_answer(answer.text), self._key.scrub(answer.model)
            latency = round(time.monotonic() - started, 6)
            return msgspec.structs.replace(answer, text=text, model=model, latency=latency)
        except TimeoutError:
            failure: ModelError = self._too_slow(timeout)
        except ModelError as error:
            failure = error
        except self._foreseen as error:
            failure = self._translate(error, timeout)
        failure.args = (self._key.scrub(str(failure)),)
        failure.__context__ = None
        raise failure

    def learn(self, setting: str) -> bool:
        return self.capabilities.learn(setting)

    async def close(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()

    @property
    def _where(self) -> str:
        return f"{self.model} at {self.endpoint}"

    def _too_slow(self, timeout: float) -> ModelTimeoutError:
        return ModelTimeoutError(f"{self._where} gave no complete answer within {timeout:g} s")

    def _client(self) -> Any:
        """The package's client for the running event loop: connections cannot move between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            http_client = self._sdk.DefaultAsyncHttpxClient(
                verify=_trusted(),
                follow_redirects=False,
                event_hooks={"request": [self._outgoing], "response": [self._incoming]},
            )
            self._clients[loop] = getattr(self._sdk, self.client_class)(
                api_key="set-at-the-door", base_url=self.endpoint, max_retries=0, http_client=http_client
            )
        return self._clients[loop]

    async def _outgoing(self, request: Any) -> None:
        for name in list(request.headers):
            if name.lower() not in PASSING_HEADERS:
                del request.headers[name]
        request.headers["accept-encoding"] = "identity"
        request.headers.update(self.headers)
        if self._key.reveal():
            name, value = self.key_header(self._key)
            request.headers[name] = value

    async def _incoming(self, response: Any) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ModelAnswerError(f"{self._where} sent a packed answer although a plain one was asked for")
        response.stream = bounded(response.stream, self._http.AsyncByteStream, self._where)

    def _checked_body(self, response: Any) -> bytes:
        """The body of a successful answer, if it says that it is JSON."""
        content = response.headers.get("content-type", "nothing")
        if "json" in content:
            return bytes(response.content)
        found = f"{self._where} sent {quote(content)[:60]}"
        raise ModelAnswerError(f"{found} instead of JSON: check the URL (most end with /v1)")

    def _translate(self, error: Exception, timeout: float) -> ModelError:
        cause: BaseException = error.__cause__ or error
        if isinstance(cause, ModelAnswerError):  # of one of the hooks, wrapped by the package
            return ModelAnswerError(str(cause))
        if isinstance(error, self._sdk.APIStatusError):
            headers, body = error.response.headers, error.response.content
            return error_for_status(error.status_code, headers, body, self._where, self._variable)
        if isinstance(error, (ValueError, RecursionError)):
            found = f"{self._where} sent no readable answer ({quote(str(error))})"
            return ModelAnswerError(f"{found}: is this a chat endpoint?")
        http = self._http
        never_connected = (http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.UnsupportedProtocol)
        if isinstance(cause, (*never_connected, http.ProxyError)):
            remedy = "start the server or check the address"
            return ModelServerError(f"{self._where} cannot be reached: {remedy}", reached=False)
        if isinstance(error, self._sdk.APITimeoutError) or isinstance(cause, http.TimeoutException):
            return self._too_slow(timeout)
        return ModelServerError(f"{self._where} broke off ({type(cause).__name__}): try again later")


def bounded(stream: Any, base: type[Any], where: str) -> Any:
    """The stream, which ends in an error after MOST_ANSWER_BYTES."""

    class Bounded(base):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MOST_ANSWER_BYTES
            async for chunk in stream:
                left -= len(chunk)
                if left < 0:
                    found = f"{where} sent more than {MOST_ANSWER_BYTES} bytes"
                    raise ModelAnswerError(f"{found}: is this a chat endpoint?")
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

        @property
        def elapsed(self) -> Any:
            return stream.elapsed

    return Bounded()


@cache
def _trusted() -> Any:
    """The certificates that are trusted, read once for all endpoints."""
    return import_module("httpx2").create_ssl_context()


def import_package(package: str, extra: str, spec: str) -> Any:
    """An optional package, or a ConfigError that names the extra to install."""
    try:
        return import_module(package)
    except ImportError as error:
        missing = getattr(error, "name", None) or package
    raise ConfigError(f"{spec} needs the package {missing}: {how_to_install(extra)}")


class Refusal(msgspec.Struct, frozen=True):
    """The explanation in the body of a refusal, as far as it can be understood."""

    message: str = ""
    param: str = ""
    code: str = ""


def quote(text: str) -> str:
    """One printable line of bounded length."""
    cut = text[: 4 * MOST_QUOTED_CHARACTERS]
    line = " ".join("".join(c if c.isprintable() else " " for c in cut).split())
    return line if len(line) <= MOST_QUOTED_CHARACTERS else line[:MOST_QUOTED_CHARACTERS] + "…"


def read_refusal(body: bytes) -> Refusal:
    """Reads the error bodies of OpenAI, Anthropic, llama.cpp, vLLM and Ollama; else takes the bare text."""
    try:
        data = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        text = body[:4096].decode("utf-8", "replace")
        return Refusal("an HTML page" if re.search(r"<!doctype|<html", text, re.I) else text)
    if isinstance(data, dict) and isinstance(data.get("error"), dict | str):
        data = data["error"]
    if isinstance(data, str):
        return Refusal(data)
    if not isinstance(data, dict):
        return Refusal()

    def text_of(*names: str) -> str:
        return next((str(data[name]) for name in names if isinstance(data.get(name), str | int)), "")

    code = f"{text_of('code')} {text_of('type')}".strip()
    return Refusal(text_of("message", "detail"), text_of("param"), code)


def refused_setting(refusal: Refusal) -> str:
    """The part of the request that a refusal is about; "" when it does not say."""
    said = f"{refusal.code} {refusal.message}".lower()
    if re.search(r"context.{0,20}(length|size|window)|exceed_context|too long|too many.{0,20}tokens", said):
        return "messages"
    for name, pattern in _SETTING_WORDS:
        if refusal.param == name or (refusal.param and re.search(pattern, refusal.param)):
            return name
    # The first of several words counts: "'max_tokens' is not supported, use 'max_completion_tokens'".
    found = [(match.start(), name) for name, word in _SETTING_WORDS if (match := re.search(word, said))]
    if found:
        return min(found)[1]
    return "model" if re.search(r"\bmodel\b.{0,80}(not found|not exist|unknown|no such)", said) else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, as the headers ask."""
    text = headers.get("retry-after-ms", "")
    try:
        seconds = float(text) / 1000 if text else float(headers["retry-after"])
    except KeyError:
        return None
    except ValueError:
        try:
            date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
            seconds = date.timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MOST_RETRY_AFTER_SECONDS)


def error_for_status(
    status: int, headers: Mapping[str, str], body: bytes, where: str, variable: str
) -> ModelError:
    """The error for an HTTP status that is not success. `variable` holds the key."""
    refusal = read_refusal(body)
    said, wait = quote(refusal.message), retry_after(headers)
    saying = f": {said}" if said else ""
    if status in (401, 403) or (status == 400 and re.search(r"api.?key", said, re.I)):
        return ModelAuthenticationError(f"{where} refuses the key ({status}){saying}: check {variable}")
    if status == 402 or "insufficient_quota" in refusal.code:
        return ModelAuthenticationError(f"{where} says the account is empty ({status}){saying}: top it up")
    if status == 429:
        return ModelRateLimitError(f"{where} asks for calls less often (429){saying}: lower ?rpm=", wait)
    if status == 404:
        return ModelSettingError(f"{where} was not found (404){saying}: check URL and model name", "model")
    if status in (408, 409, 425) or status >= 500:
        return ModelServerError(f"{where} failed ({status}){saying}: try again later", retry_after=wait)
    if 300 <= status < 400:
        return ModelSettingError(f"{where} redirects elsewhere ({status}): give the final URL", "url")
    if status == 413:
        return ModelSettingError(f"{where} finds the request too large (413){saying}: shorten it", "messages")
    setting = refused_setting(refusal)
    about = f"the {setting}" if setting else "the request"
    remedy = {
        "messages": "shorten the prompt or use a model with a larger context",
        "model": "check the model name",
        "grammar": "correct the grammar, or do without it (?grammar=off)",
        "max_tokens": "lower max_tokens",
        "max_completion_tokens": "lower max_tokens",
    }.get(setting, f"leave out {setting}" if setting else "see what the server's documentation allows")
    return ModelSettingError(f"{where} refuses {about} ({status}){saying}: {remedy}", setting)
