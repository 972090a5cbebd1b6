"""A judge and the nodes that it judges, in one process and in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest

from shoal.judge.judge import Judge
from shoal.judge.outside import JudgeOutside
from shoal.judge.settings import JudgeSettings
from shoal.judge.words import of_a_judge, of_a_judged_node
from shoal.node import Inline, Node, NodeSettings
from shoal.node.application import Application
from shoal.policy.base import Policy
from shoal.policy.table import TablePolicy
from shoal.runs import derive
from shoal.runs.journal import MemoryJournal
from shoal.runs.judging import Board, Entrant, JudgeAnswer, JudgeQuestion, JudgeRequest
from shoal.swarm import Exchange, ExchangeSettings, Identity, MemoryHub
from shoal.tasks.unconfined import DirectVerifier
from shoal.tasks.verifier import Problem, Verifier
from shoal.train.answering import kinds_of
from shoal.train.outside import TrainOutside
from shoal.train.rollouts import ROLLOUTS
from shoal.train.settings import TrainSettings
from shoal.train.trainer import Trainer

NOW = 1_000.0
TICK = 0.1


@pytest.fixture
def asks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node asks after every step, however quick its steps are."""
    monkeypatch.setattr("shoal.train.answering.ASK_EVERY", 0.0)


def identity(number: int) -> Identity:
    return Identity(number.to_bytes(2, "big") * 16)


def small_training(**changes: Any) -> TrainSettings:
    given = {"nodes": 1, "models": ("table:small",), "steps": 12, "evaluate_every": 4, "held_out": 4}
    return TrainSettings(**{**given, "group": 4, "judge": "any", **changes})


class Swarm:
    """Nodes in one process. `round` gives each node a turn and delivers what they share; `now` goes on."""

    def __init__(self, **exchange: Any) -> None:
        self.hub = MemoryHub()
        self.now = NOW
        self.nodes: list[Node[Any, Any, Any, Any]] = []
        self.exchanges: list[Exchange] = []
        self._settings = msgspec.convert({"flush_seconds": 0.0, **exchange}, ExchangeSettings)

    def exchange(self, number: int, kinds: Any) -> Exchange:
        made = Exchange(
            identity(number), self.hub.open(), kinds, self._settings, now=self.now, rng=random.Random(number)
        )
        self.exchanges.append(made)
        return made

    def judge(
        self,
        number: int = 100,
        journal: MemoryJournal | None = None,
        verifier: Verifier | None = None,
        checkpoints: Any = None,
        **settings: Any,
    ) -> Node[Any, Any, Any, Any]:
        chosen, scorer = JudgeSettings(**settings), verifier or DirectVerifier()
        exchange = self.exchange(number, of_a_judge())
        return self._add(
            Judge(chosen, author=exchange.identity.node_id, verifier=scorer),
            JudgeOutside(
                chosen, scorer, lambda wanted: derive(number, wanted.author, wanted.run, wanted.round)
            ),
            exchange,
            "judge",
            journal,
            checkpoints,
            checkpoint_every=chosen.checkpoint_every,
        )

    def trainer(
        self,
        number: int,
        settings: TrainSettings,
        journal: MemoryJournal | None = None,
        policy: Callable[[], Policy] | None = None,
    ) -> Node[Any, Any, Any, Any]:
        plan, verifier = settings.of(0), DirectVerifier()
        exchange = self.exchange(number, kinds_of(settings, ROLLOUTS))
        author = exchange.identity.node_id
        trainer = Trainer(
            settings,
            0,
            author=author,
            epoch=exchange.epoch,
            verifier=verifier,
            open_policy=policy or (lambda: TablePolicy(plan.model.partition(":")[2])),
            processor_time=lambda: 0.0,
        )
        outside = Inline(TrainOutside(settings, plan, author, verifier, (), lambda: 0.0).answer)
        return self._add(trainer, outside, exchange, plan.name, journal)

    def _add(
        self,
        application: Application[Any, Any, Any, Any],
        outside: Any,
        exchange: Exchange,
        name: str,
        journal: MemoryJournal | None,
        checkpoints: Any = None,
        **settings: Any,
    ) -> Node[Any, Any, Any, Any]:
        node: Node[Any, Any, Any, Any] = Node(
            application,
            outside,
            name=name,
            seed=1,
            journal=journal if journal is not None else MemoryJournal(),
            now=self.now,
            exchange=exchange,
            checkpoints=checkpoints,
            settings=NodeSettings(**settings),
        )
        self.nodes.append(node)
        return node

    def actor(self, number: int) -> Actor:
        return Actor(self.exchange(number, of_a_judged_node(ROLLOUTS)))

    def leave(self, node: Node[Any, Any, Any, Any]) -> None:
        """As if its process were killed."""
        place = self.nodes.index(node)
        self.nodes.remove(node)
        exchange: Any = node.exchange
        self.exchanges.remove(exchange)
        exchange.transport.close()
        assert place >= 0

    def deliver(self, seconds: float = TICK) -> None:
        for _ in range(2):
            self.now += seconds / 2
            for exchange in self.exchanges:
                exchange.tick(self.now)

    def round(self) -> list[str]:
        statuses = [node.advance(self.now) for node in self.nodes]
        self.deliver()
        return statuses

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.round()


class Actor:
    """A peer that says whatever a test wants it to say."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.questions: list[tuple[str, JudgeQuestion]] = []

    @property
    def node_id(self) -> str:
        return self.exchange.identity.node_id

    def ask(self, round_number: int, **changes: Any) -> None:
        given = {"to": (), "run": 7, "round": round_number, "families": ("sums",), "model": "table:small"}
        self.exchange.share(JudgeRequest(**{**given, **changes}))

    def hear(self) -> list[JudgeQuestion]:
        """The questions that came since the last time."""
        found = [
            (one.author, one.item) for one in self.exchange.gather() if isinstance(one.item, JudgeQuestion)
        ]
        self.questions += found
        return [question for _, question in found]

    def say(self, question: JudgeQuestion, text: str, judge: str) -> None:
        self.exchange.share(JudgeAnswer((judge,), question.number, text))


def key_of(node: Node[Any, Any, Any, Any], question: JudgeQuestion) -> str:
    """The right answer, by the judge's own state: nobody else knows the seed."""
    found = node.state.open[question.number].question
    posed = DirectVerifier().pose(Problem(found.family, found.version, found.parameters, found.seed))
    return posed.answer  # type: ignore[union-attr]


def entrant_of(board: Board, author: str, run: int | None = None) -> Entrant:
    (found,) = [one for one in board.entrants.values() if one.author == author and run in (None, one.run)]
    return found


def score_of(board: Board, author: str) -> tuple[int, int, int, list[float]]:
    """Everything that counts of one node."""
    one = entrant_of(board, author)
    return one.asked, one.answered, one.right, list(one.rewards)


def notes_of(journal: MemoryJournal) -> Iterable[msgspec.Raw]:
    for record in journal.read():
        if record.kind == "note":
            yield msgspec.json.decode(record.payload)["note"]
