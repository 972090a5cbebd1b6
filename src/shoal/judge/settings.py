"""Everything that a run of `shoal judge` is made of, as one typed config."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from shoal.errors import ConfigError
from shoal.runs.judging import LONGEST
from shoal.tasks.questions import check_files
from shoal.tasks.registry import canonical_name

NODE = "judge"
"""The name of the one node of a judge's run."""


class JudgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The questions of a judge, and the bounds within which it asks."""

    application: Literal["judge"] = "judge"  # the verb that these settings belong to
    # Families of questions. A node that has several of them gets one of these, drawn anew for each question.
    tasks: tuple[str, ...] = ("sums",)
    parameters: dict[str, dict[str, Any]] = {}  # settings of task families, by the name of the task
    files: dict[str, str] = {}  # paths of question files, by the name of the task, as in `shoal train`
    answers: Literal["lenient", "tags"] = "lenient"  # where the answer is in a text, as in `shoal train`
    reward: Literal["binary", "raw"] = "binary"  # right or wrong, or the family's own score from 0 to 1
    # Of questions where all nodes share one process. Elsewhere questions come from the system's randomness.
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0

    # Seconds that a node has for its answer; afterwards the question counts as wrong.
    time_limit: Annotated[float, msgspec.Meta(ge=1, le=LONGEST)] = 600.0
    open_per_node: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1  # questions of one node without an answer
    open_in_all: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 1024  # the same of all nodes together
    per_minute: Annotated[float, msgspec.Meta(gt=0, le=1e5)] = 60.0  # questions to one node
    per_minute_in_all: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1200.0  # the same to all nodes together
    entrants: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 4096  # runs of nodes on the board at most
    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = (
        None  # ends after so long; else when stopped
    )
    checkpoint_every: Annotated[int, msgspec.Meta(ge=0)] = 500  # turns between two checkpoints; 0: none
    linger: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 1.0  # seconds in the swarm after the last turn

    def __post_init__(self) -> None:
        if isinstance(self.tasks, str):  # in Python, a single one needs no list
            msgspec.structs.force_setattr(self, "tasks", (self.tasks,))

    def check(self) -> None:
        """ConfigError, with the key's name, for settings that are wrong; nothing is started."""
        try:
            msgspec.convert(msgspec.to_builtins(self), JudgeSettings)
        except (msgspec.MsgspecError, TypeError, OverflowError) as error:
            what, _, where = str(error).partition(" - at `$.")
            raise ConfigError(f"{where.rstrip('`') or 'settings'}: {what}") from None
        check_files(self.files)
        if not self.tasks:
            raise ConfigError("tasks: name at least one, such as sums")
        for task in self.tasks:
            canonical_name(task)
        unused = [name for name in self.parameters if name not in self.tasks]
        if unused:
            raise ConfigError(
                f"parameters.{unused[0]}: no task of the judge is called so: {', '.join(self.tasks)}"
            )

    def node_names(self) -> list[str]:
        return [NODE]

    def parameters_of(self, family: str) -> dict[str, Any]:
        """The settings of a family that is known by its canonical name."""
        for task in self.tasks:
            if canonical_name(task) == family:
                return self.parameters.get(task) or self.parameters.get(family) or {}
        return {}
