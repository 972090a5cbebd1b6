"""Messages to the page: a first one with everything, then only changes since a page's `Cursor`.

Sizes are bounded by those of the views, whatever the length of the journals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shoal.dashboard.bounds import Curves, plain
from shoal.dashboard.node_view import NodeView
from shoal.dashboard.run_view import RunView
from shoal.dashboard.view import Grid

FORMAT = 2


@dataclass
class NodeCursor:
    version: int = -1
    grids: dict[str, int] = field(default_factory=dict)
    curves: dict[str, tuple[int, int]] = field(default_factory=dict)
    event: int = 0
    rollouts: int = 0


@dataclass
class Cursor:
    """`runs` and `notices` are as they were last told."""

    number: int = 0
    runs: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    nodes: dict[tuple[int, str], NodeCursor] = field(default_factory=dict)
    behind: int = -1


def message(runs: Sequence[RunView], cursor: Cursor, notices: Sequence[str] = ()) -> dict[str, Any] | None:
    """The changes since this cursor's last message, None if there are none. `notices` are about all runs."""
    is_first = cursor.number == 0
    told: dict[str, Any] = {}
    about = [run.about() for run in runs]
    if about != cursor.runs:
        told["runs"] = cursor.runs = about
    if list(notices) != cursor.notices:
        told["notices"] = cursor.notices = list(notices)
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
    told: dict[str, Any] = {"head": node.head()}
    since, seen.version = seen.version, node.version
    view = node.view
    if view.grids:
        told["grids"] = {name: _grid(name, grid, seen, since) for name, grid in view.grids.items()}
    curves = _curves(view.curves, seen) | _curves(node.spending, seen)
    if curves:
        told["curves"] = curves
    if view.rollouts_version != seen.rollouts:
        seen.rollouts = view.rollouts_version
        told["rollouts"] = plain(view.rollouts())
    events = [event for event in node.events if event[0] > seen.event]
    if events:
        told["events"] = events
        seen.event = events[-1][0]
    return told


def _grid(name: str, grid: Grid, seen: NodeCursor, since: int) -> dict[str, Any]:
    fresh = seen.grids.get(name) != grid.generation
    seen.grids[name] = grid.generation
    changed = [cell for cell in grid.cells.values() if fresh or cell.version > since]
    return {
        "fresh": fresh,
        "round": plain(grid.round),
        "cells": [
            [one.cell, one.fitness, one.digest, one.model, one.node, plain(one.turn)] for one in changed
        ],
    }


def _curves(curves: Curves, seen: NodeCursor) -> dict[str, Any]:
    told = {}
    for title, series in curves.by_title.items():
        generation, count = seen.curves.get(title, (-1, 0))
        if generation != series.generation:
            count = 0
        seen.curves[title] = (series.generation, len(series.points))
        points = series.points[count:]
        # x, y, x, y …, in six digits: half the bytes
        flat = [float(f"{value:.6g}") for point in points for value in point]
        told[title] = {"from": count, "points": flat, "tip": series.tip}
    return told
