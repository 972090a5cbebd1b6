"""Which application a run folder belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Application = Literal["evolve", "train"]


def application_of(folder: Path) -> Application:
    """By the key `application` of the run's config; a config without it is a search's. RunError where the
    folder is no run, or one of something unknown here."""
    import tomllib

    from shoal.errors import RunError
    from shoal.runs.folder import CONFIG, RunFolder

    path = folder / CONFIG
    try:
        table = tomllib.loads(RunFolder.look(folder).config_toml)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:  # not TOML, or not text
        raise RunError(f"{path}: this is not the config of a run: {error}.") from error
    if not table:  # a run writes all of its settings; what was cut to nothing must not pass for the defaults
        raise RunError(f"{path}: it is empty. Restore it from a copy of the run.")
    found = table.get("application", "evolve")
    if found == "evolve":
        return "evolve"
    if found == "train":
        return "train"
    raise RunError(f"{path}: this release does not know the application {found!r}.")
