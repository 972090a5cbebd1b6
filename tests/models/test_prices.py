"""Prices: priced, free and unpriced are three things; sums are exact; the most is the most."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shoal.errors import ConfigError
from shoal.models import Usage, own_price, parse_spec, price_for
from shoal.models.prices import FREE, UNPRICED

tokens = st.integers(0, 400_000)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    read = draw(tokens)
    cached = draw(st.integers(0, read))
    return Usage(read, draw(tokens), cached, draw(st.integers(0, read - cached)))


def test_the_three_states() -> None:
    pytest.importorskip("genai_prices")
    assert price_for(parse_spec("openai:gpt-5-mini")).state == "priced"
    assert price_for(parse_spec("anthropic:claude-sonnet-4-5")).state == "priced"
    assert price_for(parse_spec("https://api.x.ai/v1#grok-4")).state == "priced"
    assert price_for(parse_spec("openai:of-tomorrow")) == UNPRICED
    assert price_for(parse_spec("http://127.0.0.1:8080/v1#x")) == UNPRICED
    assert price_for(parse_spec("local:smollm2")) == FREE


def test_the_users_price_comes_first() -> None:
    own = {"http://127.0.0.1:8080/v1#x": own_price(0, 0), "openai:gpt-5-mini": own_price(1, 2)}
    assert price_for(parse_spec("http://127.0.0.1:8080/v1#x?rpm=5"), own) == FREE
    assert price_for(parse_spec("openai:gpt-5-mini"), own).cost(Usage(input=1_000_000)) == 1_000_000
    with pytest.raises(ConfigError):
        own_price(-1, 0)


@given(usages())
def test_no_call_costs_more_than_the_most(usage: Usage) -> None:
    pytest.importorskip("genai_prices")
    for price in (
        own_price(3, 15, 0.3),
        price_for(parse_spec("openai:gpt-5-mini")),
        price_for(parse_spec("anthropic:claude-sonnet-4-5")),
    ):
        assert 0 <= price.cost(usage) <= price.most(usage.input, usage.output)


def test_a_cached_prompt_is_cheaper() -> None:
    pytest.importorskip("genai_prices")
    price = price_for(parse_spec("anthropic:claude-sonnet-4-5"))
    assert price.cost(Usage(input=10_000, cached=9_000)) < price.cost(Usage(input=10_000))
    assert price.cost(Usage(input=10_000, cache_written=9_000)) > price.cost(Usage(input=10_000))
