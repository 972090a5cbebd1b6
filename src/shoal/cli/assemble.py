"""`shoal assemble`: from Redcode to the load file, or to the problems of the source."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import NOT_A_PROGRAM, options, rules
from shoal.cli.output import clean, note, print_json, problem_text
from shoal.cli.sources import Files, read_all
from shoal.errors import AssemblyError

if TYPE_CHECKING:
    from shoal.corewar.redcode import Assembly


def assemble(
    files: Files,
    hill: rules.Hill = "94",
    core_size: rules.CoreSize = None,
    cycles: rules.Cycles = None,
    processes: rules.Processes = None,
    length: rules.Length = None,
    distance: rules.Distance = None,
    pspace: rules.PspaceSize = None,
    rules_88: rules.Rules88 = False,
    source: Annotated[
        bool, typer.Option("--source", help="Print a complete source that assembles to the same program.")
    ] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Also accept missing operands and commas, and long lines.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Assemble warriors and print their load files.

    The form is that of `pmars -r 0`. Warnings go to standard error. Exit code 3 if a program does not
    assemble.

    \b
    Examples:
      shoal assemble mine.red
      shoal assemble @paper --source
      shoal assemble mine.red --json
    """
    settings = rules.settings_from(
        hill, core_size, cycles, processes, length, distance, pspace, rules_88=rules_88
    )
    sources = read_all(files)
    settings.check_room_for(1)
    entries: list[dict[str, Any]] = []
    for one in sources:
        try:
            # pMARS lists a program with -r 0, and ROUNDS is then 0 in it.
            assembly = one.assemble(settings, warriors=len(sources), rounds=0, lenient=lenient)
        except AssemblyError as error:
            entries.append({"file": one.file, "problems": [asdict(problem) for problem in error.problems]})
            lines = [problem_text(problem, one.file) for problem in error.problems]
            text = ""
        else:
            entries.append({"file": one.file} | _as_json(assembly))
            lines = ["warning: " + problem_text(warning, one.file) for warning in assembly.warnings]
            text = _text(assembly, source, settings.standard == "88")
        if not json:
            for line in lines:
                print(line, file=sys.stderr)
            print(text, end="")
    if json:
        print_json(entries[0] if len(entries) == 1 else entries)
    bad = sum("problems" in entry for entry in entries)
    if bad:
        if len(sources) > 1 and not json:
            note(f"{bad} of {len(sources)} programs do not assemble")
        raise typer.Exit(NOT_A_PROGRAM)


def _text(assembly: Assembly, source: bool, as_88: bool) -> str:
    from shoal.corewar.redcode import disassemble, listing

    # A listing goes to terminals: names keep only their harmless characters.
    warrior = replace(
        assembly.warrior,
        name=clean(assembly.warrior.name, 255),
        author=clean(assembly.warrior.author, 255),
        strategy="\n".join(clean(line, 255) for line in assembly.warrior.strategy.split("\n")),
    )
    return disassemble(warrior) if source else listing(warrior, standard="88" if as_88 else "94")


def _as_json(assembly: Assembly) -> dict[str, Any]:
    warrior = assembly.warrior
    names = ("name", "author", "strategy", "start", "pin", "digest")
    return {name: getattr(warrior, name) for name in names} | {
        "length": len(warrior),
        "code": [str(instruction) for instruction in warrior.code],
        "warnings": [asdict(warning) for warning in assembly.warnings],
    }
