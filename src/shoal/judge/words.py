"""The kinds of the words between a judge and the nodes that it judges. Each side sends what the other takes;
both know how large a rollout group may be, since they pass on everybody's frames.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.runs.judging import JudgeAnswer, JudgeQuestion, JudgeRequest
from shoal.runs.training import MOST_GROUP_BYTES, RolloutGroup
from shoal.swarm import Kind, Kinds

# Only the newest round of a node matters, and a judge that comes late finds it.
REQUEST = Kind("judge-request", JudgeRequest, 32 << 10, "latest", direct=True)
QUESTION = Kind("judge-question", JudgeQuestion, 80 << 10, "log", direct=True)
ANSWER = Kind("judge-answer", JudgeAnswer, 160 << 10, "log", direct=True)
OTHERS = Kind("rollouts", RolloutGroup, MOST_GROUP_BYTES, "log", taken=False)


def of_a_judge() -> Kinds:
    return Kinds([REQUEST, replace(QUESTION, taken=False), ANSWER, OTHERS])


def of_a_judged_node(rollouts: Kind | None) -> Kinds:
    """`rollouts` None: a node that trains alone and takes nobody's groups."""
    return Kinds([rollouts or OTHERS, replace(REQUEST, taken=False), QUESTION, replace(ANSWER, taken=False)])
