"""Asking a model for a program: prompt, call, reading the answer, and one attempt at repair. Every attempt
that may have reached the model counts as a call, and a proposal spends no more than it was given. A failure
of the model is an answer with a name, not an exception."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec

from shoal.errors import CandidateError, ConfigError, ModelError
from shoal.evolve.domain import Candidate, Domain
from shoal.evolve.prompts import Prompt, Prompts
from shoal.evolve.settings import EvolveSettings
from shoal.models import (
    Amounts,
    Background,
    BuiltinModel,
    Caller,
    Cassette,
    ChatAnswer,
    ChatRequest,
    ChatSampling,
    Model,
    Patience,
    Recording,
    Spending,
    check_model,
    open_model,
    own_price,
    parse_spec,
    price_for,
    run_now,
)
from shoal.runs.search import Propose, Proposed

CASSETTE = "cassette.jsonl"
MOST_SHOWN = 4000
"""Characters of a broken program, and of what is wrong with it, that a repair shows."""
MOST_PROBLEM = 2000
MOST_TEXT = 1 << 16


class Written(NamedTuple):
    """A model's answer as the journal keeps it, before its program, if there is one, is evaluated."""

    answer: Proposed
    spent: Amounts
    candidate: Candidate | None = None


@dataclass
class Asker:
    """One node's model and the questions to it. Safe to use from many threads."""

    settings: EvolveSettings
    index: int
    domain: Domain
    folder: Path | None = None
    background: Background | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.spec = parse_spec(self.settings.models[self.index])
        prices = {name: own_price(*given) for name, given in self.settings.prices.items()}
        self.price = price_for(self.spec, prices)
        if self.settings.dollars is not None and self.price.state == "unpriced":
            raise ConfigError(
                f"{self.spec} has no known price, so a budget in dollars cannot be kept: state it under "
                "[prices], or limit calls or tokens instead"
            )
        self.model = self._open_model()
        if not self.model.instant:
            self.background = Background()
        self._prompts: Prompts = self.settings.prompts_for(self.domain)
        self._grammar = (self.domain.grammar or "") if self.settings.grammar else ""

    def close(self) -> None:
        if self.background is not None:
            self.background.submit(self.model.close()).result()
            self.background.close()

    def most(self, propose: Propose) -> Mapping[str, int]:
        """The most that one call of this proposal may cost: the longest prompt and the longest answer."""
        if self.spec.scheme == "builtin":
            return {"calls": 1}
        longest = self._request(self._prompt(propose, None), propose.seed).most_input_tokens()
        if self.settings.repair:
            repair = self._prompts.ask_repair("", "")
            # A character takes up to four bytes, and a token at least one.
            longest = max(longest, self._request(repair, 0).most_input_tokens() + 8 * MOST_SHOWN)
        if propose.parent_evaluation is not None:
            longest += 4 * MOST_SHOWN
        money = self.price.most(longest, self.settings.max_tokens)
        return {"calls": 1, "tokens": longest + self.settings.max_tokens, "microdollars": money}

    def ask(
        self,
        propose: Propose,
        feedback: str | None = None,
        spend: Callable[[Mapping[str, int]], None] = lambda amounts: None,
    ) -> Written:
        """A program, or why there is none. `spend` hears of each call but the first before it is sent."""
        began = time.monotonic()

        def before(number: int) -> None:
            if number > 1:
                spend(self.most(propose))

        spending = Spending(propose.calls, before)
        rng = random.Random(propose.seed)
        request = self._request(self._prompt(propose, feedback), propose.seed)
        try:
            answer = self._call(request, spending, rng, self.settings.deadline)
        except ModelError as error:
            line = " ".join(str(error).split())[:MOST_PROBLEM]
            return Written(Proposed(self.model.spec, failure=line, failed=error.kind), spending.spent)
        written = self._read(answer, spending)
        left = self.settings.deadline - (time.monotonic() - began)
        if written.candidate is None and self.settings.repair and left > 0 and spending.calls_left:
            return self._repair(written, propose, spending, rng, left)
        return written

    def _repair(
        self, written: Written, propose: Propose, spending: Spending, rng: random.Random, seconds: float
    ) -> Written:
        first = written.answer
        prompt = self._prompts.ask_repair(first.text[:MOST_SHOWN], first.problem[:MOST_SHOWN])
        try:
            answer = self._call(self._request(prompt, propose.seed + 1), spending, rng, seconds)
        except ModelError:
            # The first answer stands: the model did answer, with something that is no program.
            return written._replace(spent=spending.spent)
        again = self._read(answer, spending)
        seconds = first.seconds + again.answer.seconds
        return again._replace(answer=msgspec.structs.replace(again.answer, repaired=True, seconds=seconds))

    def _read(self, answer: ChatAnswer, spending: Spending) -> Written:
        candidate, problem = None, ""
        try:
            candidate = self.domain.read(answer.text)
        except CandidateError as error:
            problem = str(error)[:MOST_PROBLEM] or "no program"
        proposed = Proposed(
            self.model.spec,
            text=answer.text[:MOST_TEXT],
            problem=problem,
            grammar=answer.grammar,
            seconds=answer.latency,
        )
        return Written(proposed, spending.spent, candidate)

    def _call(
        self, request: ChatRequest, spending: Spending, rng: random.Random, seconds: float
    ) -> ChatAnswer:
        attempts = min(spending.calls_left or 1, self.settings.attempts)
        patience = Patience(deadline=seconds, attempts=attempts, attempt_seconds=seconds)
        work = Caller(self.model, self.price, patience).call(request, rng, spending)
        if self.background is None:
            return run_now(work)
        return self.background.submit(work).result()

    def _prompt(self, propose: Propose, feedback: str | None) -> Prompt:
        if propose.task == "new":
            return self._prompts.ask_new()
        return self._prompts.ask_mutate(propose.parent_source, feedback)

    def _request(self, prompt: Prompt, seed: int) -> ChatRequest:
        settings = self.settings
        return ChatRequest.ask(
            prompt.user,
            system=prompt.system,
            sampling=ChatSampling(settings.max_tokens, temperature=settings.temperature, seed=seed),
            grammar=self._grammar,
            values={"task": prompt.task, **prompt.values},
        )

    def _open_model(self) -> Model:
        settings, name = self.settings, self.settings.node_names()[self.index]
        if settings.replay is not None:
            return open_model(self.spec, replay=Path(settings.replay) / "nodes" / name / CASSETTE)
        if self.spec.scheme == "builtin":
            operator = self.domain.operators[self.spec.name]

            def write(values: Mapping[str, str], rng: random.Random) -> str:
                is_new = values["task"] == "new"
                return operator("new" if is_new else "mutate", values.get("program"), rng)

            model: Model = BuiltinModel(str(self.spec), write)
        else:
            model = open_model(self.spec)
        if settings.record and self.folder is not None:
            return Recording(model, Cassette.at(self.folder / CASSETTE))
        return model


def check_models(settings: EvolveSettings) -> None:
    """ConfigError where a model can be seen not to be usable, or a cassette to be missing. Loads nothing."""
    for index, (name, spec) in enumerate(zip(settings.node_names(), settings.models, strict=True)):
        try:
            if settings.replay is None:
                check_model(spec)
            else:
                open_model(spec, replay=Path(settings.replay) / "nodes" / name / CASSETTE)
        except ConfigError as error:
            raise ConfigError(f"models[{index}]: {error}") from error
