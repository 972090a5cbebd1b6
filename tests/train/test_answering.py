"""A node that is judged: the law that judges change nothing that is learnt, and the node's manners."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.errors import ConfigError
from shoal.judge.words import of_a_judge
from shoal.node import Node
from shoal.policy.base import Policy
from shoal.policy.table import TablePolicy
from shoal.runs import RunFolder
from shoal.runs.journal import MemoryJournal
from shoal.runs.judging import MOST_QUESTION, JudgeAnswer, JudgeQuestion, JudgeRequest
from shoal.runs.training import RolloutGroup
from shoal.swarm import Exchange
from shoal.train.crew import TrainCrew
from shoal.train.settings import TrainSettings
from shoal.train.state import Figures
from tests.judge.small import Swarm, asks_always, entrant_of, small_training
from tests.train.small import small

__all__ = ["asks_always"]

pytestmark = pytest.mark.usefixtures("asks_always")


def tiny() -> Policy:
    from shoal.policy.specification import open_policy

    return open_policy("tiny:llama")


def saved(policy: Policy, folder: Path) -> dict[str, bytes]:
    folder.mkdir()
    policy.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def asides(node: Node[Any, Any, Any, Any]) -> int:
    """Turns that the node took for answers to judges."""
    return node.state.figures.judging.turns  # type: ignore[no-any-return]


def train_all(swarm: Swarm, nodes: list[Node[Any, Any, Any, Any]], rounds: int = 400) -> None:
    """Rounds until all have ended. An answer to a judge takes no round of its own: only time may differ."""
    for _ in range(rounds):
        ended = True
        for node in swarm.nodes:
            status = node.advance(swarm.now)
            while node in nodes and status == "turned" and node.state.figures.last.kind == "judged":
                status = node.advance(swarm.now)
            ended &= status == "finished" or node not in nodes
        swarm.deliver()
        if ended:
            return
    raise AssertionError("the nodes have not ended")


@pytest.mark.parametrize(
    ("model", "make"), [("table:small", lambda: TablePolicy("small")), ("tiny:llama", tiny)]
)
def test_a_node_learns_the_same_bit_for_bit_with_a_judge(tmp_path: Path, model: str, make: Any) -> None:
    """Alone in the swarm with its judge, and entirely alone."""
    if model.startswith("tiny"):
        pytest.importorskip("torch")
    weights, figures = [], []
    for judge in (True, False):
        swarm = Swarm()
        settings = small_training(models=(model,), steps=8, max_new_tokens=6, judge="any" if judge else ())
        node = swarm.trainer(1, settings, policy=make)
        if judge:
            swarm.judge()
        train_all(swarm, [node])
        assert (asides(node) > 1) == judge
        weights.append(saved(node.state.policy, tmp_path / str(judge)))
        plain = msgspec.to_builtins(node.state.figures)
        figures.append({name: plain[name] for name in plain if name not in ("judging", "last")})
    assert weights[0] == weights[1]
    assert figures[0] == figures[1]


def test_a_swarm_learns_the_same_bit_for_bit_with_a_judge(tmp_path: Path) -> None:
    """Three nodes that use each other's groups; all are judged, one of them, or none."""
    found = []
    for judged in ((1, 2, 3), (2,), ()):
        swarm = Swarm()
        nodes = [
            swarm.trainer(
                number,
                small_training(
                    models=(model,), steps=12, external=4, selection="published",
                    judge="any" if number in judged else (),
                ),
            )
            for number, model in ((1, "table:small"), (2, "table:even"), (3, "table:wide"))
        ]  # fmt: skip
        if judged:
            judge = swarm.judge(per_minute=1e4, per_minute_in_all=1e5)
        train_all(swarm, nodes)
        assert sum(len(node.state.figures.uses) for node in nodes) > 0
        assert [asides(node) > 1 for node in nodes] == [number in judged for number in (1, 2, 3)]
        if judged:
            assert len(judge.state.board.entrants) == len(judged)
        folder = tmp_path / str(len(judged))
        folder.mkdir()
        found.append([saved(node.state.policy, folder / node.name) for node in nodes])
    assert found[0] == found[1] == found[2]


