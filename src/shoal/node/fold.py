"""The one loop, as a fold over the journal: produce → share → gather → verify → absorb. `Fold` holds a node's
state and the *need* that it waits at. Only `feed(record)` moves it on, so the same records give the same
state, live (node.py) and on resume (`rebuild`). A need that says *may* can be passed over and then leaves no
record: a live node calls `pass_over`, a resume finds another record in its place. Answers may come in any
order; turns are taken in the order in which they were asked."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Generic

import msgspec

from shoal.errors import RunError
from shoal.node.application import (
    Answer,
    Application,
    Evidence,
    Judged,
    Own,
    Request,
    Restarts,
    Snapshots,
    State,
    Turn,
    Verdict,
)
from shoal.runs import records
from shoal.runs.checkpoint import Checkpoints, Found
from shoal.runs.journal import JournalLike, Record
from shoal.runs.ledger import Ledger
from shoal.runs.records import NOTHING, content_of, decode_payload, refusing
from shoal.swarm.authors import Place, Received

MOST_REMEMBERED_ITEMS = 1 << 16

ItemName = tuple[str, Place]


class MayAsk(msgspec.Struct, frozen=True):
    """The next proposal may be drawn from the state as it is."""

    turn: int


class NeedAnswer(msgspec.Struct, frozen=True):
    turn: int


class MayShare(msgspec.Struct, Generic[Request, Answer], frozen=True):
    turn: Turn
    fresh: Own[Request, Answer] | None


class NeedTurn(msgspec.Struct, frozen=True):
    """Arrived items are to be recorded, and then the beginning of the turn."""

    turn: int


class NeedVerdicts(msgspec.Struct, frozen=True):
    """The items of `batch` are to be verified; the first `given` of them are."""

    turn: Turn
    batch: Sequence[Received[Any]]
    given: int


class MayNote(msgspec.Struct, frozen=True):
    turn: Turn


Need = MayAsk | NeedAnswer | MayShare[Any, Any] | NeedTurn | NeedVerdicts | MayNote


class Flight(msgspec.Struct, Generic[Request, Answer]):
    """A turn that was asked and is not absorbed yet."""

    request: Request
    attempt: int
    asked_at: float
    first: dict[str, int] | None = None
    own: Own[Request, Answer] | None = None
    answered_at: float = 0.0


class Fold(Generic[State, Request, Answer, Evidence]):
    """A node's state and the place in the loop where it stands."""

    def __init__(
        self,
        application: Application[State, Request, Answer, Evidence],
        state: State,
        *,
        seed: int,
        node: str,
        ledger: Ledger,
    ) -> None:
        self.state = state
        self.ledger = ledger
        self.flights: dict[int, Flight[Request, Answer]] = {}
        self.asked = 0
        self.absorbed = 0
        self.began = 0.0
        self._application = application
        self._seed = seed
        self._node = node
        self._arrived: list[Received[Any]] = []
        self._seen: OrderedDict[ItemName, None] = OrderedDict()
        self._turns = self._loop()
        self.need: Need = next(self._turns)

    def feed(self, record: Record) -> None:
        """Takes in the next record. RunError if it cannot follow here: the journal is of another
        application, or `gather` or `absorb` depended on something that is not in it."""
        content = content_of(record)
        application = self._application
        if record.number == 1:
            self.began = record.time
        if isinstance(content, records.Started) and record.number > 1 and isinstance(application, Restarts):
            self.state = application.restarted(self.state)
        if content is None or self._receive(content, record):
            return
        while not _meets(content, self.need):
            # Nobody writes down that something optional was left out; the next record tells.
            if not self._may_pass_over():
                raise self._mismatch(record)
            self.pass_over()
        self._move(content, record.time)

    def pass_over(self) -> None:
        if not self._may_pass_over():
            raise RuntimeError(f"the loop cannot go on without {self.need}")
        self._move(None, 0.0)

    def skip(self, record: Record) -> None:
        """Takes in a record whose effect on the state is already there, from a checkpoint."""
        if record.number == 1:
            self.began = record.time
        content = content_of(record)
        if content is None or self._receive(content, record):
            return
        if isinstance(content, records.Asked):
            self._take_off(content, record.time)
        elif isinstance(content, records.TurnBegun):
            self.ledger.settle(content.turn)
            self.flights.pop(content.turn, None)
            self._arrived.clear()
            self.absorbed = content.turn
        self.need = MayAsk(self.asked + 1)

    def read(self, arrived: records.Arrived) -> Received[Any]:
        """The item as it stands in the journal; RunError if it is none of the application's."""
        kind = self._application.kinds.get(arrived.kind)
        if kind is None:
            raise RunError(f"the journal has an item of kind {arrived.kind!r}, unknown to the application.")
        item = decode_payload(arrived.item, kind.struct, f"an item of kind {arrived.kind!r}")
        fields = {**msgspec.structs.asdict(arrived), "item": item, "digest": bytes.fromhex(arrived.digest)}
        return Received(**fields)

    def arrive(self, received: Received[Any]) -> None:
        """Takes in an item that `read` made of a record: the same as feeding the record."""
        self._arrived.append(received)
        self._seen[received.author, received.place] = None
        if len(self._seen) > MOST_REMEMBERED_ITEMS:
            self._seen.popitem(last=False)

    def has_arrived(self, received: Received[Any]) -> bool:
        """Whether this item is in the journal, among the newest MOST_REMEMBERED_ITEMS."""
        return (received.author, received.place) in self._seen

    def _loop(self) -> Generator[Need, tuple[records.Content | None, float], None]:
        application = self._application
        while True:
            while True:
                asked, now = yield MayAsk(self.asked + 1)
                if not isinstance(asked, records.Asked):
                    break
                self._take_off(asked, now)

            number = min(self.flights)
            flight = self.flights[number]
            if flight.own is None:
                yield NeedAnswer(number)
            own = flight.own
            assert own is not None
            if own.answer is not None:
                yield MayShare(self.turn(number, flight.answered_at), own)

            _, now = yield NeedTurn(number)
            self.ledger.settle(number)
            turn = self.turn(number, now)
            arrived, self._arrived = self._arrived, []
            judged = yield from self._judge(turn, arrived)
            self.state = application.absorb(self.state, turn, own, judged)
            del self.flights[number]
            self.absorbed = number
            yield MayShare(turn, None)
            yield MayNote(turn)

    def _judge(
        self, turn: Turn, arrived: list[Received[Any]]
    ) -> Generator[Need, tuple[records.Content | None, float], list[Judged[Evidence]]]:
        judged: list[Judged[Evidence]] = []
        walk = self._application.gather(self.state, turn, arrived)
        try:
            batch = next(walk)
            while True:
                verdicts: list[Verdict[Evidence]] = []
                for received in batch:
                    given, _ = yield NeedVerdicts(turn, batch, len(verdicts))
                    assert isinstance(given, records.VerdictGiven)
                    verdicts.append(self._verdict(given))
                    judged.append(Judged(received, verdicts[-1]))
                batch = walk.send(verdicts)
        except StopIteration:
            return judged

    def _receive(self, content: records.Content, record: Record) -> bool:
        """Takes in a record that may come at any point of the loop; False if it belongs to one point."""
        match content:
            case records.Asked() if content.turn in self.flights:
                # Asked again by a process that found no answer; the state has not moved in between.
                flight = self.flights[content.turn]
                flight.attempt, flight.asked_at = content.attempt, record.time
                self.ledger.ask(content.turn, content.reserve, content.first)
            case records.Sent():
                self.ledger.send(content.turn, content.amounts)
            case records.Answered() | records.Missed():
                self._land(content, record)
            case records.Arrived():
                self.arrive(self.read(content))
            case records.Started() | records.CheckpointWritten() | records.Stopped():
                pass
            case records.Shared(again=True):
                pass
            case _:
                return False
        return True

    def _take_off(self, asked: records.Asked, now: float) -> None:
        request = decode_payload(
            asked.request, self._application.request_type, f"the request of turn {asked.turn}"
        )
        self.flights[asked.turn] = Flight(request, asked.attempt, now, asked.first)
        self.ledger.ask(asked.turn, asked.reserve, asked.first)
        self.asked = asked.turn

    def _land(self, content: records.Answered | records.Missed, record: Record) -> None:
        flight = self.flights.get(content.turn)
        if flight is None or flight.own is not None:
            raise self._mismatch(record)
        if isinstance(content, records.Missed):
            flight.own = Own(flight.request, None, content.reason)
        else:
            what = f"the answer of turn {content.turn}"
            answer = decode_payload(content.answer, self._application.answer_type, what)
            flight.own = Own(flight.request, answer)
        flight.answered_at = record.time
        self.ledger.answer(content.turn, content.cost)
        if self.need == NeedAnswer(content.turn):
            self._move(None, record.time)

    def _move(self, content: records.Content | None, now: float) -> None:
        self.need = self._turns.send((content, now))

    def turn(self, number: int, now: float) -> Turn:
        arrived = len(self._arrived)
        return Turn(number, now, self._seed, self._node, self.ledger, began=self.began, arrived=arrived)

    def _may_pass_over(self) -> bool:
        if isinstance(self.need, MayAsk):
            return bool(self.flights)
        return isinstance(self.need, MayShare | MayNote)

    def _mismatch(self, record: Record) -> RunError:
        return RunError(
            f"record {record.number} ({record.kind}) does not fit: after turn {self.absorbed} the loop is at "
            f"{type(self.need).__name__}. Resume with the application and settings that wrote the journal."
        )

    def _verdict(self, given: records.VerdictGiven) -> Verdict[Evidence]:
        evidence: Evidence | None = None
        if given.evidence != NOTHING:
            what = f"the evidence of turn {given.turn}"
            evidence = decode_payload(given.evidence, self._application.evidence_type, what)
        return Verdict(given.accepted, given.reason, evidence, given.passed_over)


