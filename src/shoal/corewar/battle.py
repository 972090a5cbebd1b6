"""Battles: some warriors, some rounds, and their results in the terms of hills and of DRQ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shoal.corewar.mars import engine
from shoal.corewar.mars.binding import Counts, Numbers, Series
from shoal.corewar.mars.placement import random_positions
from shoal.corewar.settings import Settings, whole_number
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Standing:
    """One warrior's results. `survived[k]` counts the rounds that it ended alive with k others. `wins` are
    rounds it ended alive and alone, `ties` those with others, `losses` those it died in. `points` are those
    of hills: (W * W - 1) // S for each round survived, with W warriors and S survivors; for two warriors that
    is 3 for a win and 1 for a tie."""

    name: str
    author: str
    wins: int
    ties: int
    losses: int
    points: int
    survived: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The rounds of one battle, each array of shape (rounds, warriors)."""

    warriors: tuple[Warrior, ...]
    settings: Settings
    positions: Numbers
    counts: Counts

    def __repr__(self) -> str:
        return f"<{self.rounds} rounds of {', '.join(warrior.name for warrior in self.warriors)}>"

    @property
    def rounds(self) -> int:
        return len(self.positions)

    @property
    def instructions(self) -> int:
        """Instructions executed in all rounds by all warriors."""
        return int(self.counts.executed.sum(dtype=np.int64))

    @cached_property
    def alive(self) -> npt.NDArray[np.bool_]:
        """Whether the warrior had a process at the end of the round."""
        return self.counts.processes > 0

    @cached_property
    def outcome(self) -> npt.NDArray[np.int8]:
        """1: alive and alone at the end (win), 0: alive with others (tie), -1: died (loss)."""
        alone = self.alive.sum(axis=1, keepdims=True) == 1
        return np.where(self.alive, np.where(alone, 1, 0), -1).astype(np.int8)

    @cached_property
    def survived_cycles(self) -> npt.NDArray[np.int64]:
        """Cycles after which the warrior still had a process; all of them if it lives at the end."""
        executed = self.counts.executed.astype(np.int64)
        return np.where(self.alive, self.settings.cycles, np.maximum(executed - 1, 0))

    @cached_property
    def survival(self) -> npt.NDArray[np.float64]:
        """The share of all cycles that the warrior survived, from 0 to 1."""
        share: npt.NDArray[np.float64] = self.survived_cycles / self.settings.cycles
        return share

    @cached_property
    def share(self) -> npt.NDArray[np.float64]:
        """DRQ's fitness: N / T * sum over the T cycles of (1 if alive) / (number alive), N warriors. It lies
        between 0 and N, and 1 is an even share. Exact where `settings.stop` is "play-on"."""
        warriors = len(self.warriors)
        order = np.argsort(self.survived_cycles, axis=1, kind="stable")
        ends = np.take_along_axis(self.survived_cycles, order, axis=1)
        spans = np.diff(ends, axis=1, prepend=0)
        earned = np.cumsum(spans / np.arange(warriors, 0, -1), axis=1)
        share: npt.NDArray[np.float64] = np.empty_like(earned)
        np.put_along_axis(share, order, earned, axis=1)
        share *= warriors / self.settings.cycles
        return share

    @property
    def spawned(self) -> Numbers:
        """Processes that the warrior added by SPL (DRQ's total spawned processes)."""
        return self.counts.spawned

    @property
    def coverage(self) -> Numbers:
        """Distinct addresses at which executing queued a process (DRQ's memory coverage)."""
        if self.counts.coverage is None:
            raise ConfigError("coverage was not counted: fight with statistics=True")
        return self.counts.coverage

    def standings(self) -> list[Standing]:
        """One entry per warrior, in the order in which they were given."""
        warriors = len(self.warriors)
        survivors = self.alive.sum(axis=1)
        standings = []
        for index, warrior in enumerate(self.warriors):
            counts = np.bincount(survivors[self.alive[:, index]], minlength=warriors + 1)
            wins, *ties = survived = tuple(counts[1:].tolist())
            losses = self.rounds - sum(survived)
            points = sum(count * ((warriors**2 - 1) // alive) for alive, count in enumerate(survived, 1))
            name, author = warrior.name, warrior.author
            standings.append(Standing(name, author, wins, sum(ties), losses, points, survived))
        return standings


def fight(
    warriors: Sequence[Warrior],
    settings: Settings = Settings(),
    rounds: int = 1,
    *,
    seed: int = 0,
    positions: npt.ArrayLike | None = None,
    statistics: bool = False,
    threads: int | None = None,
) -> Result:
    """Plays one battle, the same for the same arguments and any `threads`. Places come from `seed`, or from
    `positions`: a row per round, a number per warrior, whatever the distance. `statistics` adds coverage."""
    return fight_all(
        [warriors], settings, rounds, seed=seed, positions=positions, statistics=statistics, threads=threads
    )[0]


def fight_all(
    battles: Sequence[Sequence[Warrior]],
    settings: Settings = Settings(),
    rounds: int = 1,
    *,
    seed: int = 0,
    positions: npt.ArrayLike | None = None,
    statistics: bool = False,
    threads: int | None = None,
) -> list[Result]:
    """Plays many battles in one call, all with the same places for the same number of warriors."""
    if not isinstance(settings, Settings):
        raise ConfigError(f"settings is {settings!r}: give a Settings, or hill(NAME) for the rules of a hill")
    rounds, seed = whole_number("rounds", rounds), whole_number("seed", seed)
    for warrior in (warrior for warriors in battles for warrior in warriors):
        if not isinstance(warrior, Warrior):
            raise ConfigError(f"{warrior!r} is not a warrior: assemble its source first")
    given = None if positions is None else as_positions(positions)
    if given is not None and rounds not in (1, len(given)):
        raise ConfigError(f"{rounds} rounds and {len(given)} rows of positions: leave one of them out")
    places: dict[int, Numbers] = {}
    series = []
    for warriors in battles:
        count = len(warriors)
        if given is not None:
            places[count] = given
        elif count not in places:
            places[count] = random_positions(settings, count, rounds, seed)
        series.append(Series(tuple(warriors), places[count]))
    counts = engine.play(series, settings, statistics=statistics, threads=threads)
    return [
        Result(one.warriors, settings, one.positions, count)
        for one, count in zip(series, counts, strict=True)
    ]


def as_positions(positions: npt.ArrayLike) -> Numbers:
    """A caller's table of places, checked as far as that needs no core."""
    try:
        array = np.asarray(positions)
    except ValueError:
        array = np.empty(0)
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise ConfigError("positions: give one row per round with one whole number per warrior")
    if array.size and (int(array.min()) < 0 or int(array.max()) > 0xFFFF):
        raise ConfigError("positions: give numbers from 0 to the core size less one")
    own = np.array(array, dtype=np.uint32, order="C")  # a copy: nobody else can change it during a battle
    own.flags.writeable = False
    return own
