"""Nodes that lie, keep silent, copy or flood: no other node's score changes by it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from shoal.judge.judge import LEFT_ALONE
from shoal.node import Node
from shoal.runs.judging import JudgeAnswer, JudgeQuestion, JudgeRequest
from shoal.tasks.unconfined import DirectVerifier
from shoal.tasks.verifier import Refused, Scored, Scoring
from tests.judge.small import Actor, Swarm, entrant_of, key_of, score_of

ROUNDS = 12
BUDGETS = {"per_minute": 1e4, "per_minute_in_all": 1e5, "time_limit": 5.0}


STEP = 5


class Honest:
    """Asks for a question after each step of its own, until it was asked enough of them, and answers two of
    three rightly."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.round = 0
        self.answered = 0

    def act(self, judge: Node[Any, Any, Any, Any], number: int) -> None:
        for question in self.actor.hear():
            self.answered += 1
            right = self.answered % 3 and question.number in judge.state.open
            text = key_of(judge, question) if right else "no idea"
            self.actor.say(question, text, judge.exchange.identity.node_id)  # type: ignore[union-attr]
        if number % STEP == 0 and self.answered < ROUNDS:
            self.round += 1
            self.actor.ask(self.round, model="honest", alone=False)


Act = Callable[[Node[Any, Any, Any, Any], Sequence[Actor], Sequence[JudgeQuestion], int], None]
"""The acts of hostile nodes in one round, who also see all questions to honest ones."""


def id_of(judge: Node[Any, Any, Any, Any]) -> str:
    return judge.exchange.identity.node_id  # type: ignore[union-attr,no-any-return]


def liars(judge: Any, actors: Sequence[Actor], others: Sequence[JudgeQuestion], number: int) -> None:
    """Claims that change with every word, and the model and the run of another."""
    for place, actor in enumerate(actors):
        actor.ask(number + 1, run=place, model="honest", alone=number % 2 == 0, families=("sums", "x" * 100))
        for question in actor.hear():
            actor.say(question, "<answer>" + "9" * 30_000 + "</answer>", id_of(judge))


def thieves(judge: Any, actors: Sequence[Actor], others: Sequence[JudgeQuestion], number: int) -> None:
    """Wrong answers to the questions of others, and to questions that nobody posed."""
    for actor in actors:
        for question in others:
            actor.say(question, "-1", id_of(judge))
        actor.exchange.share(JudgeAnswer((id_of(judge),), number, "1"))
        actor.exchange.share(JudgeAnswer((), 1 << 62, "1"))


def silent(judge: Any, actors: Sequence[Actor], others: Sequence[JudgeQuestion], number: int) -> None:
    """Requests for all questions that there are to be had, and never an answer."""
    for actor in actors:
        for run in range(4):
            actor.ask(number + 1, run=run + 4 * number)
        actor.hear()


def flooders(judge: Any, actors: Sequence[Actor], others: Sequence[JudgeQuestion], number: int) -> None:
    """Hundreds of answers and requests in each round, as many as the quota of the swarm lets through."""
    for actor in actors:
        for place in range(100):
            actor.exchange.share(JudgeAnswer((id_of(judge),), number * 1000 + place, "x" * 200))
        actor.ask(number + 1)
        actor.hear()


def pretenders(judge: Any, actors: Sequence[Actor], others: Sequence[JudgeQuestion], number: int) -> None:
    """Questions in the judge's place, and rollouts of nothing."""
    for actor in actors:
        for question in others:
            actor.exchange.share(JudgeRequest((id_of(judge),), question.run, question.round + 50, ("sums",)))


HOSTILE: dict[str, tuple[Act, int]] = {
    "liars": (liars, 4),
    "thieves": (thieves, 3),
    "silent": (silent, 18),
    "flooders": (flooders, 3),
    "pretenders": (pretenders, 4),
}


def scores(act: Act | None, count: int, verifier: Any = None, rounds: int = 300) -> list[Any]:
    """The scores of two honest nodes beside so many hostile ones."""
    swarm = Swarm(frames_burst=500, frames_per_second=50.0, outbox_items=4096)
    judge = swarm.judge(verifier=verifier, open_in_all=64, **BUDGETS)
    honest = [Honest(swarm.actor(number)) for number in (1, 2)]
    hostile = [swarm.actor(10 + number) for number in range(count)]
    seen: list[JudgeQuestion] = []
    for number in range(rounds):
        for one in honest:
            one.act(judge, number)
        seen = [question for one in honest for _, question in one.actor.questions][-4:]
        if act is not None and number < 25:
            act(judge, hostile, seen, number)
        swarm.round()
        if all(one.answered == ROUNDS for one in honest):
            break
    swarm.run(3)
    return [score_of(judge.state.board, one.actor.node_id) for one in honest]


@pytest.fixture(scope="module")
def undisturbed() -> list[Any]:
    found = scores(None, 0)
    assert [(one[0], one[1], one[2]) for one in found] == [(ROUNDS, ROUNDS, 8)] * 2
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_nodes_change_no_other_score(name: str, undisturbed: list[Any]) -> None:
    assert scores(*HOSTILE[name]) == undisturbed


def test_all_of_them_together_change_no_other_score(undisturbed: list[Any]) -> None:
    def all_of_them(judge: Any, actors: Sequence[Actor], others: Any, number: int) -> None:
        place = 0
        for act, count in HOSTILE.values():
            act(judge, actors[place : place + count], others, number)
            place += count

    assert scores(all_of_them, sum(count for _, count in HOSTILE.values())) == undisturbed


