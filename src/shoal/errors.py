"""One family of errors, named by the boundary that was crossed.

Every message says what was found, where, and what to do about it. Code that calls Shoal can catch
`ShoalError` and print it; the command line does exactly that and exits with code 2.
"""

from __future__ import annotations

from dataclasses import dataclass


class ShoalError(Exception):
    """Base of everything that Shoal raises on purpose."""


class ConfigError(ShoalError):
    """A setting, an option or a config file is not usable as it stands."""


class RunError(ShoalError):
    """What a run left behind cannot be read or written."""


class PeerError(ShoalError):
    """Something at the boundary to the swarm: an identity, an item to share, the exchange itself."""


class IdentityError(PeerError):
    """A key file is missing its privacy, its content, or its place."""


class ShareRefused(PeerError):
    """An item was not shared. `reason` is one word for programs: "kind", "size", "full"."""

    def __init__(self, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a Redcode source; `line` and `column` count from 1."""

    line: int
    column: int
    message: str
    remedy: str
    source: str

    def __str__(self) -> str:
        text = f"line {self.line}, column {self.column}: {self.message}"
        if self.source:
            marker = " " * (self.column - 1) + "^" if 0 < self.column <= len(self.source) + 1 else ""
            text += f"\n    {self.source}"
            if marker:
                text += f"\n    {marker}"
        if self.remedy:
            text += f"\n  {self.remedy}"
        return text


class AssemblyError(ShoalError):
    """A Redcode source is not a program. `problems` lists what is wrong, in source order."""

    def __init__(self, problems: list[Problem] | tuple[Problem, ...], name: str = "") -> None:
        self.problems = tuple(problems)
        self.name = name
        super().__init__("\n".join(str(problem) for problem in self.problems))
