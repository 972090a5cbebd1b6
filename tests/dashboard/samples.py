"""Run folders as nodes would leave them, written record by record."""

from __future__ import annotations

import hashlib
from pathlib import Path

from shoal.corewar import starter_source
from shoal.runs import Journal, RunFolder, Sync
from shoal.runs.journal import Record, encode_line

HOSTILE = "<script>window.owned=1</script><img src=x onerror=window.owned=1>\x1b[31mred\x1b[0m\x07\u202egnp\u2028</pre>"

CONFIG = """models = ["builtin:bomber", "builtin:scanner"]
domain = "corewar"
rounds = 2

[corewar]
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

    def note(self, **fields: object) -> None:
        self.put("note", {"turn": self.turn, "note": {"turn": self.turn, **fields}})

    def open_round(
        self, number: int = 0, visitors: list[object] | None = None, placed: list[object] | None = None
    ) -> None:
        self.ask(
            {
                "type": "open", "round": number, "seed": 1, "entrants": [], "opponents": [],
                "visitors": visitors or [],
            },
            {},
        )  # fmt: skip
        self.answer({"type": "opened", "evaluations": []}, {})
        self.note(
            round=number, step="open", placed=placed or [], cells=0, warriors=2, visitors=len(visitors or [])
        )

    def propose(
        self,
        cell: tuple[int, int],
        fitness: float,
        source: str,
        *,
        parent: str | None = None,
        result: str = "new",
        round_number: int = 0,
    ) -> str:
        digest = digest_of(source)
        self.ask(
            {
                "type": "propose",
                "round": round_number,
                "task": "mutate",
                "seed": 1,
                "calls": 1,
                "parent": parent,
            },
            {"calls": 1},
        )
        self.answer(
            {
                "type": "proposed",
                "model": f"builtin:{self.name}",
                "digest": digest,
                "source": source,
                "calls": 1,
            },
            {"calls": 1, "tokens": 10},
        )
        self.note(
            round=round_number,
            step="propose",
            result=result,
            digest=digest,
            cell=cell,
            fitness=fitness,
            best=fitness,
            cells=1,
        )
        return digest

    def close_round(self, digest: str, number: int = 0) -> None:
        self.ask({"type": "close", "round": number, "seed": 1, "finalists": []}, {})
        self.answer({"type": "closed", "evaluations": []}, {})
        self.note(round=number, step="close", digest=digest, cell=[0, 0], fitness=1.0)
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
                "evidence": {"digest": digest, "source": "x"},
            },
        )

    def train_step(self, step: int, question: str, texts: list[str], scores: list[float]) -> None:
        self.ask({"type": "sample", "step": step}, {"tokens": 100})
        group = {
            "task": ["sums", "1", "{}", step], "question": question, "scores": scores,
            "completions": [{"text": text, "finished": True, "ids": [1, 2]} for text in texts],
        }  # fmt: skip
        self.answer({"type": "sampled", "groups": [group]}, {"tokens": 50})
        self.note(
            step=step, kind="step", own=1, own_informative=1, reward_local=sum(scores) / len(scores), loss=0.5, verified=2, found=1,
            used=1, used_authors=["stranger"], oldest=3, parts={"kl": 0.1}, said=f"step {step}",
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
    visitor = {
        "program": {
            "digest": child,
            "source": starter_source("dwarf"),
            "origin": {"model": "peer", "node": "keyoffirst"},
        },
        "author": "keyoffirst",
    }
    placed = {"cell": [2, 3], "fitness": 1.4, "digest": child, "model": "peer", "node": "keyoffirst"}
    second.close_round(own)
    second.open_round(1, [visitor], [placed])
    first.close()
    second.close()
    return run, {"parent": parent, "child": child, "own": own}


def training(path: Path) -> Path:
    run = new_run(path, TRAIN_CONFIG)
    node = NodeWriter(run, "1-table-small", "train")
    for step in range(1, 6):
        node.train_step(step, HOSTILE if step == 5 else f"{step}+1=", ["2", HOSTILE], [1.0, 0.0])
    name = {"author": "stranger", "epoch": 1, "kind": "rollouts", "seq": 1, "index": 0}
    item = [["sums", "1", "{}", 1], "what?", [["a", True], [HOSTILE, False]], HOSTILE]
    node.put("arrived", {**name, "made_at": 0.0, "arrived_at": 0.0, "digest": "d", "item": item})
    node.put(
        "verdict", {"turn": 5, **name, "accepted": True, "reason": "", "evidence": {"rewards": [1.0, 0.0]}}
    )
    node.ask({"type": "evaluate", "step": 5}, {})
    node.answer({"type": "evaluated", "families": {}}, {})
    node.note(
        step=5,
        kind="evaluation",
        seen=3,
        dropped={"stale": 1},
        held_out={"sums": {"right": 3, "total": 4, "reward": 3.0}},
        said="evaluated",
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


def _raw(payload: object):  # type: ignore[no-untyped-def]
    import msgspec

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
                },
            },
        )
