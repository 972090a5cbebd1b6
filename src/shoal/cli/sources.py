"""From what was typed to Redcode: a file, a folder, `-` for standard input, `@dwarf` for a starter warrior.

Reading is bounded, and whatever cannot be read is a ConfigError that names it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import AssemblyError, ConfigError

if TYPE_CHECKING:
    from shoal.corewar.redcode import Assembly
    from shoal.corewar.settings import Settings
    from shoal.corewar.warrior import Warrior

FILES_HELP = "Redcode files; - is standard input, @NAME a starter warrior such as @dwarf."


@dataclass(frozen=True, slots=True)
class Source:
    """Redcode and what it was called on the command line."""

    file: str
    content: bytes

    def assemble(
        self, settings: Settings, *, warriors: int = 1, rounds: int = 1, lenient: bool = False
    ) -> Assembly:
        """The program; an AssemblyError carries the name of the file."""
        from shoal.corewar.redcode import assemble_with_warnings

        try:
            return assemble_with_warnings(
                self.content, settings, warriors=warriors, rounds=rounds, lenient=lenient, allow_empty=True
            )
        except AssemblyError as error:
            raise AssemblyError(error.problems, self.file) from error

    def fighter(self, settings: Settings, *, warriors: int = 1, rounds: int = 1) -> Warrior:
        """The program, called by its file where it has no name of its own."""
        from shoal.cli.output import note

        warrior = self.assemble(settings, warriors=warriors, rounds=rounds).warrior
        if not warrior.code:
            note(f"{self.file}: no instructions: it dies in its first cycle")
        return replace(warrior, name=Path(self.file).stem) if warrior.name == "Unknown" else warrior


def read_all(names: Sequence[str]) -> list[Source]:
    """The sources in the order in which they were named."""
    refuse_stdin_twice(names)
    return [read(name) for name in names]


def read(name: str) -> Source:
    """One source; a file goes before a starter warrior of the same name."""
    from shoal.corewar.redcode.limits import SOURCE_SIZE
    from shoal.corewar.warriors import starter_source

    if not name:
        raise ConfigError("a name is empty: name a file, or a starter warrior such as @dwarf")
    if name == "-" and sys.stdin is None:
        raise ConfigError("standard input (-) is closed: name a file")
    if name == "-":
        return _checked("standard input", sys.stdin.buffer.read(SOURCE_SIZE + 1), SOURCE_SIZE)
    path = Path(name)
    try:
        if name.startswith("@") and not path.exists():
            return Source(name, starter_source(name[1:]).encode())
        with path.open("rb") as file:
            return _checked(name, file.read(SOURCE_SIZE + 1), SOURCE_SIZE)
    except IsADirectoryError:
        raise ConfigError(f"{name} is a folder: name the files in it") from None
    except FileNotFoundError:
        raise ConfigError(f"{name}: there is no such file (starter warriors are called @dwarf, …)") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{name} cannot be read: {reason}") from None


def in_folder(name: str) -> list[str]:
    """The .red files of a folder in alphabetical order; anything else is returned as it is."""
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


def _checked(name: str, content: bytes, most: int) -> Source:
    if b"\0" in content:
        raise ConfigError(f"{name} is a binary file: give Redcode text")
    if len(content) > most:
        raise ConfigError(f"{name} is larger than {most} bytes: no warrior needs that much")
    return Source(name, content)
