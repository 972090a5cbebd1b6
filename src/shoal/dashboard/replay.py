"""One recorded round of Core War: an elite against a starter or another elite, from warriors and seed.

The form is one line of JSON, a line feed, and the events of `shoal.corewar.recording` as 32-bit words, least
significant byte first. Instructions are bounded, and with them events and bytes.
"""

from __future__ import annotations

import json

from shoal.corewar import Settings, Warrior, assemble, record, starter_names, starter_source
from shoal.dashboard.bounds import shown_line
from shoal.dashboard.run_view import RunView
from shoal.errors import ConfigError, RunError, ShoalError

MOST_CYCLES = 40_000
USUAL_CYCLES = 20_000
MOST_EVENTS = 480_000  # of 4 bytes each: the largest answer has about 2 MB
RULES = ("core_size", "cycles", "processes", "length", "distance")


class NoReplay(ShoalError):
    """The round cannot be replayed; the message says why and is fit for the page."""


def sources_of(run: RunView, digest: str, opponent: str) -> list[tuple[str, str]]:
    """Names and sources of the program `digest` and of `opponent`, "starter:imp" or "program:<digest>". This
    part is quick, and the only one that looks at the views."""
    if "replay" not in run.tabs:
        raise NoReplay("only programs of Core War can be replayed")
    kind, _, name = opponent.partition(":")
    if kind == "program":
        return [_program(run, digest), _program(run, name)]
    if kind != "starter" or name not in starter_names():
        raise NoReplay("the opponent is neither a starter nor a program of this run")
    return [_program(run, digest), (name, starter_source(name))]


def play(run: RunView, sources: list[tuple[str, str]], seed: int, cycles: int) -> bytes:
    """Plays and records the round by the rules of the run; this takes the time."""
    options = run.config.get("options")
    options = options if isinstance(options, dict) else {}
    if not 0 <= seed < 1 << 31 or not 1 <= cycles <= MOST_CYCLES:
        raise NoReplay(f"give a seed from 0 to {2**31 - 1} and 1 to {MOST_CYCLES} cycles")
    try:
        rules = Settings(**{name: options[name] for name in RULES if name in options}, stop="play-on")
        lenient = options.get("lenient") is True
        warriors = [_assembled(name, source, rules, lenient) for name, source in sources]
        found = record(warriors, rules, seed=seed, steps=min(cycles, rules.cycles) * len(warriors))
    except (ConfigError, RunError) as error:
        raise NoReplay(str(error)) from error
    head = {
        "names": [shown_line(name, 60) for name in found.names],
        "positions": found.positions,
        "lengths": found.lengths,
        "core": rules.core_size,
        "cycles": rules.cycles,
        "seed": seed,
    }
    return json.dumps(head).encode() + b"\n" + found.events[:MOST_EVENTS].astype("<u4").tobytes()


def _program(run: RunView, digest: str) -> tuple[str, str]:
    found = run.find(digest)
    if found is None:
        raise NoReplay("this program is not kept any more")
    if not found.whole:
        raise NoReplay("this program is too long to be replayed")
    return digest[:10], found.source


def _assembled(name: str, source: str, rules: Settings, lenient: bool) -> Warrior:
    try:
        return assemble(source, rules, lenient=lenient)
    except ShoalError as error:
        reason = shown_line(str(error).partition("\n")[0], 200)
        raise NoReplay(f"{name} does not assemble here: {reason}") from error
