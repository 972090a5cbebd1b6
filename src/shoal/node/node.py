"""A node: it does the next thing that the loop needs, and journals the result before the loop may use it.

    while node.step(clock()) != "finished": ...

`step(now)` never waits, so the same node runs in the field with the real clock and in the simulator with a
virtual one (drive.py). A node that is made on a journal with records resumes: they are replayed, from the
newest complete checkpoint if there is one. Guarantees: nothing from outside is used before it is in the
journal; every request is reserved there before it is made, and only if it fits the budget; the outcome does
not depend on the order of answers; no other node, slow, silent or hostile, delays a step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal

import msgspec

import shoal
from shoal.errors import RunError, ShareRefused
from shoal.node.application import (
    Answer,
    Application,
    Evidence,
    ExchangeLike,
    Explains,
    GiveUp,
    Own,
    Proposal,
    Request,
    Restarts,
    Snapshots,
    State,
    Turn,
    Verdict,
)
from shoal.node.fold import MayAsk, MayNote, MayShare, NeedAnswer, NeedTurn, NeedVerdicts, rebuild
from shoal.node.outside import Call, Outside
from shoal.runs import records
from shoal.runs.checkpoint import Checkpoints
from shoal.runs.journal import JournalLike
from shoal.runs.ledger import Ledger
from shoal.runs.records import encode_payload, kind_of
from shoal.swarm.authors import Received

Status = Literal["worked", "turned", "waiting", "finished"]
"""`worked`, `turned` (a turn is complete): call again; `waiting`: for the outside; `finished`: for good."""

MOST_REASON_CHARACTERS = 500


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one node in its loop; an application derives them from its own."""

    look_ahead: int = 1  # turn k is drawn from the state after turn k - look_ahead
    # Seconds after which a turn without an answer is missed; without it the node waits.
    deadline: Annotated[float, msgspec.Meta(gt=0)] | None = None
    budget: dict[str, int] = {}  # most that may be spent, by measure, e.g. calls or tokens
    gather_limit: Annotated[int, msgspec.Meta(ge=1)] = 256  # most items taken in per turn
    checkpoint_every: Annotated[int, msgspec.Meta(ge=0)] = 0  # turns between two checkpoints; 0: none

    def __post_init__(self) -> None:
        if self.look_ahead < 1:
            raise ValueError(f"look_ahead is {self.look_ahead}; at least one turn must be under way")


