"""What holds for all tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# Two test processes on two cores, each with models that would take all cores: they would only wait for each
# other. Set before torch is imported; processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("shoal", deadline=None)
settings.load_profile("shoal")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long forms have an hour; all others end by the limit of their module, or of pyproject.toml."""
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(3600), append=False)
