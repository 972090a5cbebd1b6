"""Run folders as nodes would leave them, written record by record."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from shoal.corewar import starter_source
from shoal.runs import Journal, RunFolder, Sync
from shoal.runs.journal import Record, encode_line
from shoal.runs.search import (
    Close,
    Closed,
    Migrant,
    Open,
    Opened,
    Origin,
    Placed,
    Program,
    Propose,
    Proposed,
    SearchEvidence,
    SearchNote,
)
from shoal.runs.training import (
    Completion,
    Evaluate,
    Evaluated,
    OwnGroup,
    Right,
    RolloutGroup,
    Sample,
    Sampled,
    SampledGroups,
    TaskName,
    TrainEvidence,
    TrainNote,
)

HOSTILE = "<script>window.owned=1</script><img src=x onerror=window.owned=1>\x1b[31mred\x1b[0m\x07\u202egnp\u2028</pre>"

CONFIG = """models = ["builtin:bomber", "builtin:scanner"]
domain = "corewar"
rounds = 2
repeats = 20

[options]
core_size = 8000
cycles = 80000
axes = ["spawned", "coverage"]
"""

TRAIN_CONFIG = """application = "train"
models = ["table:small"]
nodes = 2
"""


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def new_run(path: Path, config: str = CONFIG) -> Path:
    RunFolder.create(path, config).close()
    return path


class NodeWriter:
    """Appends the records of a node's life; only what a page reads."""

    def __init__(self, run: Path, name: str, application: str = "evolve") -> None:
        self.name = name
        self.turn = 0
        folder = run / "nodes" / name
        folder.mkdir(exist_ok=True)
        self.journal = Journal(folder / "journal.jsonl", Sync(every=None))
        if self.journal.last_number == 0:
            self.put(
                "started",
                {
                    "seed": 0, "node": name, "application": application, "shoal": "0.1", "look_ahead": 1,
                    "budget": {"calls": 100},
                },
            )  # fmt: skip

    def put(self, kind: str, payload: object) -> None:
        self.journal.append(kind, float(self.turn), payload)

    def ask(self, request: object, reserve: dict[str, int]) -> None:
        self.turn += 1
        self.put("asked", {"turn": self.turn, "attempt": 1, "reserve": reserve, "request": request})

    def answer(self, answer: object, cost: dict[str, int]) -> None:
        self.put("answered", {"turn": self.turn, "attempt": 1, "answer": answer, "cost": cost})
        self.put("turn", {"turn": self.turn})

    def note(self, note: SearchNote | TrainNote) -> None:
        self.put("note", {"turn": self.turn, "note": note})

    def open_round(
        self, number: int = 0, visitors: tuple[Migrant, ...] = (), placed: tuple[Placed, ...] = ()
    ) -> None:
        self.ask(Open(number, 1, (), (), visitors), {})
        self.answer(Opened(()), {})
        self.note(SearchNote(self.turn, number, "open", placed=placed, opponents=1, visitors=len(visitors)))

    def propose(
        self,
        cell: tuple[int, int],
        fitness: float,
        source: str,
        *,
        parent: str | None = None,
        result: Any = "new",
        round_number: int = 0,
    ) -> str:
        digest = digest_of(source)
        self.ask(Propose(round_number, "mutate", 1, 1, parent), {"calls": 1})
        answer = Proposed(f"builtin:{self.name}", digest, source, calls=1)
        self.answer(answer, {"calls": 1, "tokens": 10})
        self.note(
            SearchNote(
                self.turn, round_number, "propose", result, digest, cell, fitness, cells=1, best=fitness,
                opponents=1, qd_score=fitness, evaluations=1,
            )
        )  # fmt: skip
        return digest

    def close_round(self, digest: str, number: int = 0) -> None:
        self.ask(Close(number, 1, ()), {})
        self.answer(Closed(()), {})
        self.note(SearchNote(self.turn, number, "close", digest=digest, cell=(0, 0), fitness=1.0))
        self.put(
            "shared",
            {
                "turn": self.turn,
                "items": [{"kind": "champion", "refused": ""}, {"kind": "champion", "refused": "size"}],
            },
        )

    def receive(self, author: str, seq: int, digest: str, *, accepted: bool = True, reason: str = "") -> None:
        name = {"author": author, "epoch": 1, "kind": "champion", "seq": seq, "index": 0}
        self.put(
            "arrived",
            {
                **name,
                "made_at": 0.0,
                "arrived_at": 0.0,
                "digest": digest,
                "item": ["corewar", "x", 0, "m", 1.0],
            },
        )
        self.put(
            "verdict",
            {
                "turn": self.turn,
                **name,
                "accepted": accepted,
                "reason": reason,
                "evidence": SearchEvidence(digest, "x"),
            },
        )

    def train_step(self, step: int, question: str, texts: list[str], scores: list[float]) -> None:
        self.ask(Sample(step, 1, 1, ("sums",), 0), {"tokens": 100})
        completions = tuple(Sampled(text, True, (1, 2)) for text in texts)
        group = OwnGroup(TaskName("sums", "1", "{}", step), question, completions, tuple(scores))
        self.answer(SampledGroups((group,)), {"tokens": 50})
        self.note(
            TrainNote(
                self.turn, step, "step", own=1, own_informative=1, reward_local=sum(scores) / len(scores),
                loss=0.5, verified=2, found=1, used=1, used_authors=("stranger",), oldest=3,
                parts={"kl": 0.1}, said=f"step {step}",
            )
        )  # fmt: skip

    def close(self) -> None:
        self.journal.close()


