"""Commands are run in this process: `shoal("battle", "@imp")` gives exit code, output and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from shoal.cli import main


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
