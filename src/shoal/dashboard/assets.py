"""The page's own files, as they lie in the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """Name → content and type. What is not in here cannot be asked for."""
    found = {}
    for file in (resources.files("shoal.dashboard") / "page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in TYPES:
            found[file.name] = (file.read_bytes(), TYPES[suffix])
    return found
