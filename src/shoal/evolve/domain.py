"""The seam between a search and its subject: a domain, which reads a program (`parse`) and plays it (`play`);
everything else has a default. A search calls `evaluate`, which remembers earlier results and labels every
number with its evaluator. `docs/domains.md` builds one; packages register theirs under `shoal.domains`."""

from __future__ import annotations

import hashlib
import math
import random
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol, Self

import msgspec

from shoal.errors import CandidateError, ConfigError, DomainError
from shoal.evolve.archive import UNKNOWN, Elite, cell_of
from shoal.evolve.extraction import extract_programs
from shoal.evolve.metrics import Duel
from shoal.evolve.prompts import Prompts, generic_prompts
from shoal.lazy import load
from shoal.runs.search import Axis, Evaluation, Origin, Words

Task = Literal["new", "mutate"]

ANSWERS_TRIED = 4
"""Readings of one model answer that are parsed before it counts as no program."""


@dataclass(frozen=True)
class Candidate:
    """A parsed program. Equal `canonical` texts mean equal behaviour, so `digest` is its identity."""

    source: str
    canonical: str
    program: Any = None

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.canonical.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """The result of a candidate: one score per round, and its measures averaged over the rounds."""

    scores: Sequence[float]
    measures: Mapping[str, float]


class Operator(Protocol):
    """A way to make programs without a language model. The same `rng` state gives the same text."""

    def __call__(self, task: Task, parent_source: str | None, rng: random.Random) -> str: ...


