"""A judge among nodes: what counts, once, and what does not."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from shoal.runs.journal import MemoryJournal
from shoal.runs.judging import Board, JudgeNote, JudgeQuestion
from tests.judge.small import Actor, Swarm, entrant_of, key_of, notes_of, score_of

QUIET = 4
"""Rounds after which a word was heard, a question posed, and heard."""


def judged(**settings: object) -> tuple[Swarm, Actor, str]:
    """A judge, one honest node, and the judge's id."""
    swarm = Swarm()
    node = swarm.judge(**{"per_minute": 1e4, "per_minute_in_all": 1e5, **settings})
    return swarm, swarm.actor(1), node.exchange.identity.node_id  # type: ignore[union-attr]


def question_for(swarm: Swarm, actor: Actor, number: int) -> JudgeQuestion:
    actor.ask(number)
    swarm.run(QUIET)
    (question,) = actor.hear()
    return question


def test_a_node_asks_gets_a_question_and_answers_it_once() -> None:
    swarm, actor, judge = judged()
    node = swarm.nodes[0]
    for number, right in ((1, True), (2, False), (5, True)):
        question = question_for(swarm, actor, number)
        assert (question.round, question.run, question.family) == (number, 7, "sums")
        assert question.to == (actor.node_id,)
        actor.say(question, key_of(node, question) if right else "no idea", judge)
        swarm.run(QUIET)
    found = entrant_of(node.state.board, actor.node_id)
    assert (found.asked, found.answered, found.right, found.rewards) == (3, 3, 2, [1.0, 0.0, 1.0])
    assert found.pass_at_1 == pytest.approx(2 / 3)
    assert found.rounds == 3, "rounds that it took part in, whatever their numbers"
    assert node.state.open == {}


def test_every_node_round_and_judge_has_a_question_of_its_own() -> None:
    swarm = Swarm()
    judges = [swarm.judge(number) for number in (100, 101)]
    actors = [swarm.actor(number) for number in (1, 2)]
    for number in range(1, 6):
        for actor in actors:
            actor.ask(number)
        swarm.run(QUIET)
        for actor in actors:
            assert len(actor.hear()) == 2
            for judge, question in actor.questions[-2:]:
                actor.say(question, "?", judge)
        swarm.run(QUIET)
    numbers = [question.number for actor in actors for _, question in actor.questions]
    assert len(numbers) == len(set(numbers)) == 20
    boards = [judge.state.board for judge in judges]
    assert [score_of(board, actor.node_id)[:2] for board in boards for actor in actors] == [(5, 5)] * 4


def test_in_the_field_questions_come_from_the_systems_randomness() -> None:
    import random

    from shoal.judge.crew import _fresh, _repeatable
    from shoal.runs.judging import Wanted

    wanted = Wanted(0, "a", 1, 1, ("sums",))
    assert isinstance(_fresh(wanted), random.SystemRandom)
    again = [_repeatable(3)(wanted).getrandbits(62) for _ in range(2)]
    assert again[0] == again[1] != _repeatable(4)(wanted).getrandbits(62)


def test_an_answer_counts_once_and_only_from_the_node_that_was_asked() -> None:
    swarm, actor, judge = judged()
    node, other = swarm.nodes[0], swarm.actor(2)
    question = question_for(swarm, actor, 1)
    key = key_of(node, question)
    other.say(question, key, judge)
    swarm.run(QUIET)
    assert entrant_of(node.state.board, actor.node_id).answered == 0
    actor.say(question, "wrong", judge)
    swarm.run(QUIET)
    actor.say(question, key, judge)
    other.say(question, f"{key} ", judge)
    swarm.run(QUIET)
    assert score_of(node.state.board, actor.node_id) == (1, 1, 0, [0.0])
    assert node.state.board.refused == {
        "an answer to another's question": 1,
        "an answer to no open question": 2,
    }


def test_two_answers_at_once_are_the_first_one() -> None:
    swarm, actor, judge = judged()
    node = swarm.nodes[0]
    question = question_for(swarm, actor, 1)
    actor.say(question, "wrong", judge)
    actor.say(question, key_of(node, question), judge)
    swarm.run(QUIET)
    assert score_of(node.state.board, actor.node_id) == (1, 1, 0, [0.0])
    assert node.state.board.refused == {"a second answer": 1}


def test_a_question_without_an_answer_in_time_counts_as_wrong() -> None:
    swarm, actor, judge = judged(time_limit=2.0)
    node = swarm.nodes[0]
    question = question_for(swarm, actor, 1)
    key = key_of(node, question)
    swarm.run(40)
    assert score_of(node.state.board, actor.node_id) == (1, 0, 0, [0.0])
    actor.say(question, key, judge)
    swarm.run(QUIET)
    assert score_of(node.state.board, actor.node_id) == (1, 0, 0, [0.0])
    assert entrant_of(node.state.board, actor.node_id).pass_at_1 == 0.0


def test_a_round_gets_one_question_however_often_it_is_asked_for() -> None:
    swarm, actor, judge = judged()
    node = swarm.nodes[0]
    question = question_for(swarm, actor, 3)
    actor.say(question, "?", judge)
    swarm.run(QUIET)
    for number in (3, 2, 1):
        actor.ask(number, model=f"now it is {number}")
        swarm.run(QUIET)
    assert actor.hear() == []
    assert node.state.board.refused == {"a round that was asked for": 3}
    assert entrant_of(node.state.board, actor.node_id).model == "table:small", "its first claim stays"


