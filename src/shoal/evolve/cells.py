"""One cell of a run's common archive: the program that holds it, and where that came from."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.errors import ConfigError
from shoal.evolve.common import merge_in_common
from shoal.evolve.history import read_history
from shoal.evolve.programs import Made, read_programs_of
from shoal.evolve.settings import EvolveSettings
from shoal.runs import load_settings
from shoal.runs.search import Cell

MOST_LISTED = 40


class CellHolder(msgspec.Struct, frozen=True):
    """`fitness` and `measures` are against the common opponents, the same for all runs; `program.fitness` is
    what its maker measured. `labels` are the values that the cell stands for, by measure. `seconds` is how
    long after the beginning of the run it was made; None where nobody in the run made it."""

    cell: Cell
    labels: dict[str, str]
    fitness: float
    measures: dict[str, float]
    seconds: float | None
    program: Made


def parse_cell(text: str) -> Cell:
    """ "2,5" as a cell."""
    parts = text.replace(" ", ",").strip("()").split(",")
    if not all(part.isdecimal() and len(part) <= 6 for part in parts):
        raise ConfigError(f"--cell {text[:40]!r}: write it as two whole numbers, such as 2,5")
    return tuple(int(part) for part in parts)


def holder_of(folder: Path, cell: Cell) -> CellHolder:
    """The elite of the cell in the common archive; ConfigError says which cells are filled."""
    settings = load_settings(EvolveSettings, folder)
    domain = settings.open_domain(threads=None)
    histories = read_history(settings, folder, domain)
    archives = [history.archive for history in histories if history.archive is not None]
    if not archives:
        raise ConfigError(f"{folder}: no archive has been opened yet: there are no cells")
    common = merge_in_common(domain, archives)
    elite = common.get(cell)
    if elite is None:
        filled = [",".join(map(str, place)) for place, _ in common.items()]
        listed = " ".join(filled[:MOST_LISTED]) + (" …" if len(filled) > MOST_LISTED else "")
        sides = " × ".join(str(side) for side in common.shape)
        raise ConfigError(
            f"cell {','.join(map(str, cell))} holds nothing: of {sides} cells, counted from 0, these are "
            f"filled: {listed}"
        )
    known = read_programs_of(settings, folder).get(elite.digest)
    program = known or Made(
        elite.digest, elite.source, elite.origin.model, elite.origin.node, elite.origin.round
    )
    began = min((history.events[0].time for history in histories if history.events), default=0.0)
    evaluation = common.evaluation(elite)
    return CellHolder(
        cell,
        {axis.measure: axis.label(place) for axis, place in zip(common.axes, cell, strict=True)},
        evaluation.fitness,
        dict(evaluation.measures),
        None if program.made_at is None else max(0.0, round(program.made_at - began, 3)),
        program,
    )
