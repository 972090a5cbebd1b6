"""From what an endpoint answered instead of a text to one named error; pure functions.

Texts of servers are cut, put on one line and freed of the key before they enter a message.
"""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping

import msgspec

from shoal.errors import (
    ModelAuthenticationError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelSettingError,
)

MOST_QUOTED_CHARACTERS = 200
MOST_RETRY_AFTER_SECONDS = 24 * 3600.0

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


class Refusal(msgspec.Struct, frozen=True):
    """What a server says went wrong, as far as its body can be understood."""

    message: str = ""
    param: str = ""
    code: str = ""


def quote(text: str) -> str:
    """One printable line of bounded length."""
    line = " ".join(
        "".join(c if c.isprintable() else " " for c in text[: 4 * MOST_QUOTED_CHARACTERS]).split()
    )
    return line if len(line) <= MOST_QUOTED_CHARACTERS else line[:MOST_QUOTED_CHARACTERS] + "…"


def read_refusal(body: bytes) -> Refusal:
    """Understands the error bodies of OpenAI, Anthropic, llama.cpp, vLLM and Ollama; else the bare text."""
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

    return Refusal(
        text_of("message", "detail"), text_of("param"), f"{text_of('code')} {text_of('type')}".strip()
    )


def refused_setting(refusal: Refusal) -> str:
    """The part of the request that a refusal is about; "" when it does not say."""
    said = f"{refusal.code} {refusal.message}".lower()
    if re.search(r"context.{0,20}(length|size|window)|exceed_context|too long|too many.{0,20}tokens", said):
        return "messages"
    for name, pattern in _SETTING_WORDS:
        if refusal.param == name or (refusal.param and re.search(pattern, refusal.param)):
            return name
    # Of several words the first in the text is meant: "'max_tokens' is not supported, use
    # 'max_completion_tokens'".
    places = [
        (found.start(), name) for name, pattern in _SETTING_WORDS if (found := re.search(pattern, said))
    ]
    if places:
        return min(places)[1]
    return "model" if re.search(r"\bmodel\b.{0,80}(not found|not exist|unknown|no such)", said) else ""


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds to wait as the headers ask; `now` is the time of day for dates."""
    text = headers.get("retry-after-ms", "")
    try:
        seconds = float(text) / 1000 if text else float(headers["retry-after"])
    except KeyError:
        return None
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    if seconds != seconds:
        return None
    return min(max(seconds, 0.0), MOST_RETRY_AFTER_SECONDS)


def error_for_status(
    status: int, headers: Mapping[str, str], body: bytes, *, where: str, variable: str, now: float
) -> ModelError:
    """The error for an HTTP status that is not success. `variable` is where the key is looked up."""
    refusal = read_refusal(body)
    said = quote(refusal.message)
    saying = f": {said}" if said else ""
    if status in (401, 403) or (status == 400 and re.search(r"api.?key", said, re.I)):
        return ModelAuthenticationError(f"{where} refuses the key ({status}){saying}: check {variable}")
    if status == 402 or "insufficient_quota" in refusal.code:
        return ModelAuthenticationError(f"{where} says the account is empty ({status}){saying}: top it up")
    if status == 429:
        wait = retry_after(headers, now)
        return ModelRateLimitError(f"{where} asks to be called less often (429){saying}: lower ?rpm=", wait)
    if status == 404:
        return ModelSettingError(f"{where} was not found (404){saying}: check URL and model name", "model")
    if status in (408, 409, 425) or status >= 500:
        return ModelServerError(
            f"{where} failed ({status}){saying}: try again later", retry_after=retry_after(headers, now)
        )
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
