"""The records, notes and summaries that a search leaves behind, each declared once. `evolve` writes them;
reports, the dashboard, trackers and exports read them. A round is made of four kinds of requests:

    Drain     nothing is asked; the turn takes in the champions that have arrived
    Open      evaluate the programs that a new archive begins with
    Propose   have the model write a program, read it, evaluate it
    Close     test the best elites again on fresh seeds

Answers carry their evaluations, functions of program and evaluator, so a resume plays nothing again.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Annotated, Any, Literal

import msgspec

from shoal.errors import ConfigError, DomainError
from shoal.runs.markup import element, table
from shoal.runs.records import Count
from shoal.runs.tables import MOST_ROWS, data_frame

Cell = tuple[int, ...]
Step = Literal["drain", "open", "propose", "close"]
Result = Literal["", "new", "improved", "rejected", "duplicate", "invalid", "failed", "missed"]


class Words(msgspec.Struct, frozen=True, omit_defaults=True):
    """Words for a program, programs, rounds; the ending of files; a command to try the best of `{run}`."""

    program: str = "program"
    programs: str = "programs"
    plays: str = "rounds"
    suffix: str = ".txt"
    command: str = ""


class Axis(msgspec.Struct, frozen=True):
    """One side of the grid: bin k holds edges[k-1] <= value < edges[k], the last bin all the rest."""

    measure: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(math.isfinite(edge) for edge in self.edges)
        rising = all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        if not self.edges or not finite or not rising:
            raise ConfigError(
                f"axis {self.measure!r} has the edges {self.edges!r}: give one or more finite numbers, each "
                "larger than the one before"
            )
        # Whole numbers become floats, so that a loaded axis has the same bytes as the saved one.
        msgspec.structs.force_setattr(self, "edges", tuple(map(float, self.edges)))

    @property
    def bins(self) -> int:
        return len(self.edges) + 1

    def bin(self, value: float) -> int:
        if math.isnan(value):
            raise DomainError(f"measure {self.measure!r} is not a number: a program without it has no cell")
        return bisect_right(self.edges, value)

    def label(self, index: int) -> str:
        """The values of a bin for people: "<1", "1–10", "≥10000"."""
        if index == 0:
            return f"<{self.edges[0]:g}"
        if index == len(self.edges):
            return f"≥{self.edges[-1]:g}"
        return f"{self.edges[index - 1]:g}–{self.edges[index]:g}"


class DomainFacts(msgspec.Struct, frozen=True):
    """A domain as a page shows it. Cells of one that is not installed, the default, go by numbers."""

    axes: tuple[Axis, ...] = ()
    words: Words = Words()
    views: tuple[str, ...] = ()


class Evaluation(msgspec.Struct, frozen=True):
    """The finding of one evaluator: `mean` and unbiased `variance` of the scores of `count` rounds, and the
    measures averaged over the rounds. `opponents` is the id of the opponent set alone."""

    evaluator: str
    opponents: str
    count: int
    mean: float
    variance: float
    measures: dict[str, float]

    def __post_init__(self) -> None:
        if self.count < 1:
            raise DomainError(f"an evaluation of {self.count} rounds: at least one is needed")
        if not (math.isfinite(self.mean) and math.isfinite(self.variance) and self.variance >= 0):
            raise DomainError(
                f"mean {self.mean} with variance {self.variance}: both must be finite, the variance not "
                "negative. A program that cannot be scored is refused when it is parsed"
            )
        bad = [name for name, value in self.measures.items() if not math.isfinite(value)]
        if bad:
            raise DomainError(f"measure {', '.join(bad)} is not finite")
        msgspec.structs.force_setattr(self, "mean", float(self.mean))
        msgspec.structs.force_setattr(self, "variance", float(self.variance))
        measures = {name: float(value) for name, value in self.measures.items()}
        msgspec.structs.force_setattr(self, "measures", measures)

    @property
    def fitness(self) -> float:
        return self.mean

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.variance / self.count)


class Origin(msgspec.Struct, frozen=True):
    """The maker of a program: the model, the node and round it ran in, the digest of the parent."""

    model: str = ""
    node: str = ""
    round: int = 0
    parent: str | None = None


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that is known to be a program; `digest` is its identity."""

    digest: str
    source: str
    origin: Origin = Origin()


