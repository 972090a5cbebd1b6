"""Writes frames.json: bytes that every implementation of the protocol must make and understand.

    python -m tests.swarm.vectors.make

Only needed when the protocol gets a new version or a field at the end; docs/protocol.md explains the fields.
"""

from __future__ import annotations

import json
from pathlib import Path

from shoal.runs.search import Champion
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.swarm.beacon import Beacon, Known
from shoal.swarm.body import PackedItem, content_digest
from shoal.swarm.codec import Codec, Draft
from shoal.swarm.frame import Bundle, Frame, encode
from shoal.swarm.identity import Identity, id_bytes
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.pull import Pull, Want
from shoal.swarm.transport.base import short_hash
from shoal.tasks import open_task
from shoal.tasks.family import canonical_parameters
from shoal.train.rollouts import task_seed

PATH = Path(__file__).with_name("frames.json")
SEED = bytes(range(32))
EPOCH = 1_700_000_000_000_000
MADE_AT = EPOCH + 2_500_000
COUNTER = 17
WARRIOR = "bomb add.ab #4, target\ntarget mov.i 2, 4\n jmp bomb\n dat #0, #0\n"
SUMS = {"largest": 12, "operators": "+-", "terms": 3}


def vectors() -> dict[str, object]:
    identity = Identity(SEED)
    raw = id_bytes(identity.node_id)
    open_swarm, closed_swarm = Membership("example"), Membership("example", "open sesame")

    def describe(frame: Frame) -> dict[str, object]:
        return {
            "topic": frame.topic,
            "epoch": frame.epoch,
            "seq": frame.seq,
            "made_at": frame.made_at,
            "shared": frame.shared,
            "header": frame.header.hex(),
            "body": frame.body.hex(),
            "body_digest": frame.signed.hex(),
            "signature": frame.signature.hex(),
            "roll": frame.roll.hex(),
            "message": frame.encode().hex(),
        }

    def seal(
        membership: Membership, seq: int, topic: str, entries: list[PackedItem], shared: int = 0
    ) -> Frame:
        return Codec(membership, Kinds()).seal(identity, EPOCH, seq, MADE_AT, topic, entries, shared)

    def draft(seq: int, payload: bytes) -> Draft:
        entry = PackedItem("rollout", payload)
        digests = [content_digest(entry.kind, payload)]
        return Draft(seq, MADE_AT, "log/0", [entry], digests, seq + 1)

    item = encode([7, "text"])
    together = Codec(open_swarm, Kinds()).seal_all(
        identity, EPOCH, [draft(2, item), draft(3, encode([9, "last"]))]
    )
    two = [PackedItem("rollout", item), PackedItem("rollout", encode([8, "more"]))]
    log = seal(open_swarm, 1, "log/0", two, 2)
    beacon = Beacon(("tcp/192.0.2.1:7447",), (Known(raw, EPOCH, 1, 2, 3, 4),))
    pull = Pull(bytes(range(16)), (Want(raw, EPOCH, (3, 2), True),))
    champion = Champion("corewar", WARRIOR, 3, "another program", 1.25)
    question = open_task("sums").pose(task_seed(identity.node_id, EPOCH, COUNTER)).question
    answers = (Completion("10", True), Completion("<answer>11</answer>", True), Completion("4+6 is", False))
    group = RolloutGroup(TaskName("sums", "1", "{}", COUNTER), question, answers, "another program")

    def task(counter: int, parameters: dict[str, object]) -> dict[str, object]:
        seed = task_seed(identity.node_id, EPOCH, counter)
        family = open_task("sums", parameters)
        return {
            "author": identity.node_id,
            "epoch": EPOCH,
            "counter": counter,
            "seed": seed,
            "family": family.name,
            "version": family.version,
            "parameters": canonical_parameters(parameters),
            "all_parameters": canonical_parameters(family.parameters),
            "question": family.pose(seed).question,
            "answer": family.pose(seed).answer,
        }

    return {
        "private_seed": SEED.hex(),
        "public_key": identity.public_key.hex(),
        "node_id": identity.node_id,
        "short_name": identity.name,
        "swarms": [
            {
                "name": membership.name,
                "secret": secret,
                "swarm_id": membership.swarm_id.hex(),
                "domain_tag": membership.domain_tag.hex(),
            }
            for membership, secret in ((open_swarm, ""), (closed_swarm, "open sesame"))
        ],
        "content_digest": {
            "kind": "rollout",
            "payload": item.hex(),
            "digest": content_digest("rollout", item).hex(),
        },
        "frames": {
            "log of two items": describe(log),
            "first of two under one signature": describe(together[0]),
            "second of two under one signature": describe(together[1]),
            "log with a secret": describe(seal(closed_swarm, 2, "log/0", [PackedItem("rollout", item)])),
            "register": describe(
                seal(open_swarm, 1, "latest/0", [PackedItem("champion", encode(["MOV 0, 1"]))])
            ),
            "beacon": describe(seal(open_swarm, 1, "beacon/0", [PackedItem("beacon", encode(beacon))])),
            "pull": describe(
                seal(open_swarm, 1, f"to/{identity.node_id}", [PackedItem("pull", encode(pull))])
            ),
            "champion": describe(seal(open_swarm, 2, "latest/0", [PackedItem("champion", encode(champion))])),
            "rollouts": describe(seal(open_swarm, 4, "log/0", [PackedItem("rollouts", encode(group))])),
        },
        "tasks": [task(0, {}), task(COUNTER, {}), task(COUNTER, SUMS)],
        "addresses": [
            {
                "swarm": membership.name,
                "topic": topic,
                "zenoh": f"shoal/{short_hash(membership.name)}/{topic}",
                "nats": f"shoal.{short_hash(membership.name)}.{topic.replace('/', '.')}",
            }
            for membership, topic in (
                (open_swarm, "log/0"),
                (Membership("Fische ü/*"), f"to/{identity.node_id}"),
            )
        ],
        "bundle": encode(Bundle(bytes(range(16)), [log.encode()])).hex(),
    }


if __name__ == "__main__":
    PATH.write_text(json.dumps(vectors(), indent=1) + "\n")
