"""Whatever a journal holds, it becomes a view and a bounded message, or is counted; nothing is raised."""

from __future__ import annotations

from pathlib import Path

import msgspec
from hypothesis import given, settings, strategies as some

from shoal.dashboard.messages import Cursor, message
from shoal.dashboard.node_view import NodeView
from shoal.dashboard.run_view import RunView
from shoal.dashboard.view import Authors
from shoal.runs import Record
from tests.dashboard.samples import new_run

whole = some.one_of(
    some.integers(-2, 9), some.sampled_from([2**53, 2**63, 2**64, -(2**64), 10**40, 10**400]), some.booleans()
)
numbers = some.one_of(whole, some.floats(allow_nan=False, allow_infinity=False), some.just(1e308))
words = some.one_of(some.text(max_size=8), some.sampled_from(["a", "__proto__", "constructor", "x" * 70_000]))
anything = some.recursive(
    some.one_of(some.none(), numbers, words),
    lambda inner: some.one_of(some.lists(inner, max_size=4), some.dictionaries(words, inner, max_size=4)),
    max_leaves=8,
)
counts = some.dictionaries(words, whole, max_size=12)
program = some.fixed_dictionaries({"digest": words, "source": words})
programs = some.lists(program, max_size=3)
requests = some.fixed_dictionaries(
    {
        "type": some.sampled_from(["open", "propose", "close"]),
        "round": whole,
        "seed": whole,
        "task": some.just("new"),
        "calls": whole,
        "opponents": programs,
        "entrants": programs,
        "finalists": programs,
    },
    optional={
        "parent": words,
        "visitors": some.lists(
            some.fixed_dictionaries({"program": program, "author": words, "epoch": whole, "seq": whole}),
            max_size=3,
        ),
    },
)
cells = some.lists(whole, max_size=9)
placed = some.fixed_dictionaries(
    {"cell": cells, "fitness": numbers, "digest": words, "model": words, "node": words}
)
steps = some.sampled_from(["open", "propose", "close", "drain"])
notes = some.fixed_dictionaries(
    {"turn": whole, "round": whole, "step": steps | whole},
    optional={
        "cells": whole, "opponents": whole, "qd_score": numbers, "evaluations": whole, "visitors": whole,
        "kind": some.sampled_from(["step", "evaluation"]), "result": some.sampled_from(["new", "improved", "missed", "odd"]),
        "digest": words, "cell": cells, "fitness": numbers, "best": numbers, "placed": some.lists(placed, max_size=3),
        "own": whole, "own_informative": whole, "reward_local": numbers, "dropped": counts, "used_authors": some.lists(words, max_size=3),
        "parts": some.dictionaries(words, numbers, max_size=3), "loss": numbers, "said": words,
        "held_out": some.dictionaries(words, some.fixed_dictionaries({"right": whole, "total": whole, "reward": numbers}), max_size=2),
    },
)  # fmt: skip
items = {"author": words, "epoch": whole, "kind": words, "seq": whole, "index": whole}
records = some.one_of(
    some.tuples(
        some.just("started"),
        some.fixed_dictionaries(
            {
                "seed": whole,
                "node": words,
                "application": some.sampled_from(["evolve", "train", "odd"]),
                "shoal": words,
                "look_ahead": whole,
                "budget": counts,
            }
        ),
    ),
    some.tuples(
        some.just("asked"),
        some.fixed_dictionaries(
            {"turn": whole, "attempt": whole, "reserve": counts, "request": requests | anything}
        ),
    ),
    some.tuples(
        some.just("answered"),
        some.fixed_dictionaries({"turn": whole, "attempt": whole, "answer": anything, "cost": counts}),
    ),
    some.tuples(some.just("turn"), some.fixed_dictionaries({"turn": whole})),
    some.tuples(some.just("note"), some.fixed_dictionaries({"turn": whole, "note": notes | anything})),
    some.tuples(
        some.just("missed"), some.fixed_dictionaries({"turn": whole, "attempt": whole, "reason": words})
    ),
    some.tuples(
        some.just("arrived"),
        some.fixed_dictionaries(
            {**items, "made_at": numbers, "arrived_at": numbers, "digest": words, "item": anything}
        ),
    ),
    some.tuples(
        some.just("verdict"),
        some.fixed_dictionaries(
            {**items, "turn": whole, "accepted": some.booleans(), "reason": words, "evidence": anything}
        ),
    ),
    some.tuples(some.just("stopped"), some.fixed_dictionaries({"turn": whole, "reason": words})),
    some.tuples(words, anything),
)


def encoded(value: object) -> bytes:
    """JSON with whole numbers of any size, as other programs may write it."""
    import json

    return json.dumps(value).encode()


@settings(max_examples=300, deadline=None)
@given(some.lists(records, max_size=25))
def test_any_records_give_a_message(tmp_path_factory, lives: list[tuple[str, object]]) -> None:  # type: ignore[no-untyped-def]
    run = run_view(tmp_path_factory)
    node = run.nodes["1-x"] = NodeView("1-x", Path("nowhere"), "m", Authors())
    started = {
        "seed": 0,
        "node": "x",
        "application": "evolve" if len(lives) % 2 else "train",
        "shoal": "",
        "look_ahead": 1,
    }
    for number, (kind, payload) in enumerate([("started", started), *lives], start=1):
        node.fold(Record(number, kind, 1.0, msgspec.Raw(encoded(payload))))
    cursor = Cursor()
    told = msgspec.json.encode(message([run], cursor))
    assert len(told) < 1_000_000
    assert message([run], cursor) is None


_run: list[RunView] = []


def run_view(tmp_path_factory) -> RunView:  # type: ignore[no-untyped-def]
    if not _run:
        _run.append(RunView(new_run(tmp_path_factory.mktemp("any") / "run"), "any"))
    return _run[0]
