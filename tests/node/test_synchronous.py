"""A plain synchronous application, shaped like training: the outside answers from the state as it is now,
foreign items are scored lazily until enough are informative, absorbing is a numeric step, and the weights are
checkpointed."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from shoal.node import Inline, Judged, Node, NodeSettings, Own, Proposal, Reply, Turn, Verdict
from shoal.runs import Checkpoints, MemoryJournal, derive_integer
from shoal.swarm import Kind, Kinds, Received
from tests.node.scripted import ScriptedExchange, journal_of

STEPS, FOREIGN = 12, 2


class Rollouts(msgspec.Struct, array_like=True, frozen=True):
    values: list[float]


class Tasks(msgspec.Struct, frozen=True):
    seed: int


@dataclass
class Learner:
    weight: float = 0.1
    step: int = 0
    pool: list[Received] = field(default_factory=list)


def sample(state: Learner, tasks: Tasks) -> Reply[Rollouts]:
    """What the policy says depends on its weight at this moment."""
    return Reply(Rollouts([state.weight * (tasks.seed % 97 + k) % 1.0 for k in range(4)]))


class Training:
    name = "training"
    kinds = Kinds([Kind("rollouts", Rollouts, max_bytes=4096, keep="log")])
    request_type = Tasks
    answer_type = Rollouts
    evidence_type = float

    def initial_state(self) -> Learner:
        return Learner()

    def produce(self, state: Learner, turn: Turn) -> Proposal[Tasks] | None:
        if state.step == STEPS:
            return None
        return Proposal(Tasks(derive_integer(turn.seed, turn.node, "tasks", turn.number, bits=32)))

    def share(
        self, state: Learner, turn: Turn, fresh: Own[Tasks, Rollouts] | None
    ) -> Generator[Rollouts, None, None]:
        if fresh is not None and fresh.answer is not None:
            yield fresh.answer

    def gather(
        self, state: Learner, turn: Turn, arrived: Sequence[Received]
    ) -> Generator[Sequence[Received], Sequence[Verdict[float]], None]:
        state.pool += arrived
        informative = 0
        order = turn.random("walk")
        while state.pool and informative < FOREIGN:
            (verdict,) = yield [state.pool.pop(order.randrange(len(state.pool)))]
            informative += verdict.accepted

    def verify(self, state: Learner, turn: Turn, batch: Sequence[Received]) -> list[Verdict[float]]:
        spreads = [max(received.item.values) - min(received.item.values) for received in batch]
        return [Verdict(spread > 0.2, "" if spread > 0.2 else "zero advantage", spread) for spread in spreads]

    def absorb(
        self, state: Learner, turn: Turn, own: Own[Tasks, Rollouts], judged: Sequence[Judged[float]]
    ) -> Learner:
        assert own.answer is not None
        state.weight += 0.01 * sum(own.answer.values) / 3.0
        for one in judged:
            if one.verdict.accepted and one.verdict.evidence is not None:
                state.weight += 0.001 * one.verdict.evidence / 7.0
        state.step += 1
        return state

    def snapshot(self, state: Learner, folder: Path) -> None:
        pool = [(r.author, r.epoch, r.seq, r.index, r.item) for r in state.pool]
        (folder / "learner.json").write_bytes(msgspec.json.encode((state.weight, state.step, pool)))

    def restore(self, folder: Path) -> Learner:
        saved = msgspec.json.decode((folder / "learner.json").read_bytes())
        weight, step, pool = saved
        return Learner(weight, step, [foreign(entry[2], entry[4][0]) for entry in pool])


def foreign(seq: int, values: list[float]) -> Received:
    return Received("peer", "rollouts", Rollouts(values), 7, seq, 0, 0.0, 0.0, b"%d" % seq)


BATCHES = [[foreign(turn * 3 + k, [k * 0.25, 0.5]) for k in range(3)] for turn in range(STEPS)]


def run(
    journal: MemoryJournal, checkpoints: Checkpoints | None, gathered: int = 0, most: int = STEPS
) -> Learner:
    node = Node(
        Training(),
        Inline(sample),
        name="a",
        seed=5,
        journal=journal,
        now=0.0,
        exchange=ScriptedExchange(BATCHES[gathered:]),
        settings=NodeSettings(checkpoint_every=5),
        checkpoints=checkpoints,
    )
    while node.turns < most and node.advance(0.0) != "finished":
        pass
    return node.state


def test_the_pool_is_walked_only_until_enough_were_informative() -> None:
    journal = MemoryJournal()
    state = run(journal, None)
    assert state.step == STEPS
    verdicts = [line for line in journal.lines if b'"kind":"verdict"' in line]
    assert sum(b'"accepted":true' in line for line in verdicts) == FOREIGN * STEPS
    assert any(b"zero advantage" in line for line in verdicts)


@pytest.mark.parametrize("with_checkpoints", [False, True])
def test_stopped_after_any_step_it_ends_with_the_same_bits(tmp_path: Path, with_checkpoints: bool) -> None:
    whole = run(MemoryJournal(), None)
    for most in range(1, STEPS):
        journal = MemoryJournal()
        checkpoints = Checkpoints(tmp_path / str(most)) if with_checkpoints else None
        run(journal, checkpoints, most=most)
        again = run(journal, checkpoints, gathered=most)
        assert again.weight.hex() == whole.weight.hex()
        assert again.pool == whole.pool


def test_alone_and_killed_after_any_record_it_ends_with_the_same_bits() -> None:
    journal = MemoryJournal()
    whole = run(journal, None, gathered=STEPS)
    for cut in range(len(journal.lines) + 1):
        again = run(journal_of(journal.lines[:cut]), None, gathered=STEPS)
        assert again.weight.hex() == whole.weight.hex(), f"killed after record {cut}"
