"""The promises of every domain to a search, as checks that a domain's own tests can run.

    from shoal.evolve import check_domain

    def test_my_domain() -> None:
        check_domain(MyDomain())

Each check raises AssertionError with the promise that was broken. They try the domain's starters and the
programs of its operators; a domain that has neither is given `examples`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from shoal.errors import CandidateError
from shoal.evolve.archive import Archive, cell_of, load
from shoal.evolve.domain import Candidate, Domain, elite_of

SHOWN = 4000
"""Characters that `show` may return."""

RUBBISH = (
    "",
    " ",
    "\x00",
    "\ud800",
    "{{program}}",
    "I am sorry, but I cannot help with that.",
    "```\n```",
    "é漢字🐟",
    *(text * 5000 for text in ("(", "-", "1 ", "\n", "9")),
)
"""Texts that no parser may trip over: each is a program, or refused by CandidateError."""


def check_domain(domain: Domain, examples: Sequence[str] = (), *, rounds: int = 2) -> None:
    """All checks. They evaluate about a dozen programs for `rounds` rounds."""
    check_parsing(domain, examples)
    check_operators(domain)
    check_evaluation(domain, examples, rounds=rounds)
    check_texts(domain, examples)


def sample_candidates(domain: Domain, examples: Sequence[str] = (), count: int = 4) -> list[Candidate]:
    texts = [*examples, *domain.starters().values()]
    rng = random.Random(0)
    texts += [operator("new", None, rng) for operator in domain.operators.values() for _ in range(count)]
    found = {candidate.digest: candidate for candidate in map(domain.parse, texts)}
    _promise(
        domain, len(found) >= 2, "two different programs are needed; give starters, operators or examples"
    )
    return list(found.values())[: max(2, count)]


def _promise(domain: Domain, holds: object, broken: str) -> None:
    if not holds:
        raise AssertionError(f"{domain.name}: {broken}")


def check_parsing(domain: Domain, examples: Sequence[str] = ()) -> None:
    """Parsing is a function, refuses by CandidateError only, and the plain form is the same program."""
    for text in RUBBISH:
        try:
            domain.parse(text)
        except CandidateError as error:
            _promise(domain, str(error).strip(), f"the refusal of {_named(text)} does not say why")
        except Exception as error:
            raise AssertionError(
                f"{domain.name}: {_named(text)} raised {type(error).__name__}, not CandidateError: {error}"
            ) from error
    for candidate in sample_candidates(domain, examples):
        again = domain.parse(candidate.source)
        _promise(domain, again.digest == candidate.digest, "parsing twice gives two identities")
        plain = domain.plain(candidate)
        _promise(domain, domain.parse(plain).digest == candidate.digest, "the plain form is another program")
        fenced = f"Here it is:\n\n```\n{candidate.source}\n```\nGood luck!"
        read = domain.read(fenced)
        _promise(domain, read.digest == candidate.digest, "a program in a fence is read as another one")


def _named(text: str) -> str:
    """A text of `RUBBISH` in words, where it cannot be shown."""
    if text == "\ud800":
        return "half a character (a lone surrogate, which has no UTF-8 form)"
    return repr(text[:20]) + ("…" if len(text) > 20 else "")


def check_operators(domain: Domain, calls: int = 8) -> None:
    """Operators are deterministic from their generator, touch no other, and write programs."""
    for name, operator in domain.operators.items():
        state = random.getstate()
        written: list[list[str]] = []
        for _ in range(2):
            rng, texts, parent = random.Random(name), [], None
            for call in range(calls):
                parent = operator("mutate" if call % 3 else "new", parent, rng)
                texts.append(parent)
            written.append(texts)
        _promise(domain, written[0] == written[1], f"operator {name} does not repeat itself from one seed")
        _promise(domain, random.getstate() == state, f"operator {name} draws from the global generator")
        _promise(domain, len(set(written[0])) > 1, f"operator {name} writes the same program every time")
        for text in written[0]:
            domain.parse(text)


def check_evaluation(domain: Domain, examples: Sequence[str] = (), *, rounds: int = 2) -> None:
    """Scores are a function of program, opponent set and seed, and every program has a cell."""
    candidates = sample_candidates(domain, examples)
    limit = len(candidates) if domain.opponent_limit is None else domain.opponent_limit
    opponents = candidates[: min(3, limit)]

    def fresh(some: Sequence[Candidate], against: Sequence[Candidate], seed: int = 5) -> list[object]:
        outcomes = domain.play(some, domain.opponent_set(against), seed=seed, rounds=rounds)
        return [(list(map(float, outcome.scores)), dict(outcome.measures)) for outcome in outcomes]

    together = fresh(candidates, opponents)
    _promise(domain, together == fresh(candidates, opponents), "playing twice gives different scores")
    alone = [fresh([candidate], opponents)[0] for candidate in candidates]
    _promise(domain, together == alone, "a score depends on the other candidates in the call")
    again = fresh(candidates, [*reversed(opponents), *opponents])
    _promise(domain, together == again, "a score depends on the order or the repetition of opponents")
    nothing = domain.play([], opponents, seed=5, rounds=rounds)
    _promise(domain, nothing == [], "nothing played gives something")

    evaluations = domain.evaluate(candidates, opponents, seed=5, rounds=rounds)
    archive = Archive(domain.axes, domain.evaluator(opponents, seed=5, rounds=rounds))
    for candidate, evaluation in zip(candidates, evaluations, strict=True):
        assert evaluation.evaluator == archive.evaluator
        cell = cell_of(domain.axes, evaluation.measures)
        assert all(0 <= index < axis.bins for index, axis in zip(cell, domain.axes, strict=True))
        archive.add(elite_of(candidate, evaluation))
    _promise(domain, load(archive.snapshot()) == archive, "its archive does not survive being saved")
    ids = {
        archive.evaluator,
        domain.evaluator(opponents, seed=6, rounds=rounds),
        domain.evaluator(opponents, seed=5, rounds=rounds + 1),
        domain.evaluator(opponents[:-1], seed=5, rounds=rounds),
    }
    _promise(domain, len(ids) == (4 if opponents else 3), "different conditions have the same evaluator id")
    duels = domain.duel(candidates, opponents, seed=5, rounds=rounds)
    met = [opponent.digest for opponent in opponents]
    in_order = [[duel.opponent for duel in row] for row in duels] == [met for _ in candidates]
    _promise(domain, in_order, "duels are not one row per candidate with one entry per opponent")


def check_texts(domain: Domain, examples: Sequence[str] = ()) -> None:
    """Prompts have their places, and shown texts are short."""
    prompts = domain.prompts
    candidate = sample_candidates(domain, examples)[0]
    plain = domain.plain(candidate)
    _promise(domain, prompts.ask_new().user.strip(), "the new prompt is empty")
    _promise(domain, prompts.ask_new().system.strip(), "the system prompt is empty")
    mutations = (prompts.ask_mutate(plain), prompts.ask_mutate(plain, "it loses"))
    for request in (*mutations, prompts.ask_repair(plain, "?")):
        shown = plain.strip("\n") in request.user
        _promise(domain, shown, f"the {request.task} prompt does not show the program")
        _promise(domain, request.templates, f"the {request.task} prompt has no id")
    (evaluation,) = domain.evaluate([candidate], [])
    _promise(domain, domain.feedback(evaluation).strip(), "there is no feedback")
    for text in (domain.show(candidate), domain.show(candidate, evaluation)):
        size = len(text)
        _promise(domain, 0 < size <= SHOWN, f"show gives {size} characters, at most {SHOWN} are wanted")
