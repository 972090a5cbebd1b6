"""Rules for the tests themselves: none asserts how long something took, and none waits without a bound.

How long something takes says more about what else the machine does than about the code; timings belong into
`bench/`. A loop may give up at a point in time (`assert time.monotonic() < until`): that is a bound.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time", "time"}
WAITS = {"wait", "communicate", "join", "get", "result", "acquire"}
NOT_WAITS = {"swarm.join"}
"""The simulator's word for one more node."""
RUNS = {"run", "check_call", "check_output", "call"}


def is_clock(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "time"
        and node.func.attr in CLOCKS
    )


def is_duration(node: ast.AST) -> bool:
    """Whether a difference of times is anywhere in it."""
    return any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) and any(map(is_clock, ast.walk(part)))
        for part in ast.walk(node)
    )


def timed_asserts(tree: ast.AST) -> Iterator[int]:
    durations = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and is_duration(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and (
            is_duration(node.test)
            or any(isinstance(part, ast.Name) and part.id in durations for part in ast.walk(node.test))
        ):
            yield node.lineno


def unbounded_waits(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        bounded = any(word.arg in ("timeout", None) for word in node.keywords)
        is_run = isinstance(node.func.value, ast.Name) and node.func.value.id == "subprocess"
        is_wait = node.func.attr in WAITS and not node.args and ast.unparse(node.func) not in NOT_WAITS
        if not bounded and (is_wait or (is_run and node.func.attr in RUNS)):
            yield node.lineno


@pytest.mark.parametrize("rule", [timed_asserts, unbounded_waits], ids=lambda rule: rule.__name__)
def test_no_test_breaks_the_rule(rule) -> None:  # type: ignore[no-untyped-def]
    wrong = []
    for path in sorted(TESTS.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        wrong += [f"{path.relative_to(TESTS.parent)}:{line}" for line in rule(tree)]
    assert not wrong, "\n".join(wrong)


def test_the_rules_find_what_they_are_for() -> None:
    timed = "began = time.monotonic()\nf()\ntook = max(0, time.monotonic() - began)\nassert took < 1"
    assert list(timed_asserts(ast.parse(timed))) == [4]
    assert list(timed_asserts(ast.parse("assert time.time() - began < 3"))) == [1]
    assert not list(timed_asserts(ast.parse("assert time.monotonic() < until")))
    unbounded = "p.wait()\nq.join()\nsubprocess.run(x)\np.communicate(input=b'')"
    assert list(unbounded_waits(ast.parse(unbounded))) == [1, 2, 3, 4]
    bounded = "p.wait(3)\nq.join(timeout=1)\nsubprocess.run(x, timeout=2)\n', '.join(y)\nsubprocess.run(x, **bounds)"
    assert not list(unbounded_waits(ast.parse(bounded)))
