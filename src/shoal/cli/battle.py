"""`shoal battle`: one battle of any number of warriors."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options, rules
from shoal.cli.options import option
from shoal.cli.output import print_json, print_table
from shoal.cli.rules import MOST_ROUNDS
from shoal.cli.sources import Files, read_all
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.corewar.battle import Result
    from shoal.corewar.mars.binding import Numbers
    from shoal.corewar.settings import Settings
    from shoal.corewar.warrior import Warrior


def battle(
    files: Files,
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
        int | None, option("-F", "N", "First place of warrior 2; later rounds follow as in pMARS.")
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
        print("\n".join(_koth_lines(result)), end="\n" if rounds else "")
        return
    entries = [
        asdict(standing) | {"file": source.file, "digest": warrior.digest}
        for standing, source, warrior in zip(result.standings(), sources, warriors, strict=True)
    ]
    means = _means(result) if stats else {}
    for index, entry in enumerate(entries):
        entry |= {name: numbers[index] for name, numbers in means.items()}
    if by_score:
        entries.sort(key=lambda entry: -entry["points"])
    if json:
        head = {"warriors": entries, "rounds": result.rounds, "instructions": result.instructions}
        drawn = {"settings": rules.as_json(settings), "seed": seed if positions is None else None}
        print_json(head | drawn)
        return
    headings = ["name", "author", "wins", "losses", "ties", "points", *means]
    rows = [[_shown(name, entry[name]) for name in headings] for entry in entries]
    print_table(["warrior", *headings[1:]], rows)
    drawn_from = f"seed {seed}" if positions is None else "places fixed"
    print(f"{result.rounds} rounds, {drawn_from}; {rules.in_words(settings)}")
    print(f"{result.instructions:,} instructions in {seconds:.2f} s")


def _koth_lines(result: Result) -> list[str]:
    """The output of pMARS with -k: for two warriors wins and ties, otherwise the score, the rounds survived
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
    from shoal.corewar.mars import placement

    if (fixed_position is not None) + fixed_series + all_places > 1:
        raise ConfigError("-F, -f and -P exclude each other: give one of them")
    if all_places:
        return placement.all_positions(settings)
    if fixed_position is not None:
        seed = placement.pmars_fixed_seed(settings, fixed_position)
    elif fixed_series:
        seed = placement.pmars_series_seed(warriors)
    else:
        return None
    return placement.pmars_positions(settings, len(warriors), rounds, seed)


def _means(result: Result) -> dict[str, list[float]]:
    """Means over the rounds, per warrior."""
    columns = {name: getattr(result, name) for name in ("spawned", "coverage", "survival", "share")}
    return {
        name: numbers.mean(axis=0).tolist() if result.rounds else [0.0] * len(result.warriors)
        for name, numbers in columns.items()
    }


def _shown(name: str, value: Any) -> Any:
    return f"{value:.3f}" if name in ("survival", "share") else value