class Domain(ABC):
    """The subject of a search. Subclasses give `name`, `axes`, `parse` and `play`; the rest has defaults."""

    name: str
    version: int = 1
    """Raised whenever the same program may get another score than before."""
    axes: tuple[Axis, ...]
    opponent_limit: int | None = None
    """Opponents that `play` can take at once; None: any number."""
    cache_size: int = 20_000
    words: Words = Words()
    """Its own words for programs and for the rounds that are played, and the ending of its files."""
    views: tuple[str, ...] = ()
    """Further tabs of the dashboard: "replay" plays programs of Core War."""

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, threads: int | None = None) -> Self:
        """The domain with the `[options]` of the settings, by default the arguments of its constructor.
        `threads` limits an engine of its own."""
        return cls(**options)

    @property
    def options(self) -> Mapping[str, Any]:
        """All options with their values, as plain values of TOML, for the folder of a run."""
        return {}

    @abstractmethod
    def parse(self, text: str) -> Candidate:
        """The program of a text, within bounded time. CandidateError says how to repair any other text."""

    @abstractmethod
    def play(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> Sequence[Outcome]:
        """One outcome per candidate, each against all opponents. All candidates meet the same conditions,
        which depend on `seed` alone, and do not influence each other."""

    @property
    def rules(self) -> str:
        """Everything besides opponents and seeds that scores depend on, as text."""
        return ""

    @property
    def operators(self) -> Mapping[str, Operator]:
        """Operators that need no model, by name."""
        return {}

    @property
    def prompts(self) -> Prompts:
        """The texts that ask a language model."""
        return generic_prompts(self.name)

    @property
    def grammar(self) -> str | None:
        """A GBNF grammar of which every sentence is a program, for servers that take one."""
        return None

    def starters(self) -> Mapping[str, str]:
        """Sources to begin with, by name: first opponents, seeds, and examples for the test kit."""
        return {}

    @property
    def first_opponents(self) -> tuple[str, ...]:
        """The starters that a search begins with as opponents and seeds, unless its settings name others."""
        return tuple(self.starters())[: self.opponent_limit]

    def looks_like_code(self, line: str) -> bool:
        """Whether a line of an answer without fences may belong to a program."""
        return bool(line.strip())

    def plain(self, candidate: Candidate) -> str:
        """The program as models see those of strangers: without words of its author to a reader."""
        return candidate.canonical

    def show(self, candidate: Candidate, evaluation: Evaluation | None = None) -> str:
        """A few lines for people."""
        lines = candidate.source.strip().splitlines()
        text = "\n".join(line[:110] for line in lines[:20]) + ("\n…" if len(lines) > 20 else "")
        return text if evaluation is None else f"fitness {evaluation.fitness:.4g}\n{text}"

    def feedback(self, evaluation: Evaluation, duels: Sequence[tuple[str, Duel]] = ()) -> str:
        """The informed mode's words to a model about a parent: its score, and the opponents it lost to."""
        lost = [name for name, duel in duels if duel.outcome == "loss"]
        text = f"It scores {evaluation.fitness:.4g} (standard error {evaluation.standard_error:.2g})."
        return text + (f" It loses to: {', '.join(lost)}." if lost else "")

    def duel(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[list[Duel]]:
        """Each candidate against each opponent alone; by default by their scores without opponents."""
        own = self.evaluate(candidates, (), seed=seed, rounds=rounds)
        others = self.evaluate(opponents, (), seed=seed, rounds=rounds)
        return [
            [Duel(opponent.digest, one.mean, other.mean, rounds)
             for opponent, other in zip(opponents, others, strict=True)]
            for one in own
        ]  # fmt: skip

    def read(self, answer: str) -> Candidate:
        """The program within a model's answer: prose, fences and all. Raises CandidateError."""
        programs = extract_programs(answer, self.looks_like_code)
        first = CandidateError("the answer holds no program: write the program in one fenced block")
        for place, text in enumerate(programs[:ANSWERS_TRIED]):
            try:
                return self.parse(text)
            except CandidateError as error:
                first = first if place else error
        raise first

    def opponent_set(self, opponents: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """The opponents as a set: each program once, ordered by digest. Raises ConfigError if too many."""
        unique = {opponent.digest: opponent for opponent in reversed(opponents)}
        if self.opponent_limit is not None and len(unique) > self.opponent_limit:
            raise ConfigError(
                f"{len(unique)} opponents: {self.name} takes at most {self.opponent_limit} at once under "
                "these rules; choose some of them"
            )
        return tuple(unique[digest] for digest in sorted(unique))

    def evaluator(self, opponents: Sequence[Candidate], *, seed: int, rounds: int) -> str:
        """The id under which evaluations compare: domain, rules, opponent set, seed and rounds."""
        chosen = [opponent.digest for opponent in self.opponent_set(opponents)]
        return identify([self.name, self.version, self.rules, chosen, seed, rounds])

    def evaluate(
        self,
        candidates: Sequence[Candidate],
        opponents: Sequence[Candidate],
        *,
        seed: int = 0,
        rounds: int = 1,
    ) -> list[Evaluation]:
        """One evaluation per candidate, independent of the others and of the order of opponents. Equal
        programs are played once, remembered ones not at all. DomainError: the domain breaks its contract."""
        if rounds < 1:
            raise ConfigError(f"{rounds} rounds: at least one is needed")
        chosen = self.opponent_set(opponents)
        evaluator = self.evaluator(chosen, seed=seed, rounds=rounds)
        opponents_id = identify([opponent.digest for opponent in chosen])
        known: dict[str, Evaluation] = {}
        missing: dict[str, Candidate] = {}
        for candidate in candidates:
            found = self._cache.get(candidate.digest, evaluator)
            if found is None:
                missing.setdefault(candidate.digest, candidate)
            else:
                known[candidate.digest] = found
        if missing:
            outcomes = self.play(list(missing.values()), chosen, seed=seed, rounds=rounds)
            if len(outcomes) != len(missing):
                raise DomainError(f"{self.name}: {len(outcomes)} outcomes for {len(missing)} candidates")
            for digest, outcome in zip(missing, outcomes, strict=True):
                known[digest] = self._cache.put(
                    digest, summarise_outcome(outcome, evaluator, opponents_id, self.axes)
                )
        return [known[candidate.digest] for candidate in candidates]

    @cached_property
    def _cache(self) -> EvaluationCache:
        return EvaluationCache(self.cache_size)


class EvaluationCache:
    """Evaluations by (program, evaluator), the `limit` that were asked for last. Thread-safe."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise ConfigError(f"cache of {limit} evaluations: give 0 (none) or more")
        self._limit = limit
        self._entries: OrderedDict[tuple[str, str], Evaluation] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: str, evaluator: str) -> Evaluation | None:
        with self._lock:
            found = self._entries.get((digest, evaluator))
            if found is not None:
                self._entries.move_to_end((digest, evaluator))
            return found

    def put(self, digest: str, evaluation: Evaluation) -> Evaluation:
        with self._lock:
            self._entries[digest, evaluation.evaluator] = evaluation
            self._entries.move_to_end((digest, evaluation.evaluator))
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return evaluation


def summarise_outcome(
    outcome: Outcome, evaluator: str, opponents_id: str, axes: Sequence[Axis]
) -> Evaluation:
    """Count, mean and unbiased variance of the scores; refuses measures that give no cell."""
    scores = [float(score) for score in outcome.scores]
    if not scores or not all(map(math.isfinite, scores)):
        raise DomainError("an outcome needs one or more finite scores")
    measures = {name: float(value) for name, value in outcome.measures.items()}
    cell_of(axes, measures)
    mean = math.fsum(scores) / len(scores)
    spread = math.fsum((score - mean) ** 2 for score in scores)
    variance = spread / (len(scores) - 1) if len(scores) > 1 else 0.0
    return Evaluation(evaluator, opponents_id, len(scores), mean, variance, measures)


def elite_of(candidate: Candidate, evaluation: Evaluation, origin: Origin = UNKNOWN) -> Elite:
    """The candidate as an archive keeps it."""
    return Elite(candidate.digest, candidate.source, (evaluation,), origin)


def identify(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]


GROUP = "shoal.domains"
BUILTIN = {"corewar": "shoal.evolve.domains.corewar:CoreWar"}
"""Ours, so that they are found without an installation too."""


def domain_names() -> list[str]:
    return sorted({*BUILTIN, *(entry.name for entry in entry_points(group=GROUP))})


def open_domain(name: str, options: Mapping[str, Any] | None = None, *, threads: int | None = None) -> Domain:
    """The domain of this name, or of an importable `module:Class`, made with `options`; `threads` limits an
    engine of its own. Only a subclass of `Domain` is called; an instance is taken as it is."""
    target = name if ":" in name else _target(name)
    found = _load(name, target)
    if isinstance(found, Domain) and not options:
        return found
    if not (isinstance(found, type) and issubclass(found, Domain)):
        raise ConfigError(
            f"domain {name!r} is {target}, a {type(found).__name__}: name a subclass of shoal.evolve.Domain"
            + (", as an instance takes no options" if isinstance(found, Domain) else ", or an instance")
        )
    try:
        return found.from_options(options or {}, threads=threads)
    except ConfigError:
        raise
    except Exception as error:  # a stranger's constructor, or methods that are missing
        raise ConfigError(
            f"domain {name!r} cannot be made from {target}: {type(error).__name__}: {error}"
        ) from error


def _target(name: str) -> str:
    entries = [*BUILTIN.items(), *((entry.name, entry.value) for entry in entry_points(group=GROUP))]
    registered = {value for known, value in entries if known == name}
    if not registered:
        raise ConfigError(
            f"no domain is called {name!r}: known are {', '.join(domain_names())}. A package registers one "
            f'under [project.entry-points."{GROUP}"] as {name} = "module:Class"; for one that is not '
            "installed give module:Class itself"
        )
    if len(registered) > 1:
        raise ConfigError(
            f"domain {name!r} is registered more than once ({', '.join(sorted(registered))}): uninstall one "
            "of the packages, or name the one you mean as module:Class"
        )
    return registered.pop()


def _load(name: str, target: str) -> object:
    try:
        return load(target)
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything on import
        raise ConfigError(
            f"domain {name!r} cannot be loaded from {target}: {type(error).__name__}: {error}"
        ) from error
