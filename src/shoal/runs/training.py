"""The records, notes and summaries that a training run leaves behind, each declared once. `train` writes
them; reports, the dashboard, trackers and exports read them. A turn of the loop is one of

    Sample     write completions of own tasks, score them      then: share, gather, one step of learning
    Evaluate   answer the held-out tasks
    AnswerJudges   answer the questions of judges, if there are any

Answers carry texts, token ids and scores, so a resume takes the same steps of learning and samples nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from shoal.runs.markup import element, table
from shoal.runs.records import Count
from shoal.runs.tables import MOST_ROWS, data_frame

MOST_GROUP_BYTES = 256 << 10
MOST_COMPLETIONS = 64
MOST_TOKENS = 8192
MOST_TEXT = 1 << 16
"""Characters of a question, and of a completion that travels."""
MOST_MODEL, MOST_TOKENIZER = 256, 64

LogProb = Annotated[float, msgspec.Meta(ge=-1e6, le=0.0)]


class TaskName(msgspec.Struct, array_like=True, frozen=True):
    """A task's name, the same everywhere. `parameters` is canonical JSON; `counter` counts by author."""

    family: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    version: Annotated[str, msgspec.Meta(max_length=64)]
    parameters: Annotated[str, msgspec.Meta(max_length=4096)]
    counter: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class Completion(msgspec.Struct, array_like=True, frozen=True):
    """One answer to a question. `finished`: its model ended it by itself, so the receiver restores its own
    end token, and only then. `log_probs`, one per token of the author's tokenizer, may be left out. New
    fields go to the end, with a default."""

    text: str
    finished: bool
    log_probs: Annotated[tuple[LogProb, ...], msgspec.Meta(max_length=MOST_TOKENS)] = ()


class RolloutGroup(msgspec.Struct, array_like=True, frozen=True):
    """All completions of one question by one author. From `model` on these are claims; the last two matter
    only under the importance estimator."""

    task: TaskName
    question: str
    completions: Annotated[tuple[Completion, ...], msgspec.Meta(min_length=1, max_length=MOST_COMPLETIONS)]
    model: Annotated[str, msgspec.Meta(max_length=MOST_MODEL)] = ""
    tokenizer: Annotated[str, msgspec.Meta(max_length=MOST_TOKENIZER)] = ""
    temperature: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0


class SentCompletion(Completion, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]


class SentGroup(RolloutGroup, frozen=True):
    """A group as it travels: everything that a person or a page may see has a bound. Journals of earlier
    versions may hold longer texts."""

    question: Annotated[str, msgspec.Meta(max_length=MOST_TEXT)]
    completions: Annotated[
        tuple[SentCompletion, ...], msgspec.Meta(min_length=1, max_length=MOST_COMPLETIONS)
    ]


# Requests and answers, as the journal keeps them.


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Step `step`, from 1. Its tasks are numbered from `counter` on, one of each of `families` in turn."""

    step: int
    epoch: int
    counter: int
    families: tuple[str, ...]
    seed: int


class Evaluate(msgspec.Struct, frozen=True, tag="evaluate"):
    """Measure the policy on held-out tasks after `step` steps."""

    step: int


class PendingQuestion(msgspec.Struct, frozen=True):
    """The question of a judge, for a round of this node; an answer counts until then at most."""

    judge: str
    number: int
    round: int
    question: str
    until: float


class AnswerJudges(msgspec.Struct, frozen=True, tag="answer judges"):
    """Answer each question once, with the policy as it is after `step` steps."""

    step: int
    questions: tuple[PendingQuestion, ...]
    seed: int


TrainRequest = Sample | Evaluate | AnswerJudges


class Sampled(msgspec.Struct, frozen=True, omit_defaults=True):
    """A completion as its policy wrote it. `ids` include the end token if `finished`. `log_probs`, where they
    were asked for, are those of the distribution that was drawn from, one per id."""

    text: str
    finished: bool
    ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()


class OwnGroup(msgspec.Struct, frozen=True):
    """`scores` are raw, from 0 to 1."""

    task: TaskName
    question: str
    completions: tuple[Sampled, ...]
    scores: tuple[float, ...]


class SampledGroups(msgspec.Struct, frozen=True, tag="sampled", omit_defaults=True):
    """`refused`: tasks that could not be posed or scored, by reason. `cpu`: seconds of this process."""

    groups: tuple[OwnGroup, ...]
    tokens: int = 0
    cpu: float = 0.0
    refused: dict[str, int] = {}


class Right(msgspec.Struct, frozen=True):
    """`right` of `total` held-out tasks were answered rightly: those `solved`. `reward` is a sum."""

    right: Count
    total: Count
    reward: float
    solved: tuple[int, ...] = ()


class Evaluated(msgspec.Struct, frozen=True, tag="evaluated"):
    families: dict[str, Right]
    tokens: int = 0
    cpu: float = 0.0


class JudgesAnswered(msgspec.Struct, frozen=True, tag="answered"):
    """One text per question; None where the policy could not write one."""

    texts: tuple[str | None, ...]
    cpu: float = 0.0


TrainAnswer = SampledGroups | Evaluated | JudgesAnswered


class TrainEvidence(msgspec.Struct, frozen=True):
    """The verifier's finding about a foreign group: one reward per completion."""

    rewards: tuple[float, ...]


