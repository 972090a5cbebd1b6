"""`shoal contribute`: give rollouts to a training swarm without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from shoal.cli import options, train
from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option


@with_network()
def contribute(
    network: NetworkOptions,
    model: Annotated[
        str,
        option(
            "--model", "SPEC", "person: for yourself, program:COMMAND, or a model, e.g. openai:gpt-5-mini."
        ),
    ] = "",
    rollouts: Annotated[
        Path | None,
        option("--rollouts", "FILE|RUN", "Groups that were written before, or the run of a search."),
    ] = None,
    tasks: train.Tasks = None,
    groups: Annotated[int | None, option("--groups", "I", "Groups per step.", min=1)] = None,
    group: train.Group = None,
    steps: train.Steps = None,
    seed: options.Seed = None,
    out: options.Out = None,
    linger: Annotated[
        float, option("--linger", "SECONDS", "Stay so long for others to fetch.", min=0)
    ] = 10.0,
    until: options.Until = None,
    settings: options.Set = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Give rollouts to a training swarm without training. Needs no torch.

    The questions are this node's own, drawn by its key; receivers check the answers. Name the tasks of the
    swarm with --tasks.

    \b
    Examples:
      shoal contribute --join tcp/example.org:7447 --model person: --tasks sums
      shoal contribute --join tcp/example.org:7447 --model openai:gpt-5-mini --tasks base_conversion
      shoal contribute --join tcp/example.org:7447 --rollouts runs/evolve-first
    """
    from shoal.cli.running import new_folder, run_and_report
    from shoal.errors import ConfigError
    from shoal.train.crew import check_models
    from shoal.train.prepared import read_prepared
    from shoal.train.settings import NOT_TRAINED, PREPARED

    if bool(model) == (rollouts is not None):
        raise ConfigError("name who contributes: either --model SPEC or --rollouts FILE")
    if not network.names_a_swarm:
        raise ConfigError("say which swarm gets them: --join ADDRESS")
    spec = f"{NOT_TRAINED}{model}" if rollouts is None else f"{PREPARED}{rollouts.absolute()}"
    chosen = train.settings_from(
        None,
        [f"linger={linger}", *(settings or [])],
        nodes=1,
        tasks=tasks,
        local=groups or (1 if model.startswith("person:") else None),  # a person's answers go out at once
        group=group,
        steps=steps,
        seed=seed,
        external=0,
        model=spec,
        until=until,
    )
    chosen.check()
    options.check_until(until)
    check_models(chosen)
    if rollouts is not None:
        read_prepared(rollouts)  # names its faults before anything is joined
    reached = network.network_of_run(1)
    folder = out or new_folder("contribute")  # made last, so that a refusal leaves none behind
    run_and_report(chosen, folder, reached, in_process=False, json=json, quiet=quiet)