class FakeJudge:
    """Says whatever a test wants it to say."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.requests: list[tuple[str, JudgeRequest]] = []
        self.answers: list[tuple[str, JudgeAnswer]] = []

    @property
    def node_id(self) -> str:
        return self.exchange.identity.node_id

    def hear(self) -> None:
        for one in self.exchange.gather():
            if isinstance(one.item, JudgeRequest):
                self.requests.append((one.author, one.item))
            elif isinstance(one.item, JudgeAnswer):
                self.answers.append((one.author, one.item))

    def pose(self, reader: str, number: int, **changes: Any) -> None:
        _, asked = self.requests[-1]
        if self.exchange._sender.outbox and len(self.exchange._sender.outbox) > 1000:
            return  # its own quota holds it up
        given = {"to": (reader,), "number": number, "run": asked.run, "round": asked.round, "family": "sums"}
        self.exchange.share(JudgeQuestion(**{**given, "question": "1+1=", "seconds": 60.0, **changes}))


def with_fake(**settings: Any) -> tuple[Swarm, Node[Any, Any, Any, Any], FakeJudge, str]:
    """A training node that took a step, and a judge that heard its request."""
    swarm = Swarm()
    node = swarm.trainer(1, small_training(steps=40, **settings))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    swarm.run(3)
    fake.hear()
    return swarm, node, fake, swarm.exchanges[0].identity.node_id


def test_a_node_asks_after_each_step_and_says_when_it_leaves() -> None:
    swarm = Swarm()
    node = swarm.trainer(1, small_training(steps=4, models=("table:even",), tasks=("sums", "reverse")))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    for _ in range(12):
        swarm.round()
        fake.hear()
    asked = [request for _, request in fake.requests]
    assert [one.round for one in asked] == [1, 2, 3, 4]
    assert [one.leaves for one in asked] == [False, False, False, True]
    assert {(one.model, one.families, one.alone, one.to) for one in asked} == {
        ("table:even", ("sums", "reverse"), False, ())
    }
    assert {one.run for one in asked} == {swarm.exchanges[0].epoch}
    assert node.state.figures.step == 4


def test_a_quick_node_asks_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request is a frame of the node's own quota, which its groups need. The last one says goodbye."""
    monkeypatch.undo()
    swarm = Swarm()
    swarm.trainer(1, small_training(steps=42, evaluate_every=0))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    for _ in range(60):
        swarm.round()
        fake.hear()
    rounds = [request.round for _, request in fake.requests]
    assert rounds[0] == 1
    assert rounds[-1] == 42
    assert all(10 <= later - one <= 11 for one, later in itertools.pairwise(rounds[:-1])), rounds
    assert [request.leaves for _, request in fake.requests] == [False] * (len(rounds) - 1) + [True]


def test_a_node_that_runs_out_of_tokens_says_that_it_leaves() -> None:
    swarm = Swarm()
    swarm.trainer(1, small_training(steps=40, tokens=300, max_new_tokens=4))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    for _ in range(60):
        swarm.round()
        fake.hear()
    asked = [request for _, request in fake.requests]
    assert len(asked) > 1
    assert [one.leaves for one in asked] == [False] * (len(asked) - 1) + [True]


def test_a_question_is_answered_once() -> None:
    swarm, node, fake, me = with_fake()
    fake.pose(me, 11)
    fake.pose(me, 12)
    swarm.run(2)
    fake.pose(me, 13)
    for _ in range(4):
        swarm.round()
        fake.hear()
    assert [answer.number for _, answer in fake.answers] == [11], "one of each judge and round"
    assert asides(node) == 1


@pytest.mark.parametrize(
    "changes",
    [{"run": 5}, {"round": 1000}, {"round": 0}, {"family": "reverse"}, {"to": ("someone else",)}],
    ids=str,
)
def test_questions_that_were_not_asked_for_are_left_alone(changes: dict[str, Any]) -> None:
    swarm, node, fake, me = with_fake()
    fake.pose(me, 11, **changes)
    swarm.run(6)
    fake.hear()
    assert fake.answers == []
    assert asides(node) == 0


def test_only_named_judges_are_answered() -> None:
    others = "a" * 32
    swarm, node, fake, me = with_fake(judge=(others,))
    assert fake.requests == [], "a word to another one"
    fake.requests.append((me, JudgeRequest((), swarm.exchanges[0].epoch, 1, ("sums",))))
    fake.pose(me, 11)
    swarm.run(6)
    fake.hear()
    assert fake.answers == []
    assert asides(node) == 0


