from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.models.server import Misbehaving


@pytest.fixture
def server() -> Iterator[Misbehaving]:
    with Misbehaving() as running:
        yield running
