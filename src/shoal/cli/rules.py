"""The options that set the rules of a battle, with pMARS's letters, and what they add up to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.corewar.settings import Settings

MOST_ROUNDS = 1_000_000

Hill = Annotated[
    str,
    typer.Option(
        "--hill",
        metavar="NAME",
        help="Rules of a hill: 94, 94nop, 94x, 88, lp, tiny, nano, multiwarrior or drq.",
    ),
]
CoreSize = Annotated[int | None, typer.Option("-s", "--core-size", metavar="N", help="Size of the core.")]
Cycles = Annotated[int | None, typer.Option("-c", "--cycles", metavar="N", help="Cycles until a tie.")]
Processes = Annotated[
    int | None, typer.Option("-p", "--processes", metavar="N", help="Most processes of a warrior.")
]
Length = Annotated[
    int | None, typer.Option("-l", "--length", metavar="N", help="Most instructions of a warrior.")
]
Distance = Annotated[
    int | None,
    typer.Option(
        "-d", "--distance", metavar="N", help="Least distance of warriors; follows -l if not given."
    ),
]
PspaceSize = Annotated[
    int | None, typer.Option("-S", "--pspace", metavar="N", help="Size of the P-space of each warrior.")
]
Rules88 = Annotated[bool, typer.Option("-8", "--88", help="Accept only programs that keep to ICWS'88.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Random places come from this number.")]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        max=1024,
        help="Threads to use, by default one per core. They do not change the result.",
    ),
]


def settings_from(
    hill: str,
    core_size: int | None = None,
    cycles: int | None = None,
    processes: int | None = None,
    length: int | None = None,
    distance: int | None = None,
    pspace: int | None = None,
    rules_88: bool = False,
) -> Settings:
    """The hill's rules with what was given in their place. As in pMARS, a length without a distance sets
    both."""
    from shoal.corewar import settings

    given = {
        "core_size": core_size,
        "cycles": cycles,
        "processes": processes,
        "length": length,
        "distance": distance if distance is not None else length,
        "pspace": pspace,
        "standard": "88" if rules_88 else None,
    }
    return settings.hill(hill, **{name: value for name, value in given.items() if value is not None})


def in_words(settings: Settings) -> str:
    """The rules on one line."""
    return (
        f"core {settings.core_size}, cycles {settings.cycles}, processes {settings.processes}, "
        f"length {settings.length}, distance {settings.distance}"
        + (", ICWS'88" if settings.standard == "88" else "")
        + (", no P-space" if settings.standard == "94nop" else "")
        + (", the last survivor plays on" if settings.stop == "play-on" else "")
    )
