"""Keys: found where they should be, and never seen anywhere else."""

from __future__ import annotations

import asyncio
import copy
import io
import logging
import os
import pickle
import random
import traceback
from pathlib import Path

import msgspec
import pytest

from shoal.errors import ConfigError, ModelError
from shoal.models import (
    Caller,
    ChatRequest,
    ChatSampling,
    Endpoints,
    Patience,
    Spending,
    catalogue,
    open_model,
)
from shoal.models.anthropic_native import AnthropicModel
from shoal.models.endpoint import Capabilities
from shoal.models.keys import REMOVED, Key, find_key, host_variable
from shoal.models.prices import FREE
from tests.models.server import Misbehaving
from tests.models.test_remote import FAILURES

CANARY = "sk-canary-7f3a91c2d4e85b60af19"
FRAGMENTS = [CANARY[start : start + 8] for start in range(len(CANARY) - 7)]


def leaks(text: str) -> list[str]:
    return [fragment for fragment in FRAGMENTS if fragment in text]


def everything_about(error: BaseException) -> str:
    texts = ["".join(traceback.format_exception(error)), repr(error), str(error.__dict__)]
    seen: BaseException | None = error
    while seen is not None:
        texts.append(repr(seen) + repr(getattr(seen, "request", "")) + repr(getattr(seen, "response", "")))
        seen = seen.__cause__ or seen.__context__
    return "\n".join(texts)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("name", [*(name for name, _, _ in FAILURES), "echo", "echo-answer", "fine", "picky"])
def test_no_text_holds_the_key(server: Misbehaving, tmp_path: Path, name: str, native: bool) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("anthropic")
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        endpoints = Endpoints()
        environment = {host_variable("127.0.0.1"): CANARY}
        cassette = tmp_path / "calls.jsonl"
        spec = f"{server.root}/v1#{name}"
        model = open_model(spec, environment=environment, endpoints=endpoints, record=cassette)
        if native:
            model = AnthropicModel(
                name,
                url=server.root,
                model=name,
                key=Key(CANARY),
                variable="ANTHROPIC_API_KEY",
                capabilities=Capabilities(),
            )
        spending = Spending(9)
        patience = Patience(deadline=0.6, attempts=2, attempt_seconds=0.3, first_wait=0.01)
        caller = Caller(model, FREE, patience, endpoints)
        shown = [repr(model), repr(caller), str(vars(model))]
        request = ChatRequest.ask("hello", sampling=ChatSampling(max_tokens=9, temperature=0.1))
        try:
            answer = asyncio.run(caller.call(request, random.Random(1), spending))
            shown.append(msgspec.json.encode(answer).decode())
        except ModelError as error:
            shown.append(everything_about(error))
        shown.append(repr(vars(spending)))
        shown.append(cassette.read_text() if cassette.exists() else "")
        shown.append(str(catalogue([spec], environment=environment)))
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
    assert any(CANARY in str(headers) for headers, _ in server.seen) or name in ("hang", "half-open", "drip")
    assert leaks("\n".join(shown)) == []
    assert leaks(log.getvalue()) == []


def test_a_key_gives_itself_away_only_when_asked() -> None:
    key = Key(CANARY)
    assert key.reveal() == CANARY
    assert leaks(f"{key} {key!r} {[key]} {vars(type(key))}") == []
    for write in (pickle.dumps, copy.copy, msgspec.json.encode, msgspec.to_builtins):
        with pytest.raises(TypeError):
            write(key)


def test_parts_of_a_key_are_removed_from_errors() -> None:
    key = Key(CANARY)
    assert leaks(key.scrub(f"bad key {CANARY[:12]}****{CANARY[-9:]}, {CANARY}")) == []
    assert REMOVED in key.scrub(CANARY)
    assert key.scrub("nothing here") == "nothing here"
    assert Key("word").scrub_answer("a word in an answer") == "a word in an answer"


def write_key_file(path: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path.write_text(text)
    path.chmod(mode)
    return {"SHOAL_KEY_FILE": str(path)}


def test_a_key_file_is_read(tmp_path: Path) -> None:
    text = f"# keys\n\nexport OPENAI_API_KEY='{CANARY}'\nSHOAL_KEY_API_X_AI = other-key\n"
    environment = write_key_file(tmp_path / "keys", text)
    found = find_key("OPENAI_API_KEY", environment)
    assert found is not None
    assert found.reveal() == CANARY
    other = find_key(host_variable("api.x.ai"), environment)
    assert other is not None
    assert other.reveal() == "other-key"
    assert find_key("ANTHROPIC_API_KEY", environment) is None


def test_the_environment_comes_before_the_key_file(tmp_path: Path) -> None:
    environment = write_key_file(tmp_path / "keys", "OPENAI_API_KEY=from-file") | {
        "OPENAI_API_KEY": "from-environment"
    }
    found = find_key("OPENAI_API_KEY", environment)
    assert found is not None
    assert found.reveal() == "from-environment"


@pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    environment = write_key_file(tmp_path / "keys", f"OPENAI_API_KEY={CANARY}", mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        find_key("OPENAI_API_KEY", environment)


def test_a_bad_key_file_is_named_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2") as caught:
        find_key("X", write_key_file(tmp_path / "keys", f"A=b\n{CANARY}\n"))
    assert leaks(str(caught.value)) == []
    with pytest.raises(ConfigError, match="cannot be read"):
        find_key("X", {"SHOAL_KEY_FILE": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="no key has") as caught:
        find_key("X", {"X": f"{CANARY} and more"})
    assert leaks(str(caught.value)) == []


def test_a_missing_key_is_asked_for_by_name() -> None:
    for spec, variable in (
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("anthropic:claude-x", "ANTHROPIC_API_KEY"),
    ):
        with pytest.raises(ConfigError, match=variable):
            open_model(spec, environment={}, endpoints=Endpoints())
    with pytest.raises(ConfigError, match="MY_KEY"):
        open_model("https://host/v1#x?key=MY_KEY", environment={}, endpoints=Endpoints())