# Notes: one for each turn, for people, reports and the dashboard.


class TrainNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn. `reward_local` is the mean reward of own completions, `reward_external` that of the foreign
    ones trained on, and `reward_batch` that of both, the paper's figure: filtered foreign groups lift it.
    `seen` groups arrived and `verified` were scored; of these, `found` were informative and `used` trained
    on, the oldest after `oldest` steps. `dropped`, `refused` and `passed_over` are by reason.
    `families` has the sum and number of own rewards. `cpu` is seconds of this process, `said` the line for
    people."""

    turn: Count
    step: Count
    kind: Literal["step", "evaluation", "missed", "judged"]
    own: Count = 0
    own_informative: Count = 0
    reward_local: float | None = None
    reward_external: float | None = None
    reward_batch: float | None = None
    families: dict[str, tuple[float, int]] = {}
    seen: Count = 0
    pool: Count = 0
    verified: Count = 0
    found: Count = 0
    used: Count = 0
    oldest: Count = 0
    used_authors: tuple[str, ...] = ()
    dropped: dict[str, Count] = {}
    refused: dict[str, Count] = {}
    passed_over: dict[str, Count] = {}
    loss: float | None = None
    gradient_norm: float | None = None
    trained_tokens: Count = 0
    left_out: Count = 0
    parts: dict[str, float] = {}
    tokens: Count = 0
    cpu: float = 0.0
    held_out: dict[str, Right] = {}
    said: str = ""

    @property
    def reward_held_out(self) -> float | None:
        """The mean over all held-out tasks of an evaluation; None where the turn was none."""
        total = sum(right.total for right in self.held_out.values())
        return sum(right.reward for right in self.held_out.values()) / total if total else None


# Summaries: a whole run in numbers.

TrainPoint = tuple[int, float]
"""A step and a reward."""


class Cost(msgspec.Struct, frozen=True):
    """The effort until an evaluation first reached `reward`: steps, generated tokens, processor seconds."""

    reward: float
    step: int
    tokens: int
    cpu: float


class TrainNodeSummary(msgspec.Struct, frozen=True):
    """`oscillation` is the standard deviation of the smoothed local reward over the second half of the run;
    `largest_fall` how far the held-out reward fell at most below an earlier one. `passed_over` counts foreign
    groups that this node cannot check, by reason."""

    name: str
    model: str
    trains: bool
    tasks: tuple[str, ...]
    steps: int
    reward_local: float | None
    reward_held_out: float | None
    reward_held_out_first: float | None
    reward_external: float | None
    reward_cumulative: float
    reward_local_cumulative: float
    own_groups: int
    own_informative: int
    shared_groups: int
    foreign_seen: int
    foreign_verified: int
    foreign_informative: int
    foreign_used: int
    oldest_used: int
    dropped: dict[str, int]
    refused: dict[str, int]
    tokens: int
    trained_tokens: int
    cpu: float
    oscillation: float | None
    largest_fall: float | None
    costs: list[Cost]
    families: dict[str, float]
    curve_local: list[TrainPoint]
    curve_held_out: list[TrainPoint]
    curve_batch: list[TrainPoint]
    ended: str
    last: str
    passed_over: dict[str, int] = {}


class Spreading(msgspec.Struct, frozen=True):
    """The way of held-out tasks from the first node that solved them to the others. `tasks` were not solved
    by all at once; `median_delay` is in steps, over the nodes that solved them later; `reached_all` is the
    share that every training node solved at some time."""

    tasks: int
    median_delay: float | None
    reached_all: float | None


class TrainSummary(msgspec.Struct, frozen=True):
    application: str
    finished: bool
    seed: int
    nodes: list[TrainNodeSummary]
    reward_held_out: float | None
    reward_held_out_first: float | None
    reward_local: float | None
    reward_cumulative: float
    tokens: int
    cpu: float
    oscillation: float | None
    largest_fall: float | None
    spreading: Spreading

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per node and step, and the rewards that the curves have there."""
        rows = []
        for node in self.nodes:
            curves = (node.curve_local, node.curve_held_out, node.curve_batch)
            local, held_out, batch = (dict(curve) for curve in curves)
            rows += [
                {
                    "node": node.name,
                    "step": step,
                    "local": local.get(step),
                    "held_out": held_out.get(step),
                    "batch": batch.get(step),
                }
                for step in sorted({*local, *held_out, *batch})
            ]
        return data_frame(rows, ("node", "step", "local", "held_out", "batch"))

    def _repr_html_(self) -> str:
        state = "finished" if self.finished else "not finished"
        told = (
            f"Training, {state}: {len(self.nodes)} nodes, seed {self.seed}, {self.tokens:,} tokens generated."
        )
        headings = ("node", "model", "steps", "held-out reward", "at first", "local reward", "groups used")
        rows = [
            (node.name, node.model, str(node.steps), *map(_reward, rewards), f"{node.foreign_used:,}")
            for node in self.nodes[:MOST_ROWS]
            for rewards in [(node.reward_held_out, node.reward_held_out_first, node.reward_local)]
        ]
        return element("div", element("p", told), table(headings, rows))


def _reward(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
