"""A judge as the five functions of a node. It shares questions, gathers requests and answers, verifies an
answer by scoring it, and absorbs questions that were posed. It holds nothing that enters anybody's training.

A question counts once: as right or wrong by the one answer that its own node sends in time, and as wrong if
there is none. It counts for nothing if there is none because the judge was restarted meanwhile or the node
left, or if the judge itself could not score.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

from shoal.judge import state as states
from shoal.judge.admission import Admission
from shoal.judge.settings import JudgeSettings
from shoal.judge.state import JudgeState, Open, ReceivedAnswer
from shoal.judge.words import of_a_judge
from shoal.node import Judged, Own, Proposal, Turn, Verdict
from shoal.runs.judging import (
    AnswerEvidence,
    AskedOne,
    Board,
    Counted,
    JudgeAnswer,
    JudgeNote,
    JudgeQuestion,
    JudgeRequest,
    JudgeResult,
    JudgeTask,
    Lapsed,
    Listen,
    Pose,
    Questions,
)
from shoal.swarm import Received
from shoal.swarm.quota import Bucket
from shoal.tasks.verifier import RIGHT, SLOW, STOPPED, Problem, Scored, Scoring, Verifier, rewards

MOST_POSED = 16
"""Questions of one turn."""
MOST_SCORED = 64
"""Answers that one turn scores; more wait for the next."""
SCORED_TOGETHER = 16
SCORE_SECONDS = 10.0
"""The time after which a turn scores no more."""
NO_TIME = "no time left in this turn"
LEFT_ALONE = 600.0
"""Seconds without a question for an author whose answer took too long to score."""
LONGEST_SILENCE = 3600.0
"""Seconds after which a turn ends at the latest, with or without words."""

OwnTurn = Own[JudgeTask, JudgeResult]
Evidence = Verdict[AnswerEvidence]


class Judge:
    """`author` is its node id. `clock` bounds the time of scoring."""

    name = "judge"
    kinds = of_a_judge()
    request_type: Any = JudgeTask
    answer_type: Any = JudgeResult
    evidence_type = AnswerEvidence

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        author: str,
        verifier: Verifier,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.author = author
        self.verifier = verifier
        self._admission = Admission(settings)
        self._clock = clock
        self._scoring = (0, 0.0)  # a turn, and how many seconds it has scored for; no part of the state

    def initial_state(self) -> JudgeState:
        return JudgeState(Board(judge=self.author), Bucket(1.0, 0.0))

    def produce(self, state: JudgeState, turn: Turn) -> Proposal[JudgeTask] | None:
        ends = None
        if state.began and self.settings.seconds is not None:
            ends = state.began + self.settings.seconds
            if turn.now >= ends:
                return None
        if state.waiting:
            return Proposal(Pose(tuple(state.waiting[:MOST_POSED])))
        if not state.began or state.answers:  # the first turn says who listens; the other has work to do
            return Proposal(Listen(turn.now))
        overdue = min((one.until for one in state.open.values()), default=turn.now + LONGEST_SILENCE)
        until = min(overdue, turn.now + LONGEST_SILENCE)
        return Proposal(Listen(until if ends is None else min(until, ends)))

    # The swarm.

    def share(self, state: JudgeState, turn: Turn, fresh: OwnTurn | None) -> Iterable[JudgeQuestion]:
        if fresh is not None and isinstance(fresh.answer, Questions):
            yield from (self._word(Open(one)) for one in fresh.answer.posed if not one.refused)

    def _word(self, one: Open) -> JudgeQuestion:
        question, wanted = one.question, one.question.wanted
        seconds = self.settings.time_limit
        return JudgeQuestion(
            (wanted.author,),
            question.number,
            wanted.run,
            wanted.round,
            question.family,
            question.text,
            seconds,
        )

    def gather(
        self, state: JudgeState, turn: Turn, arrived: Sequence[Received[Any]]
    ) -> Generator[Sequence[ReceivedAnswer], Sequence[Evidence], None]:
        state.began = state.began or turn.now
        for one in state.open.values():
            one.until = one.until or turn.now + self.settings.time_limit
        for received in arrived:
            if isinstance(received.item, JudgeAnswer):
                self._take_answer(state, received)
        yield from self._score(state, turn)
        self._close_overdue(state, turn.now)
        requests = [one for one in arrived if isinstance(one.item, JudgeRequest)]
        turn.random("requests").shuffle(requests)  # nobody is served first for its id
        for received in requests:
            self._admission.take(state, received, turn.now)

    def _take_answer(self, state: JudgeState, received: ReceivedAnswer) -> None:
        number = received.item.number
        one = state.open.get(number)
        if one is None:
            state.refuse("an answer to no open question")
        elif one.question.wanted.author != received.author:
            state.refuse("an answer to another's question")
        elif number in state.answers:
            state.refuse("a second answer")
        elif received.arrived_at > one.until:
            state.refuse("an answer that is late")
        else:
            state.answers[number] = received

    def _score(
        self, state: JudgeState, turn: Turn
    ) -> Generator[Sequence[ReceivedAnswer], Sequence[Evidence], None]:
        waiting = list(state.answers.values())[:MOST_SCORED]
        for first in range(0, len(waiting), SCORED_TOGETHER):
            batch = waiting[first : first + SCORED_TOGETHER]
            verdicts = yield batch
            for received, verdict in zip(batch, verdicts, strict=True):
                if verdict.reason != NO_TIME:
                    del state.answers[received.item.number]
                    self._count(state, state.open.pop(received.item.number), verdict, turn.now)

    def _count(self, state: JudgeState, one: Open, verdict: Evidence, now: float) -> None:
        """The question is over, by the finding about its answer."""
        question, wanted = one.question, one.question.wanted
        asker = state.askers[wanted.author]
        if verdict.accepted and verdict.evidence is not None:
            reward, right = verdict.evidence.reward, verdict.evidence.score >= RIGHT
        elif verdict.reason.startswith((SLOW, STOPPED)):
            # The answer did that, so it is a wrong one.
            reward, right, asker.alone_until = 0.0, False, now + LEFT_ALONE
        else:
            state.tell(Lapsed(wanted.place, wanted.round, f"not scored: {verdict.reason}"))
            return
        asker.answered = True
        state.tell(Counted(wanted.place, wanted.round, question.family, reward, right))

    def _close_overdue(self, state: JudgeState, now: float) -> None:
        for number, one in list(state.open.items()):
            if one.until > now or number in state.answers:
                continue
            del state.open[number]
            wanted = one.question.wanted
            if one.lapses:
                state.tell(Lapsed(wanted.place, wanted.round, "no answer after a restart, or the node left"))
            else:
                family = one.question.family
                state.askers[wanted.author].silent += 1
                state.tell(Counted(wanted.place, wanted.round, family, 0.0, answered=False))

    def verify(self, state: JudgeState, turn: Turn, batch: Sequence[ReceivedAnswer]) -> Sequence[Evidence]:
        """Makes each question anew and scores the one answer; nothing else that the node says counts."""
        number, seconds = self._scoring
        spent = seconds if number == turn.number else 0.0
        if spent > SCORE_SECONDS:
            return [Verdict(False, NO_TIME, passed_over=True)] * len(batch)
        began = self._clock()
        found = self.verifier.score([self._asked(state, received) for received in batch])
        self._scoring = (turn.number, spent + self._clock() - began)
        verdicts: list[Evidence] = []
        for result in found:
            if isinstance(result, Scored):
                (reward,) = rewards(result.scores, self.settings.reward)
                verdicts.append(Verdict(True, evidence=AnswerEvidence(result.scores[0], reward)))
            else:
                verdicts.append(Verdict(False, result.reason, passed_over=result.uncheckable))
        return verdicts

    def _asked(self, state: JudgeState, received: ReceivedAnswer) -> Scoring:
        question = state.open[received.item.number].question
        problem = Problem(question.family, question.version, question.parameters, question.seed)
        return Scoring(problem, (received.item.text,), question.text, within=self.settings.answers)

    def absorb(
        self, state: JudgeState, turn: Turn, own: OwnTurn, judged: Sequence[Judged[AnswerEvidence]]
    ) -> JudgeState:
        if isinstance(own.request, Pose):
            wanted = own.request.wanted
            state.waiting = [one for one in state.waiting if one not in wanted]
            if isinstance(own.answer, Questions):
                self._open(state, own.answer, turn.now)
            else:
                for one in wanted:
                    state.tell(Lapsed(one.place, one.round, f"not posed: {own.missed}"))
        state.restarted = False
        self._conclude(state, turn)
        return state

    def _open(self, state: JudgeState, questions: Questions, now: float) -> None:
        for question in questions.posed:
            wanted = question.wanted
            entrant = state.board.entrants.get(wanted.place)
            if question.refused:
                state.tell(Lapsed(wanted.place, wanted.round, f"not posed: {question.refused}"))
            elif entrant is not None:
                state.tell(AskedOne(wanted.place, wanted.round, question.family))
                # After a restart nobody knows whether the question went out.
                lapses = state.restarted or entrant.left
                state.open[question.number] = Open(question, now + self.settings.time_limit, lapses)

    def _conclude(self, state: JudgeState, turn: Turn) -> None:
        events, refused = tuple(state.events), dict(sorted(state.refused.items()))
        state.events, state.refused = [], {}
        state.board.open = len(state.open)
        said = _line(events, refused, len(state.open))
        state.last = JudgeNote(turn.number, self.author, events, refused, len(state.open), said)

    # The journal, restarts and checkpoints.

    def explain(self, state: JudgeState, turn: Turn) -> JudgeNote | None:
        return state.last

    def restarted(self, state: JudgeState) -> JudgeState:
        """Questions under way get all their time again, and count only if they are answered."""
        state.restarted = True
        for one in state.open.values():
            one.until, one.lapses = 0.0, True
        return state

    def share_again(self, state: JudgeState) -> Iterable[JudgeQuestion]:
        yield from map(self._word, state.open.values())

    def snapshot(self, state: JudgeState, folder: Path) -> None:
        states.save(state, folder)

    def restore(self, folder: Path) -> JudgeState:
        return states.restore(folder)


def _line(events: Sequence[Any], refused: dict[str, int], open_questions: int) -> str:
    """The turn in words; nothing where nothing happened."""
    counted = [one for one in events if isinstance(one, Counted)]
    told = {
        "asked {}": sum(isinstance(one, AskedOne) for one in events),
        "{} right": sum(one.right for one in counted),
        "{} wrong": sum(one.answered and not one.right for one in counted),
        "{} without an answer": sum(not one.answered for one in counted),
        "{} counted for nothing": sum(isinstance(one, Lapsed) for one in events),
    }
    parts = [words.format(count) for words, count in told.items() if count]
    if refused:
        listed = ", ".join(f"{count} {reason}" for reason, count in refused.items())
        parts.append(f"passed over: {listed}")
    return f"{'; '.join(parts)}; {open_questions} open" if parts else ""
