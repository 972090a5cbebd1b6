"""Law 1: with nothing gathered, a node is exactly the ordinary single-node algorithm, bit for bit.

The oracle is a plain loop that imports neither the node nor the exchange. It is written anew here, so that a
mistake in the example application shows as well.
"""

import ast
import hashlib
import math
import random
from collections import deque
from pathlib import Path

import msgspec
import pytest


def plain_loop(seed: int, name: str, limit: int, look_ahead: int, most_searches: int) -> tuple[bytes, int]:
    """Searches for hypotenuses up to `limit`; the search of turn k is chosen after turn k - look_ahead."""
    found: dict[int, tuple[int, int]] = {}
    barren: list[int] = []
    waiting: deque[int] = deque()
    chosen = 0
    while True:
        while len(waiting) < look_ahead and chosen < most_searches:
            settled = {*found, *barren}
            candidates = [number for number in range(1, limit + 1) if number not in settled]
            if not candidates:
                break
            chosen += 1
            waiting.append(generator(seed, name, "number", chosen).choice(candidates))
        if not waiting:
            return msgspec.json.encode({"found": found, "barren": sorted(barren)}), chosen
        number = waiting.popleft()
        for short in range(1, math.isqrt(number**2 // 2) + 1):
            long = math.isqrt(number**2 - short**2)
            if short**2 + long**2 == number**2:
                found.setdefault(number, (short, long))
                break
        else:
            if number not in barren:
                barren.append(number)


def generator(*parts: int | str) -> random.Random:
    """The documented derivation, by hand."""
    text = b"".join(
        b"%b%d:%b" % (b"i" if isinstance(part, int) else b"s", len(str(part)), str(part).encode())
        for part in parts
    )
    digest = hashlib.blake2b(text, digest_size=64, person=b"shoal.seeds").digest()
    return random.Random(int.from_bytes(digest[:16], "big"))


def node_in(journal, exchange, outside, seed: int, look_ahead: int, limit: int, budget: int):
    from examples.hypotenuses import Hypotenuses

    from shoal.node import Node, NodeSettings

    settings = NodeSettings(look_ahead=look_ahead, budget={"searches": budget})
    return Node(
        Hypotenuses(limit),
        outside,
        name="alone",
        seed=seed,
        journal=journal,
        now=0.0,
        exchange=exchange,
        settings=settings,
    )


def outcome(node) -> tuple[bytes, int]:
    """In the order in which it was learnt, so that the order is compared too."""
    state = node.state
    return msgspec.json.encode({"found": state.found, "barren": sorted(state.barren)}), node.turns


@pytest.mark.parametrize("look_ahead", [1, 2, 7])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("budget", [30, 10_000])
@pytest.mark.parametrize("company", ["none", "silent", "of one"])
def test_a_node_with_nothing_gathered_is_the_plain_loop(
    tmp_path: Path, look_ahead: int, seed: int, budget: int, company: str
) -> None:
    from examples.hypotenuses import Hypotenuses, search_legs

    from shoal.node import Delayed, run_in_turns
    from shoal.runs import Journal
    from shoal.swarm import Exchange, ExchangeSettings, Identity, MemoryHub
    from tests.node.scripted import ScriptedExchange

    limit = 60
    exchange: object = None
    exchanges: list[Exchange] = []
    if company == "silent":
        exchange = ScriptedExchange()
    elif company == "of one":
        transport = MemoryHub().open()
        rng = random.Random(seed)
        kinds, settings = Hypotenuses.kinds, ExchangeSettings()
        exchanges = [Exchange(Identity.create(), transport, kinds, settings, now=0.0, rng=rng)]
        exchange = exchanges[0]
    outside = Delayed(search_legs, lambda call: call.turn * 7 % 5 / 10)
    times = iter(range(10**9))
    with Journal(tmp_path / "journal.jsonl") as journal:
        node = node_in(journal, exchange, outside, seed, look_ahead, limit, budget)
        assert run_in_turns([node], exchanges, clock=lambda: next(times) / 10)
        assert outcome(node) == plain_loop(seed, "alone", limit, look_ahead, budget)


def test_the_oracle_is_not_blind() -> None:
    assert plain_loop(0, "alone", 60, 1, 30) != plain_loop(1, "alone", 60, 1, 30)
    assert plain_loop(0, "alone", 60, 1, 30) != plain_loop(0, "alone", 60, 2, 30)


def test_the_oracle_imports_neither_node_nor_exchange() -> None:
    top_level = [
        node for node in ast.parse(Path(__file__).read_text()).body if not isinstance(node, ast.FunctionDef)
    ]
    names = {alias.name for node in top_level if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in top_level if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith("shoal")]
    assert not {"import_module", "__import__"} & {*plain_loop.__code__.co_names, *generator.__code__.co_names}
