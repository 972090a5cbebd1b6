"""The options that set the rules of a battle, with pMARS's letters, and the settings they add up to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import option

if TYPE_CHECKING:
    from shoal.corewar.settings import Settings

MOST_ROUNDS = 1_000_000


def _number(*letters: str, help: str) -> Any:
    return typer.Option(*letters, metavar="N", help=help)


Hill = Annotated[
    str, option("--hill", "NAME", "Rules of a hill: 94, 94nop, 94x, 88, lp, tiny, nano, multiwarrior or drq.")
]
CoreSize = Annotated[int | None, _number("-s", "--core-size", help="Size of the core.")]
Cycles = Annotated[int | None, _number("-c", "--cycles", help="Cycles until a tie.")]
Processes = Annotated[int | None, _number("-p", "--processes", help="Most processes of a warrior.")]
Length = Annotated[int | None, _number("-l", "--length", help="Most instructions of a warrior.")]
Distance = Annotated[
    int | None, _number("-d", "--distance", help="Least distance of warriors; follows -l if not given.")
]
PspaceSize = Annotated[int | None, _number("-S", "--pspace", help="Size of the P-space of each warrior.")]
Rules88 = Annotated[bool, typer.Option("-8", "--88", help="Accept only programs that keep to ICWS'88.")]
Seed = Annotated[int, _number("--seed", help="Random places come from this number.")]
Threads = Annotated[
    int | None,
    option(
        "--threads",
        "N",
        "Threads to use, by default one per core. They do not change the result.",
        min=1,
        max=1024,
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
    """The hill's rules, changed by the given options. As in pMARS, a length without a distance sets both."""
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
    names = ("cycles", "processes", "length", "distance")
    words = [f"core {settings.core_size}", *(f"{name} {getattr(settings, name)}" for name in names)]
    words += ["ICWS'88"] * (settings.standard == "88") + ["no P-space"] * (settings.standard == "94nop")
    words += ["the last survivor plays on"] * (settings.stop == "play-on")
    return ", ".join(words)


def as_json(settings: Settings) -> dict[str, Any]:
    return asdict(settings) | {"pspace": settings.pspace_size}
