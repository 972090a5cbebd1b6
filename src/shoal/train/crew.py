"""The nodes of a training run: how they are put together, run and watched. The same in every mode."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, TaskError
from shoal.models.remote import import_package
from shoal.node import ExchangeLike, Inline, Node, NodeSettings, Stop
from shoal.node.crew import Tell
from shoal.node.running import run_crew
from shoal.node.standing import Standing, Tally
from shoal.policy import specification
from shoal.policy.base import Policy
from shoal.policy.contributor import Contributor, check_contributor, open_contributor
from shoal.policy.first_use import make_models, models_to_make
from shoal.runs import RunFolder, derive_integer
from shoal.runs.training import TrainAnswer, TrainEvidence, TrainNote, TrainRequest
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.verifier import Posed, Verifier
from shoal.train.outside import TrainOutside, problem_of
from shoal.train.prepared import read_prepared
from shoal.train.rollouts import SEED_BITS, rollout_kinds
from shoal.train.settings import NodePlan, TrainSettings
from shoal.train.state import TrainState
from shoal.train.trainer import Trainer

GATHER_LIMIT = 256
EXAMPLES = 3
"""Solved tasks of each family in a few-shot prompt."""

TrainNode = Node[TrainState, TrainRequest, TrainAnswer, TrainEvidence]


@dataclass
class TrainSeat:
    """A node with its verifier, which `close` ends."""

    node: TrainNode
    verifier: Verifier

    def close(self) -> None:
        self.verifier.close()


class TrainCrew:
    """One node per plan. Nodes of one process share nothing but the processor."""

    settings_type = TrainSettings
    unit = "steps"

    def __init__(self, settings: TrainSettings) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = rollout_kinds()
        self.shares = settings.sharing != "off"
        self.linger = settings.linger
        self.at_terminal = settings.at_terminal
        self.total = settings.steps * settings.nodes
        self.is_free = not any(settings.of(index).only_asks for index in range(settings.nodes))

    def done(self, standings: Sequence[TrainStanding]) -> int:
        return sum(node.step for node in standings)

    def check(self) -> None:
        self.settings.check()

    def prepare(self, stop: Stop, tell: Tell) -> None:
        """Makes the models that are made on first use, so that all nodes begin together."""
        plans = [self.settings.of(index) for index in range(self.settings.nodes)]
        specs = [plan.model for plan in plans if not plan.only_asks]
        if to_make := models_to_make(specs):
            make_models(to_make, stop, tell)

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> TrainSeat:
        plan, verifier = self.settings.of(index), WorkerVerifier(files=self.settings.files)
        return take_seat(
            self.settings,
            index,
            run,
            author=author,
            now=now,
            exchange=exchange,
            verifier=verifier,
            open_policy=lambda: open_policy(self.settings, plan, verifier),
        )

    def watch(self, index: int, journal: Path) -> TrainWatcher:
        return TrainWatcher(self.settings, index, journal)


def run(settings: TrainSettings, folder: Path, **options: Any) -> str:
    """Runs the nodes of these settings into `folder`, or goes on with the run that is there. The options, and
    the text that is returned, are those of `shoal.node.running.run_crew`."""
    return run_crew(TrainCrew(settings), folder, **options)


def take_seat(
    settings: TrainSettings,
    index: int,
    run: RunFolder,
    *,
    author: str,
    now: float,
    exchange: ExchangeLike | None,
    verifier: Verifier,
    open_policy: Callable[[], Policy],
    processor_time: Callable[[], float] = time.process_time,
) -> TrainSeat:
    """The `index`-th node of the run, new or resumed. A virtual `processor_time` makes its journal the same
    in every run."""
    plan = settings.of(index)
    # The epoch of an exchange that is made at the same time: sharing or not, the tasks are the same.
    epoch = int(getattr(exchange, "epoch", int(now * 1e6)))
    prepared = read_prepared(Path(plan.prepared)) if plan.prepared else []
    trainer = Trainer(
        settings,
        index,
        author=author,
        epoch=epoch,
        verifier=verifier,
        open_policy=open_policy,
        prepared=len(prepared) if plan.prepared else None,
        processor_time=processor_time,
    )
    outside = TrainOutside(settings, plan, author, verifier, prepared, processor_time)
    journal = run.open_journal(plan.name)
    try:
        node: Node[Any, Any, Any, Any] = Node(
            trainer,
            Inline(outside.answer),
            name=plan.name,
            seed=settings.seed,
            journal=journal,
            now=now,
            exchange=exchange,
            settings=NodeSettings(
                budget={} if settings.tokens is None else {"tokens": settings.tokens},
                checkpoint_every=settings.checkpoint_every,
                gather_limit=GATHER_LIMIT,
            ),
            checkpoints=run.checkpoints(plan.name),
        )
    except BaseException:
        journal.close()
        verifier.close()
        raise
    return TrainSeat(node, verifier)


def open_policy(settings: TrainSettings, plan: NodePlan, verifier: Verifier) -> Policy:
    """The policy of one node, as it is before the first step."""
    if plan.only_asks:
        return Contributor(plan.model) if plan.prepared else open_contributor(plan.model)
    if not plan.model.startswith("table:"):
        # Several nodes share a machine; and the same number of threads gives the same sums.
        import_package("torch", "train", plan.model).set_num_threads(settings.threads)
    examples = solved_examples(settings, plan, verifier) if settings.prompt == "few-shot" else ()
    return specification.open_policy(
        plan.model, rendering=settings.prompt, examples=examples, device=settings.device
    )


def check_models(settings: TrainSettings) -> None:
    """ConfigError where the model of a node can be seen not to be usable; nothing is loaded."""
    for index in range(settings.nodes):
        plan = settings.of(index)
        try:
            if plan.prepared:
                if not Path(plan.prepared).exists():
                    raise ConfigError(f"{plan.prepared}: there is no such file or run folder")
            elif plan.only_asks:
                check_contributor(plan.model)
            else:
                specification.check_policy(plan.model)
        except ConfigError as error:
            raise ConfigError(f"node {index + 1}: {error}") from error


def solved_examples(
    settings: TrainSettings, plan: NodePlan, verifier: Verifier
) -> tuple[tuple[str, str], ...]:
    """Questions with their answers for prompts, the same for all nodes and steps."""
    found = []
    for task in dict.fromkeys(plan.tasks):
        for number in range(EXAMPLES):
            seed = derive_integer(0, "example", number, bits=SEED_BITS)
            posed = verifier.pose(problem_of(settings, task, seed))
            if not isinstance(posed, Posed):
                raise TaskError(f"{task}: {posed.reason}")
            if not posed.answer:
                raise TaskError(f"{task}: this family has no answers to show: choose another prompt")
            found.append((posed.question, posed.answer))
    return tuple(found)


class TrainStanding(Standing, frozen=True, kw_only=True):
    """`work` and `spent` are tokens that the node generated for its steps. `reward_local` is of its last
    step, `reward_held_out` of its last evaluation; `said` explains its last turn."""

    step: int = 0
    steps: int = 0
    reward_local: float | None = None
    reward_held_out: float | None = None
    said: str = ""

    def figures(self) -> Mapping[str, object]:
        return {
            "step": self.step,
            "steps": self.steps,
            "tokens": self.spent,
            "tokens_allowed": self.allowed,
            "tokens_per_second": self.per_second,
            "reward": self.reward_local,
            "reward_held_out": self.reward_held_out,
        }


class TrainWatcher:
    """Follows one node, the `index`-th of the run, from its journal alone."""

    def __init__(self, settings: TrainSettings, index: int, journal: Path) -> None:
        self._plan = settings.of(index)
        self._steps = settings.steps
        self._allowed = settings.tokens
        self._tally = Tally(journal)
        self._last: TrainNote | None = None
        self._used = 0
        self._local: float | None = None
        self._held_out: float | None = None

    def look(self, *, ended: bool = False, trouble: str = "") -> TrainStanding:
        for note in self._tally.notes(TrainNote):
            self._last = note
            self._used += note.used
            self._local = self._local if note.reward_local is None else note.reward_local
            self._held_out = self._held_out if note.reward_held_out is None else note.reward_held_out
        tokens = self._tally.ledger.spent.get("tokens", 0)
        step = 0 if self._last is None else self._last.step
        # By steps or by tokens, whichever runs out first.
        done = max(step / self._steps, tokens / self._allowed if self._allowed else 0.0)
        return TrainStanding(
            name=self._plan.name,
            model=self._plan.model,
            done=1.0 if ended and not trouble else min(1.0, done),
            work=tokens,
            spent=tokens,
            allowed=self._allowed,
            traffic=self._tally.traffic(self._used),
            ended=ended,
            trouble=trouble or self._tally.trouble,
            step=step,
            steps=self._steps,
            reward_local=self._local,
            reward_held_out=self._held_out,
            said="" if self._last is None else self._last.said,
        )
