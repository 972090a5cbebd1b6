"""Everything that a run of `shoal train` is made of, as one typed config.

Defaults are those of the SAPO paper (Swarm sAmpling Policy Optimization) unless a comment says why not.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from shoal.errors import ConfigError, TaskError
from shoal.policy.advantage import EPSILON, LEAST_SPREAD, ScaleRewards
from shoal.policy.base import Learning, Precision
from shoal.policy.pool import PoolLimits
from shoal.policy.selection import Selection
from shoal.policy.system import OWN, check_system
from shoal.runs.judging import MOST_READERS
from shoal.runs.moments import moment
from shoal.swarm.membership import is_node_id
from shoal.tasks.questions import check_files
from shoal.tasks.registry import canonical_name

Sharing = Literal["all", "informative", "sample", "off"]
"""Which own groups are sent out. "sample": a random one of them. "off": nothing, and no network at all."""

ANY = "any"
"""In place of the ids of judges: whoever poses questions is answered."""

DEFAULT_MODELS = ("tiny:llama", "tiny:gpt2", "tiny:qwen")
NOT_TRAINED = "frozen:"
"""In front of a model: it only contributes."""
PREPARED = "rollouts:"
"""A file of rollouts, or the folder of a search, in place of a model."""
WITHOUT_PROMPT = ("table:", "person:", "program:")
"""Models that are given the question and nothing around it."""

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Nodes = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Groups = Annotated[int, msgspec.Meta(ge=0, le=1024)]
GroupSize = Annotated[int, msgspec.Meta(ge=2, le=64)]
Steps = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class NodeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of one node that differ from the others': `[[each]]` in a config, in the nodes' order."""

    model: str | None = None  # the node's model; else the next one of `models`
    tasks: tuple[str, ...] | None = None  # the node's tasks; else those of all
    local: Groups | None = None  # the node's own groups per step
    external: Groups | None = None  # most groups of others that a step of the node trains on
    group: GroupSize | None = None  # completions in each of the node's groups


class TrainSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`models` and `each` are dealt to the nodes in turn. A step trains on `local` own groups, with `group`
    completions each, and on up to `external` groups of others."""

    application: Literal["train"] = "train"  # the verb that these settings belong to
    nodes: Nodes = 3  # nodes of this run. The paper: 8
    models: tuple[str, ...] = DEFAULT_MODELS  # dealt to the nodes in turn, e.g. tiny:llama or local:smollm2
    tasks: tuple[str, ...] = ("sums",)  # families of questions, drawn uniformly, with replacement
    specialists: bool = False  # node n has the n-th task only
    local: Groups = 4  # I: own groups of completions that a step samples, shares and trains on
    external: Groups = 4  # J: most groups of others that a step trains on
    group: GroupSize = 8  # completions of one question
    steps: Steps = 40  # steps of each node. The paper: 2000
    seed: Count = 0  # all randomness of the run follows from it, apart from the network's
    each: tuple[NodeSettings, ...] = ()  # differences of single nodes, in their order: `[[each]]`, see below
    # Settings of task families, by the name of the task; those of families that have no task here rest.
    parameters: dict[str, dict[str, Any]] = {}
    files: dict[str, str] = {}  # paths of question files, by the name of the task, e.g. file:0123456789abcdef

    max_new_tokens: Annotated[int, msgspec.Meta(ge=1, le=8192)] = 16  # most tokens of one completion
    temperature: Annotated[float, msgspec.Meta(gt=0, le=10)] = 1.0  # of samples; evaluations are greedy
    # Samples are drawn from the likeliest tokens, as few as have this probability together; 1: from all.
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    # The form in which a question is put: as it is, by the model's chat template, or behind solved examples.
    prompt: Literal["plain", "chat", "few-shot"] = "plain"
    # The system prompt of a chat prompt: shoal (asks for answer tags), none, a prompt of reasoning-gym such
    # as gym:default, or a text.
    system: str = OWN
    # The answer within a completion: between <answer> tags, or without tags also the first line (lenient).
    # The paper: tags; small models leave them out.
    answers: Literal["lenient", "tags"] = "lenient"
    reward: Literal["binary", "raw"] = "binary"  # right or wrong, or the family's own score from 0 to 1
    scale: ScaleRewards = "group"  # divisor of centred rewards: deviation of the group, of the step, or none
    # Added to that deviation. The paper: 1e-8.
    advantage_epsilon: Annotated[float, msgspec.Meta(gt=0, le=1)] = EPSILON
    # A group is informative if best and worst reward differ by so much; 0: by anything, as in the paper.
    least_spread: Annotated[float, msgspec.Meta(ge=0, le=1)] = LEAST_SPREAD
    filter_own: bool = False  # own groups without information are left out too; the paper: no
    learning: Learning = Learning(micro_groups=8)  # one step of learning, see below

    # Own groups that are sent out: all, those whose rewards differ, a random one; off: no network at all.
    sharing: Sharing = "all"
    selection: Selection = "published"  # the way in which foreign groups are chosen: docs/selection.md
    adaptive: bool = False  # moves between own and foreign groups, their sum being fixed
    verify_budget: Positive = 64  # foreign groups that one step may verify
    accept: tuple[str, ...] = ()  # families whose groups are taken; empty: all whose scorer is safe
    send_log_probs: bool = False  # sends log-probs along, for others' importance weights
    pool: PoolLimits = PoolLimits()  # the store of foreign groups, see below

    judge: str | tuple[str, ...] = ()  # ids of judges that are asked for questions and answered, or "any"
    # The one answer to a judge is written as samples are, as in the paper, or is the likeliest one (greedy).
    judge_sampling: Literal["temperature", "greedy"] = "temperature"

    tokens: Positive | None = None  # most tokens that one node generates; without it any number
    evaluate_every: Count = 10  # steps between two evaluations on held-out tasks; 0: none
    held_out: Annotated[int, msgspec.Meta(ge=1, le=1 << 16)] = 64  # tasks per family, alike in all runs
    checkpoint_every: Count = 20  # turns between two checkpoints; 0: none
    linger: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 2.0  # seconds of a node after its last step
    # A node whose steps are done stays until then, still giving and passing on: a span from its start, such
    # as 90s or 2h, a time such as 23:30, or a date and time. Without it, it leaves after `linger`.
    until: str = ""
    threads: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1  # processor threads of one node's model
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"  # where models compute
    # Numbers that models compute in; auto: fp32, but bf16 below adapters on a card that has it.
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        for name in ("models", "tasks", "judge"):
            if isinstance(value := getattr(self, name), str):  # in Python, a single one needs no list
                msgspec.structs.force_setattr(self, name, (value,))

    def check(self) -> None:
        """ConfigError, with the key's name, for settings that are wrong; nothing is started."""
        try:  # types and bounds hold for files and options, and not for a caller from Python
            msgspec.convert(msgspec.to_builtins(self), TrainSettings)
        except (msgspec.MsgspecError, TypeError, OverflowError) as error:
            what, _, where = str(error).partition(" - at `$.")
            raise ConfigError(f"{where.rstrip('`') or 'settings'}: {what}") from None
        if not self.models:
            raise ConfigError("models: name at least one, such as tiny:llama")
        if self.until:
            moment(self.until, 0.0)
        if not self.tasks:
            raise ConfigError("tasks: name at least one, such as sums")
        named = [*self.tasks, *(task for one in self.each for task in one.tasks or ())]
        for task in dict.fromkeys(named):
            canonical_name(task)
        check_files(self.files)
        families: dict[str, str] = {}
        for name in self.parameters:
            try:
                first = families.setdefault(canonical_name(name), name)
            except TaskError as error:
                raise ConfigError(f"parameters.{name}: {error}") from None
            if first != name:
                raise ConfigError(f"parameters.{name}: {first} is the same family: join the two")
        if len(self.each) > self.nodes:
            raise ConfigError(f"each: {len(self.each)} nodes are described, and the run has {self.nodes}")
        for index in range(self.nodes):
            node = self.of(index)
            if node.local == 0 and node.is_frozen:
                raise ConfigError(f"node {index + 1}: {node.model} only contributes: give it local groups")
            if node.local == 0 and node.external == 0:
                raise ConfigError(f"node {index + 1}: local and external are both 0: there is nothing to do")
            if self.tokens is not None and node.most_tokens > self.tokens:
                most = f"one step of node {index + 1} may take ({node.most_tokens})"
                raise ConfigError(f"tokens: {self.tokens} are fewer than {most}")
            if node.model.startswith("table:"):
                from shoal.policy.table import check_learning, check_precision  # it needs numpy

                check_precision(node.model, self.precision)
                check_learning(node.model, self.learning)
        check_system(self.system)
        if self.system != OWN and self.prompt != "chat":
            remedy = 'set prompt = "chat", or leave system out'
            raise ConfigError(f"system: a prompt of the kind {self.prompt} has none: {remedy}")
        self._check_judges()
        if self.adaptive and min(self.of(index).local for index in range(self.nodes)) < 1:
            raise ConfigError("adaptive: needs one own group or more: give local groups")

    def _check_judges(self) -> None:
        if self.judges == (ANY,):
            return
        if len(self.judges) > MOST_READERS:
            raise ConfigError(f"judge: {len(self.judges)} judges are named: at most {MOST_READERS}")
        for judge in self.judges:
            if not is_node_id(judge):
                what = "is not a node id (32 letters a-z and digits 2-7)"
                raise ConfigError(
                    f'judge: {judge[:64]!r} {what}: a judge shows its own, or give "{ANY}" alone'
                )

    def of(self, index: int) -> NodePlan:
        own = self.each[index] if index < len(self.each) else NodeSettings()
        tasks = own.tasks or self.tasks
        if self.specialists and own.tasks is None:
            tasks = (self.tasks[index % len(self.tasks)],)
        model = own.model or self.models[index % len(self.models)]
        frozen = model.startswith((NOT_TRAINED, PREPARED))
        plain = model.partition("?")[0].rpartition("/")[2].lower()
        short = re.sub(r"[^a-z0-9.]+", "-", plain).strip("-.")[:40].rstrip("-.")
        external = self.external if own.external is None else own.external
        return NodePlan(
            name=f"{index + 1}-{short or 'model'}",
            model=model.removeprefix(NOT_TRAINED),
            is_frozen=frozen,
            tasks=tasks,
            local=self.local if own.local is None else own.local,
            external=0 if frozen else external,
            group=own.group or self.group,
            max_new_tokens=self.max_new_tokens,
        )

    @property
    def judges(self) -> tuple[str, ...]:
        return (self.judge,) if isinstance(self.judge, str) else self.judge

    def node_names(self) -> list[str]:
        return [self.of(index).name for index in range(self.nodes)]

    def parameters_of(self, task: str) -> dict[str, Any]:
        """The given settings of a task's family."""
        family = canonical_name(task)
        found = (given for name, given in self.parameters.items() if canonical_name(name) == family)
        return next(found, {})

    def remarks(self) -> list[str]:
        """Sentences about given settings that change nothing here."""
        plans = [self.of(index) for index in range(self.nodes)]
        found = []
        if self.prompt != "plain":
            for model in dict.fromkeys(one.model for one in plans if one.model.startswith(WITHOUT_PROMPT)):
                found.append(f"{model} reads the question alone: prompt and system change nothing there")
        drawn = {canonical_name(task) for plan in plans for task in plan.tasks}
        if idle := [name for name in self.parameters if canonical_name(name) not in drawn]:
            found.append(f"parameters of {', '.join(idle)}: no task of the run is of such a family")
        return found

    @property
    def at_terminal(self) -> bool:
        """Whether the one node is a person who answers at this terminal."""
        return self.nodes == 1 and bool(self.models) and self.of(0).model.startswith("person:")


class NodePlan(msgspec.Struct, frozen=True):
    """One node of a run. `is_frozen`: it contributes and does not learn."""

    name: str
    model: str
    is_frozen: bool
    tasks: tuple[str, ...]
    local: int
    external: int
    group: int
    max_new_tokens: int

    @property
    def prepared(self) -> str:
        """The file or run whose groups this node sends out; empty: it has a model."""
        return self.model.removeprefix(PREPARED) if self.model.startswith(PREPARED) else ""

    @property
    def only_asks(self) -> bool:
        """Whether it contributes the completions of a chat model, a person or a file: no policy is opened."""
        return self.is_frozen and self.model.partition(":")[0] not in ("tiny", "table")

    @property
    def most_tokens(self) -> int:
        return max(self.local, self.local + self.external - 1) * self.group * self.max_new_tokens
