from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from shoal.errors import PeerError
from shoal.swarm.accounts import SMALLEST_WEIGHT, Account, Accounts, established, weight

counts = st.integers(0, 1000)


@given(counts, counts, counts, counts)
def test_weights_are_bounded_and_reward_the_useful(
    verified: int, rejected: int, used: int, useful: int
) -> None:
    useful = min(useful, used)
    account = Account(
        verified=verified, used=used, useful=useful, rejected={"x": rejected} if rejected else None
    )
    value = weight(account)
    assert SMALLEST_WEIGHT <= value <= 1.0
    assert weight(Account(verified=verified, used=used, useful=used, rejected=account.rejected)) >= value
    worse = Account(verified=verified, used=used, useful=useful, rejected={"x": rejected + 50})
    assert weight(worse) <= value


def test_probation_ends_with_verified_items_only() -> None:
    assert not established(Account(received=10_000, used=50, useful=50), 4)
    assert established(Account(verified=4), 4)
    assert not established(Account(verified=4, rejected={"wrong": 4}), 4)


@given(st.lists(st.sampled_from(["verified", "rejected", "used", "useful"]), max_size=30), st.data())
def test_an_item_that_was_passed_over_changes_nothing_but_its_own_count(
    credits: list, data: st.DataObject
) -> None:
    plain, mixed = Accounts(), Accounts()
    for credit in credits:
        plain.credit("a", credit)
    passed_over = data.draw(st.lists(st.integers(0, len(credits)), max_size=50))
    for place in range(len(credits) + 1):
        for _ in range(passed_over.count(place)):
            mixed.credit("a", "passed_over", "unknown task")
        if place < len(credits):
            mixed.credit("a", credits[place])
    assert mixed.of("a").passed_over == len(passed_over)
    assert mixed.established == plain.established
    assert mixed.weight("a") == weight(plain.of("a"))
    assert mixed.promising("a") == (plain.of("a").verified > plain.of("a").rejections)


def test_accounts_of_an_earlier_version_open(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text(
        '{"version":1,"epoch":7,"accounts":{"a":{"received":9,"verified":5,"used":2,"useful":1,'
        '"rejected":{"another version":3},"heard_at":1.5}}}'
    )
    accounts = Accounts.load(tmp_path / "old.json")
    assert accounts.notice == ""
    assert (accounts.of("a").verified, accounts.of("a").passed_over) == (5, 0)
    assert accounts.established == {"a"}


def test_credit() -> None:
    accounts = Accounts()
    for _ in range(4):
        accounts.credit("a", "verified")
    accounts.credit("a", "used")
    accounts.credit("a", "useful")
    accounts.credit("a", "rejected", "does not assemble")
    account = accounts.of("a")
    assert (account.verified, account.used, account.useful) == (4, 1, 1)
    assert account.rejected == {"does not assemble": 1}
    assert accounts.established == {"a"}
    with pytest.raises(PeerError, match="no such credit"):
        accounts.credit("a", "lovely")  # type: ignore[arg-type]


def test_reasons_are_bounded() -> None:
    accounts = Accounts()
    for number in range(1000):
        accounts.credit("a", "rejected", f"reason {number}")
    account = accounts.of("a")
    assert account.rejections == 1000
    assert account.rejected is not None
    assert len(account.rejected) <= 33


def test_the_least_useful_make_room() -> None:
    accounts = Accounts(most=16)
    for number in range(4):
        for _ in range(4):
            accounts.credit(f"good {number}", "verified")
    for number in range(1000):
        accounts.of(f"sybil {number}")
        assert len(accounts) <= 16
    assert accounts.established == {f"good {number}" for number in range(4)}
    assert all(accounts.get(node) for node in accounts.established)


def test_they_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "accounts.json"
    accounts = Accounts()
    accounts.epoch = 17
    for _ in range(5):
        accounts.credit("a", "verified")
    accounts.credit("b", "rejected", "wrong")
    accounts.save(path)
    again = Accounts.load(path)
    assert again.encode() == accounts.encode()
    assert again.epoch == 17
    assert again.established == {"a"}
    assert again.notice == ""
    assert [entry.name for entry in path.parent.iterdir()] == ["accounts.json"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b'{"version": 9, "epoch": 0, "accounts": {}}', b"\xff\xfe"]
)
def test_a_damaged_file_is_kept_aside(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "accounts.json"
    path.write_bytes(content)
    accounts = Accounts.load(path)
    assert len(accounts) == 0
    assert "damaged" in accounts.notice
    assert (tmp_path / "accounts.json.damaged-1").read_bytes() == content
    path.write_bytes(content)
    Accounts.load(path)
    assert (tmp_path / "accounts.json.damaged-2").exists()


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "accounts.json"
    Accounts().save(path)
    before = path.read_bytes()

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shoal.swarm.accounts.os.fsync", crash)
    changed = Accounts()
    changed.credit("a", "verified")
    with pytest.raises(PeerError, match="No space left"):
        changed.save(path)
    assert path.read_bytes() == before


def test_a_file_of_more_authors_than_wanted_is_cut_down(tmp_path: Path) -> None:
    accounts = Accounts()
    for number in range(100):
        accounts.credit(f"node {number}", "verified")
    accounts.save(tmp_path / "a.json")
    assert len(Accounts.load(tmp_path / "a.json", most=16)) <= 16
    assert msgspec.json.decode((tmp_path / "a.json").read_bytes())["version"] == 1
