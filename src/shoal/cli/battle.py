"""`shoal battle`: one battle of any number of warriors."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options, rules
from shoal.cli.rules import MOST_ROUNDS
from shoal.cli.sources import FILES_HELP
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from shoal.corewar.battle import Result
    from shoal.corewar.mars.binding import Numbers
    from shoal.corewar.settings import Settings
    from shoal.corewar.warrior import Warrior


def battle(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=FILES_HELP)],
    rounds: Annotated[
        int | None,
        typer.Option(
            "-r", "--rounds", metavar="N", min=0, max=MOST_ROUNDS, help="Rounds to play, by default 1."
        ),
    ] = None,
    hill: rules.Hill = "94",
    core_size: rules.CoreSize = None,
    cycles: rules.Cycles = None,
    processes: rules.Processes = None,
    length: rules.Length = None,
    distance: rules.Distance = None,
    pspace: rules.PspaceSize = None,
    rules_88: rules.Rules88 = False,
    fixed_position: Annotated[
        int | None,
        typer.Option("-F", metavar="N", help="First place of warrior 2; later rounds follow as in pMARS."),
    ] = None,
    fixed_series: Annotated[
        bool, typer.Option("-f", help="Places that depend on the programs only, as in pMARS.")
    ] = False,
    all_places: Annotated[
        bool, typer.Option("-P", help="Every place of warrior 2 once with each moving first.")
    ] = False,
    seed: rules.Seed = 0,
    koth: Annotated[bool, typer.Option("-k", help="Print what `pmars -b -k` prints, and only that.")] = False,
    brief: Annotated[bool, typer.Option("-b", help="Accepted for pMARS's sake: output is brief.")] = False,
    by_score: Annotated[bool, typer.Option("-o", help="Best first, except with -k.")] = False,
    stats: Annotated[
        bool, typer.Option("--stats", help="Add mean processes spawned, addresses covered, survival, share.")
    ] = False,
    threads: rules.Threads = None,
    json: options.Json = False,
) -> None:
    """Let warriors fight, and show who survived how often.

    Places are drawn from --seed unless -F, -f or -P sets them; -F, -f and -P give the results of pMARS.

    \b
    Examples:
      shoal battle mine.red @dwarf -r 100
      shoal battle a.red b.red --hill nano -r 1000 --stats
      shoal battle a.red b.red -P -k
    """
    from time import perf_counter

    from shoal.cli.sources import read_all
    from shoal.corewar.battle import fight
    from shoal.corewar.mars.placement import all_positions

    settings = rules.settings_from(
        hill, core_size, cycles, processes, length, distance, pspace, rules_88=rules_88
    )
    if koth and json:
        raise ConfigError("-k and --json are two forms of output: leave one of them out")
    sources = read_all(files)
    settings.check_room_for(len(sources))
    if all_places:
        if len(sources) != 2:
            raise ConfigError(f"-P with {len(sources)} warriors: it takes exactly two")
        places = len(all_positions(settings))
        if rounds not in (None, places):
            raise ConfigError(f"-P plays every place, here {places} rounds: leave out -r {rounds}")
        rounds = places
    rounds = 1 if rounds is None else rounds
    warriors = [source.fighter(settings, warriors=len(sources), rounds=rounds) for source in sources]
    positions = _positions(warriors, settings, rounds, fixed_position, fixed_series, all_places)
    started = perf_counter()
    result = fight(
        warriors, settings, rounds, seed=seed, positions=positions, statistics=stats, threads=threads
    )
    seconds = perf_counter() - started
    if koth:
        print("\n".join(koth_lines(result)), end="\n" if rounds else "")
    elif json:
        from shoal.cli.output import print_json

        print_json(_as_json(result, [source.file for source in sources], seed, positions, stats, by_score))
    else:
        _print(result, f"seed {seed}" if positions is None else "places fixed", seconds, stats, by_score)


def koth_lines(result: Result) -> list[str]:
    """What pMARS prints with -k: for two warriors wins and ties, otherwise the score, the rounds survived
    with 1, 2, … survivors and the rounds lost. pMARS counts a warrior alone as surviving always."""
    if not result.rounds:
        return []
    if len(result.warriors) == 1:
        return [f"0 {result.rounds} 0"]
    if len(result.warriors) == 2:
        return [f"{standing.wins} {standing.ties}" for standing in result.standings()]
    return [
        " ".join(map(str, (standing.points, *standing.survived, standing.losses)))
        for standing in result.standings()
    ]


def _positions(
    warriors: Sequence[Warrior],
    settings: Settings,
    rounds: int,
    fixed_position: int | None,
    fixed_series: bool,
    all_places: bool,
) -> Numbers | None:
    from shoal.corewar.mars.placement import (
        all_positions,
        pmars_fixed_seed,
        pmars_positions,
        pmars_series_seed,
    )

    if (fixed_position is not None) + fixed_series + all_places > 1:
        raise ConfigError("-F, -f and -P exclude each other: give one of them")
    if all_places:
        return all_positions(settings)
    if fixed_position is not None:
        seed = pmars_fixed_seed(settings, fixed_position)
    elif fixed_series:
        seed = pmars_series_seed(warriors)
    else:
        return None
    return pmars_positions(settings, len(warriors), rounds, seed)


def _order(result: Result, by_score: bool) -> list[int]:
    order = list(range(len(result.warriors)))
    standings = result.standings()
    return sorted(order, key=lambda index: -standings[index].points) if by_score else order


def _means(result: Result) -> dict[str, list[float]]:
    """Means over the rounds, per warrior."""
    columns: dict[str, npt.NDArray[Any]] = {
        "spawned": result.spawned,
        "coverage": result.coverage,
        "survival": result.survival,
        "share": result.share,
    }
    return {
        name: numbers.mean(axis=0).tolist() if result.rounds else [0.0] * len(result.warriors)
        for name, numbers in columns.items()
    }


def _as_json(
    result: Result,
    files: Sequence[str],
    seed: int,
    positions: Numbers | None,
    stats: bool,
    by_score: bool,
) -> dict[str, Any]:
    standings = result.standings()
    means = _means(result) if stats else {}
    warriors = []
    for index in _order(result, by_score):
        entry = asdict(standings[index]) | {"file": files[index], "digest": result.warriors[index].digest}
        warriors.append(entry | {name: numbers[index] for name, numbers in means.items()})
    return {
        "warriors": warriors,
        "rounds": result.rounds,
        "instructions": result.instructions,
        "settings": asdict(result.settings) | {"pspace": result.settings.pspace_size},
        "seed": seed if positions is None else None,
    }


def _print(result: Result, places: str, seconds: float, stats: bool, by_score: bool) -> None:
    from shoal.cli.output import print_table

    standings = result.standings()
    headings = ["warrior", "author", "wins", "losses", "ties", "points"]
    means = _means(result) if stats else {}
    rows = []
    for index in _order(result, by_score):
        one = standings[index]
        row: list[object] = [one.name, one.author, one.wins, one.losses, one.ties, one.points]
        for name, numbers in means.items():
            row.append(f"{numbers[index]:.3f}" if name in ("survival", "share") else numbers[index])
        rows.append(row)
    print_table([*headings, *means], rows)
    print(f"{result.rounds} rounds, {places}; {rules.in_words(result.settings)}")
    print(f"{result.instructions:,} instructions in {seconds:.2f} s")
