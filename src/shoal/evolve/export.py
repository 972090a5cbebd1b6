"""A run of a search as tables and program files, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.evolve.common import merge_in_common
from shoal.evolve.history import read_history
from shoal.evolve.programs import as_made, read_programs_of
from shoal.evolve.settings import EvolveSettings
from shoal.runs import load_settings
from shoal.runs.records import reads_run
from shoal.runs.tables import Rows


@reads_run
def export_search(run: Path, out: Path) -> dict[str, Rows]:
    """The tables `events` and `elites`; the elites' programs are written to out/programs."""
    settings = load_settings(EvolveSettings, run)
    domain = settings.open_domain(threads=None)
    histories = read_history(settings, run, domain)
    archives = [history.archive for history in histories if history.archive is not None]
    events = [
        {
            "node": event.node,
            "time": event.time,
            "turn": event.note.turn,
            "round": event.note.round,
            "step": event.note.step,
            "result": event.note.result,
            "cell": "" if event.note.cell is None else " ".join(map(str, event.note.cell)),
            "fitness": event.note.fitness,
            "cells": event.note.cells,
            "best": event.note.best,
            "calls": event.calls,
            "digest": event.note.digest,
        }
        for history in histories
        for event in history.events
    ]
    elites: list[dict[str, Any]] = []
    (out / "programs").mkdir(parents=True)
    if archives:
        common = merge_in_common(domain, archives)
        programs = read_programs_of(settings, run)
        for cell, elite in sorted(common.items()):
            name = f"{'-'.join(map(str, cell))}-{elite.digest[:12]}{domain.words.suffix}"
            (out / "programs" / name).write_text(as_made(programs, elite), encoding="utf-8")
            elites.append(
                {
                    "cell": " ".join(map(str, cell)),
                    "fitness": common.fitness(elite),
                    "model": elite.origin.model,
                    "digest": elite.digest,
                    "file": f"programs/{name}",
                }
            )
    return {"events": events, "elites": elites}
