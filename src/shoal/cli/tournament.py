"""`shoal tournament`: everyone against everyone, one against all, or a set against a set."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import NOT_A_PROGRAM, options, rules
from shoal.cli.options import option
from shoal.cli.output import clean, note, print_json, print_table
from shoal.cli.rules import MOST_ROUNDS
from shoal.cli.sources import in_folder, read, refuse_stdin_twice
from shoal.errors import AssemblyError, ConfigError

if TYPE_CHECKING:
    from shoal.corewar.settings import Settings
    from shoal.corewar.tournament import Progress, Table
    from shoal.corewar.warrior import Warrior

MOST_IN_MATRIX = 20
SECONDS_UNTIL_PROGRESS = 2.0


def tournament(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|FOLDER",
            help="Redcode files, folders of .red files, @NAME; by default the starter set.",
        ),
    ] = None,
    challenger: Annotated[
        str | None, option("--challenger", "FILE", "Only this warrior, against all others.")
    ] = None,
    against: Annotated[
        Path | None, option("--against", "FOLDER", "Rank the files by battles against these warriors.")
    ] = None,
    rounds: Annotated[
        int,
        typer.Option("-r", "--rounds", metavar="N", min=1, max=MOST_ROUNDS, help="Rounds of each battle."),
    ] = 100,
    hill: rules.Hill = "94",
    seed: rules.Seed = 0,
    self_fights: Annotated[
        bool, typer.Option("--self", help="Everyone also meets a copy of itself.")
    ] = False,
    matrix: Annotated[
        bool, typer.Option("--matrix", help=f"Also the score of each pair, up to {MOST_IN_MATRIX} warriors.")
    ] = False,
    threads: rules.Threads = None,
    json: options.Json = False,
) -> None:
    """Rank warriors by battles of two.

    A win counts 3 points, a tie 1. The score is points per 100 rounds, from 0 to 300. Files that do
    not assemble are reported and left out.

    \b
    Examples:
      shoal tournament --matrix
      shoal tournament warriors/ --rounds 250
      shoal tournament warriors/ --challenger mine.red
      shoal tournament candidates/ --against benchmark/
    """
    from shoal.corewar.tournament import benchmark, round_robin
    from shoal.corewar.warriors import starter_names

    if challenger is not None and against is not None:
        raise ConfigError("--challenger and --against exclude each other: give one of them")
    refuse_stdin_twice([*(files or ()), challenger or "", str(against or "")])
    settings = rules.settings_from(hill)
    names, warriors = _load(files or [f"@{name}" for name in starter_names()], settings, rounds)
    opponents = warriors
    if challenger is not None:
        same = os.path.realpath(challenger)
        opponents = [one for name, one in zip(names, warriors, strict=True) if os.path.realpath(name) != same]
        names, warriors = [challenger], [read(challenger).fighter(settings, warriors=2, rounds=rounds)]
    elif against is not None:
        _, opponents = _load([str(against)], settings, rounds)
    with _progress() as progress:
        how: Any = {"seed": seed, "threads": threads, "progress": progress}
        if challenger is None and against is None:
            table = round_robin(warriors, settings, rounds, self_fights=self_fights, **how)
        else:
            table = benchmark(warriors, opponents, settings, rounds, **how)
    if json:
        _print_json(table, names, opponents, settings)
        return
    _print(table, opponents, one_against_all=challenger is not None)
    if matrix:
        _print_matrix(table, warriors, opponents)
    print(f"{len(table.pairings)} battles of {rounds} rounds, seed {seed}; {rules.in_words(settings)}")


def _load(files: list[str], settings: Settings, rounds: int) -> tuple[list[str], list[Warrior]]:
    """The programs that assemble, with their files' names; one line about each of the others.

    A file of a folder that cannot be read is left out too; one that was named itself is an error.
    """
    chosen = [(name, file) for name in files for file in in_folder(name)]
    names: list[str] = []
    warriors: list[Warrior] = []
    for name, file in chosen:
        try:
            warrior = read(file).fighter(settings, warriors=2, rounds=rounds)
            if warrior.code:
                warriors.append(warrior)
                names.append(file)
        except AssemblyError as error:
            note(f"{file}: left out: line {error.problems[0].line}: {error.problems[0].message}")
        except ConfigError as error:
            if name == file:
                raise
            note(f"left out: {error}")
    if len(warriors) < len(chosen):
        note(f"{len(chosen) - len(warriors)} of {len(chosen)} programs are left out")
    if not warriors:
        raise typer.Exit(NOT_A_PROGRAM)
    return names, warriors


@contextmanager
def _progress() -> Iterator[Progress | None]:
    """A bar on standard error once two seconds have passed; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from time import monotonic

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("battles"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("battles")
    started = monotonic()

    def report(done: int, total: int) -> None:
        if monotonic() - started > SECONDS_UNTIL_PROGRESS:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()


def _print_json(table: Table, names: list[str], opponents: list[Warrior], settings: Settings) -> None:
    pairings = [
        asdict(one) | {"opponent": opponents[one.second].name, "score": one.score} for one in table.pairings
    ]
    print_json(
        {
            "rows": [asdict(row) | {"file": names[row.index]} for row in table.rows],
            "pairings": pairings,
            "rounds": table.rounds,
            "seed": table.seed,
            "settings": rules.as_json(settings),
        }
    )


def _print(table: Table, opponents: list[Warrior], *, one_against_all: bool) -> None:
    def figures(one: Any) -> list[object]:
        return [one.wins, one.losses, one.ties, one.points, one.score]

    headings = ["author", "W", "L", "T", "points", "score"]
    if one_against_all:
        met = [(opponents[one.second], one) for one in table.pairings]
        rows = [[warrior.name, warrior.author, *figures(one)] for warrior, one in met]
        print_table(["opponent", *headings], [*rows, ["all", "", *figures(table.rows[0])]])
    else:
        rows = [[row.rank, row.name, row.author, *figures(row)] for row in table.rows]
        print_table(["rank", "warrior", *headings], rows)


def _print_matrix(table: Table, warriors: list[Warrior], opponents: list[Warrior]) -> None:
    """Row against column: the row's score, rounded."""
    if max(len(warriors), len(opponents)) > MOST_IN_MATRIX:
        note(f"no matrix: it is shown for up to {MOST_IN_MATRIX} warriors")
        return
    cells = {(one.first, one.second): round(one.score) for one in table.pairings}
    columns = list(range(len(opponents)))
    if warriors is opponents:
        # A fight of a warrior with itself keeps its own entry.
        cells = {(one.second, one.first): round(one.reversed().score) for one in table.pairings} | cells
        columns = [row.index for row in table.rows]
    print_table(
        ["scores against", *(str(number) for number in range(1, len(columns) + 1))],
        [
            [f"{number} {row.name}" if warriors is opponents else row.name]
            + [cells.get((row.index, column)) for column in columns]
            for number, row in enumerate(table.rows, start=1)
        ],
    )
    if warriors is not opponents:
        print(", ".join(f"{column + 1} {clean(opponents[column].name)}" for column in columns))
