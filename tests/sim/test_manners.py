"""Manners in a swarm of real training nodes: an honest peer whose tasks are partly unknown here keeps its good
name and leaves probation by the rest; an author of unknown tasks alone never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from shoal.node import Inline, Node, NodeSettings
from shoal.policy.table import TablePolicy
from shoal.runs import MemoryJournal
from shoal.runs.records import Arrived, content_of
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.sim.adversaries import Adversary
from shoal.sim.swarm import LoopApplication, SimSwarm
from shoal.swarm import Exchange, ExchangeSettings
from shoal.swarm.body import PackedItem
from shoal.swarm.frame import encode
from shoal.tasks.unconfined import DirectVerifier
from shoal.train.outside import TrainOutside
from shoal.train.rollouts import rollout_kinds
from shoal.train.settings import NodeSettings as Each, TrainSettings
from shoal.train.trainer import Trainer

STEPS = 60
NARROW, MIXED = range(3), range(3, 6)
"""Nodes that accept sums alone, and nodes whose tasks are others for the most part."""
SETTINGS = TrainSettings(
    nodes=6,
    models=("table:small", "table:even", "table:wide"),
    steps=STEPS,
    local=2,
    external=6,
    group=4,
    evaluate_every=0,
    accept=("sums",),
    each=(*[Each(tasks=("sums",))] * 3, *[Each(tasks=("sums", "count", "reverse"))] * 3),
)


class Stranger(Adversary):
    """Well-formed groups of a family that nobody else has, as many as an honest node shares."""

    def act(self) -> None:
        if self.rng.random() < 0.2:
            task = TaskName("none", "1", "{}", self.rng.getrandbits(40))
            texts = tuple(Completion(str(self.rng.getrandbits(9)), True) for _ in range(4))
            group = RolloutGroup(task, "what?", texts, "stranger")
            self.send(self.frame([PackedItem("rollouts", encode(group))]))


def maker(number: int) -> Callable[[MemoryJournal, Exchange, float], Node]:
    plan, verifier = SETTINGS.of(number), DirectVerifier()

    def build(journal: MemoryJournal, exchange: Exchange, now: float) -> Node:
        author = exchange.identity.node_id
        trainer = Trainer(
            SETTINGS,
            number,
            author=author,
            epoch=exchange.epoch,
            verifier=verifier,
            open_policy=lambda: TablePolicy(plan.model.partition(":")[2]),
            processor_time=lambda: 0.0,
        )
        outside = Inline(TrainOutside(SETTINGS, plan, author, verifier, (), lambda: 0.0).answer)
        return Node(
            trainer,
            outside,
            name=plan.name,
            seed=1,
            journal=journal,
            now=now,
            exchange=exchange,
            settings=NodeSettings(gather_limit=32),
        )

    return build


def test_unknown_tasks_cost_an_honest_peer_nothing_and_earn_a_stranger_nothing() -> None:
    swarm = SimSwarm(
        SETTINGS.nodes,
        seed=3,
        settings=ExchangeSettings(flush_seconds=0.0),
        kinds=rollout_kinds(),
        applications=lambda number: LoopApplication(maker(number), 1.0),
    )
    strangers = [Stranger(swarm, number) for number in range(3)]
    swarm.run(STEPS + 10.0)

    names = [node.identity.node_id for node in swarm.nodes]
    unknown = {stranger.identity.node_id for stranger in strangers}
    assert all(stranger.sent > 20 for stranger in strangers)
    passed_over = 0
    for number in NARROW:
        accounts = swarm.nodes[number].exchange.accounts
        for other in MIXED:
            account = accounts.of(names[other])
            assert account.rejections == 0, "tasks that are unknown here are not held against their author"
            assert account.passed_over > account.verified >= 4, "two of its three tasks are unknown"
            assert names[other] in accounts.established
        for name in unknown:
            account = accounts.of(name)
            assert (account.verified, account.used, account.useful, account.rejections) == (0, 0, 0, 0)
            assert name not in accounts.established
            assert not accounts.promising(name)
            assert accounts.weight(name) == accounts.weight("never heard")
            passed_over += account.passed_over
        assert share_of(unknown, swarm, number) < 0.17
    assert passed_over > 0


def share_of(authors: set[str], swarm: SimSwarm, number: int) -> float:
    """Their part of the items that the node took in during the second half, when others were established."""
    application = swarm.nodes[number].application
    assert isinstance(application, LoopApplication)
    arrived = [one for one in map(content_of, application.journal.read()) if isinstance(one, Arrived)]
    counts = Counter(one.author in authors for one in arrived[len(arrived) // 2 :])
    return counts[True] / counts.total()
