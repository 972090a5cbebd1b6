"""What a node's folder tells of its peers while the run goes on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.node.acquaintances import Acquaintances, acquaintances_in
from shoal.runs.journal import Journal
from shoal.runs.records import Arrived, Content, VerdictGiven, kind_of
from shoal.swarm.accounts import ACCOUNTS, Accounts
from shoal.swarm.presence import PRESENCE, Presence


def arrived(author: str, seq: int) -> Content:
    return Arrived(author, 1, "item", seq, 0, 0.0, 0.0, "00", msgspec.Raw(b"null"))


def verdict(author: str, seq: int, accepted: bool, reason: str = "", passed_over: bool = False) -> Content:
    return VerdictGiven(1, author, 1, "item", seq, 0, accepted, reason, passed_over=passed_over)


JOURNAL = [
    *(arrived("b", seq) for seq in range(5)),
    arrived("c", 1),
    verdict("b", 0, True),
    verdict("b", 1, True),
    verdict("b", 2, False, "too slow: very"),
    verdict("b", 3, False, "unknown task: x", passed_over=True),
]


def write(folder: Path, records: list[Content]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with Journal(folder / "journal.jsonl") as journal:
        for record in records:
            journal.append(kind_of(record), 0.0, record)


def counts(found: Acquaintances, author: str) -> tuple[int, int, int, dict[str, int] | None]:
    account = found.accounts.of(author)
    return (account.received, account.verified, account.passed_over, account.rejected)


def test_the_journal_tells_what_the_accounts_do_not_have_yet(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "nodes" / "1-a"
    write(folder, JOURNAL)
    early = Accounts()
    early.expect(2)
    early.of("b").received = 1
    early.credit("b", "useful")
    early.save(folder / ACCOUNTS)
    (found,) = acquaintances_in(tmp_path / "run")
    assert found.node == "1-a"
    assert found.is_behind
    assert counts(found, "b") == (5, 2, 1, {"too slow": 1})
    assert counts(found, "c") == (1, 0, 0, None)
    assert found.accounts.of("b").useful == 1
    assert found.accounts.established == {"b"}, "by the swarm's own rule, which the file keeps"
    assert acquaintances_in(folder)[0].accounts.encode() == found.accounts.encode()


def test_counts_of_the_accounts_that_are_ahead_of_the_journal_stay(tmp_path: Path) -> None:
    folder = tmp_path / "nodes" / "1-a"
    write(folder, JOURNAL)
    late = Accounts()
    for _ in range(9):
        late.of("b").received += 1
        late.credit("b", "verified")
        late.credit("b", "rejected", "quota")
        late.credit("b", "passed_over")
    late.of("c").received = 1
    late.credit("b", "rejected", "too slow")
    late.save(folder / ACCOUNTS)
    (found,) = acquaintances_in(tmp_path)
    assert not found.is_behind
    assert counts(found, "b") == (9, 9, 9, {"quota": 9, "too slow": 1})


def test_a_run_in_one_process_has_a_journal_only(tmp_path: Path) -> None:
    write(tmp_path / "nodes" / "1-a", JOURNAL)
    write(tmp_path / "nodes" / "2-b", [])
    one, other = acquaintances_in(tmp_path)
    assert counts(one, "b") == (5, 2, 1, {"too slow": 1})
    assert one.accounts.established == {"b"}
    assert len(other.accounts) == 0


def test_peers_that_were_heard_and_sent_nothing_are_counted(tmp_path: Path) -> None:
    write(tmp_path, [])
    Presence(tmp_path / PRESENCE, most=9).note(["b", "c"])
    (found,) = acquaintances_in(tmp_path)
    assert (found.heard, len(found.accounts)) == (2, 0)
    assert acquaintances_in(tmp_path / "nowhere") == []


def test_a_damaged_journal_is_told_up_to_the_damage(tmp_path: Path) -> None:
    write(tmp_path, JOURNAL)
    path = tmp_path / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"nonsense\n", *lines[4:]]))
    (found,) = acquaintances_in(tmp_path)
    assert counts(found, "b")[0] == 3
    assert "record 4" in found.trouble
