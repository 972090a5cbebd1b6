"""What a search asks of the outside, and what comes back: plain data, as the journal keeps it.

A round is made of four kinds of steps, each one turn of the loop:

    Drain     nothing is asked; the turn takes in what has arrived
    Open      evaluate the programs that a new archive begins with
    Propose   have the model write a program, read it, evaluate it
    Close     test the best elites again on fresh seeds

Answers carry their evaluations, so that resuming plays no battle again. Evaluations are a function of
program and evaluator; what is journaled is what anyone would find.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.evolve.elite import Evaluation, Origin


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that is known to be one; `digest` is its identity."""

    digest: str
    source: str
    origin: Origin = Origin()


class Migrant(msgspec.Struct, frozen=True):
    """A champion of another node that assembled here. `author`, `epoch` and `seq` give migrants a total
    order that does not depend on when they came."""

    program: Program
    author: str
    epoch: int
    seq: int

    @property
    def order(self) -> tuple[str, int, int]:
        return (self.author, self.epoch, self.seq)


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    round: int


class Open(msgspec.Struct, frozen=True, tag="open"):
    """`opponents` are what everyone meets in this round; `entrants` are placed in the archive; `visitors`,
    who were received since the last round, are placed too unless they are to be opponents only."""

    round: int
    seed: int
    opponents: tuple[Program, ...]
    entrants: tuple[Program, ...]
    visitors: tuple[Migrant, ...] = ()


class Propose(msgspec.Struct, frozen=True, tag="propose", omit_defaults=True):
    """`calls` is the most that it may spend; `parent_evaluation` is there in the informed mode only."""

    round: int
    task: Literal["new", "mutate"]
    seed: int
    calls: int
    parent: str | None = None
    parent_source: str = ""
    parent_evaluation: Evaluation | None = None


class Close(msgspec.Struct, frozen=True, tag="close"):
    round: int
    seed: int
    finalists: tuple[Program, ...]


Request = Drain | Open | Propose | Close


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    pass


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """One evaluation per entrant, then one per visitor."""

    evaluations: tuple[Evaluation, ...]


class Proposed(msgspec.Struct, frozen=True, tag="proposed", omit_defaults=True):
    """What came of a proposal.

    With a program: `digest`, `source`, and `evaluation` unless the program was known before. Without:
    `problem` says why the text is no program, or `failure` (of kind `failed`) why there is no text. `text`
    is what the model wrote, where that is not the source itself. `grammar`: the model was held to it.
    """

    model: str = ""
    digest: str = ""
    source: str = ""
    evaluation: Evaluation | None = None
    problem: str = ""
    failure: str = ""
    failed: str = ""
    text: str = ""
    calls: int = 0
    tokens: int = 0
    repaired: bool = False
    grammar: bool = False
    seconds: float = 0.0


class Closed(msgspec.Struct, frozen=True, tag="closed"):
    """One evaluation per finalist, on seeds that no candidate was chosen by."""

    evaluations: tuple[Evaluation, ...]


Answer = Drained | Opened | Proposed | Closed


class Evidence(msgspec.Struct, frozen=True):
    """What the verifier found in a received text: its identity, and the text without anything that its
    author could address to a reader."""

    digest: str
    source: str
