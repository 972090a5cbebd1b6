"""One family of errors, named by the boundary that was crossed. Every message says what was found, where, and
what to do about it. The command line prints a `ShoalError` and exits with code 2."""

from __future__ import annotations

from dataclasses import dataclass

DISTRIBUTION = "shoal-swarm"
"""The name under which pip finds Shoal; programs import it as `shoal`."""


def how_to_install(extra: str) -> str:
    """The command that adds an optional part."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


class ShoalError(Exception):
    """Base of everything that Shoal raises on purpose."""


class ConfigError(ShoalError):
    """A setting, an option or a config file is not usable as it stands."""


class RunError(ShoalError):
    """The files of a run cannot be read or written."""


class PeerError(ShoalError):
    """Something at the boundary to the swarm: an identity, an item to share, the exchange itself."""


class DefectError(PeerError):
    """The exchange ended by a mistake in Shoal, which a new process may be spared."""


class IdentityError(PeerError):
    """A key file is missing its privacy, its content, or its place."""


class ShareRefused(PeerError):
    """An item was not shared. `reason` is one word for programs: "kind", "size", "mistyped",
    "full"."""

    def __init__(self, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class CandidateError(ShoalError):
    """A text is not a program of its domain. The message is fit for the text's author."""


class DomainError(ShoalError):
    """A domain broke the contract that a search relies on."""


class TrainError(ShoalError):
    """A training step could not be taken: weights and optimiser are as they were before it."""


class TaskError(ShoalError):
    """A task's name, settings or file is not usable. The message is fit for its author."""


class UnknownTaskError(TaskError):
    """This node has no such family, library or file: that says nothing about a sender who names it."""


class ConfineError(ShoalError):
    """A confined worker cannot be started."""


class ModelError(ShoalError):
    """A call to a model did not give an answer. The message is one line and never holds a key. The failure is
    counted as `kind`. An attempt that may have `reached` the model counts as a call. `unbilled`: the server
    refused before any token was made; otherwise the cost is unknown. `transient`: the same request may
    succeed later. `seconds` and `attempts` are those of the call, where they are known."""

    seconds: float = 0.0
    attempts: int = 0
    kind = "model"
    transient = False
    unbilled = False
    reached = True


class ModelAuthenticationError(ModelError):
    """The key is missing, wrong, or not allowed to do this."""

    kind = "authentication"
    unbilled = True


class ModelRateLimitError(ModelError):
    """The endpoint asks to be called later, after `retry_after` seconds where it says so."""

    kind = "rate limit"
    transient = True
    unbilled = True

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelSettingError(ModelError):
    """The endpoint refuses one part of the request: `setting` names it ("model", "messages" included)."""

    kind = "refused setting"
    unbilled = True

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


class ModelTimeoutError(ModelError):
    """No complete answer arrived in time."""

    kind = "time-out"
    transient = True


class ModelServerError(ModelError):
    """The endpoint cannot be reached (then `reached` is false), failed, or broke off."""

    kind = "server"
    transient = True

    def __init__(self, message: str, *, reached: bool = True, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reached = reached
        self.retry_after = retry_after


class ModelAnswerError(ModelError):
    """The endpoint sent no answer: not JSON, no text in it, or too large."""

    kind = "bad answer"
    transient = True


class CassetteError(ModelError):
    """A cassette has no answer to this request, or is not a cassette."""

    kind = "cassette"
    reached = False


class BudgetError(ModelError):
    """The budget does not allow the next call."""

    kind = "budget"
    reached = False


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
            text += f"\n    {self.source}"
            if 0 < self.column <= len(self.source) + 1:
                text += f"\n    {' ' * (self.column - 1)}^"
        return f"{text}\n  {self.remedy}" if self.remedy else text


class AssemblyError(ShoalError):
    """A Redcode source is not a program. `problems` lists what is wrong, in source order."""

    def __init__(self, problems: list[Problem] | tuple[Problem, ...], name: str = "") -> None:
        self.problems = tuple(problems)
        self.name = name
        super().__init__("\n".join(str(problem) for problem in self.problems))
