"""`shoal evolve`: a swarm of different models searches for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli import options
from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option

if TYPE_CHECKING:
    from shoal.evolve.settings import EvolveSettings
    from shoal.presets import Preset

Models = Annotated[str | None, option("--models", "SPEC,SPEC,…", "One node per model, e.g. builtin:bomber.")]
Rounds = Annotated[int | None, option("--rounds", "R", "Rounds.", min=1)]
Calls = Annotated[int | None, option("--calls", "N", "Model calls of the whole swarm, exactly.", min=1)]

CallsPerRound = Annotated[
    int | None, option("--calls-per-round", "N", "Calls of each node in each round, instead.", min=1)
]


LingerRounds = Annotated[
    int | None, option("--linger-rounds", "N", "Rounds without calls after the last, to hear others.", min=0)
]


@with_network()
def evolve(
    network: NetworkOptions,
    config: options.Config = None,
    models: Models = None,
    rounds: Rounds = None,
    calls: Calls = None,
    calls_per_round: CallsPerRound = None,
    seed: options.Seed = None,
    out: options.Out = None,
    in_process: options.InProcess = False,
    held_out: options.HeldOut = None,
    until: options.Until = None,
    linger_rounds: LingerRounds = None,
    paper: options.Paper = False,
    preset: options.PresetName = None,
    settings: options.Set = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Search for programs with a different model on every node.

    Each node keeps its own archive and shares its round champions; nobody waits for anybody. Without any
    option four builtin models search for Core War programs on this machine, for about a minute.

    \b
    Examples:
      shoal evolve
      shoal evolve --models builtin:bomber,local:smollm2 --calls 200 --rounds 4 --out runs/first
      shoal evolve --models openai:gpt-5-mini --join tcp/example.org:7447
      shoal evolve --paper --dry-run
      shoal show runs/first
    """
    from shoal.cli.running import new_folder, run_and_report
    from shoal.evolve.asking import check_models
    from shoal.runs import to_toml

    published = options.find_preset(paper, preset, "evolve")
    chosen = settings_from(
        config, models, rounds, calls, calls_per_round, seed, held_out, settings, published,
        until=until, linger_rounds=linger_rounds,
    )  # fmt: skip
    chosen.check()
    options.check_until(until)
    options.tell_departures(published, chosen)
    if dry_run:
        print(to_toml(chosen), end="")
        return
    check_models(chosen)
    nodes = network.network_of_run(len(chosen.models), in_process=in_process)
    run_and_report(chosen, out or new_folder("evolve"), nodes, in_process=in_process, json=json, quiet=quiet)


def settings_from(
    config: Path | None,
    models: str | None,
    rounds: int | None,
    calls: int | None,
    calls_per_round: int | None,
    seed: int | None,
    held_out: Path | None,
    more: list[str] | None,
    preset: Preset | None = None,
    **stay: str | int | None,
) -> EvolveSettings:
    """Preset, file and options together, --set last, and for the rest the domain's choices."""
    from shoal.cli.output import note
    from shoal.errors import ConfigError
    from shoal.evolve.settings import EvolveSettings
    from shoal.runs import load

    if calls is not None and calls_per_round is not None:
        raise ConfigError("--calls is for the whole run, --calls-per-round for each node and round: give one")

    given: dict[str, object] = {
        "models": None if models is None else options.names(models),
        "rounds": rounds,
        "calls": calls,
        "calls_per_round": calls_per_round,
        "seed": seed,
        "held_out": None if held_out is None else str(held_out.absolute()),
        **stay,
    }
    under = None if preset is None else preset.table
    return load(EvolveSettings, config, options.overrides(given, more), under=under).settled(note)