def two_node_search(path: Path) -> tuple[Path, dict[str, str]]:
    """A run in which the first node's champion came to the second; returns digests by role."""
    run = new_run(path)
    first, second = NodeWriter(run, "1-bomber"), NodeWriter(run, "2-scanner")
    first.open_round()
    parent = first.propose((0, 1), 0.5, starter_source("dwarf"))
    child = first.propose((2, 3), 1.5, starter_source("dwarf").replace("Dwarf", "Child"), parent=parent)
    first.close_round(child)
    second.open_round()
    own = second.propose((2, 3), 0.7, starter_source("imp"))
    second.receive("keyoffirst", 1, child)
    second.receive("keyofnobody", 1, "0" * 64, accepted=False, reason="does not assemble")
    second.close_round(own)
    second.open_round(1, *visit("keyoffirst", child, starter_source("dwarf"), (2, 3), 1.4))
    first.close()
    second.close()
    return run, {"parent": parent, "child": child, "own": own}


def visit(
    author: str, digest: str, source: str, cell: tuple[int, int], fitness: float
) -> tuple[tuple[Migrant, ...], tuple[Placed, ...]]:
    """A visitor of a new round, and the cell that it took."""
    program = Program(digest, source, Origin("peer", author))
    return (Migrant(program, author, 1, 1),), (Placed(cell, fitness, digest, "peer", author),)


def training(path: Path) -> Path:
    run = new_run(path, TRAIN_CONFIG)
    node = NodeWriter(run, "1-table-small", "train")
    for step in range(1, 6):
        node.train_step(step, HOSTILE if step == 5 else f"{step}+1=", ["2", HOSTILE], [1.0, 0.0])
    name = {"author": "stranger", "epoch": 1, "kind": "rollouts", "seq": 1, "index": 0}
    completions = (Completion("a", True), Completion(HOSTILE, False))
    item = RolloutGroup(TaskName("sums", "1", "{}", 1), "what?", completions, HOSTILE)
    node.put("arrived", {**name, "made_at": 0.0, "arrived_at": 0.0, "digest": "d", "item": item})
    evidence = TrainEvidence((1.0, 0.0))
    node.put("verdict", {"turn": 5, **name, "accepted": True, "reason": "", "evidence": evidence})
    node.ask(Evaluate(5), {})
    node.answer(Evaluated({}), {})
    held_out = {"sums": Right(3, 4, 3.0)}
    node.note(
        TrainNote(
            node.turn, 5, "evaluation", seen=3, dropped={"stale": 1}, held_out=held_out, said="evaluated"
        )
    )
    node.close()
    return run


def long_search(path: Path, nodes: int, records: int) -> Path:
    """Many records, written without the journal's care."""
    run = new_run(path)
    sources = [starter_source(name) for name in ("dwarf", "imp", "mice")]
    for number in range(1, nodes + 1):
        folder = run / "nodes" / f"{number}-long"
        folder.mkdir()
        with (folder / "journal.jsonl").open("wb") as file:
            for index, (kind, payload) in enumerate(_life(number, records, sources), start=1):
                file.write(encode_line(Record(index, kind, index / 10, _raw(payload))))
    return run


def _raw(payload: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(payload))


def _life(number: int, records: int, sources: list[str]):  # type: ignore[no-untyped-def]
    yield (
        "started",
        {
            "seed": 0,
            "node": f"{number}-long",
            "application": "evolve",
            "shoal": "0.1",
            "look_ahead": 1,
            "budget": {"calls": records},
        },
    )
    for turn in range(1, (records - 1) // 4 + 1):
        source = f"{sources[turn % 3][:400]}\n; {number} {turn}\n"
        digest = f"{number:08x}{turn:056x}"
        yield (
            "asked",
            {
                "turn": turn,
                "attempt": 1,
                "reserve": {"calls": 1},
                "request": {"type": "propose", "round": 0, "task": "new", "seed": 1, "calls": 1},
            },
        )
        yield (
            "answered",
            {
                "turn": turn,
                "attempt": 1,
                "answer": {"type": "proposed", "model": "m", "digest": digest, "source": source},
                "cost": {"calls": 1, "tokens": 9},
            },
        )
        yield "turn", {"turn": turn}
        step = "open" if turn == 1 else "propose"
        result = "improved" if turn % 20 == 0 else "rejected"
        yield (
            "note",
            {
                "turn": turn,
                "note": {
                    "turn": turn,
                    "round": 0,
                    "step": step,
                    "result": result,
                    "digest": digest,
                    "cell": [turn % 6, turn // 6 % 6],
                    "fitness": turn / records,
                    "best": turn / records,
                    "opponents": 1,
                },
            },
        )
