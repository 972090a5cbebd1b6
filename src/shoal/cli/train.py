"""`shoal train`: a swarm of different models learns from shared rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from shoal.cli import options
from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.presets import Preset
    from shoal.train.settings import TrainSettings

Models = Annotated[
    str | None,
    option("--models", "SPEC[,SPEC…]", "Dealt to the nodes in turn, e.g. tiny:llama,local:smollm2."),
]
Tasks = Annotated[str | None, option("--tasks", "NAME[,NAME…]", "e.g. sums,gym:base_conversion.")]
Group = Annotated[int | None, option("--group", "G", "Completions per group.", min=2)]
Judge = Annotated[
    list[str] | None,
    option("--judge", "NODE_ID|any", "Ask this judge for questions and answer them; may be repeated."),
]
Steps = Annotated[int | None, option("--steps", "T", "Steps of each node.", min=1)]


@with_network()
def train(
    network: NetworkOptions,
    config: options.Config = None,
    nodes: Annotated[int | None, option("--nodes", "N", "Nodes on this machine.", min=1)] = None,
    models: Models = None,
    tasks: Tasks = None,
    local: Annotated[int | None, option("--local", "I", "Own groups per step.", min=0)] = None,
    external: Annotated[int | None, option("--external", "J", "Groups of others per step.", min=0)] = None,
    group: Group = None,
    steps: Steps = None,
    seed: options.Seed = None,
    until: options.Until = None,
    judge: Judge = None,
    out: options.Out = None,
    in_process: options.InProcess = False,
    paper: options.Paper = False,
    preset: options.PresetName = None,
    settings: options.Set = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Train language models by reinforcement learning, each node its own, on shared rollouts.

    Each step takes I groups of completions of the node's own and J of others, checked and scored here.
    Without any option three tiny models that are made on first use learn to add on this machine.

    \b
    Examples:
      shoal train
      shoal train --nodes 4 --models tiny:llama --local 4 --external 4 --steps 60 --out runs/sums
      shoal train --models 'local:smollm2?lora=8' --tasks base_conversion --join tcp/example.org:7447
      shoal train --paper --models tiny:qwen --dry-run
      shoal show runs/sums
    """
    from shoal.cli.output import note
    from shoal.cli.running import new_folder, run_and_report
    from shoal.runs import to_toml
    from shoal.train.crew import check_models

    published = options.find_preset(paper, preset, "train")
    chosen = settings_from(
        config, settings, preset=published, nodes=nodes, models=models, tasks=tasks, local=local,
        external=external, group=group, steps=steps, seed=seed, until=until, judge=judge,
        joins=bool(network.join),
    )  # fmt: skip
    chosen.check()
    options.check_until(until)
    options.tell_departures(published, chosen)
    for remark in chosen.remarks():
        note(remark)
    if dry_run:
        print(to_toml(chosen), end="")
        return
    check_models(chosen)
    reached = network.network_of_run(chosen.nodes, in_process=in_process)
    if chosen.judges and reached.is_private:
        raise ConfigError("judge: a judge is another node: say where by --join, --listen or --swarm")
    run_and_report(chosen, out or new_folder("train"), reached, in_process=in_process, json=json, quiet=quiet)


def settings_from(
    config: Path | None,
    more: list[str] | None,
    *,
    models: str | None = None,
    tasks: str | None = None,
    nodes: int | None = None,
    joins: bool = False,
    model: str | None = None,
    preset: Preset | None = None,
    **more_of_them: int | str | list[str] | None,
) -> TrainSettings:
    """Preset, file and options together; --set comes last. Where none of them gives the number of nodes there
    is one per model, and with `joins` a single one."""
    from shoal.runs import load
    from shoal.train.settings import TrainSettings

    named = options.names(models) if models is not None else None if model is None else [model]
    if nodes is None and config is None and preset is None and (models is not None or joins):
        nodes = 1 if named is None else max(1, len(named))
    given: dict[str, object] = {
        "models": named,
        "tasks": None if tasks is None else options.names(tasks),
        "nodes": nodes,
        **more_of_them,
    }
    under = None if preset is None else preset.table
    return load(TrainSettings, config, options.overrides(given, more), under=under)
