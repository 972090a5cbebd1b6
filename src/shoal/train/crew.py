"""The nodes of a training run, put together, run and watched in the same way in every mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError, TaskError
from shoal.models.remote import import_package
from shoal.node import ExchangeLike, Inline, Node, NodeSettings, Stop
from shoal.node.crew import Seat, Tell
from shoal.node.running import run_crew
from shoal.node.standing import Standing, Tally
from shoal.policy import specification
from shoal.policy.base import Policy
from shoal.policy.contributor import Contributor, check_contributor, open_contributor
from shoal.policy.first_use import make_models, models_to_make
from shoal.policy.system import OWN, system_text
from shoal.runs import RunFolder, derive_integer
from shoal.runs.training import TrainNote
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.registry import open_task
from shoal.tasks.verifier import Posed, Verifier
from shoal.train.answering import kinds_of
from shoal.train.outside import TrainOutside, problem_of
from shoal.train.prepared import read_prepared
from shoal.train.rollouts import ROLLOUTS, SEED_BITS
from shoal.train.settings import NodePlan, TrainSettings
from shoal.train.trainer import Trainer

GATHER_LIMIT = 256
EXAMPLES = 3
"""Solved tasks of each family in a few-shot prompt."""


class TrainCrew:
    """One node per plan. Nodes of one process share nothing but the processor."""

    settings_type = TrainSettings
    unit = "steps"

    def __init__(self, settings: TrainSettings) -> None:
        settings.check()  # plans and names need settings that make sense
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = kinds_of(settings, ROLLOUTS)
        self.shares = settings.sharing != "off" or bool(settings.judges)
        self.linger = settings.linger
        self.at_terminal = settings.at_terminal
        self.total = settings.steps * settings.nodes
        self.is_free = not any(settings.of(index).only_asks for index in range(settings.nodes))

    def done(self, standings: Sequence[TrainStanding]) -> int:
        return sum(node.step for node in standings)

    def check(self) -> None:
        pass

    def prepare(self, stop: Stop, tell: Tell) -> None:
        """Makes missing models before any node starts, so that all nodes begin together."""
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
    ) -> Seat:
        settings, plan = self.settings, self.settings.of(index)
        verifier = WorkerVerifier(files=settings.files)
        prepared = read_prepared(Path(plan.prepared)) if plan.prepared else []
        trainer = Trainer(
            settings,
            index,
            author=author,
            # The epoch of an exchange that is made at the same time: sharing or not, the tasks are the same.
            epoch=int(getattr(exchange, "epoch", int(now * 1e6))),
            verifier=verifier,
            open_policy=lambda: open_policy(settings, plan, verifier),
            prepared=len(prepared) if plan.prepared else None,
        )
        outside = TrainOutside(settings, plan, author, verifier, prepared)
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
        return Seat(node, verifier.close)

    def watch(self, index: int, journal: Path) -> TrainWatcher:
        return TrainWatcher(self.settings, index, journal)


def run(settings: TrainSettings, folder: Path, **options: Any) -> str:
    """`run_crew` of shoal/node/running.py for the nodes of these settings."""
    return run_crew(TrainCrew(settings), folder, **options)


def open_policy(settings: TrainSettings, plan: NodePlan, verifier: Verifier) -> Policy:
    """The policy of one node, as it is before the first step."""
    if plan.only_asks:
        if plan.prepared:
            return Contributor(plan.model)
        return open_contributor(plan.model, system=None if settings.system == OWN else settings.system)
    if not plan.model.startswith("table:"):
        # Several nodes share a machine; and the same number of threads gives the same sums.
        import_package("torch", "train", plan.model).set_num_threads(settings.threads)
    return specification.open_policy(
        plan.model,
        rendering=settings.prompt,
        examples=solved_examples(settings, plan, verifier) if settings.prompt == "few-shot" else [],
        system=settings.system,
        device=settings.device,
        precision=settings.precision,
    )


def check_models(settings: TrainSettings) -> None:
    """An error if the model or the question file of a node, or the system prompt, is seen to be unusable; no
    model is loaded."""
    system_text(settings.system)
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
            for task in plan.tasks:
                if task.startswith("file:"):
                    open_task(task, files=settings.files)
        except (ConfigError, TaskError) as error:
            raise ConfigError(f"node {index + 1}: {error}") from error


def solved_examples(settings: TrainSettings, plan: NodePlan, verifier: Verifier) -> list[tuple[str, str]]:
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
    return found


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
    """Follows the `index`-th node of the run from its journal alone."""

    def __init__(self, settings: TrainSettings, index: int, journal: Path) -> None:
        plan = settings.of(index)
        self._tally = Tally(journal)
        self._used = 0
        self._standing = TrainStanding(
            name=plan.name, model=plan.model, allowed=settings.tokens, steps=settings.steps
        )

    def look(self, *, ended: bool = False, trouble: str = "") -> TrainStanding:
        last = self._standing
        for note in self._tally.notes(TrainNote):
            self._used += note.used
            rewards = {"reward_local": note.reward_local, "reward_held_out": note.reward_held_out}
            new = {name: reward for name, reward in rewards.items() if reward is not None}
            last = msgspec.structs.replace(last, step=note.step, said=note.said, **new)
        self._standing = last
        tokens = self._tally.ledger.spent.get("tokens", 0)
        # By steps or by tokens: one of the two runs out first.
        done = max(last.step / last.steps, tokens / last.allowed if last.allowed else 0.0)
        return msgspec.structs.replace(
            last,
            done=1.0 if ended and not trouble else min(1.0, done),
            work=tokens,
            spent=tokens,
            traffic=self._tally.traffic(self._used),
            ended=ended,
            trouble=trouble or self._tally.trouble,
        )
