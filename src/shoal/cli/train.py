"""`shoal train`: a swarm of different models learns from shared rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import joining
from shoal.cli.going_on import Quiet, new_folder, saying_how_to_go_on

if TYPE_CHECKING:
    from shoal.node.network import Network
    from shoal.train.settings import TrainSettings

Models = Annotated[
    str | None,
    typer.Option(
        "--models", metavar="SPEC[,SPEC…]", help="Dealt to the nodes in turn, e.g. tiny:llama,local:smollm2."
    ),
]
Tasks = Annotated[
    str | None, typer.Option("--tasks", metavar="NAME[,NAME…]", help="e.g. sums,gym:base_conversion.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated.")
]


def train(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; options come on top.")
    ] = None,
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", min=1, help="Nodes on this machine.")
    ] = None,
    models: Models = None,
    tasks: Tasks = None,
    local: Annotated[
        int | None, typer.Option("--local", metavar="I", min=0, help="Own groups per step.")
    ] = None,
    external: Annotated[
        int | None, typer.Option("--external", metavar="J", min=0, help="Groups of others per step.")
    ] = None,
    group: Annotated[
        int | None, typer.Option("--group", metavar="G", min=2, help="Completions per group.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="T", min=1, help="Steps of each node.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", min=0, help="Seed.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="Run folder; else a new one in runs/.")
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="All nodes in one process, in virtual time: reproducible.")
    ] = False,
    settings: Settings = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the settings and stop.")] = False,
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
    """Train language models by reinforcement learning, each node its own, on shared rollouts.

    Each step takes I groups of completions of the node's own and J of others, checked and scored here.
    Without any option three tiny models that are made on first use learn to add on this machine.

    \b
    Examples:
      shoal train
      shoal train --nodes 4 --models tiny:llama --local 4 --external 4 --steps 60 --out runs/sums
      shoal train --models 'local:smollm2?lora=8' --tasks base_conversion --join tcp/example.org:7447
      shoal show runs/sums
    """
    from shoal.runs import to_toml
    from shoal.train.opening import check_models

    chosen = settings_from(
        config, settings or [], nodes=nodes, models=models, tasks=tasks, local=local, external=external,
        group=group, steps=steps, seed=seed, joins=bool(join),
    )  # fmt: skip
    chosen.check()
    if dry_run:
        print(to_toml(chosen), end="")
        return
    check_models(chosen)
    tls = (tls_authority, tls_certificate, tls_key)
    network = joining.network_from(
        chosen.nodes, join, listen, advertise, transport, swarm, secret_file, allow, tls, key,
        in_process=in_process,
    )  # fmt: skip
    run_resumably(chosen, out or new_folder("train"), network, in_process=in_process, json=json, quiet=quiet)


def run_resumably(
    settings: TrainSettings, folder: Path, network: Network, *, in_process: bool, json: bool, quiet: bool
) -> None:
    from shoal.cli.train_output import run_and_report

    with saying_how_to_go_on(folder, json=json or quiet):
        run_and_report(settings, folder, network, in_process=in_process, json=json, quiet=quiet)


def settings_from(
    config: Path | None,
    overrides: list[str],
    *,
    models: str | None = None,
    tasks: str | None = None,
    nodes: int | None = None,
    joins: bool = False,
    model: str | None = None,
    **numbers: int | None,
) -> TrainSettings:
    """What file and options say together; --set comes last. Without a number of nodes there is one per
    model, and with `joins` a single one."""
    import json

    from shoal.runs import load
    from shoal.train.settings import TrainSettings

    given: dict[str, object] = {
        "models": _names(models) if models is not None else None if model is None else [model],
        "tasks": None if tasks is None else _names(tasks),
        "nodes": nodes,
        **numbers,
    }
    if nodes is None and config is None:
        if models is not None:
            given["nodes"] = max(1, len(_names(models)))
        elif joins:
            given["nodes"] = 1
    # Text, numbers and lists of text are written alike in JSON and in TOML.
    options = [f"{name}={json.dumps(value)}" for name, value in given.items() if value is not None]
    return load(TrainSettings, config, [*options, *overrides])


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
