"""The outside of a trainer: its policy writes, its verifier poses and scores. One call at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.errors import TaskError
from shoal.node import Reply
from shoal.policy.base import Policy, Sampling
from shoal.runs import derive_integer
from shoal.runs.training import (
    AnswerJudges,
    Evaluate,
    Evaluated,
    JudgesAnswered,
    OwnGroup,
    Right,
    Sample,
    Sampled,
    SampledGroups,
    TaskName,
    TrainAnswer,
    TrainRequest,
)
from shoal.tasks.family import canonical_parameters
from shoal.tasks.registry import canonical_name
from shoal.tasks.verifier import Posed, Problem, Scored, Scoring, Verifier, rewards as rewards_of
from shoal.train import answering
from shoal.train.prepared import Prepared
from shoal.train.rollouts import SEED_BITS, task_seed
from shoal.train.settings import NodePlan, TrainSettings
from shoal.train.state import TrainState

HELD_OUT_BATCH = 32
"""Held-out tasks that are answered at a time, which bounds memory."""


@dataclass(frozen=True)
class TrainOutside:
    """Answers the requests of one node. Its tasks belong to `author`."""

    settings: TrainSettings
    plan: NodePlan
    author: str
    verifier: Verifier
    prepared: Sequence[Prepared] = ()
    processor_time: Callable[[], float] = time.process_time

    def answer(self, state: TrainState, request: TrainRequest) -> Reply[TrainAnswer]:
        if isinstance(request, Sample):
            sampled = self.sample(state.policy, request)
            return Reply(sampled, {"tokens": sampled.tokens})
        if isinstance(request, AnswerJudges):
            began = self.processor_time()
            texts = answering.answer(state.policy, self.settings, request)
            return Reply(JudgesAnswered(texts, round(self.processor_time() - began, 6)), {})
        return Reply(self.evaluate(state.policy, request), {})

    def sample(self, policy: Policy, request: Sample) -> SampledGroups:
        began, refused = self.processor_time(), Counter[str]()
        posed: list[tuple[TaskName, Problem, str]] = []
        for place, family in enumerate(request.families):
            counter = request.counter + place
            seed = task_seed(self.author, request.epoch, counter)
            if self.prepared:
                group = self.prepared[counter]
                problem = Problem(group.family, "", canonical_parameters(group.parameters), seed)
            else:
                problem = problem_of(self.settings, family, seed)
            asked = self.verifier.pose(problem)
            if isinstance(asked, Posed):
                task = TaskName(problem.family, asked.version, asked.parameters, counter)
                posed.append((task, problem, asked.question))
            else:
                refused[asked.reason] += 1
        written: list[list[Sampled]] = []
        if self.prepared:
            written = [self.prepared[task.counter].sampled() for task, _, _ in posed]
        elif posed:
            settings, questions = self.settings, [question for _, _, question in posed]
            sampling = Sampling(
                settings.max_new_tokens, settings.temperature, settings.send_log_probs, settings.top_p
            )
            written = policy.sample(questions, self.plan.group, sampling, request.seed)
        groups = []
        for (task, problem, question), completions in zip(posed, written, strict=True):
            if not completions:
                refused["nothing was written"] += 1
                continue
            scores = self._score(problem, completions)
            if isinstance(scores, str):
                refused[scores] += 1
            else:
                groups.append(OwnGroup(task, question, tuple(completions), scores))
        tokens = sum(len(one.ids) or len(one.text.split()) for group in written for one in group)
        cpu = self.processor_time() - began
        return SampledGroups(tuple(groups), tokens, round(cpu, 6), dict(refused))

    def _score(self, problem: Problem, completions: Sequence[Sampled]) -> tuple[float, ...] | str:
        texts = tuple([one.text for one in completions])
        foreign = self.plan.only_asks
        scoring = Scoring(problem, texts, foreign=foreign, within=self.settings.answers)
        (result,) = self.verifier.score([scoring])
        return result.scores if isinstance(result, Scored) else result.reason

    def evaluate(self, policy: Policy, request: Evaluate) -> Evaluated:
        """Greedy answers to the same tasks for all nodes, steps and runs: pass@1."""
        began, tokens = self.processor_time(), 0
        families: dict[str, Right] = {}
        for name in dict.fromkeys(self.plan.tasks):
            # Training seeds are derived otherwise, so they meet these only by chance.
            numbers = range(self.settings.held_out)
            seeds = [derive_integer(0, "held-out", number, bits=SEED_BITS) for number in numbers]
            problems = [problem_of(self.settings, name, seed) for seed in seeds]
            rewards: list[float] = []
            for first in range(0, len(problems), HELD_OUT_BATCH):
                found, used = self._answer_once(policy, problems[first : first + HELD_OUT_BATCH])
                rewards += found
                tokens += used
            solved = tuple(number for number, one in enumerate(rewards) if one >= 1.0)
            families[problems[0].family] = Right(len(solved), len(rewards), sum(rewards), solved)
        return Evaluated(families, tokens, round(self.processor_time() - began, 6))

    def _answer_once(self, policy: Policy, problems: Sequence[Problem]) -> tuple[list[float], int]:
        questions = []
        for problem in problems:
            asked = self.verifier.pose(problem)
            if not isinstance(asked, Posed):
                raise TaskError(f"{problem.family}: a held-out task cannot be posed: {asked.reason}")
            questions.append(asked.question)
        greedy = Sampling(self.settings.max_new_tokens, 0.0)
        rewards, tokens = [], 0
        for problem, (one,) in zip(problems, policy.sample(questions, 1, greedy, 0), strict=True):
            scores = self._score(problem, [one])
            rewards.append(0.0 if isinstance(scores, str) else rewards_of(scores, self.settings.reward)[0])
            tokens += len(one.ids)
        return rewards, tokens


def problem_of(settings: TrainSettings, task: str, seed: int) -> Problem:
    return Problem(canonical_name(task), "", canonical_parameters(settings.parameters_of(task)), seed)
