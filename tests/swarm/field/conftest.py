from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a short path for keys and sockets."""
    with tempfile.TemporaryDirectory(prefix="shoal-", dir="/tmp") as folder:
        yield Path(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The long forms run where they are asked for, with `-m soak` or `make soak`."""
    if "soak" not in config.getoption("markexpr"):
        skip = pytest.mark.skip(reason="long form: run `make soak`")
        for item in items:
            if item.path.is_relative_to(HERE) and item.get_closest_marker("soak"):
                item.add_marker(skip)