def test_another_run_of_the_same_node_is_judged_apart() -> None:
    swarm, actor, judge = judged()
    node = swarm.nodes[0]
    for run in (7, 8):
        actor.ask(1, run=run, alone=run == 8)
        swarm.run(QUIET)
        (question,) = actor.hear()
        actor.say(question, key_of(node, question) if run == 8 else "?", judge)
        swarm.run(QUIET)
    assert entrant_of(node.state.board, actor.node_id, 7).right == 0
    assert entrant_of(node.state.board, actor.node_id, 8).right == 1
    assert [one.alone for one in node.state.board.entrants.values()] == [False, True]


def test_the_judge_draws_one_of_the_families_that_both_have() -> None:
    swarm, actor, judge = judged(tasks=("sums", "reverse"))
    node = swarm.nodes[0]
    for number in range(1, 21):
        actor.ask(number, families=("gym:bf", "reverse", "sums"))
        swarm.run(QUIET)
        (question,) = actor.hear()
        actor.say(question, "?", judge)
    swarm.run(QUIET)
    assert set(entrant_of(node.state.board, actor.node_id).families) == {"sums", "reverse"}
    actor.ask(21, families=("gym:bf",))
    swarm.run(QUIET)
    assert actor.hear() == []
    assert node.state.board.refused == {"no family in common": 1}


def test_a_node_that_leaves_is_not_asked_again_and_loses_nothing_by_it() -> None:
    swarm, actor, _ = judged(time_limit=2.0)
    node = swarm.nodes[0]
    question_for(swarm, actor, 1)
    actor.ask(2, leaves=True)
    swarm.run(40)
    found = entrant_of(node.state.board, actor.node_id)
    assert (found.asked, found.rewards, found.lapsed, found.left) == (1, [], 1, True)
    actor.ask(3)
    swarm.run(QUIET)
    assert actor.hear() == []


def test_a_node_that_leaves_may_still_answer() -> None:
    swarm, actor, judge = judged()
    node = swarm.nodes[0]
    question = question_for(swarm, actor, 1)
    actor.ask(2, leaves=True)
    swarm.run(QUIET)
    actor.say(question, key_of(node, question), judge)
    swarm.run(QUIET)
    assert score_of(node.state.board, actor.node_id) == (1, 1, 1, [1.0])


def test_an_old_request_is_passed_over() -> None:
    """A register stays in the swarm for an hour; its node may be long gone when a judge comes."""
    swarm = Swarm()
    actor = swarm.actor(1)
    actor.ask(1)
    swarm.deliver()
    swarm.now += 200.0
    node = swarm.judge()
    swarm.deliver(5.0)
    swarm.run(40)
    assert node.state.board.refused == {"the request is old": 1}


def test_the_board_follows_from_the_notes_and_the_state_from_the_journal() -> None:
    swarm, actor, judge = judged(time_limit=3.0)
    node = swarm.nodes[0]
    for number in range(1, 6):
        question = question_for(swarm, actor, number)
        if number != 3:
            actor.say(question, key_of(node, question) if number % 2 else "?", judge)
        swarm.run(40 if number == 3 else QUIET)
    board = Board()
    for note in notes_of(node.journal):  # type: ignore[arg-type]
        board.take(msgspec.convert(note, JudgeNote))
    assert board == node.state.board
    assert score_of(board, actor.node_id) == (5, 4, 2, [1.0, 0.0, 0.0, 0.0, 1.0])
    again = Swarm()
    again.now = swarm.now
    resumed = again.judge(journal=node.journal, time_limit=3.0)
    assert resumed.state.board == node.state.board


actions = st.lists(
    st.tuples(
        st.sampled_from(["ask", "right", "wrong", "other", "again", "wait", "restart"]), st.integers(0, 2)
    ),
    max_size=24,
)


@settings(max_examples=30, deadline=None)
@given(actions)
def test_whatever_happens_every_question_counts_at_most_once(steps: list[tuple[str, int]]) -> None:
    """Three nodes do as they like, the judge is killed now and then: the figures of the board add up, and a
    resume gives the board as it was."""
    swarm, journal = Swarm(), MemoryJournal()
    chosen = {"time_limit": 1.0, "per_minute": 1e4, "per_minute_in_all": 1e5}
    node = swarm.judge(journal=journal, **chosen)
    judge = node.exchange.identity.node_id  # type: ignore[union-attr]
    actors, rounds = [swarm.actor(number) for number in range(3)], [0, 0, 0]
    for what, who in steps:
        actor = actors[who]
        for one in actors:
            one.hear()
        if what == "ask":
            rounds[who] += 1
            actor.ask(rounds[who])
        elif what == "restart":
            swarm.leave(node)
            before = msgspec.json.encode(node.state.board.entrants)
            node = swarm.judge(journal=journal, **chosen)
            assert msgspec.json.encode(node.state.board.entrants) == before
        elif actor.questions:
            _, question = actor.questions[-1]
            known = question.number in node.state.open
            text = key_of(node, question) if known and what != "wrong" else "?"
            speaker = actors[(who + 1) % 3] if what == "other" else actor
            for _ in range(2 if what == "again" else 1):
                speaker.say(question, text, judge)
        swarm.run(12 if what == "wait" else QUIET)
    swarm.run(30)
    for one in node.state.board.entrants.values():
        assert one.right <= one.answered <= one.rounds == len(one.rewards)
        assert one.rounds + one.lapsed >= one.asked
        assert one.asked <= rounds[[actor.node_id for actor in actors].index(one.author)]
        assert sum(one.rewards) == one.right
    assert node.state.open == {}
