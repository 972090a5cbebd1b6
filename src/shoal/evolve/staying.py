"""A node whose own rounds are done may stay: it rests, and now and then has a *gather round*, which takes in
the champions that have arrived and makes no call. A gather round begins when the time of an own round has
passed since the last one, and once more at the end; where nothing has arrived there is none, and nothing is
written.
All of it follows from the state, the settings and the time of the turn."""

from __future__ import annotations

from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import Course
from shoal.node import Proposal, Rest, Turn
from shoal.runs.moments import moment
from shoal.runs.search import Drain, SearchRequest

SHORTEST = 1.0
"""Seconds between two gather rounds at least."""


def stay(settings: EvolveSettings, course: Course, turn: Turn) -> Proposal[SearchRequest] | Rest | None:
    """The next request of a node whose rounds are done; None: it leaves."""
    if not settings.stays:
        return None
    each = max(SHORTEST, course.worked / settings.rounds)
    end = course.own_until + settings.linger_rounds * each
    if settings.until:
        end = max(end, moment(settings.until, turn.began))
    due = min(course.heard_at + each, end)
    if turn.now < due:
        return Rest(due, listens=True)
    if turn.arrived:
        return Proposal(Drain(course.round))
    return Rest(min(turn.now + each, end), listens=True) if turn.now < end else None
