"""The state of a judge: its board, the questions without an answer, and its budgets. Plain data: all of it
can be written down and read back.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.files import replace_whole
from shoal.runs.judging import Board, Event, JudgeAnswer, JudgeNote, Question, Wanted
from shoal.swarm import Received
from shoal.swarm.quota import Bucket

FILE = "state.json"

ReceivedAnswer = Received[JudgeAnswer]


class Open(msgspec.Struct):
    """A question that was sent. An answer that comes until `until` counts (0: not known yet, since the judge
    was restarted). One that `lapses` counts for nothing if there is no answer."""

    question: Question
    until: float = 0.0
    lapses: bool = False


class Asker(msgspec.Struct):
    """One author: the places of its runs on the board, the last round of each place, whether it ever
    answered, the questions that it left without an answer, and the time until which it is left alone because
    its answers took too long."""

    questions: Bucket
    places: dict[int, int] = {}
    rounds: dict[int, int] = {}
    answered: bool = False
    silent: int = 0
    alone_until: float = 0.0


class JudgeState(msgspec.Struct):
    """`places` counts the entrants so far, `answers` are those in time that are not scored yet. `events` and
    `refused` are of the turn under way, `last` is the note of the one before."""

    board: Board
    questions: Bucket
    askers: dict[str, Asker] = {}
    places: int = 0
    waiting: list[Wanted] = []
    open: dict[int, Open] = {}
    answers: dict[int, ReceivedAnswer] = {}
    began: float = 0.0
    restarted: bool = False
    events: list[Event] = []
    refused: dict[str, int] = {}
    last: JudgeNote | None = None

    def tell(self, event: Event) -> None:
        """Something happened on the board."""
        self.board.apply(event)
        self.events.append(event)

    def refuse(self, reason: str) -> None:
        """A word that counts for nothing."""
        self.board.refuse(reason)
        self.refused[reason] = self.refused.get(reason, 0) + 1


def save(state: JudgeState, folder: Path) -> None:
    replace_whole(folder / FILE, msgspec.json.encode(state))


def restore(folder: Path) -> JudgeState:
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=JudgeState)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: the checkpoint cannot be read: {error}. Remove it and resume.") from error
