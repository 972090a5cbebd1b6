"""Texts that a user gives as files: prompts, and the programs that a search begins with. They are read once,
before a run begins, and are part of its settings from then on, so a resumed run depends on no file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shoal.errors import CandidateError, ConfigError
from shoal.evolve.domain import Domain
from shoal.evolve.prompts import Prompts, Template, fitted, parse_template

Tell = Callable[[str], object]
"""Hears a sentence for people."""

MOST_PROGRAM_BYTES = 1 << 16
MOST_PROGRAMS = 1000
MOST_PROGRAMS_BYTES = 1 << 20
"""All programs of a run that were given as files."""
MOST_PROMPT_BYTES = 1 << 16
MOST_NAMED = 5
PARTS = Prompts.__struct_fields__


def read_prompts(given: str | Mapping[str, str | Template], tell: Tell) -> dict[str, str | Template]:
    """The texts by their part. `given` is a folder, or names a file for each part; a text that was read
    before stays as it is."""
    if isinstance(given, str):
        given = _prompts_in(Path(given), tell) if given else {}
    found: dict[str, str | Template] = {}
    for part, source in given.items():
        if part not in PARTS:
            raise ConfigError(f"prompts.{part[:80]}: there is no such prompt: known are {', '.join(PARTS)}")
        if isinstance(source, Template):
            found[part] = fitted(part, source, f"prompts.{part}")
        else:
            path = Path(source)
            content = _read(path, MOST_PROMPT_BYTES, f"prompts.{part}")
            try:
                text = content.decode("utf-8")
            except UnicodeDecodeError as error:
                raise ConfigError(
                    f"prompts.{part}: {path} is no text in UTF-8 (byte {error.start})"
                ) from None
            found[part] = fitted(part, parse_template(path.stem, text), f"prompts.{part}: {path}")
    return found


def _prompts_in(folder: Path, tell: Tell) -> dict[str, str]:
    """The file of each part: its name begins with the part's, as in new.md or new_prompt_0.txt."""
    found: dict[str, str] = {}
    other = []
    for path in _files_in(folder, "prompts"):
        part = next((part for part in PARTS if path.name.lower().startswith(part)), None)
        if part is None:
            other.append(path.name)
        elif part in found:
            raise ConfigError(
                f"prompts: {found[part]} and {path} may both be the prompt {part}: name the one you mean, as "
                f'in prompts.{part} = "{path}"'
            )
        else:
            found[part] = str(path)
    if not found:
        raise ConfigError(
            f"prompts: {folder} holds none: its files begin with {', '.join(PARTS)}, as in new.md"
        )
    if other:
        tell(f"prompts: left out of {folder}, as it is none of {', '.join(PARTS)}: {_listed(other)}")
    return found


def read_programs_for(
    key: str, entries: Sequence[str], programs: Mapping[str, str], domain: Domain, tell: Tell
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names that the entries of the setting `key` stand for, and the texts of those that are neither in
    `programs` nor starters. An entry is a name, a file, or a folder with files of the domain's suffix; a file
    in a folder that is no program is left out, and told."""
    starters = domain.starters()
    names: list[str] = []
    read: dict[str, str] = {}
    for entry in entries:
        path = Path(entry)
        if entry in programs or entry in starters:
            names.append(entry)
        elif _is_there(path, entry) and path.is_dir():
            suffix = domain.words.suffix
            files = [file for file in _files_in(path, key) if file.suffix.lower() == suffix]
            if not files:
                raise ConfigError(f"{key}: {entry} holds no {suffix} files: name a folder of programs")
            bad: list[str] = []
            for file in files:
                name, text = str(file), programs.get(str(file)) or _program(file, key)
                why = _why_no_program(domain, text)
                if why:
                    bad.append(f"{name} ({why})")
                else:
                    read[name] = text
                    names.append(name)
            if len(bad) == len(files):
                raise ConfigError(f"{key}: {entry} holds no program: {_listed(bad)}")
            if bad:
                tell(f"{key}: left out, as it is no program here: {_listed(bad)}")
        elif _is_there(path, entry):
            text = _program(path, key)
            if why := _why_no_program(domain, text):
                raise ConfigError(f"{key}: {entry} is no program: {why}")
            read[entry] = text
            names.append(entry)
        else:
            known = ", ".join(starters) or "none"
            raise ConfigError(
                f"{key}: no starter is called {entry[:200]!r}: known are {known}; and there is no file or "
                "folder of this name"
            )
    size = sum(len(text.encode("utf-8", "replace")) for text in read.values())
    if len(names) > MOST_PROGRAMS or size > MOST_PROGRAMS_BYTES:
        raise ConfigError(
            f"{key}: {len(names)} programs with {size} bytes in files: give {MOST_PROGRAMS} programs and "
            f"{MOST_PROGRAMS_BYTES} bytes at most"
        )
    return tuple(dict.fromkeys(names)), read


def _is_there(path: Path, entry: str) -> bool:
    try:
        return bool(entry) and path.exists()
    except (OSError, ValueError):  # no file can have such a name
        return False


def _why_no_program(domain: Domain, text: str) -> str:
    try:
        domain.parse(text)
    except CandidateError as error:
        return " ".join(str(error).partition("\n")[0].split())
    return ""


def _program(path: Path, key: str) -> str:
    # Old warriors have comments in other encodings than UTF-8.
    return _read(path, MOST_PROGRAM_BYTES, key).decode("utf-8", "replace")


def _read(path: Path, most: int, key: str) -> bytes:
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            raise ConfigError(
                f"{key}: {path} is not a file" if path.exists() else f"{key}: there is no {path}"
            )
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{key}: {path} cannot be read: {why}") from None
    if len(content) > most:
        raise ConfigError(f"{key}: {path} is larger than {most} bytes")
    return content


def _files_in(folder: Path, key: str) -> list[Path]:
    try:
        if not folder.is_dir():
            raise ConfigError(f"{key}: {folder} is not a folder")
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{key}: {folder} cannot be read: {why}") from None


def _listed(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {left} more" if left > 0 else "")
