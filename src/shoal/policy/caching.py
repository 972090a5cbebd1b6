"""Folders of the cache that are made once, by whichever process comes first."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ConfigError


@contextmanager
def made_whole(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` to write into; at the end it becomes `folder`, whole or not at all.
    ConfigError where there is no room."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
        try:
            yield aside
            os.replace(aside, folder)
        except OSError:
            # Another process may have made the same meanwhile: its folder is as good.
            if not folder.is_dir():
                raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror}): free some room or set SHOAL_CACHE elsewhere"
        ) from None
