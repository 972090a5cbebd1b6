"""The applications of the loop, one manifest each: everything that runs their folders or reads them. A run's
config names its application; verbs, reports, the dashboard, trackers and experiments look the parts up here.
Parts are loaded when first used: listing runs needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import RunError
from shoal.lazy import load


@dataclass(frozen=True)
class Application:
    """`name` stands in the config; `title` is for people. The other fields name parts as `module:attribute`:
    `crew`: the nodes, made from settings of its `settings_type`. `check_models(settings)`: refuses models
    that can be seen not to be usable. `note`: the struct of a turn's note. `summarise(folder)`: a run in
    numbers. `outcome(folder, cache, goes_on)`: the same with all that an experiment reports, after work that
    `goes_on(share)` can stop (then None); `cache` is a folder that its runs share. `export(folder, out)`:
    tables and files. `report(...)`: parts of a page. `view`: a node in the dashboard. `points`: a note as
    numbers for trackers. `terminal`: tables and summary for the terminal. `findings`: an experiment's
    results. An application without experiments has no `outcome` and no `findings`."""

    name: str
    title: str
    crew: str
    check_models: str
    note: str
    summarise: str
    export: str
    report: str
    view: str
    points: str
    terminal: str
    outcome: str = ""
    findings: str = ""

    def load(self, part: str) -> Any:
        return load(getattr(self, part))


APPLICATIONS = {
    one.name: one
    for one in (
        Application(
            "evolve",
            "search",
            crew="shoal.evolve.crew:SearchCrew",
            check_models="shoal.evolve.asking:check_models",
            note="shoal.runs.search:SearchNote",
            summarise="shoal.evolve.summary:summarise",
            outcome="shoal.evolve.champions:outcome",
            export="shoal.evolve.programs:export_search",
            report="shoal.report.search:search_parts",
            view="shoal.dashboard.search_view:SearchView",
            points="shoal.trackers.feed:search_point",
            terminal="shoal.cli.search_terminal:SEARCH",
            findings="shoal.lab.compare:findings",
        ),
        Application(
            "train",
            "training",
            crew="shoal.train.crew:TrainCrew",
            check_models="shoal.train.crew:check_models",
            note="shoal.runs.training:TrainNote",
            summarise="shoal.train.summary:summarise",
            outcome="shoal.train.summary:outcome",
            export="shoal.train.export:export_training",
            report="shoal.report.training:training_parts",
            view="shoal.dashboard.train_view:TrainView",
            points="shoal.trackers.feed:train_point",
            terminal="shoal.cli.train_terminal:TRAINING",
            findings="shoal.lab.sweep:sweep_findings",
        ),
        Application(
            "judge",
            "judge",
            crew="shoal.judge.crew:JudgeCrew",
            check_models="shoal.judge.crew:check_models",
            note="shoal.runs.judging:JudgeNote",
            summarise="shoal.judge.summary:summarise",
            export="shoal.judge.export:export_judge",
            report="shoal.report.judging:judging_parts",
            view="shoal.dashboard.judge_view:JudgeView",
            points="shoal.trackers.feed:judge_point",
            terminal="shoal.cli.judge_terminal:JUDGE",
        ),
    )
}


def application_of(folder: Path) -> Application:
    """The application of a run, by its config; RunError where the folder is no run of a known one."""
    from shoal.runs.folder import CONFIG, RunFolder

    name = str(RunFolder.look(folder).config_table().get("application", "evolve"))
    if name not in APPLICATIONS:
        raise RunError(f"{folder / CONFIG}: this release does not know the application {name[:80]!r}.")
    return APPLICATIONS[name]


def settings_of(folder: Path) -> Any:
    """The settings of a run, of the type of its application."""
    from shoal.runs.folder import load_settings

    return load_settings(application_of(folder).load("crew").settings_type, folder)
