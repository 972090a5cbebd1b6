"""Contributors: a chat model, a person or a program that writes completions and does not learn.

Each is a policy that refuses to learn, and needs no torch. Every receiver verifies the texts, like anybody's.
"""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from shoal.errors import ConfigError, ModelError, TrainError
from shoal.models import (
    Background,
    Caller,
    ChatAnswer,
    ChatRequest,
    ChatSampling,
    Model,
    Patience,
    check_model,
    open_model,
    parse_spec,
    run_now,
)
from shoal.policy.base import Completions, Learning, LearningGroup, Learnt, Policy, Sampled, Sampling
from shoal.policy.system import system_text
from shoal.runs import derive_integer

SYSTEM = (
    "Solve the task. You may think first. Give the final answer, and nothing else, between <answer> and "
    "</answer>."
)
DEADLINE = 120.0
PROGRAM_SECONDS = 30.0
MOST_OUTPUT = 64 << 10
OWN_SCHEMES = ("person", "program")


def check_contributor(spec: str) -> None:
    """Raises the ConfigError of `open_contributor`, as far as it is known without loading or asking."""
    if spec.partition(":")[0] in OWN_SCHEMES:
        open_contributor(spec)
    else:
        parse_spec(spec, besides=OWN_SCHEMES)
        check_model(spec)


def open_contributor(spec: str, *, system: str | None = None) -> Policy:
    """`person:` asks the person at the terminal; `program:COMMAND` runs a command for every completion, with
    the question on its standard input; every other spec names a model as in `shoal evolve`, which gets the
    prompt `system` (see system.py) in place of SYSTEM."""
    scheme, _, rest = spec.partition(":")
    if scheme == "person":
        return Person()
    if scheme == "program":
        return Program(rest)
    parse_spec(spec, besides=OWN_SCHEMES)
    return ChatModel(spec, open_model(spec), SYSTEM if system is None else system_text(system))


class Contributor:
    """The policy of a contributor. Subclasses write; without one, nothing new is written."""

    tokenizer = ""

    def __init__(self, model: str) -> None:
        self.model = model

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        return [self.write(question, group) for question in questions]

    def write(self, question: str, group: int) -> list[Sampled]:
        """Completions of one question, up to `group`."""
        raise TrainError(f"{self.model} writes nothing new")

    def learn(self, groups: Sequence[LearningGroup], learning: Learning, temperature: float) -> Learnt:
        raise TrainError(f"{self.model} only contributes: it cannot learn")

    def save(self, folder: Path) -> None:
        """There is nothing to save."""

    def restore(self, folder: Path) -> None:
        """There is nothing to restore."""


class ChatModel(Contributor):
    """A model behind shoal.models: an API, a server, weights in llama.cpp."""

    def __init__(self, spec: str, model: Model, system: str = SYSTEM) -> None:
        super().__init__(spec)
        self._system = system
        self._model = model
        self._background = None if model.instant else Background()

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        """Calls run together, as the endpoint allows. Failed ones are left out; ModelError if all fail."""
        calls = []
        for place, question in enumerate(questions):
            seeds = [derive_integer(seed, place, number, bits=62) for number in range(group)]
            calls.append([self._begin(question, sampling, one) for one in seeds])
        failure: ModelError | None = None
        written: list[list[Sampled]] = []
        for row in calls:
            written.append([])
            for finish in row:
                try:
                    answer = finish()
                    written[-1].append(Sampled(answer.text, answer.finish == "stop"))
                except ModelError as error:
                    failure = error
        if failure is not None and not any(written):
            raise failure
        return written

    def _begin(self, question: str, sampling: Sampling, seed: int) -> Callable[[], ChatAnswer]:
        """Starts a call; the function gives its answer, or its ModelError."""
        settings = ChatSampling(
            sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p if sampling.top_p < 1 else None,
            seed=seed,
        )
        request = ChatRequest.ask(question, system=self._system, sampling=settings)
        patience = Patience(deadline=DEADLINE, attempts=2, attempt_seconds=DEADLINE)
        work = Caller(self._model, patience=patience).call(request, random.Random(seed))
        return partial(run_now, work) if self._background is None else self._background.submit(work).result


class Person(Contributor):
    """The person at the terminal. Each line is one completion, and an empty line ends the group. Others can
    learn from two or more, most of all from a wrong one beside a right one."""

    def __init__(self, ask: Callable[[str], str] = input) -> None:
        super().__init__("person:")
        self._ask = ask

    def write(self, question: str, group: int) -> list[Sampled]:
        # Without characters that would move the cursor or change colours.
        visible = "".join(one if one.isprintable() or one in "\n\t" else "�" for one in question)
        print(f"\n{visible}\nAnswers, one a line, 2 to {group}; an empty line ends:", file=sys.stderr)
        lines: list[str] = []
        while len(lines) < group:
            try:
                line = self._ask("> ").strip()
            except EOFError:
                raise ModelError("nobody is at the terminal any more") from None
            except KeyboardInterrupt:
                print(file=sys.stderr)  # the next message is not to stand behind the prompt
                raise
            if not line and len(lines) >= 2:
                break
            if line:
                lines.append(line)
            else:
                print(f"An answer is expected: at least two, {len(lines)} so far.", file=sys.stderr)
        return [Sampled(line, True) for line in lines]


class Program(Contributor):
    """A command of the user's, run once per completion without a shell; its output is the completion."""

    def __init__(self, command: str) -> None:
        super().__init__(f"program:{command}")
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise ConfigError(f"program:{command}: {error}") from None
        if not self._command:
            raise ConfigError("program: name a command after the colon, e.g. program:./solve.sh")

    def write(self, question: str, group: int) -> list[Sampled]:
        return [self._run(question) for _ in range(group)]

    def _run(self, question: str) -> Sampled:
        asked = question.encode()
        try:
            done = subprocess.run(
                self._command, input=asked, capture_output=True, timeout=PROGRAM_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ModelError(f"{self.model}: {error}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ModelError(f"{self.model} ended with code {done.returncode}: {said[-1] if said else ''}")
        return Sampled(done.stdout[:MOST_OUTPUT].decode("utf-8", "replace").strip(), True)
