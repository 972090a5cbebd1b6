"""Joining the archives of several runs, of one machine or of many, under one evaluator.

The result depends on which elites there are, not on the order of the runs nor on how often one is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from shoal.errors import ConfigError, RunError
from shoal.evolve.archive import Archive
from shoal.evolve.common import merge_in_common
from shoal.evolve.history import read_history
from shoal.evolve.metrics import coverage, merge_raw, qd_score
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.summary import Makers, cells_of, makers_of
from shoal.runs import load_settings
from shoal.runs.search import Axis, CellSummary


class Merged(msgspec.Struct, frozen=True):
    """`archives` is the number of nodes' archives that went in."""

    runs: list[str]
    archives: int
    cells: int
    capacity: int
    coverage: float
    qd_score: float
    coverage_common: float
    qd_score_common: float
    best_common: float
    best_source: str
    axes: list[Axis]
    cells_common: list[CellSummary]


def merge_runs(folders: Sequence[Path], out: Path | None = None) -> Merged:
    """Merges the archives of runs with the same domain and rules. With `out`, a folder is made there with
    archive.json, merged.json, and the program of each cell in a file of its own. A run that is named twice
    is taken once."""
    if not folders:
        raise ConfigError("name one or more run folders to merge")
    folders = list({folder.resolve(): folder for folder in reversed(folders)}.values())[::-1]
    rules, archives, makers = "", [], Makers()
    for folder in folders:
        settings = load_settings(EvolveSettings, folder)
        domain = settings.open_domain(threads=None)
        these = f"{domain.name} {domain.version} {domain.rules} {domain.axes}"
        if rules and these != rules:
            raise ConfigError(
                f"{folder} has another domain, other rules or other axes than {folders[0]}: their numbers do "
                "not compare; merge runs of the same kind"
            )
        rules = these
        histories = read_history(settings, folder, domain)
        archives += [history.archive for history in histories if history.archive is not None]
        makers |= {digest: maker for digest, maker in makers_of(histories).items() if digest not in makers}
    if not archives:
        raise RunError(f"{folders[0]}: no node has opened a round yet, so there is nothing to merge.")
    raw, common = merge_raw(archives), merge_in_common(domain, archives)
    best = common.best
    merged = Merged(
        runs=[str(folder) for folder in folders],
        archives=len(archives),
        cells=len(common),
        capacity=common.capacity,
        coverage=coverage(raw),
        qd_score=qd_score(raw),
        coverage_common=coverage(common),
        qd_score_common=qd_score(common),
        best_common=0.0 if best is None else common.fitness(best),
        best_source="" if best is None else best.source,
        axes=list(common.axes),
        cells_common=cells_of(common, makers),
    )
    if out is not None:
        _write(out, merged, common, domain.words.suffix)
    return merged


def _write(out: Path, merged: Merged, archive: Archive, suffix: str) -> None:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RunError(f"{out}: this is not empty. Name a folder that does not exist yet.")
    try:
        (out / "programs").mkdir(parents=True, exist_ok=True)
        for cell, elite in archive.items():
            (out / "programs" / ("-".join(map(str, cell)) + suffix)).write_text(elite.source)
        (out / "merged.json").write_bytes(msgspec.json.format(msgspec.json.encode(merged)) + b"\n")
        (out / "archive.json").write_bytes(archive.snapshot())
    except OSError as error:
        raise RunError(f"{out}: cannot be written: {error.strerror}.") from error
