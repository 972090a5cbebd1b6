"""`shoal judge`: asks the nodes of a swarm fresh questions and keeps a board."""

from __future__ import annotations

from typing import Annotated

from shoal.cli import options
from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option


@with_network()
def judge(
    network: NetworkOptions,
    config: options.Config = None,
    tasks: Annotated[
        str | None, option("--tasks", "NAME[,NAME…]", "Families of questions, e.g. sums,gym:base_conversion.")
    ] = None,
    time_limit: Annotated[
        float | None, option("--time-limit", "SECONDS", "Time that a node has for its answer.", min=1)
    ] = None,
    seconds: Annotated[
        float | None, option("--seconds", "S", "End after so long; else on Ctrl-C.", min=0.1)
    ] = None,
    out: options.Out = None,
    settings: options.Set = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Judge the training nodes of a swarm: one fresh question after each of their rounds, answered once.

    Nodes take part with `shoal train --judge ID`, where ID is the id that the judge shows, or `--judge any`.
    Nothing of a judge enters anybody's training. A judge that was stopped or killed goes on with the same
    command, or with `shoal resume`, and its board is whole.

    \b
    Examples:
      shoal judge --listen tcp/0.0.0.0:7447 --swarm herring --tasks sums --out runs/judge
      shoal judge --join shoal://tcp/example.org:7447/herring --tasks base_conversion,bf
      shoal show runs/judge
      shoal dashboard runs/judge
    """
    from msgspec.structs import replace

    from shoal.cli.running import new_folder, run_and_report
    from shoal.errors import ConfigError
    from shoal.judge.settings import JudgeSettings
    from shoal.runs import load, to_toml

    given: dict[str, object] = {
        "tasks": None if tasks is None else options.names(tasks),
        "time_limit": time_limit,
        "seconds": seconds,
    }
    chosen = load(JudgeSettings, config, options.overrides(given, settings))
    chosen.check()
    if dry_run:
        print(to_toml(chosen), end="")
        return
    if not network.names_a_swarm:
        raise ConfigError("say which nodes are judged: --join ADDRESS, --listen ADDRESS or --swarm NAME")
    # Nodes name a judge by its id, so it has one of its own, which stays with its folder.
    reached = replace(network.network_of_run(1), machine_key=None)
    run_and_report(chosen, out or new_folder("judge"), reached, in_process=False, json=json, quiet=quiet)