def test_a_question_that_came_too_late_is_not_answered() -> None:
    swarm, _, fake, me = with_fake()
    fake.pose(me, 11, seconds=1.0)
    swarm.deliver()
    swarm.now += 2.0
    swarm.run(4)
    fake.hear()
    assert fake.answers == []


class Fragile(TablePolicy):
    """Fails over one question, as a tokenizer might."""

    def sample(self, questions: Any, *more: Any) -> Any:
        if "poison" in questions:
            raise RuntimeError("out of memory")
        return super().sample(questions, *more)


def test_a_question_that_the_policy_fails_on_costs_no_step() -> None:
    swarm = Swarm()
    node = swarm.trainer(1, small_training(steps=20), policy=lambda: Fragile("small"))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    for number in range(60):
        swarm.round()
        fake.hear()
        if fake.requests:
            fake.pose(swarm.exchanges[0].identity.node_id, number, question="poison")
    assert node.state.figures.step == 20
    assert node.state.figures.failed == 0
    assert asides(node) > 3
    assert fake.answers == []


def test_hostile_judges_change_nothing_that_is_learnt(tmp_path: Path) -> None:
    """Floods of questions, long ones, wrong ones, from many keys: the same weights, draws and accounts."""
    found = []
    for hostile in (False, True):
        swarm = Swarm()
        nodes = [
            swarm.trainer(number, small_training(models=(model,), steps=10, external=4))
            for number, model in ((1, "table:small"), (2, "table:even"))
        ]
        ids = [exchange.identity.node_id for exchange in swarm.exchanges]
        fakes = [FakeJudge(swarm.exchange(50 + number, of_a_judge())) for number in range(6)]
        for number in range(200):
            for node in nodes:
                status = node.advance(swarm.now)
                while status == "turned" and node.state.figures.last.kind == "judged":
                    status = node.advance(swarm.now)
            for place, fake in enumerate(fakes if hostile else ()):
                fake.hear()
                for me in ids if fake.requests else ():
                    for offset in range(5):
                        text = "x" * MOST_QUESTION if offset == 3 else "\x1b[2J<answer>"
                        number_of_question = number * 100 + place * 10 + offset
                        fake.pose(me, number_of_question, question=text, round=offset)
            swarm.deliver()
        weights = [saved(node.state.policy, tmp_path / f"{hostile} {node.name}") for node in nodes]
        accounts = [
            {other: exchange.accounts.of(other).verified for other in ids} for exchange in swarm.exchanges[:2]
        ]
        established = [set(exchange.accounts.established) for exchange in swarm.exchanges[:2]]
        steps = [node.state.figures.step for node in nodes]
        found.append((weights, accounts, established, steps))
        assert [asides(node) > 0 for node in nodes] == [hostile, hostile]
        assert all(len(node.state.figures.judging.pending) <= 4 for node in nodes)
    assert found[0] == found[1]


@pytest.mark.parametrize("sharing", ["off", "all"])
def test_a_node_that_trains_alone_is_judged_and_gives_and_takes_no_groups(sharing: str) -> None:
    """Sharing off, or no groups of others wanted: the first sends no group either."""
    swarm = Swarm()
    alone = swarm.trainer(1, small_training(sharing=sharing, external=0, steps=20))
    other = swarm.trainer(2, small_training(models=("table:even",), steps=20))
    judge = swarm.judge(per_minute=1e4)
    swarm.run(60)
    entrants = judge.state.board.entrants.values()
    found = {one.author: one for one in entrants}
    me, you = (exchange.identity.node_id for exchange in swarm.exchanges[:2])
    assert (found[me].alone, found[you].alone) == (True, False)
    assert found[me].answered > 2
    assert found[you].answered > 2
    assert alone.state.figures.uses == {}
    kinds = {one["kind"] for one in payloads(other, "arrived")}
    assert ("rollouts" in kinds) == (sharing == "all")
    assert {one["kind"] for one in payloads(alone, "arrived")} <= {"judge-question", "rollouts"}
    if sharing == "off":
        assert {one["kind"] for one in payloads(alone, "arrived")} == {"judge-question"}


def payloads(node: Node[Any, Any, Any, Any], kind: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(record.payload) for record in node.journal.read() if record.kind == kind]


