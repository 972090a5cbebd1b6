"""What a node of a training run is made of, from its settings: its verifier and its policy."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import ConfigError, TaskError
from shoal.models.remote import import_package
from shoal.policy.base import Policy
from shoal.runs import derive_integer
from shoal.tasks.parameters import canonical_parameters
from shoal.tasks.registry import canonical_name
from shoal.tasks.verifier import Posed, Problem, Verifier
from shoal.train.rollouts import SEED_BITS
from shoal.train.settings import NodePlan, TrainSettings

EXAMPLES = 3
"""Solved tasks of each family in a few-shot prompt."""


def open_verifier(settings: TrainSettings) -> Verifier:
    """A worker process of its own, where a stranger's text can do no harm."""
    from shoal.tasks.confined import WorkerVerifier

    return WorkerVerifier(files=settings.files)


def open_policy(settings: TrainSettings, plan: NodePlan, verifier: Verifier) -> Policy:
    """The policy of one node, as it is before the first step."""
    if plan.is_frozen and plan.is_asked:
        from shoal.policy.contributor import Contributor, open_contributor

        return Contributor(plan.model) if plan.prepared else open_contributor(plan.model)
    from shoal.policy import opening

    if not plan.model.startswith("table:"):
        # Several nodes share a machine; and the same number of threads gives the same sums.
        import_package("torch", "train", plan.model).set_num_threads(settings.threads)
    examples = solved_examples(settings, plan, verifier) if settings.prompt == "few-shot" else ()
    return opening.open_policy(
        plan.model, rendering=settings.prompt, examples=examples, device=settings.device
    )


def check_models(settings: TrainSettings) -> None:
    """ConfigError where the model of a node can be seen not to be usable; nothing is loaded."""
    for index in range(settings.nodes):
        plan = settings.of(index)
        try:
            _check_model(plan)
        except ConfigError as error:
            raise ConfigError(f"node {index + 1}: {error}") from error


def _check_model(plan: NodePlan) -> None:
    if plan.prepared:
        if not Path(plan.prepared).exists():
            raise ConfigError(f"{plan.prepared}: there is no such file or run folder")
    elif not (plan.is_frozen and plan.is_asked):
        from shoal.policy.opening import check_policy

        check_policy(plan.model)
    else:
        from shoal.policy.contributor import check_contributor

        check_contributor(plan.model)


def problem_of(settings: TrainSettings, task: str, seed: int) -> Problem:
    """The task of this seed, of a family as the settings name it."""
    name, given = canonical_name(task), settings.parameters
    return Problem(name, "", canonical_parameters(given.get(task) or given.get(name) or {}), seed)


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
