"""The program that test_kill.py kills: one node in a run folder, made or resumed, in the field.

python -m tests.node.killed_node FOLDER LOOK_AHEAD BUDGET CHECKPOINT_EVERY
"""

import os
import sys
import time
from pathlib import Path

import msgspec
from examples.hypotenuses import Hypotenuses, Known, Legs, Search, search_legs

from shoal.node import Node, NodeSettings, Reply, Stop, Threads, run_in_field
from shoal.runs import RunFolder, derive

LIMIT = 90


def main(folder: str, look_ahead: str, budget: str, checkpoint_every: str) -> None:
    path = Path(folder)
    run = RunFolder.resume(path) if path.exists() else RunFolder.create(path, "")
    tally = os.open(path.with_suffix(".tally"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def slow_search(search: Search) -> Reply[Legs]:
        os.write(tally, b"%d\n" % search.number)  # a call that someone would have to pay for
        time.sleep(derive(0, "slow", search.number).random() * 0.012)
        return search_legs(Known(), search)

    node = Node(
        Hypotenuses(LIMIT),
        Threads(slow_search),
        name="a",
        seed=11,
        journal=run.open_journal("a"),
        now=time.time(),
        settings=NodeSettings(
            look_ahead=int(look_ahead),
            budget={"searches": int(budget)},
            checkpoint_every=int(checkpoint_every),
        ),
        checkpoints=run.checkpoints("a"),
    )
    with Stop() as stop:
        print("running", flush=True)
        reason = run_in_field(node, stop, grace=5.0)
    print(reason)
    state = {"found": node.state.found, "barren": sorted(node.state.barren), "turns": node.turns}
    path.with_suffix(".outcome").write_bytes(msgspec.json.encode(state))
    run.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
