"""What the page reads of the records of `evolve` and `train`: only these fields, everything else is skipped.

The rooms that write them are not imported. Fields that are missing have defaults; a payload of another shape
is a `msgspec.MsgspecError`, which the fold counts.
"""

from __future__ import annotations

import msgspec


class Origin(msgspec.Struct):
    model: str = ""
    node: str = ""
    round: int = 0
    parent: str | None = None


class Program(msgspec.Struct):
    digest: str
    source: str = ""
    origin: Origin = msgspec.field(default_factory=Origin)


class Visitor(msgspec.Struct):
    program: Program
    author: str = ""


class SearchRequest(msgspec.Struct):
    type: str = ""
    round: int = 0
    task: str = ""
    parent: str | None = None
    opponents: list[Program] = []
    entrants: list[Program] = []
    visitors: list[Visitor] = []


class SearchAnswer(msgspec.Struct):
    digest: str = ""
    source: str = ""
    model: str = ""
    problem: str = ""
    failure: str = ""


class Placed(msgspec.Struct):
    cell: tuple[int, ...]
    fitness: float
    digest: str
    model: str = ""
    node: str = ""


class SearchNote(msgspec.Struct):
    turn: int
    round: int = 0
    step: str = ""
    result: str = ""
    digest: str = ""
    cell: tuple[int, ...] | None = None
    fitness: float | None = None
    placed: list[Placed] = []
    cells: int = 0
    best: float | None = None
    warriors: int = 0
    visitors: int = 0
    novelty: float | None = None
    said: str = ""


class SearchEvidence(msgspec.Struct):
    digest: str = ""


class Right(msgspec.Struct):
    right: int = 0
    total: int = 0
    reward: float = 0.0


class TrainNote(msgspec.Struct):
    turn: int
    step: int = 0
    kind: str = ""
    own: int = 0
    own_informative: int = 0
    reward_local: float | None = None
    reward_external: float | None = None
    reward_batch: float | None = None
    seen: int = 0
    pool: int = 0
    verified: int = 0
    found: int = 0
    used: int = 0
    oldest: int = 0
    used_authors: list[str] = []
    dropped: dict[str, int] = {}
    refused: dict[str, int] = {}
    loss: float | None = None
    gradient_norm: float | None = None
    parts: dict[str, float] = {}
    tokens: int = 0
    held_out: dict[str, Right] = {}
    said: str = ""


class Task(msgspec.Struct, array_like=True):
    family: str = ""
    version: str = ""
    parameters: str = ""
    counter: int = 0


class OwnCompletion(msgspec.Struct):
    text: str = ""
    finished: bool = True


class OwnGroup(msgspec.Struct):
    task: Task = msgspec.field(default_factory=Task)
    question: str = ""
    completions: list[OwnCompletion] = []
    scores: list[float] = []


class TrainAnswer(msgspec.Struct):
    groups: list[OwnGroup] = []


class ForeignCompletion(msgspec.Struct, array_like=True):
    text: str = ""
    finished: bool = True


class ForeignGroup(msgspec.Struct, array_like=True):
    task: Task
    question: str = ""
    completions: list[ForeignCompletion] = []
    model: str = ""


class TrainEvidence(msgspec.Struct):
    rewards: list[float] = []


class Account(msgspec.Struct):
    received: int = 0
    verified: int = 0
    used: int = 0
    useful: int = 0
    rejected: dict[str, int] | None = None


class Accounts(msgspec.Struct):
    accounts: dict[str, Account] = {}
