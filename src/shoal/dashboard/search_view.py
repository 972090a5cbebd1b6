"""One node's search on the page: its archive cell by cell, its programs, its counts and curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

import msgspec

from shoal.dashboard.bounds import DIGEST, LINE, NAME, SOURCE, plain, shown_line
from shoal.dashboard.view import Authors, CellView, Grid, Kept, View
from shoal.runs.records import VerdictGiven
from shoal.runs.search import (
    Open,
    Placed,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchEvidence,
    SearchNote,
    SearchRequest,
)

MOST_CELLS = 4096
MOST_SIDES = 8
MOST_BIN = 9999
MOST_WAITING = 1024  # turns that are asked for and not yet done; a node looks at most a thousand ahead
BUDGET = 8 << 20  # characters of all programs that are kept
ENTRY = 400  # characters that a program costs besides its text

_request: Callable[[msgspec.Raw], SearchRequest] = msgspec.json.Decoder(SearchRequest).decode
_answer: Callable[[msgspec.Raw], SearchAnswer] = msgspec.json.Decoder(SearchAnswer).decode
_note = msgspec.json.Decoder(SearchNote).decode
_evidence = msgspec.json.Decoder(SearchEvidence).decode


class SearchView(View):
    """The grid `now` is the archive of the round under way, `complete` that of the last closed round."""

    tabs = ("archive",)

    def __init__(self, name: str, model: str, authors: Authors) -> None:
        super().__init__(name, model, authors)
        self.grids = {"now": Grid(), "complete": Grid()}
        self.programs = Programs()
        self.results: Counter[str] = Counter()
        self.evaluations = 0
        self.round = 0
        self.best: float | None = None
        self._parents: dict[int, str | None] = {}
        self._opening: Open | None = None
        self._answers: dict[int, Proposed] = {}

    def asked(self, turn: int, request: msgspec.Raw) -> None:
        found = _request(request)
        if isinstance(found, Open):  # holds many programs; the next one comes a round later
            self._opening = found
        elif isinstance(found, Propose):
            self._parents[turn] = found.parent[:DIGEST] if found.parent else None
            if len(self._parents) > MOST_WAITING:
                del self._parents[next(iter(self._parents))]

    def answered(self, turn: int, answer: msgspec.Raw) -> None:
        found = _answer(answer)
        if isinstance(found, Proposed):
            self._answers[turn] = Proposed(
                found.model,
                source=found.source[: SOURCE + 1],  # one more shows that it was cut
                problem=found.problem[:LINE],
                failure=found.failure[:LINE],
            )
            if len(self._answers) > MOST_WAITING:
                del self._answers[next(iter(self._answers))]

    def judged(self, verdict: VerdictGiven) -> None:
        author = verdict.author[:DIGEST]
        if verdict.accepted and self.authors.wants(author):
            self.authors.came(author, self.name, _evidence(verdict.evidence).digest)

    def noted(self, note: msgspec.Raw, version: int) -> str:
        found = _note(note)
        parent = self._parents.pop(found.turn, None)
        answer = self._answers.pop(found.turn, None) or Proposed()
        self.round = found.round
        self.evaluations += found.evaluations
        if found.step == "propose":
            said = self._proposed(found, parent, answer, version)
        elif found.result == "missed":  # such a step is asked again
            said = f"round {plain(found.round) + 1}: {found.step} missed: {found.said}"
        elif found.step == "open":
            said = self._opened(found, version)
        elif found.step == "close":
            now = self.grids["now"]
            self.grids["complete"].replace(now.round, now.cells)
            self.authors.made(self.name, found.digest)
            retested = "" if found.fitness is None else f", retested {found.fitness:.4g}"
            said = f"round {plain(found.round) + 1} closed: champion {found.digest[:10]}{retested}"
        else:
            return ""
        if found.opponents is not None:
            self.best = found.best
            self.curves.add("Cells filled", found.turn, found.cells)
            self.curves.add("QD score of the round", found.turn, found.qd_score)
            self.curves.add("Best fitness of the round", found.turn, found.best)
        return said

    def head(self, turn: int) -> dict[str, Any]:
        cells = len(self.grids["now"].cells)
        best = "" if self.best is None else f", best {self.best:.4g}"
        return {
            "progress": f"round {plain(self.round) + 1}, turn {plain(turn):,}",
            "result": f"{cells} cells{best}",
            "results": self.results,
            "evaluations": self.evaluations,
        }

    def program(self, digest: str) -> Kept | None:
        return self.programs.get(digest)

    def _opened(self, note: SearchNote, version: int) -> str:
        request, self._opening = self._opening, None
        self.grids["now"].replace(note.round, {})
        for one in note.placed:
            self._fill(one, note.turn, version)
        if request is not None:
            placed, held = {one.digest for one in note.placed}, self._held()
            chosen = placed | {program.digest for program in request.opponents}
            for visitor in request.visitors:
                if visitor.program.digest in chosen:
                    self.used.add(visitor.author)
            arrived = (visitor.program for visitor in request.visitors)
            for program in (*request.entrants, *arrived, *request.opponents):
                self.programs.add(_kept(program), held)
        placements, visitors = len(note.placed), plain(note.visitors)
        return f"round {plain(note.round) + 1} opened with {placements} placements, {visitors} visitors"

    def _proposed(self, note: SearchNote, parent: str | None, answer: Proposed, version: int) -> str:
        self.results[note.result or "none"] += 1
        if note.result in ("new", "improved") and note.cell is not None:
            fitness = note.fitness or 0.0
            self._fill(Placed(note.cell, fitness, note.digest, self.model, self.name), note.turn, version)
            model = shown_line(answer.model or self.model, NAME)
            self.programs.add(
                Kept(note.digest, answer.source, model, self.name, note.round, parent, note.turn, fitness),
                self._held(),
            )
            place = "new cell" if note.result == "new" else "better program in cell"
            return f"{place} {','.join(map(str, note.cell))}: fitness {fitness:.4g}"
        if note.result in ("failed", "missed"):
            return f"proposal {note.result}: {answer.failure or note.said}"
        if note.result == "invalid" and self.results["invalid"] % 16 == 1:  # often; a sample is enough
            return f"invalid program: {answer.problem}"
        return ""

    def _fill(self, one: Placed, turn: int, version: int) -> None:
        cells = self.grids["now"].cells
        if one.cell not in cells and len(cells) >= MOST_CELLS:
            return
        if not 1 <= len(one.cell) <= MOST_SIDES or not all(0 <= place <= MOST_BIN for place in one.cell):
            raise ValueError("not a cell")
        model, node = shown_line(one.model, NAME), one.node[:DIGEST]
        cells[one.cell] = CellView(one.cell, one.fitness, one.digest[:DIGEST], model, node, turn, version)

    def _held(self) -> set[str]:
        return {cell.digest for grid in self.grids.values() for cell in grid.cells.values()}


def _kept(program: Program) -> Kept:
    origin = program.origin
    model, parent = shown_line(origin.model, NAME), origin.parent[:DIGEST] if origin.parent else None
    return Kept(program.digest[:DIGEST], program.source, model, origin.node[:DIGEST], origin.round, parent, 0)


class Programs:
    """The programs that took a cell, within a budget of characters. Those that hold a cell are kept; the rest
    makes room, oldest first. A parent was an elite, so a lineage is complete for as long as it fits."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self.size = 0
        self._kept: dict[str, Kept] = {}

    def get(self, digest: str) -> Kept | None:
        return self._kept.get(digest)

    def add(self, one: Kept, held: Container[str]) -> None:
        """Keeps a program. Those in `held` must stay, and one that was made here is not replaced."""
        old = self._kept.get(one.digest)
        if old is not None and (old.turn or not one.turn):
            return
        if len(one.source) > SOURCE:
            one = replace(one, source=one.source[:SOURCE], whole=False)
        if old is not None:
            self._remove(one.digest)
        self._kept[one.digest] = one
        self.size += len(one.source) + ENTRY
        if self.size > self.budget:
            self._make_room(held)

    def _make_room(self, held: Container[str]) -> None:
        # To three quarters, so that not every program costs a search. If all of it is held, all of it stays:
        # an archive has few cells.
        for digest in [digest for digest in self._kept if digest not in held]:
            if self.size <= self.budget * 3 // 4:
                break
            self._remove(digest)

    def _remove(self, digest: str) -> None:
        self.size -= len(self._kept.pop(digest).source) + ENTRY
