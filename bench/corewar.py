"""The engine against pMARS (server build, -O2): the same battles at the same places, in one run.

CPU time of one thread; the two take turns, the smallest of several repeats counts, and what pMARS needs
to start and assemble is measured and taken off. The battles are the published fights of the corpus,
and groups of 10 and 20 of their warriors; where the corpus is absent, the starter set.
"""

from __future__ import annotations

import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.oracles.pmars import CORPUS, PMARS

from bench.row import Row
from shoal.corewar import Settings, Warrior, assemble, disassemble, fight_all, starter_set
from shoal.corewar.mars import engine
from shoal.corewar.mars.binding import Numbers, Series
from shoal.corewar.mars.placement import pmars_fixed_seed, pmars_positions

REPEATS = 5
SETTINGS = Settings()


@dataclass(frozen=True, slots=True)
class Match:
    files: tuple[str, ...]
    warriors: tuple[Warrior, ...]
    fixed: int  # pMARS's -F
    rounds: int

    @property
    def positions(self) -> Numbers:
        return pmars_positions(
            SETTINGS, len(self.warriors), self.rounds, pmars_fixed_seed(SETTINGS, self.fixed)
        )


def matches(folder: Path) -> dict[str, list[Match]]:
    """The battles by group: two, ten and twenty warriors."""
    if CORPUS.is_dir():
        table = json.loads((CORPUS / "fights" / "fights.json").read_text())
        pairs = [(tuple(one["warriors"]), one["seed"]) for one in table]
        paths = {path.name: path for path in sorted((CORPUS / "fights").glob("*.red"))}
    else:
        paths = {}
        for name, warrior in starter_set().items():
            paths[name] = folder / f"{name}.red"
            paths[name].write_text(disassemble(warrior))
        names = sorted(paths) * 2
        pairs = [((a, b), 4000 + 37 * k) for k, (a, b) in enumerate(zip(names, names[3:], strict=False))]
    read = {name: assemble(path.read_bytes()) for name, path in paths.items()}

    def match(names: tuple[str, ...], fixed: int, rounds: int) -> Match:
        return Match(
            tuple(str(paths[name]) for name in names), tuple(read[name] for name in names), fixed, rounds
        )

    order = (sorted(paths) * 2)[:50]
    return {
        "two": [match(names, fixed, 100) for names, fixed in pairs],
        "ten": [match(tuple(order[k : k + 10]), 3001 + k, 20) for k in range(0, 40, 10)],
        "twenty": [match(tuple(order[k : k + 20]), 3001 + k, 15) for k in (0, 15, 30)],
    }


def cpu_of_pmars(match: Match, rounds: int) -> float:
    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    subprocess.run(
        [str(PMARS), "-b", "-k", "-F", str(match.fixed), "-r", str(rounds), *match.files],
        capture_output=True,
        check=True,
    )
    return used() - before


def cpu_of_ours(match: Match, positions: Numbers, statistics: bool) -> tuple[float, int]:
    before = time.process_time()
    (counts,) = engine.play([Series(match.warriors, positions)], SETTINGS, statistics=statistics, threads=1)
    return time.process_time() - before, int(counts.executed.sum())


def against_pmars(group: str, played: list[Match]) -> list[Row]:
    theirs = plain = counted = 0.0
    instructions = 0
    for match in played:
        positions = match.positions
        fought, started, ours, ours_counted = [], [], [], []
        for _ in range(REPEATS):
            fought.append(cpu_of_pmars(match, match.rounds))
            started.append(cpu_of_pmars(match, 0))
            seconds, executed = cpu_of_ours(match, positions, False)
            ours.append(seconds)
            ours_counted.append(cpu_of_ours(match, positions, True)[0])
        theirs += min(fought) - min(started)
        plain += min(ours)
        counted += min(ours_counted)
        instructions += executed
    return [
        Row(
            f"corewar.vs_pmars.{group}",
            theirs / plain,
            "times as fast",
            "pMARS -O2",
            ">= 2.3" if group == "two" else "",
        ),
        Row(
            f"corewar.vs_pmars.{group}.statistics",
            theirs / counted,
            "times as fast",
            "pMARS -O2",
            ">= 2.0" if group == "two" else ">= 1.6",
        ),
        Row(f"corewar.mips.{group}", instructions / plain / 1e6, "instructions/µs"),
        Row(f"pmars.mips.{group}", instructions / theirs / 1e6, "instructions/µs"),
    ]


def seconds_of(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        before = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - before)
    return best


def evaluations() -> list[Row]:
    """A candidate against opponents as the search does it: 20 rounds, played on, with statistics."""
    settings = Settings(stop="play-on")
    warriors = list(starter_set().values())
    rows = []
    for word, size in (("two", 2), ("ten", 10)):
        battles = [[warriors[(k + j) % len(warriors)] for j in range(size)] for k in range(len(warriors))]
        for threads in (1, 2):

            def evaluate(battles: list[list[Warrior]] = battles, threads: int = threads) -> object:
                return fight_all(battles, settings, 20, seed=1, statistics=True, threads=threads)

            name = f"corewar.evaluations.{word}.threads_{threads}"
            rows.append(Row(name, len(battles) / seconds_of(evaluate), "evaluations/s"))
        rows.append(
            Row(
                f"corewar.threads.{word}",
                rows[-1].value / rows[-2].value,
                "times as fast on 2 threads",
                "1 thread",
            )
        )
    return rows


def measure() -> list[Row]:
    if not PMARS.exists():
        raise SystemExit(f"no pMARS at {PMARS}: run `make oracles` first")
    with tempfile.TemporaryDirectory() as folder:
        groups = matches(Path(folder))
        rows = [row for group, played in groups.items() for row in against_pmars(group, played)]
    return rows + evaluations()
