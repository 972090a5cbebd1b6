"""A hostile peer that floods a swarm with signed messages: `python -m bench.flooder ORDERS` (a line of JSON).

It says "ready" once it has joined and its messages are prepared, waits for a line on standard input, sends
for the given time at the given rate, and prints the number of messages that it sent. Every message is in
order by itself: fresh numbers, a valid signature, an item of the right type, and a true question in it.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.runs.search import Champion
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.swarm.body import PackedItem
from shoal.swarm.codec import Codec
from shoal.swarm.frame import encode
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.transport import open_transport
from shoal.tasks.sums import SmallFamily
from shoal.train.rollouts import task_seed

JOIN_SECONDS = 2.0
ANSWERS = 8


class Orders(msgspec.Struct, frozen=True):
    """`kind` is `rollouts` or `champions`; the messages are signed by `keys` identities in turn."""

    join: str
    swarm: str
    kind: str
    keys: int
    rate: float
    seconds: float


def rollouts(identity: Identity, epoch: int) -> Iterator[PackedItem]:
    """Groups that pass every check: the question is the one that the receiver makes anew."""
    family = SmallFamily("sums")
    counter = 0
    while True:
        puzzle = family.pose(task_seed(identity.node_id, epoch, counter))
        answers = tuple(Completion(str(number), True) for number in range(ANSWERS))
        task = TaskName("sums", family.version, "{}", counter)
        yield PackedItem("rollouts", encode(RolloutGroup(task, puzzle.question, answers)))
        counter += 1


def champions(identity: Identity, epoch: int) -> Iterator[PackedItem]:
    rng = random.Random(identity.node_id)
    number = 0
    while True:
        number += 1
        lines = [f"MOV.I $ {rng.randrange(8000)}, $ {rng.randrange(8000)}" for _ in range(20)]
        yield PackedItem("champion", encode(Champion("corewar", "\n".join(lines), number, "flood", 1.0)))


def main() -> None:
    orders = msgspec.json.decode(sys.argv[1], type=Orders)
    codec = Codec(Membership(orders.swarm), Kinds())
    topic = "log/0" if orders.kind == "rollouts" else "latest/0"
    make = rollouts if orders.kind == "rollouts" else champions
    epoch = int(time.time() * 1e6)
    authors = [Identity.create() for _ in range(orders.keys)]
    sources = [make(author, epoch) for author in authors]
    transport = open_transport(
        "zenoh", swarm=orders.swarm, node_id=authors[0].node_id, join=[orders.join], runtime=Path("/nowhere")
    )
    time.sleep(JOIN_SECONDS)
    print("ready", flush=True)
    sys.stdin.readline()
    began, sent = time.time(), 0
    while (elapsed := time.time() - began) < orders.seconds:
        while sent < elapsed * orders.rate:
            turn, place = divmod(sent, orders.keys)
            made_at = int(time.time() * 1e6)
            item = next(sources[place])
            frame = codec.seal(authors[place], epoch, turn + 1, made_at, topic, [item])
            transport.publish(topic, frame.encode())
            sent += 1
        time.sleep(0.001)
    print(sent, flush=True)
    transport.close()


if __name__ == "__main__":
    main()
