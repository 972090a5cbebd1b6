"""From names on the command line to Redcode: a file, `-` for standard input, `@dwarf` for a starter.

Reading is bounded, and a source that cannot be read is a ConfigError that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.output import note
from shoal.errors import AssemblyError, ConfigError

if TYPE_CHECKING:
    from shoal.corewar.redcode import Assembly
    from shoal.corewar.settings import Settings
    from shoal.corewar.warrior import Warrior

FILES = typer.Argument(
    metavar="FILE", help="Redcode files; - is standard input, @NAME a starter warrior such as @dwarf."
)
Files = Annotated[list[str], FILES]


@dataclass(frozen=True, slots=True)
class Source:
    """Redcode, and its name on the command line."""

    file: str
    content: bytes

    def assemble(
        self, settings: Settings, *, warriors: int = 1, rounds: int = 1, lenient: bool = False
    ) -> Assembly:
        """The program, empty ones included as in pMARS; an AssemblyError carries the name of the file."""
        from shoal.corewar.redcode import assemble_with_warnings

        try:
            return assemble_with_warnings(
                self.content, settings, warriors=warriors, rounds=rounds, lenient=lenient, allow_empty=True
            )
        except AssemblyError as error:
            raise AssemblyError(error.problems, self.file) from error

    def fighter(self, settings: Settings, *, warriors: int = 1, rounds: int = 1) -> Warrior:
        """The program, called by its file where it has no name of its own."""
        warrior = self.assemble(settings, warriors=warriors, rounds=rounds).warrior
        if not warrior.code:
            note(f"{self.file}: no instructions: it dies in its first cycle")
        return replace(warrior, name=Path(self.file).stem) if warrior.name == "Unknown" else warrior


def read_all(names: Sequence[str]) -> list[Source]:
    """The sources in the order of their names."""
    refuse_stdin_twice(names)
    return [read(name) for name in names]


def read(name: str) -> Source:
    """One source; a file goes before a starter warrior of the same name."""
    from shoal.corewar.redcode.limits import SOURCE_SIZE
    from shoal.corewar.warriors import starter_source

    if not name:
        raise ConfigError("a name is empty: name a file, or a starter warrior such as @dwarf")
    path = Path(name)
    try:
        if name == "-":
            if sys.stdin is None:
                raise ConfigError("standard input (-) is closed: name a file")
            name, content = "standard input", sys.stdin.buffer.read(SOURCE_SIZE + 1)
        elif name.startswith("@") and not path.exists():
            content = starter_source(name[1:]).encode()
        else:
            with path.open("rb") as file:
                content = file.read(SOURCE_SIZE + 1)
    except IsADirectoryError:
        raise ConfigError(f"{name} is a folder: name the files in it") from None
    except FileNotFoundError:
        raise ConfigError(f"{name}: there is no such file (starter warriors are called @dwarf, …)") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{name} cannot be read: {reason}") from None
    if b"\0" in content:
        raise ConfigError(f"{name} is a binary file: give Redcode text")
    if len(content) > SOURCE_SIZE:
        raise ConfigError(f"{name} is larger than {SOURCE_SIZE} bytes: no warrior needs that much")
    return Source(name, content)


def in_folder(name: str) -> list[str]:
    """The .red files of a folder in alphabetical order; any other name is returned as it is."""
    path = Path(name)
    if not name:
        raise ConfigError("an empty name: name a folder of warriors or files")
    try:
        if not path.is_dir():
            return [name]
        # Regular files only: opening a pipe that somebody left there would wait for ever.
        files = sorted(
            str(file) for file in path.iterdir() if file.suffix.lower() == ".red" and file.is_file()
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be read: {error}") from None
    if not files:
        raise ConfigError(f"{name} holds no .red files: name a folder of warriors")
    return files


def refuse_stdin_twice(names: Sequence[str]) -> None:
    if names.count("-") > 1:
        raise ConfigError("standard input (-) is named twice and can be read only once: save it as a file")