class Sluggish(DirectVerifier):
    """Has to be stopped over answers that say so."""

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        return [
            Refused("too slow") if "slow" in one.texts else found
            for one, found in zip(scorings, super().score(scorings), strict=True)
        ]


def test_an_answer_that_takes_too_long_is_wrong_and_its_author_is_left_alone(undisturbed: list[Any]) -> None:
    def slow(judge: Any, actors: Sequence[Actor], others: Any, number: int) -> None:
        for actor in actors:
            for question in actor.hear():
                actor.say(question, "slow", id_of(judge))
            actor.ask(number + 1)

    assert scores(slow, 3, Sluggish()) == undisturbed

    swarm = Swarm()
    judge, actor = swarm.judge(verifier=Sluggish(), **BUDGETS), swarm.actor(1)
    actor.ask(1)
    swarm.run(4)
    (question,) = actor.hear()
    actor.say(question, "slow", id_of(judge))
    swarm.run(4)
    assert score_of(judge.state.board, actor.node_id) == (1, 1, 0, [0.0])
    actor.ask(2)
    swarm.run(4)
    assert judge.state.board.refused == {"its answers took too long": 1}
    swarm.now += LEFT_ALONE
    actor.ask(3)
    swarm.run(4)
    assert len(actor.hear()) == 1


class Broken(DirectVerifier):
    """Can pose and not score, as on a full disk."""

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        raise OSError("no space left on device")


def test_what_the_judge_cannot_score_counts_against_nobody() -> None:
    swarm = Swarm()
    judge, actor = swarm.judge(verifier=Broken(), **BUDGETS), swarm.actor(1)
    actor.ask(1)
    swarm.run(4)
    (question,) = actor.hear()
    actor.say(question, "?", id_of(judge))
    swarm.run(4)
    found = entrant_of(judge.state.board, actor.node_id)
    assert (found.asked, found.rewards, found.lapsed) == (1, [], 1)


# Budgets


def test_open_questions_are_bounded_for_one_node_and_for_all() -> None:
    swarm = Swarm()
    judge = swarm.judge(open_in_all=8, **BUDGETS)
    actors = [swarm.actor(number) for number in range(12)]
    for number in range(1, 4):
        for actor in actors:
            actor.ask(number)
        swarm.run(4)
    assert len(judge.state.open) == 2, "a quarter of the open questions is for those that never answered"
    asked = [one for one in judge.state.board.entrants.values() if one.asked]
    assert [one.asked for one in asked] == [1, 1], "one question of a node at a time"
    reasons = set(judge.state.board.refused)
    assert reasons == {"a question of it is open", "too many questions to newcomers are open"}


def test_nodes_that_answer_are_asked_however_many_newcomers_wait() -> None:
    swarm = Swarm()
    judge = swarm.judge(open_in_all=8, **BUDGETS)
    steady = swarm.actor(1)
    steady.ask(1)
    swarm.run(4)
    (question,) = steady.hear()
    steady.say(question, "?", id_of(judge))
    swarm.run(4)
    for actor in [swarm.actor(number) for number in range(10, 40)]:
        actor.ask(1)
    swarm.run(4)
    steady.ask(2)
    swarm.run(4)
    assert len(steady.hear()) == 1


def test_questions_per_minute_are_bounded_for_one_node_and_for_all() -> None:
    swarm = Swarm()
    judge = swarm.judge(per_minute=30.0, per_minute_in_all=60.0)
    actors = [swarm.actor(1), swarm.actor(2)]
    for number in range(100):  # ten seconds
        for actor in actors:
            for question in actor.hear():
                actor.say(question, "?", id_of(judge))
            actor.ask(number + 1)
        swarm.round()
    asked = [one.asked for one in judge.state.board.entrants.values()]
    assert all(one <= 3 + 10 * 30 / 60 + 1 for one in asked), asked
    assert sum(asked) <= 6 + 10 * 60 / 60 + 1
    assert "too many questions a minute" in judge.state.board.refused


def test_a_full_board_takes_the_place_of_those_that_never_answered() -> None:
    swarm = Swarm()
    judge = swarm.judge(entrants=4, time_limit=1.0, per_minute=1e4, per_minute_in_all=1e5)
    steady = swarm.actor(1)
    steady.ask(1)
    swarm.run(4)
    (question,) = steady.hear()
    steady.say(question, key_of(judge, question), id_of(judge))
    swarm.run(4)
    for number in range(10, 20):
        swarm.actor(number).ask(1)
        swarm.run(16)
    assert len(judge.state.board.entrants) == 4
    assert score_of(judge.state.board, steady.node_id) == (1, 1, 1, [1.0])
    assert set(judge.state.askers) == {one.author for one in judge.state.board.entrants.values()}
    # Where all have answers, a newcomer has to wait.
    full = Swarm()
    judge = full.judge(entrants=1, **BUDGETS)
    first, second = full.actor(1), full.actor(2)
    first.ask(1)
    full.run(4)
    (question,) = first.hear()
    first.say(question, "?", id_of(judge))
    full.run(4)
    second.ask(1)
    full.run(4)
    assert second.hear() == []
    assert judge.state.board.refused == {"the board is full": 1}


def test_runs_of_one_author_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.judge.admission.MOST_RUNS", 3)
    swarm = Swarm()
    judge = swarm.judge(time_limit=1.0, per_minute=1e4, per_minute_in_all=1e5)
    actor = swarm.actor(1)
    for run in range(6):
        actor.ask(1, run=run)
        swarm.run(16)
    assert len(judge.state.board.entrants) == 3
    assert sorted(judge.state.askers[actor.node_id].places) == [3, 4, 5]
