"""A run in numbers, from its folder alone, finished or not. Two merged archives stand side by side, of each
node's last complete round. *Raw* is the paper's: the greatest fitness of each cell as its node measured it,
although fitness grows with the number of opponents. *Common* evaluates every elite anew against one opponent
set that is the same for all runs."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError, RunError
from shoal.evolve.archive import Archive
from shoal.evolve.common import STARTERS, fight_held_out, merge_in_common, read_programs
from shoal.evolve.domain import Domain
from shoal.evolve.history import Event, NodeHistory, SearchRun, read_run
from shoal.evolve.metrics import Contribution, contributions, coverage, merge_raw, qd_score
from shoal.evolve.programs import as_made, read_programs_of
from shoal.evolve.rounds import STARTER
from shoal.evolve.settings import EvolveSettings
from shoal.models import own_price, parse_spec, price_for
from shoal.runs.records import reads_run
from shoal.runs.search import (
    Axis,
    Cell,
    Contest,
    ModelSummary,
    Placed,
    SearchNodeSummary,
    SearchPoint,
    SearchSummary,
)

MOST_POINTS = 100
COUNTED = {field.name for field in fields(NodeHistory)} & {*SearchNodeSummary.__struct_fields__}


@reads_run
def summarise(folder: Path, held_out: Path | None = None) -> SearchSummary:
    """The run in `folder`. Its best program meets `held_out`, else the settings' programs, else starters."""
    return summarise_run(read_run(folder), held_out)


def summarise_run(run: SearchRun, held_out: Path | None = None) -> SearchSummary:
    settings, domain, histories, common = run.settings, run.domain, run.histories, run.common
    raw = merge_raw(run.archives or [common])
    makers = makers_of(histories)
    cells_raw, cells_common = cells_of(raw, makers), cells_of(common, makers)
    best = common.best
    events = list(heapq.merge(*(history.events for history in histories), key=lambda event: event.time))
    return SearchSummary(
        **_numbers(raw, common),
        finished=all(history.done for history in histories),
        cells=len(raw),
        best=max((cell.fitness for cell in cells_raw), default=0.0),
        best_source="" if best is None else as_made(read_programs_of(settings, run.folder), best),
        best_model="" if best is None else _maker(makers, best.digest, best.origin.model)[0],
        calls=_spent(histories, "calls"),
        tokens=_spent(histories, "tokens"),
        microdollars=_spent(histories, "microdollars") if _is_priced(settings) else None,
        simulations=sum(history.plays for history in histories),
        shared_bytes=sum(history.shared_bytes for history in histories),
        nodes=[_node(history, makers, settings.rounds) for history in histories],
        models=_models(settings, histories, events, makers),
        cells_raw=cells_raw,
        cells_common=cells_common,
        curve=_curve(events, raw.capacity),
        held_out=None if best is None else _held_out(settings, domain, best.source, held_out),
        domain=domain.name,
        words=domain.words,
    )


def _numbers(raw: Archive, common: Archive) -> dict[str, Any]:
    """The two merged archives in numbers, for runs and for merges of runs."""
    best = common.best
    return {
        "capacity": common.capacity,
        "coverage": coverage(raw),
        "qd_score": qd_score(raw),
        "coverage_common": coverage(common),
        "qd_score_common": qd_score(common),
        "best_common": 0.0 if best is None else common.fitness(best),
        "axes": list(common.axes),
    }


def _spent(histories: Sequence[NodeHistory], measure: str) -> int:
    return sum(history.spent.get(measure, 0) for history in histories)


Makers = dict[str, tuple[str, str]]
"""Digest → model and node that first proposed the program in this run. A peer's word about the origin of its
champion is only used for programs that nobody here made."""


def makers_of(histories: Sequence[NodeHistory]) -> Makers:
    made = sorted(
        (time, history.name, history.model, digest)
        for history in histories
        for digest, time in history.made.items()
    )
    makers: Makers = {}
    for _, name, model, digest in made:
        makers.setdefault(digest, (model, name))
    return makers


def _maker(makers: Makers, digest: str, model: str, node: str = "") -> tuple[str, str]:
    return makers.get(digest, (model or "unknown", node))


def cells_of(archive: Archive, makers: Makers) -> list[Placed]:
    found = []
    for cell, elite in archive.items():
        maker = _maker(makers, elite.digest, elite.origin.model, elite.origin.node)
        found.append(Placed(cell, archive.fitness(elite), elite.digest, *maker))
    return found