def _meets(content: records.Content, need: Need) -> bool:
    """Whether a record meets the need, for the same turn and item."""
    match content, need:
        case records.Asked(turn=number), MayAsk(turn=needed):
            return number == needed
        case records.TurnBegun(turn=number), NeedTurn(turn=needed):
            return number == needed
        case records.Shared(turn=number), MayShare(turn=turn):
            return number == turn.number
        case records.Note(turn=number), MayNote(turn=turn):
            return number == turn.number
        case records.VerdictGiven() as verdict, NeedVerdicts(turn=turn, batch=batch, given=given):
            received = batch[given]
            place = Place(verdict.kind, verdict.epoch, verdict.seq, verdict.index)
            return (verdict.turn, verdict.author, place) == (turn.number, received.author, received.place)
    return False


def rebuild(
    application: Application[State, Request, Answer, Evidence],
    journal: JournalLike,
    checkpoints: Checkpoints | None,
    *,
    seed: int,
    node: str,
    budget: Mapping[str, int],
) -> tuple[Fold[State, Request, Answer, Evidence], Found]:
    """The fold after all records, and the checkpoint that it started from. Records up to the checkpoint count
    for budgets and open calls only; the later ones are replayed. Both ways give the same node."""
    found = checkpoints.newest() if checkpoints is not None else Found(None, 0, 0, ())
    if found.journal_number > journal.last_number:
        raise RunError(
            f"{found.path}: this checkpoint is ahead of its journal, whose end was lost. Restore the journal "
            "from a copy. The checkpoint may hold all that is left: to remove it is to go back to where the "
            "journal ends, at worst to the start, and to pay for the calls since then again."
        )
    if found.path is None:
        state = application.initial_state()
    elif isinstance(application, Snapshots):
        state = application.restore(found.path)
    else:
        raise RunError(f"{found.path}: there is a checkpoint, but {application.name!r} cannot restore one.")
    fold = Fold(application, state, seed=seed, node=node, ledger=Ledger(budget))
    for record in journal.read():
        with refusing(getattr(journal, "path", "the journal"), record):
            content = content_of(record) if record.kind == "started" else None
            if isinstance(content, records.Started) and (content.seed, content.node) != (seed, node):
                raise RunError(
                    f"the journal is of node {content.node!r} with seed {content.seed}, not of {node!r} with "
                    f"seed {seed}. Resume it as what it is."
                )
            if record.number > found.journal_number:
                fold.feed(record)
            else:
                fold.skip(record)
        if record.number == found.journal_number and fold.absorbed != found.number:
            raise RunError(
                f"{found.path}: this checkpoint is of turn {found.number}, but its journal is at turn "
                f"{fold.absorbed} there. They are not of one run; remove the checkpoint."
            )
    return fold, found
