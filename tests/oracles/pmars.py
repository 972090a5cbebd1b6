"""Where the outside programs and corpora are that results are compared with.

pMARS: in the folder that SHOAL_PMARS names, else in .oracles/pmars, where `make test` builds it. A test
that needs it is skipped where it is absent, and fails instead under CI=true.

The corpus of published warriors: in the folder that SHOAL_CORPUS names, else at ../shared/data beside
the repository. It is not an oracle: tests over it are skipped where it is absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("SHOAL_PMARS") or REPOSITORY / ".oracles" / "pmars")
PMARS = FOLDER / "pmars"
PMARS_DEBUG = FOLDER / "pmars-debug"
PMARS_WARRIORS = FOLDER / "warriors"
CORPUS = Path(os.environ.get("SHOAL_CORPUS") or REPOSITORY.parent / "shared" / "data")

_missing = not (PMARS.exists() and PMARS_DEBUG.exists() and PMARS_WARRIORS.is_dir())

needs_pmars = pytest.mark.skipif(
    _missing and os.environ.get("CI") != "true",
    reason=f"pMARS is not at {FOLDER}: run `make oracles`, or name its folder in SHOAL_PMARS",
)
needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no corpus of warriors at {CORPUS}: name its folder in SHOAL_CORPUS"
)
