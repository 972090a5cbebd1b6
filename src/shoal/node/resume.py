"""Resuming: the state that a journal amounts to, from its first record or from the newest complete
checkpoint.

With a checkpoint the records up to it are read for what they say about budgets and open calls, and their
effect on the state is taken from the checkpoint; the later ones are replayed. Both ways give the same node.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.errors import RunError
from shoal.node.application import Answer, Application, Evidence, Request, Snapshots, State
from shoal.node.fold import Fold
from shoal.runs.checkpoint import Checkpoints, Found
from shoal.runs.journal import JournalLike, Record
from shoal.runs.ledger import Ledger
from shoal.runs.records import Started, content_of, refusing


def rebuild(
    application: Application[State, Request, Answer, Evidence],
    journal: JournalLike,
    checkpoints: Checkpoints | None,
    *,
    seed: int,
    node: str,
    budget: Mapping[str, int],
) -> tuple[Fold[State, Request, Answer, Evidence], Found]:
    """The fold after all records, and the checkpoint that it started from."""
    found = checkpoints.newest() if checkpoints is not None else Found(None, 0, 0, ())
    if found.journal_number > journal.last_number:
        raise RunError(
            f"{found.path}: this checkpoint is ahead of its journal, whose end was lost. Restore the journal "
            "from a copy. The checkpoint may hold all that is left: to remove it is to go back to where the "
            "journal ends, at worst to the start, and to pay for the calls since then again."
        )
    state = _first_state(application, found.path)
    fold = Fold(application, state, seed=seed, node=node, ledger=Ledger(budget))
    for record in journal.read():
        with refusing(getattr(journal, "path", "the journal"), record):
            _refuse_other_node(record, seed, node)
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


def _first_state(
    application: Application[State, Request, Answer, Evidence], checkpoint: Path | None
) -> State:
    if checkpoint is None:
        return application.initial_state()
    if isinstance(application, Snapshots):
        state: State = application.restore(checkpoint)
        return state
    raise RunError(f"{checkpoint}: there is a checkpoint, but {application.name!r} cannot restore one.")


def _refuse_other_node(record: Record, seed: int, node: str) -> None:
    if record.kind != "started":
        return
    content = content_of(record)
    if isinstance(content, Started) and (content.seed, content.node) != (seed, node):
        raise RunError(
            f"the journal is of node {content.node!r} with seed {content.seed}, not of {node!r} with seed "
            f"{seed}. Resume it as what it is."
        )
