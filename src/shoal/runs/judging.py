"""The words between a judge and the nodes that it judges, and the records that a judge's run leaves behind.

    request    a node that took a step asks: these are my families, this was my round
    question   the judge poses one, made from a seed that nobody knew before
    answer     the node answers once; whatever else comes does not count

A judge takes turns of two kinds: it listens until there are words, or poses questions. Its notes are lists of
events, and `Board` is the one fold over them: for the judge itself, for summaries and for the dashboard.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec

from shoal.runs.markup import element, table
from shoal.runs.records import Count
from shoal.runs.tables import MOST_ROWS, data_frame

MOST_NAME, MOST_FAMILIES = 128, 32
MOST_QUESTION, MOST_ANSWER = 1 << 14, 1 << 15
"""Characters of a question and of an answer that travel."""
MOST_REASONS = 32
MOST_READERS = 16
LONGEST = 86_400.0
"""Seconds that a node may have for an answer at most."""

Whole = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Round = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME)]
Readers = Annotated[
    tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...],
    msgspec.Meta(max_length=MOST_READERS),
]
"""The nodes that a word is for; none: all that listen."""


# The words, as they travel. New fields go to the end, with a default.


class JudgeRequest(msgspec.Struct, array_like=True, frozen=True):
    """A node took part in `round` of its own and asks for a question of one of its `families`. `run` tells
    its runs apart. The rest are claims: its model, whether it learns `alone`, from nobody else, and whether
    it `leaves` now and asks for no further question."""

    to: Readers
    run: Whole
    round: Round
    families: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=MOST_FAMILIES)]
    model: Annotated[str, msgspec.Meta(max_length=MOST_NAME)] = ""
    alone: bool = False
    leaves: bool = False


class JudgeQuestion(msgspec.Struct, array_like=True, frozen=True):
    """A question to one node, for the round that it asked with; an answer counts for so many `seconds`."""

    to: Readers
    number: Whole
    run: Whole
    round: Round
    family: Name
    question: Annotated[str, msgspec.Meta(max_length=MOST_QUESTION)]
    seconds: Annotated[float, msgspec.Meta(ge=1, le=LONGEST)]


class JudgeAnswer(msgspec.Struct, array_like=True, frozen=True):
    """The answer to the question of this number, as the policy wrote it. `step` is a claim: the steps that
    the node had learnt then."""

    to: Readers
    number: Whole
    text: Annotated[str, msgspec.Meta(max_length=MOST_ANSWER)]
    step: Round = 0


# Requests and answers, as the journal of a judge keeps them.


class Listen(msgspec.Struct, frozen=True, tag="listen"):
    """Wait until there are words, or until this time."""

    until: float


class Wanted(msgspec.Struct, frozen=True):
    """A request that gets a question. `place` is the asker's on the board."""

    place: Count
    author: str
    run: int
    round: int
    families: tuple[str, ...]


class Pose(msgspec.Struct, frozen=True, tag="pose"):
    wanted: tuple[Wanted, ...]


JudgeTask = Listen | Pose


class Heard(msgspec.Struct, frozen=True, tag="heard"):
    """There are words, or it is time."""


class Question(msgspec.Struct, frozen=True):
    """A question that was posed, with everything that makes it anew. `refused` says why there is none."""

    wanted: Wanted
    number: int = 0
    family: str = ""
    version: str = ""
    parameters: str = ""
    seed: int = 0
    text: str = ""
    refused: str = ""


class Questions(msgspec.Struct, frozen=True, tag="questions"):
    posed: tuple[Question, ...]


JudgeResult = Heard | Questions


class AnswerEvidence(msgspec.Struct, frozen=True):
    """The finding about an answer: its raw score from 0 to 1, and the reward that it counts as."""

    score: float
    reward: float


# Events: all that happens on a board.


class Entered(msgspec.Struct, frozen=True, tag="entered"):
    """One run of one node is judged from now on, under a number of its own. The last two are its claims."""

    place: Count
    author: str
    run: int
    model: str
    alone: bool


class AskedOne(msgspec.Struct, frozen=True, tag="asked"):
    place: Count
    round: int
    family: str


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """A question is over. Without an answer in time, or with a wrong one, it counts too."""

    place: Count
    round: int
    family: str
    reward: float
    right: bool = False
    answered: bool = True


class Lapsed(msgspec.Struct, frozen=True, tag="lapsed"):
    """A question counts for nothing: the judge was restarted, or the node left. `why` is for people."""

    place: Count
    round: int
    why: str


class Left(msgspec.Struct, frozen=True, tag="left"):
    """The node says that it answers no further questions."""

    place: Count


class Removed(msgspec.Struct, frozen=True, tag="removed"):
    """The entry never had an answer and made room for another."""

    place: Count


Event = Entered | AskedOne | Counted | Lapsed | Left | Removed


class JudgeNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn: its events in order, and the words that were `refused`, by reason. `judge` is the node id of
    the judge, `open` the number of questions without an answer, `said` the line for people."""

    turn: Count
    judge: str = ""
    events: tuple[Event, ...] = ()
    refused: dict[str, Count] = {}
    open: Count = 0
    said: str = ""


class Entrant(msgspec.Struct):
    """One run of one node on the board. `rewards` has one entry for each round that it took part in: each
    question that it was asked and that is over, in order. `families` counts these."""

    place: int
    author: str
    run: int
    model: str
    alone: bool
    asked: int = 0
    answered: int = 0
    right: int = 0
    lapsed: int = 0
    left: bool = False
    rewards: list[float] = []
    families: dict[str, int] = {}

    @property
    def rounds(self) -> int:
        return len(self.rewards)

    @property
    def pass_at_1(self) -> float | None:
        """The share of right answers; a question without an answer counts as a wrong one."""
        return self.right / len(self.rewards) if self.rewards else None

    @property
    def reward(self) -> float:
        return sum(self.rewards)

    @property
    def name(self) -> str:
        """For people: the beginning of the author's id, and the model that it claims."""
        return f"{self.author[:8]} {self.model}".strip()


class Board(msgspec.Struct):
    """All entrants by their places, after the events of some notes."""

    entrants: dict[int, Entrant] = {}
    refused: dict[str, int] = {}
    open: int = 0
    judge: str = ""

    def take(self, note: JudgeNote) -> None:
        for event in note.events:
            self.apply(event)
        for reason, count in note.refused.items():
            self.refuse(reason, count)
        self.open, self.judge = note.open, note.judge or self.judge

    def refuse(self, reason: str, count: int = 1) -> None:
        name = reason if reason in self.refused or len(self.refused) < MOST_REASONS else "other reasons"
        self.refused[name] = self.refused.get(name, 0) + count

    def apply(self, event: Event) -> None:
        if isinstance(event, Entered):
            self.entrants[event.place] = Entrant(
                event.place, event.author, event.run, event.model, event.alone
            )
            return
        if isinstance(event, Removed):
            self.entrants.pop(event.place, None)
            return
        entrant = self.entrants.get(event.place)
        if entrant is None:
            return
        match event:
            case AskedOne():
                entrant.asked += 1
            case Counted(family=family, reward=reward, right=right, answered=answered):
                entrant.rewards.append(reward)
                entrant.answered += answered
                entrant.right += right
                if family in entrant.families or len(entrant.families) < MOST_FAMILIES:
                    entrant.families[family] = entrant.families.get(family, 0) + 1
            case Lapsed():
                entrant.lapsed += 1
            case Left():
                entrant.left = True

    @property
    def ranked(self) -> list[Entrant]:
        """The entrants, the best first; those that were asked nothing yet come last."""
        return sorted(
            self.entrants.values(),
            key=lambda one: (-(one.pass_at_1 if one.pass_at_1 is not None else -1.0), -one.rounds, one.place),
        )


# Summaries: a judge's whole run in numbers.


class RoundTest(msgspec.Struct, frozen=True):
    """The cumulative rewards of nodes in the swarm and of nodes alone, after each took part in `round`
    rounds: the number of nodes that came so far, and their means. `p` is two-sided, `adjusted` for all tests
    of the board; None where there are too few nodes on one side."""

    round: int
    nodes_swarm: int
    nodes_alone: int
    mean_swarm: float
    mean_alone: float
    p: float | None = None
    adjusted: float | None = None


class ModelComparison(msgspec.Struct, frozen=True):
    """In the swarm against alone, for the nodes that claim one model. `from_round`: the first round from
    which on every test shows a difference. `found` is a sentence."""

    model: str
    nodes_swarm: int
    nodes_alone: int
    tests: list[RoundTest]
    from_round: int | None
    found: str


class JudgeSummary(msgspec.Struct, frozen=True):
    """`entrants` are ranked. `judge` is the judge's node id."""

    application: str
    finished: bool
    judge: str
    tasks: tuple[str, ...]
    asked: int
    answered: int
    right: int
    open: int
    entrants: list[Entrant]
    comparisons: list[ModelComparison]
    refused: dict[str, int]
    ended: str

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per entrant and round that it took part in."""
        columns = ("author", "run", "model", "alone", "round", "reward", "cumulative")
        return data_frame(rounds_of(self.entrants), columns)

    def _repr_html_(self) -> str:
        told = f"Judge {self.judge}: {len(self.entrants)} nodes, {self.asked:,} questions asked."
        headings = ("node", "model (claimed)", "in the swarm (claimed)", "rounds", "right", "pass@1")
        rows = [
            (
                one.author[:8],
                one.model,
                "no" if one.alone else "yes",
                f"{one.rounds:,}",
                f"{one.right:,}",
                "–" if one.pass_at_1 is None else f"{one.pass_at_1:.3f}",
            )
            for one in self.entrants[:MOST_ROWS]
        ]
        return element("div", element("p", told), table(headings, rows))


def rounds_of(entrants: list[Entrant]) -> list[dict[str, Any]]:
    """One row per entrant and round that it took part in, with the cumulative reward."""
    rows = []
    for one in entrants:
        total = 0.0
        for number, reward in enumerate(one.rewards, start=1):
            total += reward
            rows.append(
                {
                    "author": one.author,
                    "run": one.run,
                    "model": one.model,
                    "alone": one.alone,
                    "round": number,
                    "reward": reward,
                    "cumulative": total,
                }
            )
    return rows


def count_families(entrants: list[Entrant]) -> Counter[str]:
    """Questions that are over, by family."""
    return sum((Counter(one.families) for one in entrants), Counter())
