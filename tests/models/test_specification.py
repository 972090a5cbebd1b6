"""Specs: what is accepted means one thing, and what is not is explained."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, strategies as st

from shoal.errors import ConfigError, ShoalError
from shoal.models import Spec, parse_spec
from shoal.models.specification import SCHEMES, Options

names = st.text(string.ascii_letters + string.digits + "-._/:@ +~#", min_size=1).map(str.strip).filter(bool)
options = st.builds(
    Options,
    temperature=st.none() | st.floats(0, 10),
    max_tokens=st.none() | st.integers(1, 1 << 20),
    grammar=st.sampled_from([None, "on", "off", "llama.cpp", "vllm"]),
    rpm=st.none() | st.floats(0.01, 1e6),
    concurrency=st.none() | st.integers(1, 10_000),
    key=st.none() | st.from_regex(r"[A-Z_][A-Z0-9_]*", fullmatch=True),
    threads=st.none() | st.integers(1, 1024),
    context=st.none() | st.integers(64, 1 << 24),
)
plain = st.builds(
    Spec, st.sampled_from([s for s in SCHEMES if not s.startswith("http")]), names, st.just(""), options
)
urls = st.builds(
    lambda scheme, host, port, path, name, chosen: Spec(
        scheme, name, f"{scheme}://{host}:{port}{path}", chosen
    ),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["localhost", "127.0.0.1", "api.example.com", "[::1]"]),
    st.integers(1, 65535),
    st.sampled_from(["", "/v1", "/api/v1"]),
    names,
    options,
)


@given(plain | urls)
def test_the_text_of_a_spec_means_that_spec(spec: Spec) -> None:
    assert parse_spec(str(spec)) == spec


@given(st.text() | st.builds("{}:{}".format, st.sampled_from(SCHEMES), st.text()))
@example("http://[")
@example("http://host:99999999/v1#x")
@example("http://host:x/v1#x")
@example("https://#x")
def test_any_text_is_a_spec_or_a_config_error(text: str) -> None:
    try:
        spec = parse_spec(text)
    except ShoalError as error:
        assert isinstance(error, ConfigError)
        assert "\n" not in str(error)
    else:
        assert parse_spec(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "such as"),
        ("gpt-5", "does not say what kind"),
        ("gpt:5", "known are openai, anthropic"),
        ("openai:", "names no model"),
        ("http://127.0.0.1:8080/v1", "after a #"),
        ("http://127.0.0.1:8080/v1?a=b#x", "options at the end"),
        ("openai:x?heat=1", "known are temperature"),
        ("openai:x?temperature=hot", "a number from 0 to 10"),
        ("openai:x?temperature=nan", "a number from 0 to 10"),
        ("openai:x?rpm=1&rpm=2", "twice"),
        ("local:x?threads=0", "a whole number"),
    ],
)
def test_errors_teach(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_spec(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://user:hunter2hunter2@host/v1#x",
        "https://host/v1#x?key=hunter2hunter2",
        "openai:x?heat=1&key=hunter2hunter2",
        "gpt:5?key=hunter2hunter2",
        "openai:x?KEY=hunter2hunter2",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_spec(text)
    assert "hunter2" not in str(caught.value)
