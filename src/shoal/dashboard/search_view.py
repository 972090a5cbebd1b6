"""What a page shows of one node's search: its archive cell by cell, its programs, its counts and curves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec

from shoal.dashboard.programs import Kept, Programs
from shoal.dashboard.seen import Placed, Program, SearchAnswer, SearchNote, SearchRequest
from shoal.dashboard.series import Curves
from shoal.dashboard.text import LINE, SOURCE, shown_line

MOST_CELLS = 4096
MOST_SIDES = 8
MOST_BIN = 9999
MOST_WAITING = 1024
"""Turns that are asked for and not yet done; a node looks at most a thousand ahead."""
MOST_AUTHORS = 64
NAME, DIGEST = 120, 128
"""Most characters of names, and of digests and keys."""

_request = msgspec.json.Decoder(SearchRequest).decode
_answer = msgspec.json.Decoder(SearchAnswer).decode
_note = msgspec.json.Decoder(SearchNote).decode


@dataclass(frozen=True, slots=True)
class CellView:
    """Who holds a cell, since which turn; `version` is the node's when it changed."""

    cell: tuple[int, ...]
    fitness: float
    digest: str
    model: str
    node: str
    turn: int
    version: int


class Grid:
    """The cells of one archive. `generation` counts the archives: a new round begins an empty one."""

    def __init__(self) -> None:
        self.generation = 0
        self.round = 0
        self.cells: dict[tuple[int, ...], CellView] = {}

    def begin(self, round_number: int) -> None:
        self.generation += 1
        self.round = round_number
        self.cells = {}

    def copy_from(self, other: Grid) -> None:
        self.generation += 1
        self.round = other.round
        self.cells = dict(other.cells)


class SearchView:
    """`now` is the archive of the round under way, `complete` that of the last closed round."""

    def __init__(self, name: str, model: str) -> None:
        self.name = name
        self.model = model
        self.now = Grid()
        self.complete = Grid()
        self.programs = Programs()
        self.curves = Curves()
        self.results: Counter[str] = Counter()
        self.round = 0
        self.step = ""
        self.warriors = 0
        self.best: float | None = None
        self.quality = 0.0
        self.used: Counter[str] = Counter()
        self.useful: Counter[str] = Counter()
        self._parents: dict[int, str | None] = {}
        self._opening = SearchRequest()
        self._answers: dict[int, SearchAnswer] = {}

    @property
    def held(self) -> set[str]:
        grids = (self.now, self.complete)
        return {cell.digest for grid in grids for cell in grid.cells.values()}

    def asked(self, turn: int, raw: msgspec.Raw) -> None:
        request = _request(raw)
        if request.type == "open":  # holds many programs; the next one comes a round later
            self._opening = request
        elif request.type == "propose":
            self._parents[turn] = request.parent[:DIGEST] if request.parent else None
            if len(self._parents) > MOST_WAITING:
                del self._parents[next(iter(self._parents))]

    def answered(self, turn: int, raw: msgspec.Raw) -> None:
        answer = self._answers[turn] = _answer(raw)
        answer.source = answer.source[: SOURCE + 1]  # one more shows that it was cut
        answer.problem, answer.failure = answer.problem[:LINE], answer.failure[:LINE]
        if len(self._answers) > MOST_WAITING:
            del self._answers[next(iter(self._answers))]

    def noted(self, raw: msgspec.Raw, version: int) -> tuple[SearchNote, str]:
        """Takes in what a turn did; returns the note and one line for people, empty if nothing is to be
        told."""
        note = _note(raw)
        parent = self._parents.pop(note.turn, None)
        answer = self._answers.pop(note.turn, None) or SearchAnswer()
        self.round, self.step = note.round, note.step
        if note.step == "drain":
            return note, ""
        self.warriors = note.warriors or self.warriors
        if note.step == "open":
            said = self._opened(note, self._opening, version)
            self._opening = SearchRequest()
        elif note.step == "close":
            self.complete.copy_from(self.now)
            retested = "" if note.fitness is None else f", retested {note.fitness:.3f}"
            said = f"round {note.round + 1} closed: champion {note.digest[:10]}{retested}"
        else:
            said = self._proposed(note, parent, answer, version)
        self.best = note.best if note.best is not None else self.best
        self.curves.add("cells", note.turn, len(self.now.cells))
        self.curves.add("best", note.turn, note.best)
        self.curves.add("quality", note.turn, self.quality)
        return note, said

    def _opened(self, note: SearchNote, request: SearchRequest, version: int) -> str:
        self.now.begin(note.round)
        self.quality = 0.0
        placed = {one.digest for one in note.placed}
        for one in note.placed:
            self._fill(one, note.turn, version)
        opponents = {program.digest for program in request.opponents}
        for visitor in request.visitors:
            if visitor.program.digest in opponents or visitor.program.digest in placed:
                _count(self.used, visitor.author)
            if visitor.program.digest in placed:
                _count(self.useful, visitor.author)
        held = self.held
        arrived = [visitor.program for visitor in request.visitors]
        for program in (*request.entrants, *arrived, *request.opponents):
            self._keep(program, held)
        return f"round {note.round + 1} opened with {len(note.placed)} placements, {note.visitors} visitors"

    def _proposed(self, note: SearchNote, parent: str | None, answer: SearchAnswer, version: int) -> str:
        result = note.result or "none"
        self.results[result if result in _RESULTS else "other"] += 1
        if note.result in ("new", "improved") and note.cell is not None:
            fitness = note.fitness or 0.0
            self._fill(Placed(note.cell, fitness, note.digest, self.model, self.name), note.turn, version)
            self.programs.add(
                Kept(
                    note.digest, answer.source, shown_line(answer.model or self.model, NAME), self.name,
                    note.round, parent, note.turn, fitness,
                ),
                self.held,
            )  # fmt: skip
            what = "new cell" if note.result == "new" else "better program in cell"
            return f"{what} {','.join(map(str, note.cell))}: fitness {fitness:.3f}"
        if note.result in ("failed", "missed"):
            return f"proposal {note.result}: {answer.failure or note.said}"
        if note.result == "invalid" and self.results["invalid"] % 16 == 1:  # often; a sample is enough
            return f"invalid program: {answer.problem}"
        return ""

    def _fill(self, one: Placed, turn: int, version: int) -> None:
        old = self.now.cells.get(one.cell)
        if old is None and len(self.now.cells) >= MOST_CELLS:
            return
        if not 1 <= len(one.cell) <= MOST_SIDES or not all(0 <= place <= MOST_BIN for place in one.cell):
            raise ValueError("not a cell")
        self.quality += one.fitness - (old.fitness if old else 0.0)
        model, node = shown_line(one.model, NAME), one.node[:DIGEST]
        self.now.cells[one.cell] = CellView(
            one.cell, one.fitness, one.digest[:DIGEST], model, node, turn, version
        )

    def _keep(self, program: Program, held: set[str]) -> None:
        origin = program.origin
        self.programs.add(
            Kept(
                program.digest[:DIGEST], program.source, shown_line(origin.model, NAME), origin.node[:DIGEST],
                origin.round, origin.parent[:DIGEST] if origin.parent else None, 0,
            ),
            held,
        )  # fmt: skip


def _count(counts: Counter[str], author: str) -> None:
    author = author[:DIGEST]
    counts[author if author in counts or len(counts) < MOST_AUTHORS else "others"] += 1


_RESULTS = {"new", "improved", "rejected", "duplicate", "invalid", "failed", "missed", "none"}
