"""Makes the models that are made on first use before the nodes of a run start: nodes with a model could be
done before the slowest one begins, and would never meet it.

A process of its own, `python -m shoal.policy.first_use SPEC`, makes each model, as many at a time as there
are cores; this one can be interrupted. A model that cannot be made is left to its node, whose error says why.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, Protocol

from shoal.errors import ShoalError
from shoal.policy.specification import folder_to_make, make_policy_folder

LOOK_EVERY = 0.1
FAILED = 3
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

Tell = Callable[[dict[str, float]], None]
"""Is told the part of each model that is made, from 0 to 1."""


class Stoppable(Protocol):
    @property
    def requested(self) -> bool: ...


def models_to_make(specs: Iterable[str]) -> list[str]:
    """The specs of models that are not made yet, each model once."""
    to_make: dict[str, str] = {}
    for spec in specs:
        if (folder := folder_to_make(spec)) is not None and not folder.is_dir():
            to_make.setdefault(str(folder), spec)
    return list(to_make.values())


def make_models(specs: Iterable[str], stop: Stoppable, tell: Tell) -> None:
    """Makes them; returns when they are made, or soon after `stop` is requested."""
    waiting = list(specs)
    shares = dict.fromkeys(waiting, 0.0)
    working: list[_Maker] = []
    try:
        while (waiting or working) and not stop.requested:
            while waiting and len(working) < CORES:
                working.append(_start(waiting.pop(0)))
            time.sleep(LOOK_EVERY)
            for one in working:
                shares[one.spec] = one.share if one.process.poll() is None else 1.0
            working = [one for one in working if one.process.poll() is None]
            tell(dict(shares))
    finally:
        for one in working:
            one.process.terminate()
        for one in working:
            one.process.wait()


@dataclass
class _Maker:
    spec: str
    process: subprocess.Popen[str]
    share: float = 0.0

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.share = float(line)


def _start(spec: str) -> _Maker:
    # A session of its own: only the parent gets an interrupt at the terminal, and it stops this process.
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal.policy.first_use", spec],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    maker = _Maker(spec, process)
    threading.Thread(target=maker.listen, daemon=True).start()
    return maker


def _main(spec: str) -> NoReturn:
    # As an exception, so that a half-made model is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FAILED))
    try:
        make_policy_folder(spec, lambda share: print(f"{share:.3f}", flush=True))
    except ShoalError:
        sys.exit(FAILED)
    sys.exit(0)


if __name__ == "__main__":
    _main(sys.argv[1])