Finite = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""A number that a journal can hold: JSON has no infinity, and no claim may stop its receiver."""


MOST_CHAMPION_BYTES = 64 << 10
MOST_DOMAIN = 128
MOST_MODEL = 256
"""Characters of the names in an item."""


class Champion(msgspec.Struct, array_like=True, frozen=True):
    """The winner of a round. A receiver uses `domain` and `source`; the rest are claims, kept in the journal
    for people alone. New fields go to the end, with a default."""

    domain: str
    source: str
    round: int = 0
    model: str = ""
    fitness: Finite = 0.0


class SentChampion(Champion, frozen=True):
    """A champion as it travels: everything that a person or a page may see has a bound. Journals of earlier
    versions may hold longer texts."""

    domain: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_DOMAIN)]
    source: Annotated[str, msgspec.Meta(max_length=MOST_CHAMPION_BYTES)]
    round: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0
    model: Annotated[str, msgspec.Meta(max_length=MOST_MODEL)] = ""


class Migrant(msgspec.Struct, frozen=True):
    """A champion of another node that is a program here. `author`, `epoch`, `seq` and `index` name the item
    that brought it, and give migrants a total order that does not depend on when they came."""

    program: Program
    author: str
    epoch: int
    seq: int
    index: int = 0

    @property
    def order(self) -> tuple[str, int, int, int]:
        return (self.author, self.epoch, self.seq, self.index)


# Requests and answers, as the journal keeps them.


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    round: int


class Open(msgspec.Struct, frozen=True, tag="open"):
    """Every candidate of this round meets `opponents`; `entrants` are placed in the archive; `visitors`, who
    were received since the last round, are placed too unless they are to be opponents only."""

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


SearchRequest = Drain | Open | Propose | Close


class Drained(msgspec.Struct, frozen=True, tag="drained"):
    pass


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """One evaluation per entrant, then one per visitor."""

    evaluations: tuple[Evaluation, ...]


class Proposed(msgspec.Struct, frozen=True, tag="proposed", omit_defaults=True):
    """With a program: `digest`, `source`, and `evaluation` unless the program was known before. Without:
    `problem` says why the text is no program, or `failure` (of kind `failed`) why there is no text. `text` is
    the model's own, where that is not the source itself. `grammar`: the model was held to it."""

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


SearchAnswer = Drained | Opened | Proposed | Closed


class SearchEvidence(msgspec.Struct, frozen=True):
    """The verifier's finding about a received text: its identity, and its plain form."""

    digest: str
    source: str


# Notes: one for each turn, for people, reports and the dashboard.


class Placed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program in a cell, and who made it."""

    cell: Cell
    fitness: float
    digest: str = ""
    model: str = ""
    node: str = ""


class SearchNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn. `cells`, `best` and `qd_score` are of the node's archive afterwards, which met `opponents`
    opponents (None: the turn had no archive). `evaluations` were made in this turn. Of the `visitors` of a
    new round, `used` were placed or chosen as opponents; `novelty` is the share of them whose cell was empty
    in the archive of the round before, None without visitors or without such an archive."""

    turn: Count
    round: Count
    step: Step
    result: Result = ""
    digest: str = ""
    cell: Cell | None = None
    fitness: float | None = None
    placed: tuple[Placed, ...] = ()
    cells: Count = 0
    best: float | None = None
    opponents: Count | None = None
    visitors: Count = 0
    novelty: float | None = None
    said: str = ""
    qd_score: float = 0.0
    evaluations: Count = 0
    used: Count = 0


# Summaries: a whole run in numbers.


class Duelled(msgspec.Struct, frozen=True):
    """One held-out program: the mean scores of both sides, and who had more."""

    name: str
    own: float
    other: float
    outcome: str


class Contest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program against others that took no part in its making, each alone. A higher mean score wins; three
    points for a win, one for a tie, in percent of the most. `refused` could not be read."""

    name: str
    opponents: int
    wins: int
    ties: int
    losses: int
    points_percent: float
    per_opponent: list[Duelled] = []
    refused: int = 0

    @property
    def win_rate(self) -> float:
        """DEI's generality: the share of opponents defeated. A tie is no win."""
        return self.wins / self.opponents if self.opponents else 0.0

    @property
    def defeated_or_tied(self) -> float:
        """DRQ's generality: the share of opponents defeated or tied with."""
        return (self.wins + self.ties) / self.opponents if self.opponents else 0.0


class HeldOutSet(msgspec.Struct, frozen=True):
    """The programs that every champion meets alone over `rounds` rounds: `programs`, out of `available` ones
    that differ and can be read. `digest` names them together with the rules and the seed. `is_starters`:
    there was no folder, and champions may have met them before."""

    name: str
    digest: str
    programs: list[str]
    available: int
    rounds: int
    is_starters: bool = False


