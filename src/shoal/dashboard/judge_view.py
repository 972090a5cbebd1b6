"""The board of a judge on the page. Names and models are claims of strangers, shown as text."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.dashboard.bounds import DIGEST, Curves, Tally, plain, shown_line
from shoal.dashboard.view import Authors, View
from shoal.runs.judging import Board, Counted, Entrant, JudgeNote, Removed

MOST_ENTRANTS = 200
"""Nodes in the table: the best ones."""
MOST_CURVES = 64
MODEL = 40
"""Characters of a model's name: one long claim must not push the others' figures out of sight."""
CURVE = "Node {}"

_note = msgspec.json.Decoder(JudgeNote).decode


class JudgeView(View):
    """`curves` has the cumulative reward of the first nodes that took part, each under its number."""

    tabs = ("board",)

    def __init__(self, name: str, model: str, authors: Authors) -> None:
        super().__init__(name, model, authors)
        self.curves = Curves(MOST_CURVES)
        self.refused = Tally()
        self._board = Board()
        self._sums: dict[int, float] = {}

    def noted(self, note: msgspec.Raw, version: int) -> str:
        found = _note(note)
        for event in found.events:
            if isinstance(event, Counted) and event.place in self._board.entrants:
                self._count(event, self._board.entrants[event.place].rounds + 1)
            elif isinstance(event, Removed):
                self._sums.pop(event.place, None)
            self._board.apply(event)
        self._board.open, self._board.judge = found.open, found.judge or self._board.judge
        for reason, count in found.refused.items():
            self.refused.add(reason, count)
        return found.said

    def _count(self, event: Counted, round_number: int) -> None:
        total = self._sums.get(event.place, 0.0) + event.reward
        self._sums[event.place] = total
        self.curves.add(CURVE.format(event.place), round_number, total, "last")

    def head(self, turn: int) -> dict[str, Any]:
        board, entrants = self._board, self._board.ranked
        asked, counted = sum(one.asked for one in entrants), sum(one.rounds for one in entrants)
        right = sum(one.right for one in entrants)
        return {
            "progress": f"{plain(asked):,} questions asked",
            "result": f"{right:,} of {counted:,} right" if counted else "–",
            "dropped": self.refused,
            "board": {
                "judge": shown_line(board.judge, DIGEST),
                "asked": asked,
                "answered": sum(one.answered for one in entrants),
                "right": right,
                "counted": counted,
                "open": board.open,
                "nodes": len(entrants),
                "rows": [self._row(one) for one in entrants[:MOST_ENTRANTS]],
            },
        }

    def _row(self, one: Entrant) -> dict[str, Any]:
        title = CURVE.format(one.place)
        return {
            "author": shown_line(one.author, DIGEST),
            "model": shown_line(one.model, MODEL),
            "alone": one.alone,
            "left": one.left,
            "rounds": one.rounds,
            "asked": one.asked,
            "answered": one.answered,
            "right": one.right,
            "pass": one.pass_at_1,
            "reward": self._sums.get(one.place, 0.0),
            "curve": title if title in self.curves.by_title else "",
        }
