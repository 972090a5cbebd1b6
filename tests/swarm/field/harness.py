"""Starts real processes, does harm to them, and looks what each of them has in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NODE = Path(__file__).with_name("node.py")
SILENT_SECONDS = 8.0


class Process:
    """One node's process and the newest line it printed."""

    def __init__(self, name: str, options: dict[str, Any], prefix: Iterable[str] = ()) -> None:
        self.name = name
        self.options = options
        self.prefix = tuple(prefix)
        self.line: dict[str, Any] = {}
        self.errors: list[str] = []
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, str(NODE), json.dumps({"name": self.name, **self.options})],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for read in (self._read_lines, self._read_errors):
            threading.Thread(target=read, args=(self.process,), daemon=True).start()

    def _read_lines(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for text in process.stdout:
            self.line = {**json.loads(text), "at": time.monotonic()}

    def _read_errors(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for text in process.stderr:
            self.errors.append(text)

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)


class Field:
    """All processes of a swarm."""

    def __init__(self) -> None:
        self.nodes: dict[str, Process] = {}
        self.shared: dict[str, int] = {}

    def add(self, name: str, options: dict[str, Any], prefix: Iterable[str] = ()) -> Process:
        self.nodes[name] = Process(name, options, prefix)
        return self.nodes[name]

    def __enter__(self) -> Field:
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.nodes.values():
            node.process.kill()
        for node in self.nodes.values():
            node.process.wait(30)

    def target(self) -> dict[str, int]:
        """How many notes of each author's life exist now, as far as they have told."""
        for node in self.nodes.values():
            if node.line:
                life = node.line["life"]
                self.shared[life] = max(self.shared.get(life, 0), node.line["shared"])
        return dict(self.shared)

    def missing(self, target: dict[str, int]) -> dict[str, dict[str, int]]:
        """What each node lacks of the target, by author."""
        lacking: dict[str, dict[str, int]] = {}
        for name, node in self.nodes.items():
            self._check(node)
            have = node.line.get("have", {})
            for life, count in target.items():
                if not life.startswith(f"{name}/") and have.get(life, 0) < count:
                    lacking.setdefault(name, {})[life.partition("/")[0]] = count - have.get(life, 0)
        return lacking

    def delivered(self, target: dict[str, int]) -> float:
        """Percentage of the target that is where it should be."""
        wanted = sum(
            count for name in self.nodes for life, count in target.items() if not life.startswith(f"{name}/")
        )
        lacking = sum(sum(authors.values()) for authors in self.missing(target).values())
        return 100.0 * (1.0 - lacking / max(1, wanted))

    def silent_pairs(self) -> list[tuple[str, str, float]]:
        """Pairs (receiver, author) of which the second is not heard directly by the first."""
        names = {node.line["node"]: name for name, node in self.nodes.items() if node.line}
        return [
            (name, names[author], seconds)
            for name, node in self.nodes.items()
            for author, seconds in node.line.get("silent", {}).items()
            if author in names and seconds > SILENT_SECONDS
        ]

    def wait_complete(self, target: dict[str, int], seconds: float) -> float:
        """Seconds until every node has all of the target; fails with what is missing."""
        return self._wait(lambda: self.missing(target), seconds, "not complete")

    def wait_heard(self, seconds: float) -> float:
        """Seconds until every node hears every other directly."""
        return self._wait(self.silent_pairs, seconds, "silent pairs")

    def wait_met(self, seconds: float) -> float:
        """Seconds until every node has seen every other."""
        others = len(self.nodes) - 1
        return self._wait(
            lambda: {
                name: node.line.get("peers")
                for name, node in self.nodes.items()
                if node.line.get("peers", -1) < others
            },
            seconds,
            f"peers seen (of {others})",
        )

    def _wait(self, problem: Any, seconds: float, words: str) -> float:
        began = time.monotonic()
        until = began + seconds
        while found := problem():
            for node in self.nodes.values():
                self._check(node)
            assert time.monotonic() < until, f"{words} after {seconds:.0f} s: {found}\n{self.report()}"
            time.sleep(0.1)
        return time.monotonic() - began

    def report(self) -> str:
        """The newest line of every node, for a failure."""
        return "\n".join(
            f"{name}: {time.monotonic() - node.line.get('at', 0.0):.1f} s ago {node.line} {node.errors[-5:]}"
            for name, node in self.nodes.items()
        )

    def _check(self, node: Process) -> None:
        assert node.process.poll() is None, f"node {node.name} has ended: {''.join(node.errors[-20:])}"

    def figures(self, name: str) -> list[int]:
        return [node.line.get("figures", {}).get(name, 0) for node in self.nodes.values()]


def say(text: str) -> None:
    """One line of measurement, seen with `pytest -s`."""
    print(f"    {text}", flush=True)
