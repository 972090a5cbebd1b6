"""Swarms of a thousand real nodes in one process: training and search, with losses, churn and liars.

    python -m bench.simulated            # both, 1,000 nodes, ten rounds each

The nodes are those of the field: the same loop, trainer or searcher, exchange and repair. Policies are
tables of answers, programs come from builtin mutators, and time is virtual. Same seed, same swarm.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from shoal.evolve.asking import Asker
from shoal.evolve.outside import SearchOutside
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import SearchState
from shoal.node import Inline, Node, NodeSettings
from shoal.policy.table import TablePolicy
from shoal.runs.journal import MemoryJournal
from shoal.runs.records import Arrived, VerdictGiven, content_of
from shoal.runs.search import Champion
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.sim.adversaries import Adversary, Liar, Malformed
from shoal.sim.network import Link
from shoal.sim.swarm import AnyNode, LoopApplication, SimSwarm
from shoal.swarm import ExchangeSettings
from shoal.swarm.body import PackedItem
from shoal.swarm.exchange import Exchange
from shoal.swarm.kinds import Kinds
from shoal.tasks.unconfined import DirectVerifier
from shoal.train.outside import TrainOutside
from shoal.train.rollouts import rollout_kinds
from shoal.train.settings import TrainSettings
from shoal.train.state import TrainState
from shoal.train.trainer import Trainer

INTERVAL = 5.0
TABLES = ("table:small", "table:even", "table:odd", "table:wide")
BUILTINS = ("builtin:bomber", "builtin:replicator", "builtin:scanner", "builtin:vampire")


class SimulatedRun(msgspec.Struct, frozen=True):
    """`rounds`: least and most that a node took; `used`: foreign items that were learnt from or placed;
    `refused`: by reason, over all nodes; `honest_refused`: items of honest nodes that were refused."""

    application: str
    nodes: int
    rounds: tuple[int, int]
    restarted: int
    received: int
    used: int
    refused: dict[str, int]
    passed_over: dict[str, int]
    honest_refused: int
    seconds: float
    megabytes: float
    digest: str


def train_swarm(nodes: int, rounds: int, seed: int = 1) -> SimSwarm:
    settings = TrainSettings(
        nodes=min(nodes, 1000),
        models=TABLES,
        steps=rounds,
        local=2,
        external=2,
        group=4,
        evaluate_every=0,
        seed=seed,
        verify_budget=8,
    )
    verifier = DirectVerifier()

    def make(number: int) -> Callable[[MemoryJournal, Exchange, float], AnyNode]:
        index = number % settings.nodes
        plan = settings.of(index)

        def build(journal: MemoryJournal, exchange: Exchange, now: float) -> AnyNode:
            author = exchange.identity.node_id
            trainer = Trainer(
                settings,
                index,
                author=author,
                epoch=exchange.epoch,
                verifier=verifier,
                open_policy=lambda: TablePolicy(plan.model.partition(":")[2]),
                processor_time=_no_time,
            )
            outside = TrainOutside(settings, plan, author, verifier, (), _no_time)
            return Node(
                trainer,
                Inline(outside.answer),
                name=f"node {number}",
                seed=seed,
                journal=journal,
                now=now,
                exchange=exchange,
                settings=NodeSettings(gather_limit=16),
            )

        return build

    return _swarm(nodes, seed, rollout_kinds(), make)


def evolve_swarm(nodes: int, rounds: int, seed: int = 1) -> SimSwarm:
    """Rounds of two proposals each, on a small core, so that a thousand nodes fit into minutes."""
    rules = {"core_size": 800, "cycles": 800, "processes": 80, "length": 20, "distance": 20}
    settings = EvolveSettings(
        models=BUILTINS * ((nodes + 3) // 4),
        rounds=rounds,
        calls=2 * rounds * len(BUILTINS * ((nodes + 3) // 4)),
        repeats=2,
        retest_repeats=2,
        finalists=1,
        look_ahead=1,
        options=rules,
        seed=seed,
    )
    domain = settings.open_domain()

    def make(number: int) -> Callable[[MemoryJournal, Exchange, float], AnyNode]:
        asker = Asker(settings, number, domain)

        def build(journal: MemoryJournal, exchange: Exchange, now: float) -> AnyNode:
            return Node(
                Searcher(settings, number, domain, asker.most),
                Inline(SearchOutside(settings, domain, asker).answer),
                name=f"node {number}",
                seed=seed,
                journal=journal,
                now=now,
                exchange=exchange,
                settings=NodeSettings(budget=settings.budget_of(number), gather_limit=1),
            )

        return build

    # Drain, open, two proposals, close: five turns make a round.
    return _swarm(nodes, seed, Searcher.kinds, make, interval=INTERVAL / 5)


def play(
    application: str, nodes: int = 1000, rounds: int = 10, seed: int = 1, churn: float = 0.05
) -> SimulatedRun:
    """Plays the rounds; meanwhile some nodes are killed and come back a round later, and liars talk."""
    began = time.monotonic()
    swarm = (train_swarm if application == "train" else evolve_swarm)(nodes, rounds, seed)
    adversaries = _liars(swarm, application, nodes)
    rng = random.Random(f"churn {seed}")
    for number in rng.sample(range(nodes), int(churn * nodes)):
        leaves = rng.uniform(1.0, max(2.0, rounds - 2.0)) * INTERVAL
        swarm.at(leaves, partial(_leave, swarm, number))
        swarm.at(leaves + INTERVAL, partial(_come_back, swarm, number))
    swarm.run((rounds + 3) * INTERVAL)
    return _outcome(application, swarm, adversaries, time.monotonic() - began)


class FalseItems(Adversary):
    """Signed items of the right kind whose content is a lie: made by `invent`, one in each act."""

    def __init__(
        self, swarm: SimSwarm, number: int, channel: str, invent: Callable[[random.Random], object]
    ) -> None:
        super().__init__(swarm, number)
        self._channel = channel
        self._invent = invent
        self._kind = next(kind.name for kind in swarm.kinds)

    def act(self) -> None:
        if self.rng.random() < 0.1:  # within an honest author's quota
            entry = PackedItem(self._kind, msgspec.msgpack.encode(self._invent(self.rng)))
            frame = self.frame([entry], self._channel)
            self.publish(frame.topic, frame.encode())


def false_group(rng: random.Random) -> RolloutGroup:
    """A question that is not the one of its name, or completions that claim what they like."""
    task = TaskName(
        rng.choice(("sums", "reverse", "gym:binary_matrix", "none")), "1", "{}", rng.getrandbits(40)
    )
    completions = tuple(Completion(str(rng.getrandbits(8)), True) for _ in range(4))
    return RolloutGroup(task, f"{rng.randrange(10)}+{rng.randrange(10)}=", completions, "liar")


def false_champion(rng: random.Random) -> Champion:
    return Champion("corewar", rng.choice(("MOV", "JMP 9999999", "<script>", "")), 10**6, "liar", 1e12)


def _leave(swarm: SimSwarm, number: int) -> None:
    swarm.kill(swarm.nodes[number])


def _come_back(swarm: SimSwarm, number: int) -> None:
    swarm.restart(swarm.nodes[number])


def _liars(swarm: SimSwarm, application: str, nodes: int) -> list[Adversary]:
    """One in a hundred lies in what it shares; beside them the liars of the simulator, below the items."""
    channel, invent = ("log", false_group) if application == "train" else ("latest", false_champion)
    liars: list[Adversary] = [
        FalseItems(swarm, number, channel, invent) for number in range(max(1, nodes // 100))
    ]
    return [*liars, Malformed(swarm, rate=2), Liar(swarm)]


def _swarm(
    nodes: int,
    seed: int,
    kinds: Kinds,
    make: Callable[[int], Callable[[MemoryJournal, Exchange, float], AnyNode]],
    interval: float = INTERVAL,
) -> SimSwarm:
    """Lossy links, many shards of which a node follows four, small stores."""
    settings = ExchangeSettings(
        flush_seconds=0.0,
        shards=max(1, nodes // 32),
        follow=4,
        follow_all_until=0,
        keep_frames=16,
        history_frames=8,
        remember_contents=512,
    )
    link = Link(loss=0.02, duplication=0.02)
    return SimSwarm(
        nodes,
        seed,
        settings=settings,
        link=link,
        kinds=kinds,
        applications=lambda number: LoopApplication(make(number), interval),
        steps_per_second=4,
    )


def _outcome(
    application: str, swarm: SimSwarm, adversaries: Sequence[Adversary], seconds: float
) -> SimulatedRun:
    rounds, received, used, restarted, honest_refused = [], 0, 0, 0, 0
    refused: Counter[str] = Counter()
    passed_over: Counter[str] = Counter()
    honest = {node.identity.node_id for node in swarm.nodes}
    for member in swarm.nodes:
        looping = member.application
        assert isinstance(looping, LoopApplication)
        restarted += looping.restarts
        for record in looping.journal.read():
            content = content_of(record)
            if isinstance(content, Arrived):
                received += 1
            elif isinstance(content, VerdictGiven) and not content.accepted:
                counted = refused if content.rejected else passed_over
                counted[content.reason.partition(":")[0]] += 1
                honest_refused += content.author in honest
        state = looping.node.state if looping.node is not None else None
        if isinstance(state, TrainState):
            rounds.append(state.figures.step)
            used += sum(state.figures.uses.values())
        elif isinstance(state, SearchState):
            rounds.append(state.course.round)
            used += len(state.course.received)
    return SimulatedRun(
        application,
        len(swarm.nodes),
        (min(rounds), max(rounds)),
        restarted,
        received,
        used,
        dict(sorted(refused.items())),
        dict(sorted(passed_over.items())),
        honest_refused,
        round(seconds, 1),
        round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        swarm.digest(),
    )


def _no_time() -> float:
    return 0.0


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for application in ("train", "evolve"):
        print(
            msgspec.json.format(msgspec.json.encode(play(application, nodes)), indent=1).decode(), flush=True
        )


if __name__ == "__main__":
    main()
