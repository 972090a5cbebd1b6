"""Law 1 for the search: a node that hears of nobody is the plain MAP-Elites loop of one node, bit for bit.

The oracle is written anew from the description of the algorithm. It uses the domain (battles, prompts,
builtin mutators), and neither the node, the exchange, the archive nor anything of the searcher.
"""

import ast
import hashlib
import math
import random
from bisect import bisect_right
from collections import deque
from pathlib import Path

import pytest

from shoal.corewar import Settings
from shoal.evolve.domains.corewar import CoreWar
from shoal.models import ChatRequest, ChatSampling

Kept = dict[tuple[int, int], tuple[float, str, str]]

RULES = {"core_size": 800, "cycles": 800, "processes": 100, "length": 20, "distance": 20}
BATTLES = 3


def plain_search(
    seed: int, name: str, style: str, calls: int, rounds: int, look_ahead: int, finalists: int = 3,
    stop_above: float = math.inf, starters: tuple[str, ...] = (),
) -> tuple[Kept, list[str], int]:  # fmt: skip
    """Final archive (fitness, digest, source by cell), champions' digests, programs evaluated by proposals.
    `stop_above` is DRQ's threshold: it is looked at before each iteration of a round but the first, which asks
    for the programs of the warm start and for one more. Calls that are left then are not made."""
    domain = CoreWar(Settings(**RULES, stop="play-on"))
    write = domain.operators[style]
    imp = domain.parse(domain.starters()["imp"])
    champions = []
    turn = evaluated = 0
    kept: Kept = {}
    for number in range(rounds):
        turn += 2  # taking in what arrived, and opening the round
        battle_seed, fresh_seed = (integer(31, seed, purpose, number) for purpose in ("battles", "retest"))
        opponents = list({one.digest: one for one in [imp, *reversed(champions[-20:])]}.values())
        kept, seen = {}, set()

        def place(candidate, opponents=opponents, battle_seed=battle_seed, kept=kept, seen=seen):  # type: ignore[no-untyped-def]
            seen.add(candidate.digest)
            (found,) = domain.evaluate([candidate], opponents, seed=battle_seed, rounds=BATTLES)
            cell = tuple(bisect_right(axis.edges, found.measures[axis.measure]) for axis in domain.axes)
            if (found.mean, candidate.digest) > kept.get(cell, (-math.inf, "", ""))[:2]:
                kept[cell] = (found.mean, candidate.digest, candidate.source)

        seeds = [domain.parse(domain.starters()[one]) for one in starters]
        for candidate in {one.digest: one for one in [imp, *seeds, *champions[-20:]]}.values():
            place(candidate)
        quota = calls * (number + 1) // rounds - calls * number // rounds
        waiting: deque = deque()
        asked, warm = 0, min(8, quota // 4)
        while asked < quota or waiting:
            if asked - len(waiting) > warm and max(kept.values())[0] > stop_above:
                quota = asked
                if not waiting:
                    break
            while asked < quota and len(waiting) < look_ahead:
                turn += 1
                fresh = generator(seed, name, "operator", turn).random() < 0.1
                prompt = domain.prompts.ask_new()
                parent = None
                if not fresh and asked >= warm and kept:
                    parent = kept[generator(seed, name, "parent", turn).choice(sorted(kept))][2]
                    prompt = domain.prompts.ask_mutate(parent)
                sampling = ChatSampling(
                    1024, temperature=1.0, seed=generator(seed, name, "sampling", turn).getrandbits(62)
                )
                request = ChatRequest.ask(
                    prompt.user, system=prompt.system, sampling=sampling, grammar=domain.grammar
                )
                rng = random.Random(request.digest())
                shown = None if parent is None else parent.strip("\n")
                waiting.append(write("new" if parent is None else "mutate", shown, rng))
                asked += 1
            candidate = domain.read(waiting.popleft())
            if candidate.digest not in seen:
                evaluated += 1
                place(candidate)
        turn += 1
        best = sorted(kept.values(), reverse=True)[:finalists]
        tested = [domain.parse(source) for _, _, source in best]
        again = domain.evaluate(tested, opponents, seed=fresh_seed, rounds=BATTLES)
        winner = max(zip(tested, again, strict=True), key=lambda pair: (pair[1].mean, pair[0].digest))[0]
        champions.append(winner)
    return kept, [champion.digest for champion in champions], evaluated


def digest_of(*parts: int | str) -> bytes:
    text = b"".join(
        b"%b%d:%b" % (b"i" if isinstance(part, int) else b"s", len(str(part)), str(part).encode())
        for part in parts
    )
    return hashlib.blake2b(text, digest_size=64, person=b"shoal.seeds").digest()


def generator(*parts: int | str) -> random.Random:
    """The documented derivation, by hand."""
    return random.Random(int.from_bytes(digest_of(*parts)[:16], "big"))


def integer(bits: int, *parts: int | str) -> int:
    return int.from_bytes(digest_of(*parts), "big") >> (512 - bits)


def outcome(history) -> tuple[Kept, list[str], int]:  # type: ignore[no-untyped-def]
    kept = {
        cell: (history.archive.fitness(elite), elite.digest, elite.source)
        for cell, elite in history.archive.items()
    }
    evaluated = sum(event.note.step == "propose" and event.note.cell is not None for event in history.events)
    return kept, [champion.digest for champion in history.state.course.champions], evaluated


@pytest.mark.parametrize(("seed", "look_ahead"), [(0, 1), (1, 4), (2, 7)])
@pytest.mark.parametrize("style", ["bomber", "random"])
def test_a_node_that_hears_of_nobody_is_the_plain_loop(
    tmp_path: Path, seed: int, look_ahead: int, style: str
) -> None:
    from shoal.evolve.crew import run
    from tests.evolve.small import histories, small

    settings = small(models=(f"builtin:{style}",), calls=50, seed=seed, look_ahead=look_ahead)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    (history,) = histories(tmp_path / "run")
    assert outcome(history) == plain_search(seed, f"1-{style}", style, 50, 3, look_ahead)


def test_sharing_off_is_the_plain_loop_at_every_node(tmp_path: Path) -> None:
    from shoal.evolve.crew import run
    from tests.evolve.small import histories, small

    models = ("builtin:bomber", "builtin:random", "builtin:bomber")
    settings = small(models=models, calls=80, sharing="off", seed=5)
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    for index, (history, style) in enumerate(
        zip(histories(tmp_path / "run"), ("bomber", "random", "bomber"), strict=True)
    ):
        dealt = 27 if index < 2 else 26
        assert outcome(history) == plain_search(5, f"{index + 1}-{style}", style, dealt, 3, 4)


@pytest.mark.parametrize("threshold", [0.8, 1.6, 2.1])
@pytest.mark.parametrize("look_ahead", [1, 3])
def test_drqs_early_stop_is_the_plain_loop_that_skips_the_rest(
    tmp_path: Path, threshold: float, look_ahead: int
) -> None:
    from shoal.evolve.crew import run
    from tests.evolve.small import histories, small

    settings = small(
        models=("builtin:bomber",), calls=None, calls_per_round=20, look_ahead=look_ahead, seed=3,
        finalists=1, early_stop_fitness=threshold, starters=("clear", "mice"),
    )  # fmt: skip
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    (history,) = histories(tmp_path / "run")
    expected = plain_search(3, "1-bomber", "bomber", 60, 3, look_ahead, 1, threshold, ("clear", "mice"))
    assert outcome(history) == expected
    asked = [0, 0, 0]
    for event in history.events:
        asked[event.note.round] += event.note.step == "propose"
    # The imp ties with itself, so 0.8 ends each round after its first iteration: five programs, and one more.
    assert (asked == [6 + look_ahead - 1] * 3) == (threshold == 0.8)
    assert max(asked) <= 20, "a round never gets the calls that another one left"


def test_the_law_says_something() -> None:
    """The oracle tells seeds, look-aheads and finalists apart."""
    base = plain_search(0, "1-bomber", "bomber", 40, 2, 1)
    assert base != plain_search(1, "1-bomber", "bomber", 40, 2, 1)
    assert base != plain_search(0, "1-bomber", "bomber", 40, 2, 5)
    assert base != plain_search(0, "other", "bomber", 40, 2, 1)


def test_the_oracle_imports_neither_node_nor_exchange() -> None:
    body = ast.parse(Path(__file__).read_text()).body
    modules = {str(node.module) for node in body if isinstance(node, ast.ImportFrom)}
    ours = {module for module in modules if module.startswith("shoal")}
    assert ours == {"shoal.corewar", "shoal.evolve.domains.corewar", "shoal.models"}
    assert not {"import_module", "__import__"} & set(plain_search.__code__.co_names)