def test_the_one_answer_is_sampled_or_the_likeliest() -> None:
    texts: dict[str, set[str]] = {}
    for manner in ("temperature", "greedy"):
        swarm, _, fake, me = with_fake(judge_sampling=manner)
        for number in range(30):
            fake.pose(me, number)
            for _ in range(3):
                swarm.round()
                fake.hear()
        texts[manner] = {answer.text for _, answer in fake.answers}
        assert len(fake.answers) > 8
    assert len(texts["temperature"]) > 3
    assert len(texts["greedy"]) < len(texts["temperature"])


def test_a_resume_goes_on_as_if_nothing_had_happened() -> None:
    swarm, journal = Swarm(), MemoryJournal()
    node = swarm.trainer(1, small_training(steps=30), journal)
    swarm.judge()
    swarm.run(30)
    assert asides(node) > 1
    again = Swarm()
    resumed = again.trainer(1, small_training(steps=30), journal)
    assert msgspec.json.encode(resumed.state.figures) == msgspec.json.encode(node.state.figures)
    assert resumed.state.policy._scores.tobytes() == node.state.policy._scores.tobytes()


def test_a_node_that_is_killed_answers_after_its_resume() -> None:
    swarm, journal = Swarm(), MemoryJournal()
    node = swarm.trainer(1, small_training(steps=40), journal)
    judge = swarm.judge(time_limit=60.0)
    me = swarm.exchanges[0].identity.node_id
    while not node.state.figures.judging.pending:
        swarm.round()
    before = entrant_of(judge.state.board, me)
    assert before.asked == before.answered + 1
    swarm.leave(node)
    swarm.run(3)
    swarm.now += 1.0
    swarm.trainer(1, small_training(steps=40), journal)
    swarm.run(6)
    found = entrant_of(judge.state.board, me)
    assert len(judge.state.board.entrants) == 1, "the same run, after a restart too"
    assert found.answered > before.answered - 1
    assert found.rounds == found.answered, "nothing was left without an answer"


def test_only_nodes_that_train_ask() -> None:
    swarm = Swarm()
    node = swarm.trainer(1, small_training(models=("frozen:table:small",), steps=6))
    fake = FakeJudge(swarm.exchange(50, of_a_judge()))
    for number in range(10):
        swarm.round()
        fake.hear()
        run = swarm.exchanges[0].epoch
        word = JudgeQuestion((swarm.exchanges[0].identity.node_id,), number, run, 1, "sums", "1+1=", 60.0)
        fake.exchange.share(word)
    assert fake.requests == []
    assert fake.answers == []
    assert node.state.figures.step == 6


def test_without_a_judge_a_node_knows_no_words() -> None:
    crew = TrainCrew(small())
    assert [kind.name for kind in crew.kinds] == ["rollouts"]
    assert crew.shares
    assert not TrainCrew(small(sharing="off")).shares
    assert TrainCrew(small(sharing="off", judge="any")).shares
    assert {kind.name for kind in TrainCrew(small(judge="any")).kinds if kind.taken} == {
        "rollouts",
        "judge-question",
    }
    assert msgspec.json.decode(b'{"local":4,"external":4}', type=Figures).judging.pending == ()


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("nobody", "judge: 'nobody' is not a node id"),
        (("any", "a" * 32), "judge: 'any' is not a node id"),
        (("a" * 32,) * 17, "judge: 17 judges are named: at most 16"),
    ],
)
def test_a_judge_is_named_by_its_id(judge: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TrainSettings(judge=judge).check()
    TrainSettings(judge="any").check()
    TrainSettings(judge=("a" * 32, "b" * 32)).check()


def test_an_old_run_without_these_settings_opens(tmp_path: Path) -> None:
    from shoal.runs import load_settings, to_toml

    text = to_toml(small())
    old = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("judge"))
    assert old != text
    with RunFolder.create(tmp_path / "run", old):
        pass
    assert load_settings(TrainSettings, tmp_path / "run") == small()


def test_groups_of_others_are_still_taken() -> None:
    swarm = Swarm()
    swarm.trainer(1, small_training(steps=20))
    other = swarm.trainer(2, small_training(models=("table:even",), steps=20))
    swarm.judge()
    swarm.run(30)
    kinds = [one["kind"] for one in payloads(other, "arrived")]
    assert kinds.count("rollouts") > 10
    assert (
        any(isinstance(one.item.item, RolloutGroup) for one in other.state.pool) or other.state.figures.uses
    )
