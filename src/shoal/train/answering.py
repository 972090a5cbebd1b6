"""A node that is judged: it asks a judge for a question after each step, and answers it in a turn of its own.

Law: weights, selection, accounts and draws are those of a node without a judge, bit for bit, whatever judges
say; only the time that answers take differs. So answering turns do not count where a turn's number makes
randomness, nothing of a question reaches the pool, no judge's account is credited, and a question that the
policy fails on costs an answer and not a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from shoal.judge.words import of_a_judged_node
from shoal.node import Own, Turn
from shoal.policy.base import Policy, Sampling
from shoal.runs.judging import (
    MOST_ANSWER,
    MOST_FAMILIES,
    MOST_NAME,
    JudgeAnswer,
    JudgeQuestion,
    JudgeRequest,
)
from shoal.runs.training import AnswerJudges, JudgesAnswered, PendingQuestion, TrainAnswer, TrainRequest
from shoal.swarm import Kind, Kinds, Received
from shoal.tasks.registry import canonical_name
from shoal.train.settings import ANY, NodePlan, TrainSettings

ASK_EVERY = 1.0
"""Seconds between two requests: the rounds between them are not judged. Each costs the node a frame."""
MOST_PENDING = 4
"""Questions, of as many judges, that one turn answers."""
MOST_JUDGES = 64
"""Judges whose last round is remembered."""

ReceivedQuestion = Received[JudgeQuestion]


class Judging(msgspec.Struct):
    """`run` names the run to judges: its first start. `turns` were taken for answers alone. `pending` are
    questions to be answered next, `rounds` the last round that each judge asked a question for. `asks_at` is
    the time of the last step after which the node asked."""

    run: int = 0
    turns: int = 0
    pending: tuple[PendingQuestion, ...] = ()
    rounds: dict[str, int] = {}
    asks_at: float = 0.0


def kinds_of(settings: TrainSettings, rollouts: Kind) -> Kinds:
    """The kinds of a node with these settings: without a judge, rollout groups alone."""
    if not settings.judges:
        return Kinds([rollouts])
    return of_a_judged_node(None if settings.sharing == "off" else rollouts)


def in_training(turn: Turn, judging: Judging) -> Turn:
    """The turn as it would be numbered without a judge: for draws."""
    return msgspec.structs.replace(turn, number=turn.number - judging.turns)


def take_in(
    judging: Judging,
    settings: TrainSettings,
    plan: NodePlan,
    arrived: Sequence[ReceivedQuestion],
    step: int,
    now: float,
) -> None:
    """Keeps the questions of our judges for rounds of this run: one of each judge and round."""
    pending = [one for one in judging.pending if one.until > now]
    families = families_of(plan)
    for received in arrived:
        judge, question = received.author, received.item
        is_ours = settings.judges == (ANY,) or judge in settings.judges
        is_new = judging.rounds.get(judge, 0) < question.round <= step and question.run == judging.run
        until = received.arrived_at + question.seconds
        if not (is_ours and is_new and question.family in families and until > now):
            continue
        if len(pending) >= MOST_PENDING or any(one.judge == judge for one in pending):
            continue
        pending.append(PendingQuestion(judge, question.number, question.round, question.question, until))
        judging.rounds.pop(judge, None)
        judging.rounds[judge] = question.round
        if len(judging.rounds) > MOST_JUDGES:
            del judging.rounds[next(iter(judging.rounds))]
    judging.pending = tuple(pending)


def step_taken(judging: Judging, epoch: int, now: float, *, leaves: bool) -> None:
    """Decides whether the node asks after this step."""
    judging.run = judging.run or epoch
    if leaves or now >= judging.asks_at + ASK_EVERY:
        judging.asks_at = now


def request(
    settings: TrainSettings, plan: NodePlan, judging: Judging, step: int, *, leaves: bool
) -> JudgeRequest:
    """Asks for a question after this step. A node that `leaves` could not answer a further one."""
    to = () if settings.judges == (ANY,) else settings.judges
    alone = settings.sharing == "off" or plan.external == 0
    return JudgeRequest(to, judging.run, step, families_of(plan), plan.model[:MOST_NAME], alone, leaves)


def families_of(plan: NodePlan) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(canonical_name, plan.tasks)))[:MOST_FAMILIES]


def answer(policy: Policy, settings: TrainSettings, asked: AnswerJudges) -> tuple[str | None, ...]:
    """One answer to each question, or None: a stranger's question stops no node."""
    temperature = 0.0 if settings.judge_sampling == "greedy" else settings.temperature
    sampling = Sampling(settings.max_new_tokens, temperature, top_p=settings.top_p)
    texts: list[str | None] = []
    for number, one in enumerate(asked.questions):
        try:
            ((written,),) = policy.sample([one.question], 1, sampling, asked.seed + number)
        except Exception:
            texts.append(None)
        else:
            texts.append(written.text.encode("utf-8", "replace").decode()[-MOST_ANSWER:])
    return tuple(texts)


def answers(asked: AnswerJudges, given: JudgesAnswered) -> Iterable[JudgeAnswer]:
    for one, text in zip(asked.questions, given.texts, strict=True):
        if text is not None:
            yield JudgeAnswer((one.judge,), one.number, text, asked.step)


def absorb(judging: Judging, own: Own[TrainRequest, TrainAnswer]) -> str:
    """After a turn that answered questions; returns the line for people."""
    judging.turns += 1
    assert isinstance(own.request, AnswerJudges)
    asked = own.request.questions
    answered = {one.number for one in asked}
    judging.pending = tuple([one for one in judging.pending if one.number not in answered])
    given = own.answer.texts if isinstance(own.answer, JudgesAnswered) else ()
    count = sum(text is not None for text in given)
    said = f"step {own.request.step}: answered {count} of {len(asked)} questions of judges"
    return said if isinstance(own.answer, JudgesAnswered) else f"{said}: {own.missed}"
