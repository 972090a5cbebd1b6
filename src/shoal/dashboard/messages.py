"""What the page is told: a first message with everything, then only what changed.

A message has the same form in both cases; the first one is what changed since nothing. A `Cursor` is what
one page already has. Sizes are bounded by those of the views, whatever the length of the journals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from shoal.dashboard.node_view import NodeView
from shoal.dashboard.run_view import RunView
from shoal.dashboard.search_view import Grid
from shoal.dashboard.series import Curves

FORMAT = 1
MOST_MEASURES = 8
MOST_WHOLE = 2**53 - 1


@dataclass
class NodeCursor:
    version: int = -1
    grids: dict[str, int] = field(default_factory=dict)
    curves: dict[str, tuple[int, int]] = field(default_factory=dict)
    event: int = 0
    rollouts: int = -1


@dataclass
class Cursor:
    """`runs` are the runs as they were last told."""

    number: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    nodes: dict[tuple[int, str], NodeCursor] = field(default_factory=dict)
    behind: int = -1


def message(runs: Sequence[RunView], cursor: Cursor) -> dict[str, Any] | None:
    """What changed since the last message of this cursor, which is brought up to date; None: nothing."""
    is_first = cursor.number == 0
    told: dict[str, Any] = {}
    about = [run.about() for run in runs]
    if about != cursor.runs:
        told["runs"] = cursor.runs = about
    nodes = []
    for index, run in enumerate(runs):
        for name, node in run.nodes.items():
            seen = cursor.nodes.setdefault((index, name), NodeCursor())
            if seen.version != node.version or is_first:
                nodes.append({"run": index, "name": name, **_node(node, seen)})
    if nodes:
        told["nodes"] = nodes
    behind = sum(node.behind for run in runs for node in run.nodes.values())
    if behind != cursor.behind:
        cursor.behind = behind
        size = sum(node.size for run in runs for node in run.nodes.values())
        told["reading"] = {"behind": behind, "size": size}
    if not told and not is_first:
        return None
    cursor.number += 1
    return {"format": FORMAT, "kind": "everything" if is_first else "changes", **told}


def _node(node: NodeView, seen: NodeCursor) -> dict[str, Any]:
    told: dict[str, Any] = {"head": _head(node)}
    since, seen.version = seen.version, node.version
    curves: dict[str, Any] = _curves("spent ", node.spending, seen)
    if node.search is not None:
        told["grids"] = {
            "now": _grid("now", node.search.now, seen, since),
            "complete": _grid("complete", node.search.complete, seen, since),
        }
        curves |= _curves("", node.search.curves, seen)
    if node.training is not None:
        curves |= _curves("", node.training.curves, seen)
        if node.training.rollouts_version != seen.rollouts:
            seen.rollouts = node.training.rollouts_version
            told["rollouts"] = _plain(node.training.rollouts())
    if curves:
        told["curves"] = curves
    events = [event for event in node.events if event[0] > seen.event]
    if events:
        told["events"] = events
        seen.event = events[-1][0]
    return told


def _head(node: NodeView) -> dict[str, Any]:
    head: dict[str, Any] = {
        "model": node.model,
        "application": node.application,
        "state": node.state,
        "trouble": node.trouble,
        "unread": node.unread,
        "turn": node.turn,
        "time": node.time,
        "records": node.records,
        "starts": node.starts,
        "changed_at": node.changed_at,
        "budget": _amounts(node.ledger.budget),
        "spent": _amounts(node.ledger.spent),
        "reserved": _amounts(node.ledger.reserved),
        "overrun": _amounts(node.ledger.overrun),
        "shared": node.shared,
        "not_shared": node.not_shared,
        "arrived": node.arrived,
        "accepted": node.accepted,
        "rejected": node.rejected,
        "missed": node.missed,
        "claims": node.claims,
        "accounts": node.accounts,
    }
    if node.search is not None:
        search = node.search
        head |= {
            "round": search.round,
            "step": search.step,
            "warriors": search.warriors,
            "best": search.best,
            "quality": search.quality,
            "cells": len(search.now.cells),
            "results": search.results,
            "used": search.used,
            "useful": search.useful,
        }
    if node.training is not None:
        training = node.training
        head |= {
            "step": training.step,
            "pool": training.pool,
            "held_out": training.held_out,
            "dropped": training.dropped,
            "refused": training.refused,
            "used": training.used,
            "totals": training.totals,
            "last": training.last,
        }
    return {name: _plain(value) for name, value in head.items()}


def _amounts(amounts: Mapping[str, int]) -> dict[str, int]:
    return {measure[:40]: amount for measure, amount in islice(amounts.items(), MOST_MEASURES)}


def _plain(value: Any) -> Any:
    """Numbers that JavaScript can hold: a journal may have any."""
    if isinstance(value, int) and not -MOST_WHOLE <= value <= MOST_WHOLE:
        return MOST_WHOLE if value > 0 else -MOST_WHOLE
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _grid(name: str, grid: Grid, seen: NodeCursor, since: int) -> dict[str, Any]:
    fresh = seen.grids.get(name) != grid.generation
    seen.grids[name] = grid.generation
    changed = [cell for cell in grid.cells.values() if fresh or cell.version > since]
    return {
        "fresh": fresh,
        "round": _plain(grid.round),
        "cells": [
            [one.cell, one.fitness, one.digest, one.model, one.node, _plain(one.turn)] for one in changed
        ],
    }


def _curves(prefix: str, curves: Curves, seen: NodeCursor) -> dict[str, Any]:
    told = {}
    for name, series in curves.by_name.items():
        name = prefix + name
        generation, count = seen.curves.get(name, (-1, 0))
        if generation != series.generation:
            count = 0
        seen.curves[name] = (series.generation, len(series.points))
        points = series.points[count:]
        told[name] = {"from": count, "points": _flat(points), "tip": series.tip}
    return told


def _flat(points: list[tuple[float, float]]) -> list[float]:
    """x, y, x, y …, in six digits: half the bytes."""
    return [float(f"{value:.6g}") for point in points for value in point]
