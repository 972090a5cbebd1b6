"""One evaluator for all runs of a domain, and held-out programs that took no part in a search. The common
opponents are the domain's starters, on fixed seeds, so numbers compare between nodes, runs and machines."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from shoal.errors import CandidateError, ConfigError
from shoal.evolve.archive import Archive, Elite
from shoal.evolve.domain import Domain
from shoal.evolve.metrics import generality, merge_common
from shoal.runs.search import Contest, Duelled, Evaluation

MOST_OPPONENTS = 8
REPEATS = 20
SEED = 20_260_527
HELD_OUT_ROUNDS = 40
STARTERS = "the starter set"
MOST_FILE_BYTES = 1 << 16


def common_evaluations(domain: Domain, elites: Sequence[Elite]) -> list[Evaluation]:
    starters = domain.starters()
    limit = MOST_OPPONENTS if domain.opponent_limit is None else min(MOST_OPPONENTS, domain.opponent_limit)
    opponents = [domain.parse(starters[name]) for name in sorted(starters)[:limit]]
    candidates = [domain.parse(elite.source) for elite in elites]
    return domain.evaluate(candidates, opponents, seed=SEED, rounds=REPEATS)


def merge_in_common(domain: Domain, archives: Sequence[Archive]) -> Archive:
    return merge_common(archives, lambda elites: common_evaluations(domain, elites))


def fight_held_out(domain: Domain, source: str, others: Mapping[str, str], name: str) -> Contest:
    """The program alone against each of the others."""
    opponents, names, refused = [], [], 0
    for title, text in others.items():
        try:
            opponents.append(domain.parse(text))
            names.append(title)
        except CandidateError:
            refused += 1
    if not opponents:
        raise ConfigError(f"none of the {refused} held-out programs of {name} can be read: name others")
    (duels,) = domain.duel([domain.parse(source)], opponents, seed=SEED, rounds=HELD_OUT_ROUNDS)
    listed = [
        Duelled(title, duel.own, duel.other, duel.outcome) for title, duel in zip(names, duels, strict=True)
    ]
    return msgspec.structs.replace(generality(duels, name), per_opponent=listed, refused=refused)


def check_held_out(domain: Domain, folder: Path) -> None:
    """Refuses a folder without a single program, before anything is spent."""
    others = read_programs(folder)
    for text in others.values():
        with contextlib.suppress(CandidateError):
            domain.parse(text)
            return
    raise ConfigError(f"none of the {len(others)} files in the held-out folder {folder} is a program")


def read_programs(folder: Path) -> dict[str, str]:
    """The programs in a folder, one per file, by the name of the file; in the order of the names."""
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
        stems = [path.stem for path in files]
        found = {path.stem if stems.count(path.stem) == 1 else path.name: _text_of(path) for path in files}
    except OSError as error:
        raise ConfigError(f"held-out folder {folder} cannot be read: {error.strerror}") from error
    if not found:
        raise ConfigError(f"held-out folder {folder} is empty: put programs into it, one per file")
    return found


def _text_of(path: Path) -> str:
    """As much of a file as a program may have."""
    with path.open("rb") as file:
        return file.read(MOST_FILE_BYTES).decode("utf-8", "replace")
