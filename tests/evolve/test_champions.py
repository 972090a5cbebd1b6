"""Champions of all rounds against one held-out set: how it is drawn, and that nothing is played twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.evolve import Candidate, Domain, Duel
from shoal.evolve.champions import choose, contest, outcome
from shoal.evolve.crew import run
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.summary import summarise
from shoal.runs import parse
from shoal.runs.search import SearchSummary
from tests.evolve.small import histories, small


def programs(folder: Path, count: int = 12) -> Path:
    """Programs that differ, one that occurs under two names, and prose."""
    folder.mkdir()
    for number in range(count):
        (folder / f"p{number:02}.red").write_text(f"mov {number}, {number + 1}\njmp -1\n")
    (folder / "again.red").write_text("mov 3, 4\njmp -1 ; another name\n")
    (folder / "notes.txt").write_text("these are my notes\n")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("champions")
    settings = small(calls=80, seed=4, held_out=str(programs(here / "held")), held_out_size=5)
    assert run(settings, here / "run", in_process=True) == "finished"
    return here / "run"


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The digests of the programs that fought, in order."""
    found: list[str] = []
    domain_type = type(small().open_domain())
    duel = domain_type.duel

    def watched(
        self: Domain,
        candidates: Sequence[Candidate],
        opponents: Sequence[Candidate],
        *,
        seed: int,
        rounds: int,
    ) -> list[list[Duel]]:
        found.extend(candidate.digest for candidate in candidates)
        return duel(self, candidates, opponents, seed=seed, rounds=rounds)  # type: ignore[arg-type]

    monkeypatch.setattr(domain_type, "duel", watched)
    return found


def test_a_draw_depends_on_the_programs_alone(tmp_path: Path) -> None:
    here = programs(tmp_path / "held")
    settings = small(held_out=str(here), held_out_size=5)
    domain = settings.open_domain()
    held = choose(domain, settings)
    assert held is not None
    assert (held.facts.name, held.facts.available, len(held.facts.programs)) == ("held", 12, 5)
    assert held.facts.programs == sorted(held.facts.programs)
    assert not held.facts.is_starters
    other = choose(domain, small(held_out=str(here), held_out_size=5, seed=9, calls=40))
    assert other is not None
    assert other.facts == held.facts, "no seed or budget of a run changes it"
    # Under other names, the same programs are drawn.
    renamed = tmp_path / "renamed"
    renamed.mkdir()
    for number, path in enumerate(sorted(here.iterdir(), reverse=True)):
        (renamed / f"{number:02}.red").write_bytes(path.read_bytes())
    again = choose(domain, small(held_out=str(renamed), held_out_size=5))
    assert again is not None
    assert again.facts.digest == held.facts.digest
    # One more program changes one member at most.
    (here / "new.red").write_text("add #4, 3\nmov 2, @2\njmp -2\ndat 0\n")
    more = choose(domain, settings)
    assert more is not None
    before = {one.digest for one in held.opponents}
    assert len(before - {one.digest for one in more.opponents}) <= 1


def test_all_and_more_than_there_are(tmp_path: Path) -> None:
    here = programs(tmp_path / "held")
    for size in ("all", 99):
        settings = small(held_out=str(here), held_out_size=size)
        held = choose(settings.open_domain(), settings)
        assert held is not None
        assert len(held.opponents) == 12, "programs that are alike count once, prose does not count"


def test_without_a_folder_it_is_the_starters_and_says_so() -> None:
    settings = small(held_out_size=2)
    held = choose(settings.open_domain(), settings)
    assert held is not None
    assert held.facts.is_starters
    assert held.facts.programs == sorted(settings.open_domain().starters())
    assert held.facts.name == "the starter set"


def test_a_folder_without_a_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("prose\n")
    settings = small(held_out=str(tmp_path))
    with pytest.raises(ConfigError, match="none of the 1 held-out programs"):
        choose(settings.open_domain(), settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("held_out_size = 0", "held_out_size"),
        ('held_out_size = "most"', "all"),
        ("held_out_size = 2.5", "held_out_size"),
    ],
)
def test_sizes_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse(EvolveSettings, text)
    assert parse(EvolveSettings, 'held_out_size = "all"').held_out_size == "all"


def test_every_round_of_every_node_has_its_champion_and_contest(folder: Path, tmp_path: Path) -> None:
    found = outcome(folder, tmp_path / "cache")
    assert isinstance(found, SearchSummary)
    assert found.held_out_set is not None
    assert len(found.held_out_set.programs) == 5
    told = summarise(folder)
    assert told.held_out_set is None, "a summary alone plays no champion"
    for node, plain, history in zip(found.nodes, told.nodes, histories(folder), strict=True):
        assert [one.round for one in node.by_round] == [0, 1, 2]
        assert [one.champion for one in node.by_round] == [one.champion for one in plain.by_round]
        assert [one.novelty for one in node.by_round] == history.niche_novelty
        assert node.by_round[-1].champion == history.state.course.champions[-1].digest
        for one in node.by_round:
            assert one.contest is not None
            assert one.contest.opponents == 5
            assert one.contest.wins + one.contest.ties + one.contest.losses == 5
            assert one.maker in {*small().models, "starter"}
        assert all(one.contest is None for one in plain.by_round)


def test_a_champion_that_comes_again_is_not_played_again(
    folder: Path, tmp_path: Path, played: list[str]
) -> None:
    cache = tmp_path / "cache"
    first = outcome(folder, cache)
    assert isinstance(first, SearchSummary)
    champions = {one.champion for node in first.nodes for one in node.by_round}
    best = [played[0]]  # of the summary, against the whole folder
    assert sorted(played[1:]) == sorted(champions)
    played.clear()
    assert outcome(folder, cache) == first
    assert played == best
    # A file that is no result is none; the others are still used.
    broken = sorted(cache.rglob("*.json"))[0]
    broken.write_text('{"wins": ')
    played.clear()
    assert outcome(folder, cache) == first
    assert sorted(played[1:]) == [broken.stem]
    played.clear()
    assert outcome(folder, None) == first, "without a cache it is the same, played"
    assert len(played) == 1 + len(champions)


def test_other_rules_share_no_result(tmp_path: Path) -> None:
    wide = small(options={"core_size": 1600, "cycles": 800, "processes": 100, "length": 20, "distance": 20})
    digests = set()
    for settings in (small(), wide):
        held = choose(settings.open_domain(), settings)
        assert held is not None
        digests.add(held.facts.digest)
    assert len(digests) == 2


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be\n")
    settings = small()
    domain = settings.open_domain()
    held = choose(domain, settings)
    assert held is not None
    imp = domain.parse(domain.starters()["imp"])
    assert contest(domain, imp, held, tmp_path / "cache") == contest(domain, imp, held, None)


def test_asked_to_stop_it_has_no_outcome_and_keeps_the_contests_that_are_done(
    folder: Path, tmp_path: Path
) -> None:
    heard: list[float] = []

    def goes_on(share: float) -> bool:
        heard.append(share)
        return len(heard) < 3

    assert outcome(folder, tmp_path / "cache", goes_on) is None
    assert heard == sorted(heard)
    assert all(0 <= share < 1 for share in heard)
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 2
