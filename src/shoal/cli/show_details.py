"""`shoal show --cell`, `--lineage` and `--rollout`. All texts may be a stranger's."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.cli.output import clean, clean_lines, print_json
from shoal.errors import ConfigError
from shoal.runs.records import reads_run

if TYPE_CHECKING:
    from shoal.evolve.programs import Made
    from shoal.train.transcript import ShownGroup

MOST_DIFFERENCE = 60
MOST_SOURCE = 1000
MOST_TEXT = 40
"""Lines of a difference, a program, and a question or completion that are printed; `--json` has all."""
MOST_DIGEST = 64
CALENDAR = 1e8
"""Seconds; a run in one process has a clock of its own that begins near 0, others count since 1970."""


@reads_run
def show_cell(run: Path, cell: str, *, json: bool) -> None:
    from shoal.evolve.programs import holder_of, parse_cell

    found = holder_of(run, parse_cell(cell))
    if json:
        print_json(msgspec.to_builtins(found))
        return
    program = found.program
    labels = ", ".join(f"{measure} {label}" for measure, label in found.labels.items())
    print(f"cell     {','.join(map(str, found.cell))} ({labels})")
    own = "" if program.fitness is None else f"; {program.fitness:.3f} as its node measured it"
    print(f"fitness  {found.fitness:.3f} against the common opponents{own}")
    print(f"digest   {clean(program.digest, MOST_DIGEST)}")
    print(f"made by  {_maker(program)}{_when(program, found.seconds)}")
    if program.parent is not None:
        print(f"parent   {_short(program.parent)}: shoal show {run} --lineage {_short(program.digest)}")
    print()
    for line in clean_lines(program.source, MOST_SOURCE):
        print(line)


@reads_run
def show_lineage(run: Path, digest: str, *, json: bool) -> None:
    from shoal.evolve.programs import find_program, lineage_of, read_programs_of
    from shoal.evolve.settings import EvolveSettings
    from shoal.runs import load_settings

    settings = load_settings(EvolveSettings, run)
    domain = settings.open_domain()
    programs = read_programs_of(settings, run)
    found = lineage_of(
        programs,
        find_program(programs, digest).digest,
        plain=lambda source: domain.plain(domain.parse(source)),
    )
    if json:
        print_json(msgspec.to_builtins(found))
        return
    for place, ancestor in enumerate(found.ancestors):
        program = ancestor.program
        fitness = "" if program.fitness is None else f", fitness {program.fitness:.3f}"
        print(f"{_short(program.digest)}  {_maker(program)}{_when(program, None)}{fitness}")
        last = place == len(found.ancestors) - 1
        if last and (found.complete or not ancestor.difference):
            for line in clean_lines(program.source, MOST_DIFFERENCE):
                print(f"    {line}")
            continue
        shown = ancestor.difference[:MOST_DIFFERENCE]
        for line in shown:
            for cleaned in clean_lines(line[1:], 1) or [""]:
                print(f"  {line[:1]} {cleaned}")
        if len(ancestor.difference) > len(shown):
            print(f"  … {len(ancestor.difference) - len(shown)} more lines changed")
        print()
    if not found.complete:
        print(f"… older ones: shoal show {run} --lineage {_short(found.ancestors[-1].program.digest)}")


@reads_run
def show_rollout(run: Path, place: str, *, json: bool) -> None:
    from shoal.runs import load_settings
    from shoal.train.settings import TrainSettings
    from shoal.train.transcript import read_transcript

    node, colon, turn = place.rpartition(":")
    if not colon or not node or not turn.isdecimal() or len(turn) > 12:
        raise ConfigError(f"--rollout {place[:80]!r}: write it as NODE:TURN, such as 1:3")
    found = read_transcript(load_settings(TrainSettings, run), run, node, int(turn))
    if json:
        print_json(msgspec.to_builtins(found))
        return
    print(f"{found.node}, turn {found.turn}: {len(found.groups)} groups")
    for group in found.groups:
        _print_group(group)


def _print_group(group: ShownGroup) -> None:
    author = "own" if not group.author else f"of {clean(group.author, 16)} ({clean(group.model)})"
    verdict = "" if group.verdict == "own" else f", {clean(group.verdict, 100)}"
    print(f"\n{clean(group.family)}, {author}{verdict}")
    for line in clean_lines(group.question, MOST_TEXT):
        print(f"  ? {line}")
    for completion in group.completions:
        score = "  -  " if completion.score is None else f"{completion.score:5.2f}"
        lines = clean_lines(completion.text, MOST_TEXT) or [""]
        print(f"  {score}  {lines[0]}{'' if completion.finished else '  (cut off)'}")
        for line in lines[1:]:
            print(f"         {line}")


def _short(digest: str) -> str:
    return clean(digest[:12])


def _maker(program: Made) -> str:
    """Its model, node and round, counted from 1; a stranger's round is not known."""
    by = clean(program.model) or "unknown"
    if not program.node:
        return by
    at = f"{by} at {clean(program.node, 24)}"
    return at if program.model == "peer" else f"{at}, round {program.round + 1}"


def _when(program: Made, seconds: float | None) -> str:
    if program.made_at is None:
        return ", not made in this run"
    if program.made_at < CALENDAR:
        return f", at {program.made_at:.1f} s of the run's own clock"
    try:
        moment = datetime.datetime.fromtimestamp(program.made_at, datetime.UTC)
    except (ValueError, OverflowError, OSError):  # a journal may hold any number
        return ""
    after = "" if seconds is None else f" ({seconds:.1f} s into the run)"
    return f", {moment:%Y-%m-%d %H:%M:%S} UTC{after}"
