"""The champions of all rounds against held-out programs, for experiments. Every champion meets the same set
on the same seed. A result is a function of the champion, the set and the rules, so it is kept in a folder
that all runs of an experiment have in common: a champion that comes again, in another round, run or arm,
costs nothing."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from shoal.errors import CandidateError, ConfigError, RunError
from shoal.evolve.common import HELD_OUT_ROUNDS, SEED, STARTERS, read_programs
from shoal.evolve.domain import Candidate, Domain, identify
from shoal.evolve.history import read_run
from shoal.evolve.metrics import generality
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.summary import summarise_run
from shoal.files import write_whole
from shoal.runs.records import reads_run
from shoal.runs.search import Contest, HeldOutSet, SearchNodeSummary, SearchSummary

GoesOn = Callable[[float], bool]
"""Hears of the share that is done, and tells whether to go on."""


@dataclass(frozen=True)
class HeldOut:
    """A set to meet, and its opponents in the order of their names."""

    facts: HeldOutSet
    opponents: Sequence[Candidate]


def choose(domain: Domain, settings: EvolveSettings) -> HeldOut | None:
    """`held_out_size` of the settings' held-out programs, or all; the starters where there is no folder, and
    None where there are none. A draw depends on what the programs do, on no name and no seed of a run, so the
    same folder gives the same set everywhere; a program more or less changes one member at most."""
    is_starters = settings.held_out is None
    folder = None if settings.held_out is None else Path(settings.held_out)
    texts = domain.starters() if folder is None else read_programs(folder)
    found: dict[str, tuple[str, Candidate]] = {}
    for title, text in texts.items():
        with contextlib.suppress(CandidateError):
            candidate = domain.parse(text)
            found.setdefault(candidate.digest, (title, candidate))
    if not found:
        if folder is None:
            return None
        raise ConfigError(f"none of the {len(texts)} held-out programs of {folder} can be read: name others")
    size = len(found) if settings.held_out_size == "all" or is_starters else settings.held_out_size
    drawn = sorted(found, key=lambda digest: hashlib.sha256(f"held out {digest}".encode()).digest())[:size]
    members = sorted(found[digest] for digest in drawn)
    facts = HeldOutSet(
        name=STARTERS if folder is None else folder.name,
        digest=identify([domain.name, domain.version, domain.rules, SEED, HELD_OUT_ROUNDS, sorted(drawn)]),
        programs=[title for title, _ in members],
        available=len(found),
        rounds=HELD_OUT_ROUNDS,
        is_starters=is_starters,
    )
    return HeldOut(facts, [candidate for _, candidate in members])


def contest(domain: Domain, champion: Candidate, held_out: HeldOut, cache: Path | None) -> Contest:
    """The champion alone against each program of the set, from `cache` if it is there. A file there that
    cannot be read counts as none."""
    path = None if cache is None else cache / held_out.facts.digest / f"{champion.digest}.json"
    if path is not None:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(path.read_bytes(), type=Contest)
    (duels,) = domain.duel([champion], held_out.opponents, seed=SEED, rounds=HELD_OUT_ROUNDS)
    found = generality(duels, held_out.facts.name)
    if path is not None:
        # Another run may be writing the same result: either is right, and one that is lost is found again.
        with contextlib.suppress(RunError):
            write_whole(path, msgspec.json.encode(found) + b"\n")
    return found


@reads_run
def outcome(folder: Path, cache: Path | None, goes_on: GoesOn = lambda _: True) -> SearchSummary | None:
    """The summary of the run in `folder`, with the contest of every round's champion; None if it was not to
    go on. It plays no champion twice."""
    run = read_run(folder)
    summary = summarise_run(run)
    held_out = choose(run.domain, run.settings)
    if held_out is None:
        return summary
    champions = {
        digest: program.source for history in run.histories for digest, program in history.champions.items()
    }
    contests: dict[str, Contest] = {}
    for number, (digest, source) in enumerate(champions.items()):
        if not goes_on(number / len(champions)):
            return None
        contests[digest] = contest(run.domain, run.domain.parse(source), held_out, cache)
    nodes = [_with_contests(node, contests) for node in summary.nodes]
    return msgspec.structs.replace(summary, nodes=nodes, held_out_set=held_out.facts)


def _with_contests(node: SearchNodeSummary, contests: dict[str, Contest]) -> SearchNodeSummary:
    rounds = [msgspec.structs.replace(one, contest=contests.get(one.champion)) for one in node.by_round]
    return msgspec.structs.replace(node, by_round=rounds)
