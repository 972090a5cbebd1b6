"""What a node's journal tells: its turns, one after the other, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.runs import read
from shoal.runs.records import Note, Shared, Stopped, content_of
from shoal.train.train_state import Happened


@dataclass
class NodeHistory:
    """`ended` is why the process that was last at work stopped, empty while it goes on."""

    turns: list[Happened] = field(default_factory=list)
    shared: int = 0
    refused_to_share: int = 0
    ended: str = ""

    @property
    def steps(self) -> list[Happened]:
        return [turn for turn in self.turns if turn.kind == "step"]

    @property
    def evaluations(self) -> list[Happened]:
        return [turn for turn in self.turns if turn.kind == "evaluation"]


def read_history(journal: Path) -> NodeHistory:
    """Works on journals that are being written."""
    history = NodeHistory()
    decode = msgspec.json.Decoder(Happened).decode
    if not journal.exists():
        return history
    for record in read(journal):
        match content_of(record):
            case Note(note=note):
                try:
                    history.turns.append(decode(note))
                except msgspec.MsgspecError as error:
                    raise RunError(
                        f"{journal}: record {record.number} is no step of training: {error}"
                    ) from error
            case Shared(items=items):
                refused = sum(1 for item in items if item.refused)
                history.refused_to_share += refused
                history.shared += len(items) - refused
            case Stopped(reason=reason):
                history.ended = reason
            case None:
                pass
            case _:
                if record.kind == "started":
                    history.ended = ""
    return history
