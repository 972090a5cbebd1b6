"""The settings of `shoal evolve`. Defaults are those of the DEI paper, or of DRQ where DEI does not say;
where ours differ, a comment says why. Amounts for the whole swarm are dealt out to the nodes exactly."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from shoal.errors import CandidateError, ConfigError
from shoal.evolve.domain import Domain, open_domain
from shoal.evolve.given import Tell, read_programs_for, read_prompts
from shoal.evolve.prompts import Prompts, Template
from shoal.models import parse_spec
from shoal.runs.moments import moment

Sharing = Literal["both", "off", "opponents", "seeds"]
"""The use of received champions: as opponents and as seeds of the archive, or one of the two, or none."""

DEFAULT_MODELS = ("builtin:bomber", "builtin:replicator", "builtin:scanner", "builtin:vampire")

DEFAULT_CALLS = 1000
MOST_CALLS = 1_000_000_000

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Rounds = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Calls = Annotated[int, msgspec.Meta(ge=1, le=MOST_CALLS)]
Repeats = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
LookAhead = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
HeldOutSize = Positive | Literal["all"]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class EvolveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One node per entry of `models`. `calls` is the total of the swarm, repairs and repetitions included;
    `calls_per_round`, of each node in each round, says the same in another way."""

    renamed: ClassVar = {"battles": "repeats", "retest_battles": "retest_repeats", "corewar": "options"}
    alternatives: ClassVar = (("calls", "calls_per_round"), ("early_stop", "early_stop_fitness"))

    application: Literal["evolve"] = "evolve"  # the verb that these settings belong to
    models: tuple[str, ...] = DEFAULT_MODELS  # one node per entry, e.g. builtin:bomber or openai:gpt-5-mini
    rounds: Rounds = 5  # rounds of each node. DRQ: 20; fewer, so that the first run takes a minute
    # Model calls of the whole swarm, exactly: 1000, or as many as calls_per_round makes.
    calls: Calls = None  # type: ignore[assignment]
    # Calls of each node in each round, in place of `calls`. The paper: 250 alone, 62 for each of four nodes.
    calls_per_round: Calls | None = None
    seed: Count = 0  # all randomness of the run follows from it
    domain: str = "corewar"  # the search space: a registered name, or module:Class
    options: dict[str, Any] = {}  # options of the domain; those of Core War stand below
    sharing: Sharing = "both"  # received champions are opponents, seeds of the archive, or both; off: alone
    fresh_only: bool = False  # every proposal is new and nothing is mutated: best of N
    held_out: str | None = None  # folder with programs that take no part; without it the domain's starters
    # Held-out programs, drawn by content, that the champions of a comparison meet; or "all".
    held_out_size: HeldOutSize = 20

    tokens: Count | None = None  # most tokens of the whole swarm; without it any number
    dollars: Annotated[float, msgspec.Meta(ge=0)] | None = None  # most dollars of the whole swarm
    # Prices that Shoal does not know: by model, dollars per million tokens, in and out.
    prices: dict[str, tuple[float, float]] = {}

    new_share: Share = 0.1  # share of the calls that ask for a program from scratch
    warm_start: Count = 8  # programs from scratch that begin a round, at most a quarter of its calls
    # The initial ones: names of starters or of programs below, files, folders. Without it the domain's.
    opponents: tuple[str, ...] | None = None
    # Further programs, given in the same way, that are placed in each new archive.
    starters: tuple[str, ...] = ()
    programs: dict[str, str] = {}  # texts of programs, by name; those given as files are kept here
    history: Count = 20  # own and received champions each that stay as opponents and seeds
    most_opponents: Positive | None = None  # a limit of opponents below the domain's own
    seed_opponents: bool = True  # the initial opponents are placed in each new archive
    seed_champions: bool = True  # own champions are placed in each new archive

    repeats: Repeats = 20  # rounds that one evaluation plays; in Core War, battles
    finalists: Positive = 3  # the best elites that are tested again on fresh seeds; the paper: none
    retest_repeats: Repeats = 20  # rounds of that second test
    # Ends a round once the best fitness exceeds this share of the number of players. DRQ: 0.8 × 1, a tie.
    early_stop: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    # As DRQ's code has it, 0.8: ends a round once it has begun and the best fitness exceeds this number.
    early_stop_fitness: Annotated[float, msgspec.Meta(gt=0)] | None = None

    # Texts for models in place of the domain's: a folder, or a file for each of system, new, mutate, informed
    # and repair; the texts themselves are kept here.
    prompts: str | dict[str, str | Template] = {}
    informed: bool = False  # tells the model how the parent did; the papers do not
    repair: bool = False  # gives an invalid program back once, with its errors
    attempts: Positive = 3  # calls that one proposal may cost when the endpoint fails
    # Temperature of the models' answers; a model's own, given with its name, goes before it.
    temperature: Annotated[float, msgspec.Meta(ge=0, le=10)] | None = 1.0
    max_tokens: Positive = 1024  # most tokens of one answer
    grammar: bool = True  # holds answers to the domain's grammar where the endpoint can
    look_ahead: LookAhead = 4  # proposal k is drawn from the archive after proposal k - look_ahead
    deadline: Seconds = 120.0  # seconds for one proposal with all its calls
    give_up_after: Positive = 4  # proposals that fail one after the other, and the node stops

    # A node whose rounds are done stays until then, still giving and hearing: a span from its start, such as
    # 90s or 2h, a time such as 23:30, or a date and time. Without it, it leaves at once.
    until: str = ""
    # A node whose rounds are done stays for so many gather rounds: without calls, each as long as its own
    # rounds were on average.
    linger_rounds: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0

    record: bool = False  # writes every call to nodes/<name>/cassette.jsonl
    replay: str | None = None  # a run folder whose cassettes answer instead of the models
    checkpoint_every: Count = 1000  # turns between two checkpoints; 0: none

    def __post_init__(self) -> None:
        if isinstance(self.models, str):  # in Python, one model needs no list
            msgspec.structs.force_setattr(self, "models", (self.models,))
        if self.calls is None:
            calls = DEFAULT_CALLS if self.calls_per_round is None else self._calls_of_all_rounds()
            msgspec.structs.force_setattr(self, "calls", calls)

    def _calls_of_all_rounds(self) -> int:
        return (self.calls_per_round or 0) * self.rounds * len(self.models)

    @property
    def stays(self) -> bool:
        """Whether a node whose rounds are done stays for others. Alone it has nothing to wait for."""
        return bool(self.until or self.linger_rounds) and self.sharing != "off"

    def check(self) -> None:
        """Refuses visible mistakes before anything is started, with the key's name."""
        if not self.models:
            raise ConfigError("models: name at least one, such as builtin:bomber")
        if self.until:
            moment(self.until, 0.0)
        domain = self.open_domain()
        measures = [axis.measure for axis in getattr(domain, "axes", ())]
        if not measures or len(set(measures)) < len(measures):
            raise ConfigError(f"domain: {self.domain} needs one or more axes, each with a measure of its own")
        for index, model in enumerate(self.models):
            try:
                spec = parse_spec(model)
            except ConfigError as error:
                raise ConfigError(f"models[{index}]: {error}") from error
            if spec.scheme == "builtin" and spec.name not in domain.operators:
                known = ", ".join(f"builtin:{name}" for name in domain.operators) or "none"
                raise ConfigError(
                    f"models[{index}]: {domain.name} has no builtin:{spec.name}: known are {known}"
                )
        if self.early_stop is not None and self.early_stop_fitness is not None:
            raise ConfigError("early_stop and early_stop_fitness: give one of the two")
        nodes = len(self.models)
        if self.calls_per_round is not None and self.calls != self._calls_of_all_rounds():
            raise ConfigError(
                f"calls and calls_per_round: {self.calls} in all, but {self.calls_per_round} for each of "
                f"{nodes} nodes in each of {self.rounds} rounds make {self._calls_of_all_rounds()}: give one "
                "of the two"
            )
        if self.calls > MOST_CALLS:
            raise ConfigError(f"calls_per_round: they make {self.calls} calls: give {MOST_CALLS} at most")
        if self.calls < nodes:
            raise ConfigError(f"calls: {self.calls} calls for {nodes} nodes: give one each")
        each = self.calls // nodes
        if self.rounds > each:
            raise ConfigError(
                f"rounds: {self.rounds} rounds, but a node has {each} of the {self.calls} calls: give {each} "
                f"rounds at most, or {self.rounds * nodes} calls"
            )
        for model, rates in self.prices.items():
            if not all(0 <= rate < math.inf for rate in rates):
                raise ConfigError(
                    f"prices.{model}: {rates[0]:g} and {rates[1]:g}: give dollars per million tokens, in and "
                    "out, none of them below 0"
                )
        self._check_given(domain)
        if self.held_out is not None and not Path(self.held_out).is_dir():
            raise ConfigError(f"held_out: {self.held_out} is not a folder: name one with programs in it")

    def _check_given(self, domain: Domain) -> None:
        """Programs and prompts are whole, and no file is named: going on with a stranger's run reads nobody's
        files and shows them to no model."""
        sources = self.sources(domain)
        opponents = set()
        for key, names in (("opponents", self.initial_opponents(domain)), ("starters", self.starters)):
            for name in names:
                if name not in sources:
                    raise ConfigError(f"{key}: {name[:200]!r} is neither a starter nor under programs{_KEPT}")
                try:
                    digest = domain.parse(sources[name]).digest
                except CandidateError as error:
                    why = str(error).partition("\n")[0]
                    raise ConfigError(f"{key}: {name} is no program: {why}") from error
                opponents |= {digest} if key == "opponents" else set()
        prompts = {"": self.prompts} if isinstance(self.prompts, str) else self.prompts
        for part, text in prompts.items():
            if text and isinstance(text, str):
                raise ConfigError(f"prompts{part and '.'}{part}: {text[:200]!r} is no text{_KEPT}")
        self.prompts_for(domain)
        limit = domain.opponent_limit
        if limit is not None and len(opponents) > limit:
            raise ConfigError(
                f"opponents: {len(opponents)} are given, and {domain.name} has room for {limit}"
            )

    def open_domain(self, threads: int | None = 1) -> Domain:
        """The domain. One thread for each evaluation suits a search, where several run beside each other."""
        return open_domain(self.domain, self.options, threads=threads)

    def initial_opponents(self, domain: Domain) -> tuple[str, ...]:
        """The programs that everyone meets from the first round on, by name."""
        return domain.first_opponents if self.opponents is None else self.opponents

    def sources(self, domain: Domain) -> dict[str, str]:
        """The texts of opponents and starters, by name."""
        return {**domain.starters(), **self.programs}

    def prompts_for(self, domain: Domain) -> Prompts:
        texts = read_prompts(self.prompts, lambda line: None)
        return msgspec.structs.replace(domain.prompts, **texts) if texts else domain.prompts

    def pinned(self, domain: Domain, tell: Tell = lambda line: None) -> EvolveSettings:
        """The same with the content of all files that are named for programs and prompts. `tell` hears of
        those that are left out."""
        if not (self.opponents or self.starters or self.prompts):
            return self
        opponents, starters, programs = self.opponents, self.starters, dict(self.programs)
        if opponents:
            opponents, read = read_programs_for("opponents", opponents, programs, domain, tell)
            programs |= read
        if starters:
            starters, read = read_programs_for("starters", starters, programs, domain, tell)
            programs |= read
        prompts = read_prompts(self.prompts, tell)
        return msgspec.structs.replace(
            self, opponents=opponents, starters=starters, programs=programs, prompts=prompts
        )

    def settled(self, tell: Tell = lambda line: None) -> EvolveSettings:
        """The same with files' content and the domain's own choices written out, for the folder of a run."""
        domain = self.open_domain()
        options = {**self.options, **domain.options}
        pinned = self.pinned(domain, tell)
        return msgspec.structs.replace(pinned, opponents=pinned.initial_opponents(domain), options=options)

    def node_names(self) -> list[str]:
        """One name per model: its number and its short name."""
        return [f"{number}-{_short(model)}" for number, model in enumerate(self.models, start=1)]

    def share_of_calls(self, index: int) -> int:
        return _dealt(self.calls, len(self.models), index)

    def budget_of(self, index: int) -> dict[str, int]:
        """The most that one node may spend; over all nodes exactly what the swarm may."""
        microdollars = None if self.dollars is None else int(round(self.dollars * 1e6, 3))
        totals = {"calls": self.calls, "tokens": self.tokens, "microdollars": microdollars}
        nodes = len(self.models)
        return {key: _dealt(total, nodes, index) for key, total in totals.items() if total is not None}

    def look_ahead_of(self, index: int) -> int:
        """At most 2 for weights in the node's own process, which answer one call at a time: one more lets
        evaluations and calls overlap, and others would only use up their deadlines."""
        is_local = parse_spec(self.models[index]).scheme == "local"
        return min(self.look_ahead, 2) if is_local else self.look_ahead

    def calls_until(self, index: int, round_number: int) -> int:
        """Calls that a node may have spent by the end of a round; rounds are counted from 0."""
        return self.share_of_calls(index) * (round_number + 1) // self.rounds


_KEPT = ": the config of a run holds the texts themselves, and files are read when a new run begins"


def _dealt(total: int, parts: int, index: int) -> int:
    return total // parts + (index < total % parts)


def _short(model: str) -> str:
    name = re.sub(r"[^a-z0-9.]+", "-", parse_spec(model).name.rpartition("/")[2].lower()).strip("-.")
    return name[:40].rstrip("-.") or "model"