def _node(history: NodeHistory, makers: Makers, rounds: int) -> SearchNodeSummary:
    heard = [novelty for novelty in history.niche_novelty if novelty is not None]
    makers_here = {
        digest: _maker(makers, digest, program.origin.model)[0]
        for digest, program in history.champions.items()
    }
    return SearchNodeSummary(
        **{name: getattr(history, name) for name in COUNTED - {"by_round"}},
        by_round=[
            msgspec.structs.replace(one, maker=makers_here.get(one.champion, "")) for one in history.by_round
        ],
        calls=_spent([history], "calls"),
        tokens=_spent([history], "tokens"),
        cells=0 if history.archive is None else len(history.archive),
        rounds=min(history.state.course.round, rounds),
        gather_rounds=max(0, history.state.course.round - rounds),
        novelty=statistics.fmean(heard) if heard else None,
        rounds_heard=len(heard),
    )


def _models(
    settings: EvolveSettings, histories: Sequence[NodeHistory], events: Sequence[Event], makers: Makers
) -> list[ModelSummary]:
    fills = []
    for event in events:
        for placed in event.fills:
            model, _ = _maker(makers, placed.digest, placed.model)
            if model != STARTER:
                fills.append((placed.cell, model))
    shares = contributions(fills)
    found = []
    for model in dict.fromkeys(settings.models):
        of_model = [history for history in histories if history.model == model]
        answered = sum(history.proposals for history in of_model)
        rate = sum(history.valid for history in of_model) / answered if answered else None
        calls, tokens = _spent(of_model, "calls"), _spent(of_model, "tokens")
        found.append(ModelSummary(model, calls, tokens, rate, *shares.get(model, Contribution())))
    return found


def _curve(events: Sequence[Event], capacity: int) -> list[SearchPoint]:
    """At most MOST_POINTS points, evenly spaced in calls, the last one included."""
    archives: dict[str, dict[Cell, float]] = {}
    calls: dict[str, int] = {}
    total = sum({event.node: event.calls for event in events}.values())
    step = max(1, math.ceil(total / MOST_POINTS))
    points: list[SearchPoint] = []
    due = step
    for number, event in enumerate(events, start=1):
        if event.note.step == "open":
            archives[event.node] = {}
        archive = archives.setdefault(event.node, {})
        for placed in event.fills:
            archive[placed.cell] = placed.fitness
        calls[event.node] = event.calls
        spent = sum(calls.values())
        if spent >= due or number == len(events):
            merged: dict[Cell, float] = {}
            for one in archives.values():
                for cell, fitness in one.items():
                    merged[cell] = max(fitness, merged.get(cell, fitness))
            points.append(SearchPoint(spent, len(merged) / capacity, math.fsum(merged.values())))
            due = spent + step
    return points


def _held_out(settings: EvolveSettings, domain: Domain, source: str, given: Path | None) -> Contest | None:
    if given is not None:
        return fight_held_out(domain, source, read_programs(given), str(given))
    if settings.held_out is not None:
        folder = Path(settings.held_out)
        return fight_held_out(domain, source, read_programs(folder), folder.name)
    starters = domain.starters()
    return fight_held_out(domain, source, starters, STARTERS) if starters else None


def _is_priced(settings: EvolveSettings) -> bool:
    prices = {name: own_price(*given) for name, given in settings.prices.items()}
    return all(price_for(parse_spec(model), prices).state != "unpriced" for model in settings.models)


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
    cells_common: list[Placed]


def merge_runs(folders: Sequence[Path], out: Path | None = None) -> Merged:
    """Merges the archives of runs with the same domain and rules, each run once. A folder `out` is made with
    archive.json, merged.json, and the program of each cell in a file of its own."""
    if not folders:
        raise ConfigError("name one or more run folders to merge")
    folders = list({folder.resolve(): folder for folder in reversed(folders)}.values())[::-1]
    rules, archives, makers = "", [], Makers()
    for folder in folders:
        run = read_run(folder)
        domain = run.domain
        these = f"{domain.name} {domain.version} {domain.rules} {domain.axes}"
        if rules and these != rules:
            raise ConfigError(
                f"{folder} has another domain, other rules or other axes than {folders[0]}: their numbers do "
                "not compare; merge runs of the same kind"
            )
        rules = these
        archives += run.archives
        makers = {**makers_of(run.histories), **makers}
    if not archives:
        raise RunError(f"{folders[0]}: no node has opened a round yet, so there is nothing to merge.")
    raw, common = merge_raw(archives), merge_in_common(domain, archives)
    merged = Merged(
        **_numbers(raw, common),
        runs=[str(folder) for folder in folders],
        archives=len(archives),
        cells=len(common),
        best_source="" if common.best is None else common.best.source,
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
