"""The text that names a model, and its meaning.

    openai:gpt-5-mini                     OpenAI
    anthropic:claude-sonnet-4-5           Anthropic
    http://127.0.0.1:8080/v1#name         any server that speaks OpenAI's protocol; the name after #
    local:smollm2                         weights on this machine: a preset, a GGUF file or a model folder
    builtin:bomber                        an operator of a search's domain, needs nothing
    fake:echo                             for tests
    cassette:calls.jsonl                  recorded answers

Options follow a question mark: `openai:gpt-5-mini?temperature=1&rpm=60`. They are listed in `OPTIONS`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from shoal.errors import ConfigError

SCHEMES = ("openai", "anthropic", "http", "https", "local", "builtin", "fake", "cassette")
EXAMPLES = "openai:gpt-5-mini, anthropic:claude-sonnet-4-5, http://127.0.0.1:8080/v1#name, local:smollm2"
MOST_SPEC_CHARACTERS = 2000


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a spec.

    temperature, max_tokens   sampling of this model; they override the request's
    grammar                   on, off, or the dialect of the server (llama.cpp, vllm) if it does not say
    rpm, concurrency          limits per endpoint: calls per minute, calls at a time
    key                       name of the variable that holds the key
    threads, context          local weights: processor threads, tokens of context
    """

    temperature: float | None = None
    max_tokens: int | None = None
    grammar: str | None = None
    rpm: float | None = None
    concurrency: int | None = None
    key: str | None = None
    threads: int | None = None
    context: int | None = None


class Spec(msgspec.Struct, frozen=True, omit_defaults=True):
    """A parsed spec. `url` is set for http and https only; `name` is the rest."""

    scheme: str
    name: str
    url: str = ""
    options: Options = Options()

    def __str__(self) -> str:
        """The canonical text; parsing it gives the same spec."""
        head = f"{self.url}#{self.name}" if self.url else f"{self.scheme}:{self.name}"
        chosen = [f"{name}={value}" for name, value in msgspec.to_builtins(self.options).items()]
        return head + ("?" + "&".join(chosen) if chosen else "")


def parse_spec(text: str, besides: tuple[str, ...] = ()) -> Spec:
    """The parsed spec, or a ConfigError, which also names the caller's own prefixes (`besides`)."""
    text = text.strip()
    if not text:
        raise ConfigError(f"a model is named by a text such as {EXAMPLES}")
    # The key itself may stand where its variable belongs: it is never shown.
    shown = re.sub(r"(?i)([?&]key=)[^&]*", r"\1…", text)
    shown = shown if len(shown) <= 100 else shown[:100] + "…"
    if len(text) > MOST_SPEC_CHARACTERS or not text.isprintable():
        raise ConfigError(f"{shown!r} is too long or holds control characters to name a model")
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if not colon:
        raise ConfigError(f"{shown!r} does not say what kind of model it is: write for example {EXAMPLES}")
    if scheme not in SCHEMES:
        raise ConfigError(f"{shown!r} begins with {scheme!r}: known are {', '.join((*SCHEMES, *besides))}")
    if scheme in ("http", "https"):
        return _parse_url(text, scheme, shown)
    name, _, query = rest.partition("?")
    name = name.strip()
    if not name:
        raise ConfigError(f"{shown!r} names no model after the colon: write for example {EXAMPLES}")
    return Spec(scheme, name, options=_parse_options(query, shown))


def _parse_url(text: str, scheme: str, shown: str) -> Spec:
    url, mark, fragment = text.partition("#")
    name, _, query = fragment.partition("?")
    name = name.strip()
    example = "http://127.0.0.1:8080/v1#name"
    if not mark or not name:
        raise ConfigError(f"{shown!r} names no model: write it after a #, as in {example}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or port == 0 or not re.fullmatch(r"[A-Za-z0-9._:%-]+", host):
        raise ConfigError(f"{shown!r} has no usable host and port: write it as in {example}")
    if parts.username is not None or parts.password is not None:
        # The text is not shown: it holds a password.
        raise ConfigError("a model URL holds a user name or password: put the key into a variable instead")
    if parts.query:
        raise ConfigError(f"{shown!r} has a query before the #: put options at the end: {example}?rpm=60")
    return Spec(scheme, name, scheme + url[len(scheme) :].rstrip("/"), _parse_options(query, shown))


def _parse_options(query: str, shown: str) -> Options:
    found: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name not in OPTIONS:
            raise ConfigError(f"{shown!r} has the option {name!r}: known are {', '.join(OPTIONS)}")
        if name in found:
            raise ConfigError(f"{shown!r} gives the option {name!r} twice")
        kind, form = OPTIONS[name]
        try:
            found[name] = msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            found_text = "no such name" if name == "key" else repr(value)
            raise ConfigError(f"{shown!r}: {name} is {found_text}: give {form}") from None
    return Options(**found)


OPTIONS: dict[str, tuple[Any, str]] = {
    "temperature": (Annotated[float, Meta(ge=0, le=10)], "a number from 0 to 10"),
    "max_tokens": (Annotated[int, Meta(ge=1, le=1 << 20)], "a whole number of tokens"),
    "grammar": (Literal["on", "off", "llama.cpp", "vllm"], "on, off, llama.cpp or vllm"),
    "rpm": (Annotated[float, Meta(ge=0.01, le=1e6)], "calls per minute"),
    "concurrency": (Annotated[int, Meta(ge=1, le=10_000)], "a whole number of calls at a time"),
    "key": (
        Annotated[str, Meta(pattern=r"\A[A-Z_][A-Z0-9_]*\Z")],
        "the name of a variable in capitals, never the key itself",
    ),
    "threads": (Annotated[int, Meta(ge=1, le=1024)], "a whole number of processor threads"),
    "context": (Annotated[int, Meta(ge=64, le=1 << 24)], "a whole number of tokens"),
}
"""Each option: its type, and how it is described."""
