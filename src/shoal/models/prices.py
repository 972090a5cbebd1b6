"""The price of a call. A model is priced, free or unpriced; unpriced is not the same as free.

Prices come from the table of the `genai-prices` package, which is read offline, or from the user. Money is
counted in whole millionths of a dollar, each call rounded up, so that sums do not depend on their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from importlib import import_module
from typing import Any, Literal

import msgspec

from shoal.errors import ConfigError
from shoal.models.protocol import Usage
from shoal.models.specification import Spec

FREE_SCHEMES = ("local", "builtin", "fake", "cassette")


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """The price of one model. A price of the user's has `input`, `output` and `cached`, in dollars for a
    million tokens; a price of the table has `provider` or `url`, and `model`. `shown` is for people."""

    state: Literal["priced", "free", "unpriced"]
    shown: str = ""
    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    provider: str = ""
    url: str = ""
    model: str = ""

    def cost(self, usage: Usage) -> int:
        """Millionths of a dollar for these tokens, rounded up; 0 for a free or unpriced model."""
        if self.state != "priced":
            return 0
        if self.model:
            return max(0, math.ceil(Decimal(self.looked_up(usage).total_price) * 1_000_000))
        cached = self.input if self.cached is None else self.cached
        plain = usage.input - usage.cached
        parts = ((plain, self.input), (usage.cached, cached), (usage.output, self.output))
        return max(0, math.ceil(sum(tokens * Decimal(str(rate)) for tokens, rate in parts)))

    def most(self, input_tokens: int, output_tokens: int) -> int:
        """The most that a call with at most so many tokens can cost."""
        whole = Usage(input=input_tokens, output=output_tokens)
        return max(self.cost(whole), self.cost(msgspec.structs.replace(whole, cache_written=input_tokens)))

    def looked_up(self, usage: Usage) -> Any:
        """The entry of the table for these tokens; LookupError or others if there is none."""
        prices: Any = import_module("genai_prices")
        known = prices.Usage(
            input_tokens=usage.input,
            output_tokens=usage.output,
            cache_read_tokens=usage.cached,
            cache_write_tokens=usage.cache_written,
        )
        where = {"provider_id": self.provider} if self.provider else {"provider_api_url": self.url}
        return prices.calc_price(known, self.model, **where)


FREE = Price("free", "free")
UNPRICED = Price("unpriced", "no known price")


def own_price(input: float, output: float, cached: float | None = None) -> Price:
    """A price that the user states, in dollars for a million tokens; zero for both means free."""
    if not all(0 <= rate < math.inf for rate in (input, output, cached or 0.0)):
        raise ConfigError("a price is 0 or more dollars for a million tokens")
    if input == output == 0:
        return FREE
    return Price("priced", f"${input:g} in, ${output:g} out per million", input, output, cached)


def price_for(spec: Spec, own: Mapping[str, Price] | None = None) -> Price:
    """The price of a model: the user's under its spec, else the table's, else unpriced."""
    plain = str(msgspec.structs.replace(spec, options=type(spec.options)()))
    for name in (str(spec), plain):
        if own and name in own:
            return own[name]
    if spec.scheme in FREE_SCHEMES:
        return FREE
    provider = spec.scheme if spec.scheme in ("openai", "anthropic") else ""
    price = Price("priced", provider=provider, url="" if provider else spec.url, model=spec.name)
    try:
        found = price.looked_up(Usage(input=1000, output=1000, cache_written=1000))
    except (ImportError, LookupError, ValueError, TypeError):
        return UNPRICED
    return msgspec.structs.replace(price, shown=str(found.model_price))