class Node(Generic[State, Request, Answer, Evidence]):
    """One node of one application. Not thread-safe: one driver owns it."""

    def __init__(
        self,
        application: Application[State, Request, Answer, Evidence],
        outside: Outside[State, Request, Answer],
        *,
        name: str,
        seed: int,
        journal: JournalLike,
        now: float,
        exchange: ExchangeLike | None = None,
        settings: NodeSettings | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        self.application = application
        self.outside = outside
        self.name = name
        self.seed = seed
        self.journal = journal
        self.exchange = exchange
        self.settings = settings if settings is not None else NodeSettings()
        self.finished_because = ""
        self.trouble = ""  # the reason why it gave up
        self.late_answers = 0
        self._checkpoints = checkpoints
        self.fold, found = rebuild(
            application, journal, checkpoints, seed=seed, node=name, budget=self.settings.budget
        )
        self._checkpointed = found.number
        self._lost = [turn for turn, flight in self.fold.flights.items() if flight.own is None]
        is_restart = journal.last_number > 0
        started = records.Started(
            seed=seed,
            node=name,
            application=application.name,
            shoal=shoal.__version__,
            look_ahead=self.settings.look_ahead,
            budget=self.settings.budget,
            from_checkpoint=found.number,
            passed_over=found.passed_over,
        )
        self._record(now, started)
        if is_restart and isinstance(application, Restarts):
            self._send_out(application.share_again(self.state), now, again=True)

    @property
    def state(self) -> State:
        return self.fold.state

    @property
    def turns(self) -> int:
        return self.fold.absorbed

    @property
    def ledger(self) -> Ledger:
        return self.fold.ledger

    @property
    def unanswered(self) -> int:
        """The number of calls that are under way."""
        return len(self._open_turns())

    def wake_at(self) -> float | None:
        """While waiting: the latest time of the next thing to do, if it is known."""
        times = [] if (over := self.outside.next_at()) is None else [over]
        if (deadline := self.settings.deadline) is not None:
            times += [self.fold.flights[turn].asked_at + deadline for turn in self._open_turns()]
        return min(times, default=None)

    def step(self, now: float) -> Status:
        """Does the next thing that can be done at `now`; never waits."""
        self.collect(now)
        if self._lost:
            self._ask_again(self._lost.pop(0), now)
            return "worked"
        match self.fold.need:
            case MayAsk(turn=number):
                return self._ask(number, now)
            case NeedAnswer():
                self.journal.sync_if_due(now)
                return "waiting"
            case MayShare(turn=turn, fresh=fresh):
                self._share(turn, fresh, now)
            case NeedTurn(turn=number):
                self._gather(now)
                self._record(now, records.TurnBegun(number))
            case NeedVerdicts(turn=turn, batch=batch, given=given):
                self._verify(turn, batch[given:], now)
            case MayNote(turn=turn):
                if isinstance(self.application, Explains):
                    said = self.application.explain(self.state, turn)
                    self._record(now, records.Note(turn.number, encode_payload(said, "a note")))
                else:
                    self.fold.pass_over()
                return "turned"
        return "worked"

    def advance(self, now: float) -> Status:
        """Steps until a turn is complete or nothing can be done at `now`; for virtual clocks."""
        while (status := self.step(now)) == "worked":
            pass
        return status

    def collect(self, now: float) -> None:
        """Journals the answers that are there and the deadlines that have passed; absorbs nothing."""
        for over in self.outside.finished(now):
            flight = self.fold.flights.get(over.call.turn)
            if flight is None or flight.own is not None or flight.attempt != over.call.attempt:
                self.late_answers += 1
            elif over.reply is None:
                reason = over.failure[:MOST_REASON_CHARACTERS]
                self._record(now, records.Missed(over.call.turn, over.call.attempt, reason))
            else:
                cost = None if over.reply.cost is None else dict(over.reply.cost)
                answer = encode_payload(over.reply.answer, "an answer")
                self._record(now, records.Answered(over.call.turn, over.call.attempt, answer, cost))
        if (deadline := self.settings.deadline) is not None:
            for turn in self._open_turns():
                flight = self.fold.flights[turn]
                if now >= flight.asked_at + deadline:
                    self._record(now, records.Missed(turn, flight.attempt, "deadline"))

    def checkpoint(self, now: float) -> bool:
        """Writes a checkpoint if the application has snapshots and the loop is between two turns."""
        application, turn = self.application, self.fold.absorbed
        possible = isinstance(self.fold.need, MayAsk | NeedAnswer) and turn > self._checkpointed
        if self._checkpoints is None or not isinstance(application, Snapshots) or not possible:
            return False
        self.journal.sync()
        self._checkpoints.write(
            turn, self.journal.last_number, lambda folder: application.snapshot(self.state, folder)
        )
        self._checkpointed = turn
        self._record(now, records.CheckpointWritten(turn))
        return True

    def close(self, now: float, reason: str) -> None:
        """Ends the process's part cleanly; a resumed node goes on as if it had not been stopped."""
        if self.settings.checkpoint_every:
            self.checkpoint(now)
        self._record(now, records.Stopped(self.fold.absorbed, reason))
        self.outside.close()
        self.journal.close()

    def abandon(self) -> None:
        """Frees everything without another record, as after a failure."""
        self.outside.close()
        with contextlib.suppress(RunError):  # there is a failure already, and that one is to be seen
            self.journal.close()

    def _open_turns(self) -> list[int]:
        # A turn that the last process left without an answer is not under way: it is asked again.
        flights = self.fold.flights.items()
        return [turn for turn, flight in flights if flight.own is None and turn not in self._lost]

    def _ask(self, number: int, now: float) -> Status:
        every = self.settings.checkpoint_every
        if every and self.fold.absorbed % every == 0 and self.checkpoint(now):
            return "worked"
        if len(self.fold.flights) >= self.settings.look_ahead:
            self.fold.pass_over()
            return "worked"
        proposal = self.application.produce(self.state, self.fold.turn(number, now))
        if isinstance(proposal, Proposal) and self.ledger.fits(proposal.reserve):
            request = encode_payload(proposal.request, "a request")
            first = None if proposal.first is None else dict(proposal.first)
            self._begin(records.Asked(number, 1, dict(proposal.reserve), request, first), now)
            return "worked"
        if self.fold.flights:
            self.fold.pass_over()
            return "worked"
        if isinstance(proposal, GiveUp):
            self.finished_because = self.trouble = proposal.reason
        else:
            self.finished_because = records.NOTHING_LEFT if proposal is None else records.BUDGET_SPENT
        return "finished"

    def _ask_again(self, number: int, now: float) -> None:
        """After a resume: the sent parts of a lost attempt are spent; the turn is asked anew if it fits."""
        flight = self.fold.flights[number]
        if flight.own is not None:
            return
        reserve, sent = self.ledger.parts_of(number)
        # The reserve of the lost attempt is free again, except for its sent parts.
        if self.ledger.fits(sent):
            request = encode_payload(flight.request, "a request")
            self._begin(records.Asked(number, flight.attempt + 1, reserve, request, flight.first), now)
        else:
            reason = "lost, and the budget has no room to ask again"
            self._record(now, records.Missed(number, flight.attempt, reason, sent))

    def _begin(self, asked: records.Asked, now: float) -> None:
        self._record(now, asked)
        request = self.fold.flights[asked.turn].request

        def spend(amounts: Mapping[str, int]) -> None:
            # Straight into the journal, as it comes from another thread; only a resume reads it.
            self.journal.append("sent", now, records.Sent(asked.turn, asked.attempt, dict(amounts)))

        self.outside.begin(Call(asked.turn, asked.attempt, spend), self.state, request, now)

    def _share(self, turn: Turn, fresh: Own[Request, Answer] | None, now: float) -> None:
        if self.exchange is None:
            self.fold.pass_over()
            return
        for author, place, outcome in turn.credits:
            self.exchange.credit(author, place, outcome)
        turn.credits.clear()
        if not self._send_out(self.application.share(self.state, turn, fresh), now, turn.number):
            self.fold.pass_over()

    def _send_out(
        self, items: Iterable[msgspec.Struct], now: float, turn: int | None = None, *, again: bool = False
    ) -> bool:
        """Shares items and records that; False where there are none."""
        if self.exchange is None:
            return False
        shared = []
        for item in items:
            kind = self.application.kinds.of(item).name
            try:
                self.exchange.share(item)
                shared.append(records.SharedItem(kind))
            except ShareRefused as refused:
                shared.append(records.SharedItem(kind, str(refused)[:MOST_REASON_CHARACTERS]))
        if shared:
            self._record(now, records.Shared(self.turns if turn is None else turn, tuple(shared), again))
        return bool(shared)

    def _gather(self, now: float) -> None:
        if self.exchange is None:
            return
        found = []
        for received in self.exchange.gather(self.settings.gather_limit):
            # A restarted exchange fetches old items again: those in the journal are left out.
            if self.fold.has_arrived(received):
                self.exchange.hand_back(received.author)
                continue
            if self.application.kinds.get(received.kind) is None:
                continue
            try:
                item, digest = encode_payload(received.item, "an item"), received.digest.hex()
                fields = {**msgspec.structs.asdict(received), "item": item, "digest": digest}
                arrived = records.Arrived(**fields)
                found.append((arrived, self.fold.read(arrived)))
            except RunError:  # e.g. an infinite number: nothing foreign stops a node, also not on resume
                self.exchange.credit(received.author, received.place, "rejected", "cannot be journaled")
        if found:
            # The fold gets the items as they stand in the journal, not as the exchange handed them out.
            self.journal.append_all(kind_of(found[0][0]), now, [arrived for arrived, _ in found])
            for _, read in found:
                self.fold.arrive(read)

    def _verify(self, turn: Turn, batch: Sequence[Received[Any]], now: float) -> None:
        given = [
            records.VerdictGiven(
                turn=turn.number,
                author=received.author,
                **msgspec.structs.asdict(received.place),
                accepted=verdict.accepted,
                reason=verdict.reason[:MOST_REASON_CHARACTERS],
                evidence=encode_payload(verdict.evidence, "evidence"),
                passed_over=verdict.passed_over,
            )
            for received, verdict in zip(batch, self._verdicts(turn, batch), strict=True)
        ]
        for record in self.journal.append_all(kind_of(given[0]), now, given):
            self.fold.feed(record)
        if self.exchange is not None:
            for received, one in zip(batch, given, strict=True):
                reason = one.reason.partition(":")[0]
                self.exchange.credit(received.author, received.place, one.outcome, reason)

    def _verdicts(self, turn: Turn, batch: Sequence[Received[Any]]) -> Sequence[Verdict[Evidence]]:
        try:
            return self.application.verify(self.state, turn, batch)
        except Exception as error:  # the one place where foreign content meets the application's own code
            if len(batch) == 1:
                return [Verdict(False, f"the verifier raised {type(error).__name__}: {error}")]
        return [verdict for received in batch for verdict in self._verdicts(turn, [received])]

    def _record(self, now: float, content: records.Content) -> None:
        """The way into the fold for a live node: through the journal."""
        self.fold.feed(self.journal.append(kind_of(content), now, content))
