"""Keys come from the environment or from a key file, and no text ever shows them.

The variable of a key is OPENAI_API_KEY, ANTHROPIC_API_KEY, the one that the spec names with `?key=NAME`, or,
for a URL, `SHOAL_KEY_` with its host (`https://api.example.com/v1` → SHOAL_KEY_API_EXAMPLE_COM). No endpoint
gets another's key. The file that SHOAL_KEY_FILE names holds lines `NAME=key`, readable by its owner only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from shoal.errors import ConfigError

KEY_FILE_VARIABLE = "SHOAL_KEY_FILE"
MOST_KEY_FILE_BYTES = 64 << 10
REMOVED = "[key removed]"
SHORTEST_FRAGMENT = 8
SHORTEST_KEY_IN_ANSWERS = 16


class Key:
    """A secret. Only `reveal` gives it away; repr, str, copying and serialising do not."""

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def reveal(self) -> str:
        return self._secret

    def __repr__(self) -> str:
        return "Key(***)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a key is not written anywhere")

    def scrub(self, text: str) -> str:
        """An error text without the key or any part of eight or more characters: servers echo parts."""
        secret = self._secret
        if len(secret) <= SHORTEST_FRAGMENT:
            return text.replace(secret, REMOVED) if secret else text
        for size in range(len(secret), SHORTEST_FRAGMENT - 1, -1):
            for start in range(len(secret) - size + 1):
                text = text.replace(secret[start : start + size], REMOVED)
        return text

    def scrub_answer(self, text: str) -> str:
        """An answer without the whole key. Short keys, as of local servers, may be plain words and stay."""
        return text if len(self._secret) < SHORTEST_KEY_IN_ANSWERS else text.replace(self._secret, REMOVED)


def host_variable(host: str) -> str:
    return "SHOAL_KEY_" + re.sub(r"[^A-Z0-9]+", "_", host.upper()).strip("_")


def find_key(variable: str, environment: Mapping[str, str] | None = None) -> Key | None:
    """The key under this name in the environment, else in the key file, else None."""
    environment = os.environ if environment is None else environment
    found = environment.get(variable, "").strip()
    if not found and environment.get(KEY_FILE_VARIABLE):
        found = read_key_file(Path(environment[KEY_FILE_VARIABLE])).get(variable, "")
    if not found:
        return None
    if not found.isascii() or not found.isprintable() or " " in found:
        raise ConfigError(f"{variable} holds characters that no key has: set it to the bare key")
    return Key(found)


def read_key_file(path: Path) -> dict[str, str]:
    """The names and keys of a key file; refused when others than its owner may read it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if os.name == "posix" and status.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise ConfigError(f"the key file {path} can be read by others: run `chmod 600 {path}`")
            data = file.read(MOST_KEY_FILE_BYTES + 1)
    except OSError as error:
        found = f"{path} cannot be read ({error.strerror})"
        raise ConfigError(f"the key file {found}: correct {KEY_FILE_VARIABLE}") from None
    if len(data) > MOST_KEY_FILE_BYTES:
        raise ConfigError(f"the key file {path} is larger than {MOST_KEY_FILE_BYTES} bytes: is it the one?")
    keys: dict[str, str] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, secret = line.removeprefix("export ").partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name.strip()):
            # The line itself is not shown: it may hold a key.
            raise ConfigError(f"line {number} of the key file {path} is not NAME=key")
        keys[name.strip()] = secret.strip().strip("\"'")
    return keys
