"""What holds for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Two test processes on two cores, each with models that would take all cores: they would only wait for each
# other. Set before torch is imported; processes that tests start inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("shoal", deadline=None)
settings.load_profile("shoal")
