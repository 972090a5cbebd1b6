"""`shoal evolve`: a swarm of different models searches for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import joining
from shoal.cli.going_on import Quiet, new_folder, saying_how_to_go_on

if TYPE_CHECKING:
    from shoal.evolve.settings import EvolveSettings
    from shoal.node.network import Network


def evolve(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; options come on top.")
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", metavar="SPEC,SPEC,…", help="One node per model, e.g. builtin:bomber."),
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", metavar="R", min=1, help="Rounds.")] = None,
    calls: Annotated[
        int | None,
        typer.Option("--calls", metavar="N", min=1, help="Model calls of the whole swarm, exactly."),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", metavar="S", min=0, help="Seed.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="RUN", help="Run folder; else a new one in runs/.")
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="All nodes in one process, in virtual time: reproducible.")
    ] = False,
    held_out: Annotated[
        Path | None,
        typer.Option("--held-out", metavar="DIR", help="Programs that take no part, to test the best one."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated.")
    ] = None,
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
    """Search for programs with a different model on every node.

    Each node keeps its own archive and shares its round champions; nobody waits for anybody. Without any
    option four builtin models search for Core War programs on this machine, for about a minute.

    \b
    Examples:
      shoal evolve
      shoal evolve --models builtin:bomber,local:smollm2 --calls 200 --rounds 4 --out runs/first
      shoal evolve --models openai:gpt-5-mini --join tcp/example.org:7447
      shoal show runs/first
    """
    from shoal.evolve.asking import check_models
    from shoal.runs import to_toml

    chosen = settings_from(config, models, rounds, calls, seed, held_out, settings or [])
    chosen.check()
    if dry_run:
        print(to_toml(chosen), end="")
        return
    check_models(chosen)
    tls = (tls_authority, tls_certificate, tls_key)
    network = joining.network_from(
        len(chosen.models), join, listen, advertise, transport, swarm, secret_file, allow, tls, key,
        in_process=in_process,
    )  # fmt: skip
    run_resumably(chosen, out or new_folder("evolve"), network, in_process=in_process, json=json, quiet=quiet)


def run_resumably(
    settings: EvolveSettings, folder: Path, network: Network, *, in_process: bool, json: bool, quiet: bool
) -> None:
    from shoal.cli.run_output import run_and_report

    with saying_how_to_go_on(folder, json=json or quiet):
        run_and_report(settings, folder, network, in_process=in_process, json=json, quiet=quiet)


def settings_from(
    config: Path | None,
    models: str | None,
    rounds: int | None,
    calls: int | None,
    seed: int | None,
    held_out: Path | None,
    overrides: list[str],
) -> EvolveSettings:
    """What file and options say together, --set last, and for the rest what suits the domain."""
    import json

    from shoal.evolve.settings import EvolveSettings
    from shoal.runs import load

    given: dict[str, object] = {
        "models": None if models is None else [model.strip() for model in models.split(",") if model.strip()],
        "rounds": rounds,
        "calls": calls,
        "seed": seed,
        "held_out": None if held_out is None else str(held_out.absolute()),
    }
    # Text, numbers and lists of text are written alike in JSON and in TOML.
    options = [f"{name}={json.dumps(value)}" for name, value in given.items() if value is not None]
    return load(EvolveSettings, config, [*options, *overrides]).settled()
