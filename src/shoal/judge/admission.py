"""Which requests get a question. Every bound is per author, so no author takes another's place: questions
without an answer, questions per minute, runs on the board. Authors that never answered share a quarter of the
open questions, and give way on a full board; those of them that let a question pass share half of that.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.judge.settings import JudgeSettings
from shoal.judge.state import Asker, JudgeState
from shoal.runs.judging import Entered, JudgeRequest, Left, Removed, Wanted
from shoal.swarm import Received
from shoal.swarm.quota import Bucket
from shoal.tasks.registry import canonical_name

MOST_RUNS = 64
"""Runs of one author on the board."""
MOST_ROUNDS = 100_000
"""Rounds of one run that count."""
STALE = 120.0
"""Seconds after which a request is too old: its node may be gone, and would be asked for nothing."""
NEWCOMERS = 4
"""Authors that never answered have one in so many of the open questions."""
BURST = 0.1
"""Minutes' worth of questions that may come at once."""


class Admission:
    """Reads and changes the state; depends on nothing else but the settings."""

    def __init__(self, settings: JudgeSettings) -> None:
        self._settings = settings
        self._families = frozenset(map(canonical_name, settings.tasks))

    def take(self, state: JudgeState, received: Received[JudgeRequest], now: float) -> None:
        """The request waits for a question, or it is refused by a reason that is counted."""
        request, author = received.item, received.author
        asker = state.askers.get(author)
        place = None if asker is None else asker.places.get(request.run)
        if request.leaves:
            if place is not None and not state.board.entrants[place].left:
                self._leave(state, place)
        elif reason := self._objection(state, received, asker, place, now):
            state.refuse(reason)
        else:
            asker = state.askers.setdefault(author, asker or Asker(Bucket(self._burst - 1.0, now)))
            if place is None:
                place = self._enter(state, asker, author, request)
            asker.rounds[place] = request.round
            families = tuple(self._common(request.families))
            state.waiting.append(Wanted(place, author, request.run, request.round, families))

    def _objection(
        self,
        state: JudgeState,
        received: Received[JudgeRequest],
        asker: Asker | None,
        place: int | None,
        now: float,
    ) -> str:
        request, author, settings = received.item, received.author, self._settings
        if now - received.made_at > STALE:
            return "the request is old"
        if not self._common(request.families):
            return "no family in common"
        if asker is not None and place is not None:
            entrant = state.board.entrants[place]
            if entrant.left:
                return "the node left"
            if request.round <= asker.rounds.get(place, -1):
                return "a round that was asked for"
            if entrant.rounds >= MOST_ROUNDS:
                return "enough rounds"
        if asker is not None and now < asker.alone_until:
            return "its answers took too long"
        pending = [one.question.wanted.author for one in state.open.values()]
        pending += [one.author for one in state.waiting]
        if pending.count(author) >= settings.open_per_node:
            return "a question of it is open"
        if len(pending) >= settings.open_in_all:
            return "too many questions are open"
        if asker is None or not asker.answered:
            strangers = sum(not state.askers[one].answered for one in pending if one in state.askers)
            share = 2 * NEWCOMERS if asker is not None and asker.silent else NEWCOMERS
            if strangers >= max(1, settings.open_in_all // share):
                return "too many questions to newcomers are open"
        if asker is not None and not asker.questions.take(1.0, settings.per_minute / 60, self._burst, now):
            return "too many questions a minute"
        burst = max(1.0, BURST * settings.per_minute_in_all)
        if not state.questions.take(1.0, settings.per_minute_in_all / 60, burst, now):
            return "too many questions a minute in all"
        return "" if place is not None or self._has_room(state, asker) else "the board is full"

    @property
    def _burst(self) -> float:
        return max(1.0, BURST * self._settings.per_minute)

    def _common(self, families: Iterable[str]) -> list[str]:
        return sorted(self._families.intersection(families))

    def _leave(self, state: JudgeState, place: int) -> None:
        """The question that it may not answer any more counts only if it does."""
        state.tell(Left(place))
        for one in state.open.values():
            if one.question.wanted.place == place:
                one.lapses = True
        state.waiting = [one for one in state.waiting if one.place != place]

    def _enter(self, state: JudgeState, asker: Asker, author: str, request: JudgeRequest) -> int:
        place = state.places
        state.places += 1
        asker.places[request.run] = place
        state.tell(Entered(place, author, request.run, request.model, request.alone))
        return place

    def _has_room(self, state: JudgeState, asker: Asker | None) -> bool:
        """Whether there is room for another run of this author, perhaps in the place of one without answers:
        its own where it has too many, else the oldest of all. Entrants with an answer stay for good."""
        if asker is not None and len(asker.places) >= MOST_RUNS:
            return self._remove_one(state, asker.places.values())
        if len(state.board.entrants) < self._settings.entrants:
            return True
        return self._remove_one(state, state.board.entrants)

    def _remove_one(self, state: JudgeState, places: Iterable[int]) -> bool:
        busy = {one.question.wanted.place for one in state.open.values()}
        busy |= {one.place for one in state.waiting}
        for place in sorted(places):
            entrant = state.board.entrants[place]
            if entrant.answered or place in busy:
                continue
            asker = state.askers[entrant.author]
            del asker.places[entrant.run]
            asker.rounds.pop(place, None)
            if not asker.places and not asker.answered:
                del state.askers[entrant.author]
            state.tell(Removed(place))
            return True
        return False
