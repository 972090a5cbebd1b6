"""`shoal info`: versions and the speed of this installation."""

from __future__ import annotations

from typing import Any

from shoal.cli import options
from shoal.cli.output import print_json

SECONDS_OF_MEASURING = 0.3


def info(json: options.Json = False) -> None:
    """Show versions, the engine, and its speed on this machine."""
    import platform

    from shoal import __version__
    from shoal.corewar.mars import binding, engine

    facts: dict[str, Any] = {
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": platform.platform(),
        "engine": binding.build(),
        "library": str(binding.LIBRARY),
        "cores": engine.usable_cores(),
        "speed": round(_million_instructions_per_second(), 1),
    }
    if json:
        print_json(facts)
        return
    for name, value in facts.items():
        unit = " million instructions per second on one core" if name == "speed" else ""
        print(f"{name:<9} {value}{unit}")


def _million_instructions_per_second() -> float:
    """Of one thread, over battles of two starter warriors that always have the same rounds."""
    from time import perf_counter

    from shoal.corewar import fight, starter_set

    warriors = starter_set()
    pair = [warriors["paper"], warriors["stoneimp"]]
    fight(pair, rounds=1, threads=1)  # the first call loads the library
    instructions, spent = 0, 0.0
    while spent < SECONDS_OF_MEASURING:
        started = perf_counter()
        instructions += fight(pair, rounds=20, threads=1).instructions
        spent += perf_counter() - started
    return instructions / spent / 1e6
