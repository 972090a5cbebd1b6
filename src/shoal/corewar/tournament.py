"""Tournaments: many battles of two, counted as hills count them.

A round gives 3 points to the winner, or 1 to each where both survive. `score` is points per 100 rounds, so
it lies between 0 and 300 whatever the number of rounds; as every pair plays equally many, it is also the
mean over the opponents. The same arguments give the same table, whatever `threads` is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product

from shoal.corewar.battle import fight_all
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError

Progress = Callable[[int, int], None]  # of (battles done, in all): before the first and after each part

ROUNDS_PER_CALL = 1000  # a part of a second's work: progress stays visible, and all cores stay busy


@dataclass(frozen=True, slots=True)
class Pairing:
    """One battle of two, seen from the first: numbers of rounds won, lost and tied. `opponent_wins` is less
    than `losses` where both died in a round, as can happen when the rules let the last survivor play on."""

    first: int
    second: int
    wins: int
    losses: int
    ties: int
    opponent_wins: int

    @property
    def rounds(self) -> int:
        return self.wins + self.losses + self.ties

    @property
    def points(self) -> int:
        return 3 * self.wins + self.ties

    @property
    def score(self) -> float:
        """Points per 100 rounds; 0 where none was played."""
        return 100 * self.points / self.rounds if self.rounds else 0.0

    def reversed(self) -> Pairing:
        """The same battle, seen from the second."""
        losses = self.rounds - self.ties - self.opponent_wins
        return Pairing(self.second, self.first, self.opponent_wins, losses, self.ties, self.wins)


@dataclass(frozen=True, slots=True)
class Row:
    """One warrior's line of a table. `index` is its place in the sequence that was given."""

    rank: int
    index: int
    name: str
    author: str
    battles: int
    rounds: int
    wins: int
    losses: int
    ties: int
    points: int
    score: float


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the best first; equal points share a rank and stand in the order that was given. `pairings`
    holds each battle once, in the order of the arguments."""

    rows: tuple[Row, ...]
    pairings: tuple[Pairing, ...]
    rounds: int
    seed: int


def round_robin(
    warriors: Sequence[Warrior],
    settings: Settings = Settings(),
    rounds: int = 100,
    *,
    seed: int = 0,
    self_fights: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """Every pair meets once. With `self_fights` each also meets a copy of itself, and the first copy's
    results count."""
    if len(warriors) < (1 if self_fights else 2):
        raise ConfigError(f"a round robin of {len(warriors)} warriors: give two or more")
    together = combinations_with_replacement if self_fights else combinations
    pairs = list(together(range(len(warriors)), 2))
    pairings = _play(warriors, warriors, pairs, settings, rounds, seed, threads, progress)
    seen = [*pairings, *(one.reversed() for one in pairings if one.first != one.second)]
    return Table(_rows(warriors, seen), tuple(pairings), rounds, seed)


def benchmark(
    challengers: Sequence[Warrior],
    opponents: Sequence[Warrior],
    settings: Settings = Settings(),
    rounds: int = 100,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """Every challenger meets every opponent; the table ranks the challengers. In `pairings`, `first` is
    the index of a challenger and `second` that of an opponent."""
    if not challengers or not opponents:
        raise ConfigError(
            f"{len(challengers)} challengers against {len(opponents)} opponents: give at least one of each"
        )
    pairs = list(product(range(len(challengers)), range(len(opponents))))
    pairings = _play(challengers, opponents, pairs, settings, rounds, seed, threads, progress)
    return Table(_rows(challengers, pairings), tuple(pairings), rounds, seed)


def challenge(
    challenger: Warrior,
    opponents: Sequence[Warrior],
    settings: Settings = Settings(),
    rounds: int = 100,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Table:
    """One warrior against all the others: one row, and one pairing per opponent in their order."""
    return benchmark([challenger], opponents, settings, rounds, seed=seed, threads=threads, progress=progress)


def _play(
    firsts: Sequence[Warrior],
    seconds: Sequence[Warrior],
    pairs: Sequence[tuple[int, int]],
    settings: Settings,
    rounds: int,
    seed: int,
    threads: int | None,
    progress: Progress | None,
) -> list[Pairing]:
    """All battles share their places, so the cut into parts does not show in the result."""
    part = max(1, ROUNDS_PER_CALL // max(rounds, 1))
    pairings: list[Pairing] = []
    if progress:
        progress(0, len(pairs))
    for start in range(0, len(pairs), part):
        some = pairs[start : start + part]
        battles = [(firsts[first], seconds[second]) for first, second in some]
        results = fight_all(battles, settings, rounds, seed=seed, threads=threads)
        for (first, second), result in zip(some, results, strict=True):
            one, other = result.standings()
            pairings.append(Pairing(first, second, one.wins, one.losses, one.ties, other.wins))
        if progress:
            progress(len(pairings), len(pairs))
    return pairings


_SUMMED = ("wins", "losses", "ties", "opponent_wins")


def _rows(warriors: Sequence[Warrior], seen: Sequence[Pairing]) -> tuple[Row, ...]:
    own: list[list[Pairing]] = [[] for _ in warriors]
    for pairing in seen:
        own[pairing.first].append(pairing)
    # The sum of a warrior's battles is again a pairing, with points and a score.
    sums = [
        Pairing(index, -1, *(sum(getattr(one, name) for one in own[index]) for name in _SUMMED))
        for index in range(len(warriors))
    ]
    return tuple(
        Row(
            rank=1 + sum(other.points > one.points for other in sums),
            index=one.first,
            name=warriors[one.first].name,
            author=warriors[one.first].author,
            battles=len(own[one.first]),
            **{name: getattr(one, name) for name in ("rounds", "wins", "losses", "ties", "points", "score")},
        )
        for one in sorted(sums, key=lambda one: -one.points)
    )