class NodeRound(msgspec.Struct, frozen=True, omit_defaults=True):
    """A round of a node. `visitors` new champions had arrived before it, and `novelty` is the share of them
    whose cell was empty in the round before. `champion` is the digest of its winner, `maker` the model that
    made it, and `contest` its result against the held-out set; an experiment alone has that."""

    round: Count
    visitors: Count = 0
    novelty: float | None = None
    champion: str = ""
    maker: str = ""
    contest: Contest | None = None


class SearchNodeSummary(msgspec.Struct, frozen=True):
    """`valid` proposals were programs, `accepted` ones took a cell, `failed` ones got no answer. `novelty` is
    the mean niche novelty over `rounds_heard`: those, after the first, for which champions had arrived.
    `passed_over` counts champions that this node cannot check, by reason. After its own rounds a node that
    stayed had `gather_rounds` without calls."""

    name: str
    model: str
    calls: int
    tokens: int
    proposals: int
    valid: int
    duplicates: int
    timeouts: int
    accepted: int
    champions_received: int
    cells: int
    rounds: int
    niche_novelty: list[float | None]
    ended: str
    repaired: int = 0
    held_to_grammar: int = 0
    failed: int = 0
    last_failure: str = ""
    novelty: float | None = None
    rounds_heard: int = 0
    passed_over: dict[str, int] = {}
    gather_rounds: int = 0
    by_round: list[NodeRound] = []


class ModelSummary(msgspec.Struct, frozen=True):
    """Cells that this model's programs filled first, hold last, and were the only ones to fill."""

    model: str
    calls: int
    tokens: int
    valid_rate: float | None
    first_cells: int
    last_cells: int
    unique_cells: int


class SearchPoint(msgspec.Struct, frozen=True):
    """The merged archive of the rounds that were going on when so many calls were spent; raw."""

    calls: int
    coverage: float
    qd_score: float


class SearchSummary(msgspec.Struct, frozen=True):
    """`microdollars` is None where a price is unknown. `best_source` is best by common fitness, if possible
    as its maker wrote it. `held_out` is None where there is nobody to meet. `simulations` counts rounds.
    `held_out_set` is there where the champions of all rounds have met it."""

    finished: bool
    coverage: float
    cells: int
    capacity: int
    qd_score: float
    qd_score_common: float
    coverage_common: float
    best: float
    best_common: float
    best_source: str
    best_model: str
    calls: int
    tokens: int
    microdollars: int | None
    simulations: int
    shared_bytes: int
    nodes: list[SearchNodeSummary]
    models: list[ModelSummary]
    axes: list[Axis]
    cells_raw: list[Placed]
    cells_common: list[Placed]
    curve: list[SearchPoint]
    held_out: Contest | None
    domain: str = "corewar"
    words: Words = Words()
    held_out_set: HeldOutSet | None = None

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per cell of the common archive: its place and the values of its
        bins, one column per measure, then fitness, model, node and digest of its elite."""
        measures = [axis.measure for axis in self.axes]
        rows = [
            {"cell": one.cell, **dict(zip(measures, self._bins(one.cell), strict=True))}
            | {"fitness": one.fitness, "model": one.model, "node": one.node, "digest": one.digest}
            for one in self.cells_common
        ]
        columns = ("cell", *measures, "fitness", "model", "node", "digest")
        return data_frame(rows, tuple(dict.fromkeys(columns)))

    def _repr_html_(self) -> str:
        state = "finished" if self.finished else "not finished"
        told = (
            f"Search, {state}: {self.calls:,} calls, {len(self.cells_common)} of {self.capacity} cells, "
            f"QD-score {self.qd_score_common:.2f}, best {self.best_common:.2f} against common opponents."
        )
        ranked = sorted(self.cells_common, key=lambda one: -one.fitness)[:MOST_ROWS]
        rows = [
            (",".join(map(str, one.cell)), *self._bins(one.cell), f"{one.fitness:.3f}", one.model)
            for one in ranked
        ]
        headings = ("cell", *(axis.measure for axis in self.axes), "fitness", "model")
        return element("div", element("p", told), table(headings, rows))

    def _bins(self, cell: Cell) -> list[str]:
        return [axis.label(place) for axis, place in zip(self.axes, cell, strict=True)]
