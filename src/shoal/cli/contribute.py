"""`shoal contribute`: give rollouts to a training swarm without training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import joining, train
from shoal.cli.going_on import Quiet, new_folder


def contribute(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="SPEC",
            help="person: for yourself, program:COMMAND, or a model, e.g. openai:gpt-5-mini.",
        ),
    ] = "",
    rollouts: Annotated[
        Path | None,
        typer.Option(
            "--rollouts", metavar="FILE|RUN", help="Groups that were written before, or the run of a search."
        ),
    ] = None,
    tasks: train.Tasks = None,
    groups: Annotated[
        int | None, typer.Option("--groups", metavar="I", min=1, help="Groups per step.")
    ] = None,
    group: Annotated[
        int | None, typer.Option("--group", metavar="G", min=2, help="Completions per group.")
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", metavar="T", min=1, help="Steps.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", min=0, help="Seed.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="Run folder; else a new one in runs/.")
    ] = None,
    linger: Annotated[
        float,
        typer.Option("--linger", metavar="SECONDS", min=0, help="Stay so long for others to fetch."),
    ] = 10.0,
    settings: train.Settings = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quiet: Quiet = False,
    join: joining.Join = None,
    listen: joining.Listen = None,
    advertise: joining.Advertise = None,
    transport: joining.Engine = "zenoh",
    swarm: joining.Swarm = None,
    secret_file: joining.SecretFile = None,
    allow: joining.Allow = None,
    tls_authority: joining.TlsAuthority = None,
    tls_certificate: joining.TlsCertificate = None,
    tls_key: joining.TlsKey = None,
    key: joining.KeyFile = None,
) -> None:
    """Give rollouts to a training swarm without training. Needs no torch.

    The questions are this node's own, drawn by its key; whoever receives the answers checks them. Say which
    tasks the swarm trains on with --tasks.

    \b
    Examples:
      shoal contribute --join tcp/example.org:7447 --model person: --tasks sums
      shoal contribute --join tcp/example.org:7447 --model openai:gpt-5-mini --tasks base_conversion
      shoal contribute --join tcp/example.org:7447 --rollouts runs/evolve-first
    """
    from shoal.errors import ConfigError
    from shoal.train.opening import check_models
    from shoal.train.settings import NOT_TRAINED, PREPARED

    if bool(model) == (rollouts is not None):
        raise ConfigError("name who contributes: either --model SPEC or --rollouts FILE")
    if not (join or listen or swarm):
        raise ConfigError("say which swarm gets them: --join ADDRESS")
    spec = f"{NOT_TRAINED}{model}" if rollouts is None else f"{PREPARED}{rollouts.absolute()}"
    chosen = train.settings_from(
        None,
        [f"linger={linger}", *(settings or [])],
        nodes=1,
        tasks=tasks,
        local=groups or (1 if model.startswith("person:") else None),  # what a person wrote goes out at once
        group=group,
        steps=steps,
        seed=seed,
        external=0,
        model=spec,
    )
    chosen.check()
    check_models(chosen)
    tls = (tls_authority, tls_certificate, tls_key)
    network = joining.network_from(
        1, join, listen, advertise, transport, swarm, secret_file, allow, tls, key, in_process=False
    )
    folder = out or new_folder("contribute")
    train.run_resumably(chosen, folder, network, in_process=False, json=json, quiet=quiet)
