"""The whole search loop against the bare engine that plays the same battles."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.row import Row
from shoal.evolve import Candidate, Domain
from shoal.evolve.crew import run
from shoal.evolve.settings import EvolveSettings
from shoal.runs import read
from shoal.runs.records import Answered, Asked, content_of
from shoal.runs.search import (
    Close,
    Closed,
    Open,
    Opened,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchRequest,
)

CALLS = 600
ROUNDS = 4
THREADS = 2

Battle = tuple[int, int, tuple[str, ...]]
"""Seed, rounds and opponents: what one call of the engine can play together."""


def journaled(journal: Path) -> Iterator[tuple[SearchRequest, SearchAnswer]]:
    asked: dict[int, SearchRequest] = {}
    for record in read(journal):
        content = content_of(record)
        if isinstance(content, Asked):
            asked[content.turn] = msgspec.json.decode(content.request, type=SearchRequest)
        elif isinstance(content, Answered):
            yield asked[content.turn], msgspec.json.decode(content.answer, type=SearchAnswer)


def battles_of(folder: Path, settings: EvolveSettings) -> tuple[dict[Battle, list[str]], int]:
    """The programs that met the same opponents on the same seeds, and how many were proposals."""
    found: dict[Battle, list[str]] = defaultdict(list)
    proposals = 0
    for name in settings.node_names():
        opponents: tuple[str, ...] = ()
        seed = 0
        for request, answer in journaled(folder / "nodes" / name / "journal.jsonl"):
            programs: list[Program] = []
            if isinstance(request, Open) and isinstance(answer, Opened):
                opponents, seed = tuple(one.source for one in request.opponents), request.seed
                programs = [*request.entrants, *(visitor.program for visitor in request.visitors)]
            elif isinstance(request, Close) and isinstance(answer, Closed):
                found[request.seed, settings.retest_repeats, opponents] += [
                    one.source for one in request.finalists
                ]
            elif isinstance(request, Propose) and isinstance(answer, Proposed) and answer.evaluation:
                programs = [Program(answer.digest, answer.source)]
                proposals += 1
            found[seed, settings.repeats, opponents] += [one.source for one in programs]
    return found, proposals


def replayed(domain: Domain, battles: dict[Battle, list[str]]) -> tuple[float, float]:
    """Seconds, by the clock and of processor time, that the engine needs for the battles alone, many at a
    time; programs are assembled before."""
    ready: list[tuple[list[Candidate], list[Candidate], int, int]] = []
    for (seed, rounds, opponents), programs in battles.items():
        others = list(domain.opponent_set([domain.parse(source) for source in opponents]))
        ready.append(([domain.parse(source) for source in programs], others, seed, rounds))
    began = time.perf_counter(), time.process_time()
    for candidates, others, seed, rounds in ready:
        domain.play(candidates, others, seed=seed, rounds=rounds)
    return time.perf_counter() - began[0], time.process_time() - began[1]


def measure() -> list[Row]:
    settings = EvolveSettings(calls=CALLS, rounds=ROUNDS, seed=1)
    with tempfile.TemporaryDirectory(prefix="shoal-bench") as place:
        folder = Path(place) / "run"
        began = time.perf_counter(), time.process_time()
        if run(settings, folder, in_process=True) != "finished":
            raise SystemExit("the search of the benchmark did not finish")
        seconds, processor = time.perf_counter() - began[0], time.process_time() - began[1]
        battles, proposals = battles_of(folder, settings)
        engine, engine_processor = replayed(settings.open_domain(threads=THREADS), battles)
    peer = "its own battles, one batched 2-thread call per round"
    return [
        Row("evolve.vs_engine", engine / seconds, "times its candidates/s", peer, ">= 0.8"),
        Row("evolve.processor", engine_processor / processor, "times its processor time (battles alone)"),
        Row("evolve.candidates", proposals / seconds, "candidates/s, 4 builtin models"),
        Row("evolve.engine", proposals / engine, "candidates/s"),
    ]
