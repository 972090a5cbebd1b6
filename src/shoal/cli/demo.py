"""`shoal demo`: both systems on embedded defaults, and a page about the results."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.options import option
from shoal.cli.progress import Manner, ProgressDisplay
from shoal.cli.running import INTERRUPTED, NODE_FAILED, announcing_stop

if TYPE_CHECKING:
    from shoal.evolve.settings import EvolveSettings
    from shoal.node import Stop
    from shoal.train.settings import TrainSettings

SMALL_MODELS = ("local:smollm2", "local:gemma3-270m")

RUNS = ("evolve", "train")
MARK = ".demo"
"""A file that marks the runs beside it as a demo's."""


def demo(
    out: Annotated[Path, option("--out", "DIR", "Where the runs and the page are put.")] = Path("runs/demo"),
    llm: Annotated[
        bool, typer.Option("--llm", help="With language models that pip installs, where they are; slower.")
    ] = False,
    seed: Annotated[int, option("--seed", "S", "Seed.", min=0)] = 0,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Search and train on embedded defaults: no key, account, GPU or network.

    Four builtin models search for Core War programs together, then three tiny language models, made on
    first use, learn to add from each other's answers. Both are real processes that find each other. An
    earlier demo in the same folder is replaced.

    \b
    Examples:
      shoal demo
      shoal demo --llm --out runs/demo-llm
    """
    from importlib.util import find_spec

    from shoal.cli.output import note, print_json
    from shoal.cli.progress import manner_of
    from shoal.cli.report import run_parts
    from shoal.files import write_whole
    from shoal.node import Stop
    from shoal.report.page import page

    _clear(out)
    with_training = find_spec("torch") is not None and find_spec("transformers") is not None
    found: dict[str, Any] = {}
    parts = []
    failed = False
    manner = manner_of(json=json, quiet=quiet)
    with Stop() as stop:
        for settings in settings_of(llm, seed)[: 2 if with_training else 1]:
            if stop.requested:
                break
            folder = out / settings.application
            if manner == "people":
                note(_beginning(settings))
            summary, ended = _run(settings, folder, stop, manner)
            failed |= ended != "finished"
            found[settings.application] = summary
            parts += run_parts(folder)
    report = out / "report.html"
    write_whole(report, page("Shoal demo", parts).encode())
    if json:
        import msgspec

        print_json({"report": str(report), **{name: msgspec.to_builtins(one) for name, one in found.items()}})
    elif quiet:
        print(report)
    else:
        _tell(found, out, report, with_training=with_training)
    if stop.requested:
        raise typer.Exit(INTERRUPTED)
    if failed:
        raise typer.Exit(NODE_FAILED)


def _beginning(settings: EvolveSettings | TrainSettings) -> str:
    models = ", ".join(settings.models)
    if settings.application == "evolve":
        return f"Searching: {models}; {settings.calls} calls in {settings.rounds} rounds."
    return f"Training: {models}; {settings.steps} steps."


def _run(settings: Any, folder: Path, stop: Stop, manner: Manner) -> tuple[Any, str]:
    """One run with its progress; returns its summary and its end. The reason of a failure is printed."""
    from shoal.applications import APPLICATIONS
    from shoal.cli.output import note
    from shoal.node.running import run_crew

    application = APPLICATIONS[settings.application]
    shown = ProgressDisplay(application.load("terminal").columns, manner, keep=True)
    with shown as display, announcing_stop(stop, display.say):
        ended = run_crew(application.load("crew")(settings), folder, stop=stop, progress=display.show)
    display.tell_troubles()
    if ended != "finished" and not display.troubled:
        note(f"shoal: {ended}")
    return application.load("summarise")(folder), ended


def settings_of(llm: bool, seed: int) -> tuple[EvolveSettings, TrainSettings]:
    """The settings of the two runs."""
    from shoal.errors import ConfigError
    from shoal.evolve.settings import EvolveSettings
    from shoal.models import PRESETS
    from shoal.train.settings import TrainSettings

    if not llm:
        return EvolveSettings(seed=seed), TrainSettings(seed=seed)
    there = [name for name in SMALL_MODELS if PRESETS[name.partition(":")[2]].find() is not None]
    if not there:
        raise ConfigError(f"--llm needs a model: {PRESETS['smollm2'].command()}")
    search = EvolveSettings(
        models=(*there, "builtin:bomber"), calls=36, rounds=2, max_tokens=80, deadline=600.0, look_ahead=1,
        options={"brief": True}, seed=seed,
    )  # fmt: skip
    # Few and short answers, as each token costs these models a hundred times what it costs the tiny ones.
    training = TrainSettings(
        models=tuple(f"{name}?lora=8" for name in there), nodes=2, local=2, external=2, group=4, steps=8,
        max_new_tokens=8, prompt="few-shot", held_out=16, evaluate_every=8, seed=seed,
    )  # fmt: skip
    return search, training


def _clear(out: Path) -> None:
    """Removes an earlier demo that carries the mark and has ended, and nothing else."""
    from shoal.errors import ConfigError
    from shoal.runs.folder import OWNER
    from shoal.runs.lock import is_in_use

    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file: name a folder with --out")
    others = (
        [path.name for path in out.iterdir() if path.name not in (*RUNS, "report.html", MARK)]
        if out.is_dir()
        else []
    )
    if not (out / MARK).exists():
        others += [name for name in RUNS if (out / name).exists()]
    if others:
        raise ConfigError(f"{out} holds {others[0]}, which no demo put there: name another folder with --out")
    for name in RUNS:
        if is_in_use(out / name / OWNER):
            raise ConfigError(f"{out / name} is going on: wait for it, or name another folder with --out")
    for name in RUNS:
        if (out / name).is_dir():
            shutil.rmtree(out / name)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARK).touch()


def next_commands(out: Path, parts: Sequence[str], *, has_program: bool) -> list[str]:
    """Commands, ready to type, that show the results of the demo's runs `parts`."""
    from importlib.util import find_spec

    run = shlex.quote(str(out / "evolve"))
    lines = [f"Look in:   shoal show {run}"]
    if find_spec("starlette") is not None and find_spec("uvicorn") is not None:
        runs = " ".join(shlex.quote(str(out / part)) for part in parts)
        lines.append(f"Browse:    shoal dashboard {runs}")
    if has_program:
        lines.append(f"Replay:    shoal show {run} --best > best.red && shoal watch best.red @paper")
    return lines


def _tell(found: dict[str, Any], out: Path, report: Path, *, with_training: bool) -> None:
    from shoal.errors import how_to_install

    search = found["evolve"]
    print(
        f"Search: {len(search.cells_common)} kinds of programs, QD-score {search.qd_score_common:.2f} "
        f"against common opponents, {search.calls} calls."
    )
    if "train" in found:
        training = found["train"]
        first, last = training.reward_held_out_first, training.reward_held_out
        if first is not None and last is not None:
            used = sum(node.foreign_used for node in training.nodes)
            print(f"Training: held-out reward {first:.2f} → {last:.2f}; {used} groups of others were used.")
    elif not with_training:
        print(f"Training was left out: it needs torch ({how_to_install('train')}).")
    print(f"\nThe page:  {report}")
    for line in next_commands(out, list(found), has_program=bool(search.best_source)):
        print(line)
    print("Next:      shoal evolve --help    shoal train --help")
