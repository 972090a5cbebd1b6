"""The contents of a journal's records: one struct per kind. The life of turn 7 if all goes well:

    asked      turn 7 was put to the outside; `reserve` is kept free for it from this moment
    sent       a further part of the reserve is about to be spent (a second call to a model)
    answered   the answer and its real cost
    shared     the items that went out
    arrived    an item of another node, before anyone looks at it
    turn       the turn begins; its time is the time that the application sees
    verdict    the finding of this node about an item
    note       the application's words about the turn, for people

`missed` replaces `answered` when no answer came; `started`, `checkpoint` and `stopped` frame it. Payloads of
applications stay raw JSON here. Fields may be added with defaults; readers ignore unknown fields and kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from shoal.errors import RunError, ShoalError
from shoal.runs.journal import Record

Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
Amounts = dict[str, Count]
"""Whole amounts by measure, e.g. {"calls": 1, "tokens": 900, "microdollars": 1200}: sums are exact."""

ABSURD = (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, RecursionError)
NOTHING = msgspec.Raw(b"null")
NOTHING_LEFT = "nothing more to produce"
BUDGET_SPENT = "the budget is spent"
"""The reasons of a node that ended by itself."""


class Content(msgspec.Struct, frozen=True):
    """The payload of a record."""


class Started(Content, frozen=True):
    """A process took the node up. `seed` and `node` never change within a journal."""

    seed: int
    node: str
    application: str
    shoal: str
    look_ahead: Count
    budget: Amounts = {}
    from_checkpoint: Count = 0
    passed_over: tuple[str, ...] = ()


class Asked(Content, frozen=True):
    """`attempt` 2 and later: a process died before the answer. `first`: spent without one (None: all)."""

    turn: Count
    attempt: Count
    reserve: Amounts
    request: msgspec.Raw
    first: Amounts | None = None


class Sent(Content, frozen=True):
    """More of the reserve of a turn is spent from this moment."""

    turn: Count
    attempt: Count
    amounts: Amounts


class Answered(Content, frozen=True):
    """`cost` None: the whole reserve."""

    turn: Count
    attempt: Count
    answer: msgspec.Raw
    cost: Amounts | None = None


class Missed(Content, frozen=True):
    """No answer will be used for this turn. `cost` None: the whole reserve."""

    turn: Count
    attempt: Count
    reason: str
    cost: Amounts | None = None


class Arrived(Content, frozen=True):
    """One item from another node, as the exchange gave it. `digest` is hexadecimal."""

    author: str
    epoch: Count
    kind: str
    seq: Count
    index: Count
    made_at: float
    arrived_at: float
    digest: str
    item: msgspec.Raw


class TurnBegun(Content, frozen=True):
    turn: Count


class VerdictGiven(Content, frozen=True):
    """The finding of this node about an item, which the five fields from `author` to `index` name. An item
    that is neither accepted nor `passed_over` is rejected."""

    turn: Count
    author: str
    epoch: Count
    kind: str
    seq: Count
    index: Count
    accepted: bool
    reason: str = ""
    evidence: msgspec.Raw = NOTHING
    passed_over: bool = False

    @property
    def outcome(self) -> Literal["verified", "passed_over", "rejected"]:
        """The word of accounts for it."""
        return "verified" if self.accepted else "passed_over" if self.passed_over else "rejected"

    @property
    def rejected(self) -> bool:
        return self.outcome == "rejected"


class SharedItem(msgspec.Struct, frozen=True):
    """`refused` is the reason why the exchange did not take it; empty if it did."""

    kind: str
    refused: str = ""


class Shared(Content, frozen=True):
    """`again`: sent out once more after a restart."""

    turn: Count
    items: tuple[SharedItem, ...]
    again: bool = False


class Note(Content, frozen=True):
    turn: Count
    note: msgspec.Raw


class CheckpointWritten(Content, frozen=True):
    turn: Count


class Stopped(Content, frozen=True):
    """A clean end of the process, not necessarily of the run."""

    turn: Count
    reason: str

    @property
    def finished(self) -> bool:
        """Whether the node ended by itself, with nothing left to do."""
        return self.reason in (NOTHING_LEFT, BUDGET_SPENT)


KINDS: dict[str, type[Content]] = {
    "started": Started,
    "asked": Asked,
    "sent": Sent,
    "answered": Answered,
    "missed": Missed,
    "arrived": Arrived,
    "turn": TurnBegun,
    "verdict": VerdictGiven,
    "shared": Shared,
    "note": Note,
    "checkpoint": CheckpointWritten,
    "stopped": Stopped,
}

_decoders = {kind: msgspec.json.Decoder(struct) for kind, struct in KINDS.items()}
_names: dict[type, str] = {struct: kind for kind, struct in KINDS.items()}


def kind_of(content: Content) -> str:
    return _names[type(content)]


def content_of(record: Record) -> Content | None:
    """The payload of a record as its struct; None for a kind that this version does not know."""
    decoder = _decoders.get(record.kind)
    if decoder is None:
        return None
    try:
        return decoder.decode(record.payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RunError(f"record {record.number} ({record.kind}): {error}.") from error


Payload = TypeVar("Payload")


def encode_payload(value: object, what: str) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise RunError(f"{what} cannot be written as JSON: {error}.") from error


def decode_payload(raw: msgspec.Raw, expected: type[Payload], what: str) -> Payload:
    """The value that an application put into the journal, in the type that it declares."""
    try:
        return msgspec.json.decode(raw, type=expected)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RunError(f"{what} is not what the application declares: {error}.") from error


@contextmanager
def refusing(path: object, record: Record | None = None) -> Iterator[None]:
    """Turns exceptions over absurd content of a journal, which anybody may have written, into RunError."""
    place = "" if record is None else f"record {record.number} ({record.kind})"
    try:
        yield
    except ShoalError as error:
        if not place:
            raise
        said = str(error) if str(error).startswith(place) else f"{place}: {error}"
        raise RunError(f"{path}: {said}") from error
    except (*ABSURD, msgspec.MsgspecError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise RunError(f"{path}: {place or 'a journal'} holds what no run writes: {said}.") from error


Reading = TypeVar("Reading", bound=Callable[..., Any])


def reads_run(function: Reading) -> Reading:
    """`function`, whose first argument is a run's folder, within `refusing`."""

    @wraps(function)
    def reading(folder: Path, *more: Any, **options: Any) -> Any:
        with refusing(folder):
            return function(folder, *more, **options)

    return cast(Reading, reading)
