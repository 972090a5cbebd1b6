"""Commands are run in this process: `shoal("battle", "@imp")` gives exit code, output and errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from shoal.cli import main
from shoal.evolve.crew import run as run_search
from shoal.train.crew import run as run_training
from tests.evolve.small import small as small_search
from tests.train.small import small as small_training


class Done(NamedTuple):
    code: int
    out: str
    err: str


Shoal = Callable[..., Done]


@pytest.fixture
def shoal(capsys: pytest.CaptureFixture[str]) -> Shoal:
    def run(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture(scope="session")
def search_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished search; only for reading."""
    folder = tmp_path_factory.mktemp("search") / "run"
    settings = small_search(models=("builtin:bomber", "builtin:random"), calls=40, rounds=2)
    assert run_search(settings, folder, in_process=True) == "finished"
    return folder


@pytest.fixture(scope="session")
def training_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished training run; only for reading."""
    folder = tmp_path_factory.mktemp("training") / "run"
    assert run_training(small_training(), folder, in_process=True) == "finished"
    return folder
