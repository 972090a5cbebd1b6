from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from shoal.errors import DefectError, PeerError, ShareRefused
from shoal.swarm.kinds import Kinds
from shoal.swarm.live import LiveExchange
from shoal.swarm.transport.memory import MemoryHub
from tests.swarm.samples import Champion, Rollout, identity, kinds, settings


def live(
    hub: MemoryHub, number: int, path: Path | None = None, registered: Kinds | None = None
) -> LiveExchange:
    return LiveExchange(identity(number), hub.open(), registered or kinds(), settings(), accounts_path=path)


def wait_for(condition: object, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "not within the time allowed"
        time.sleep(0.01)


def test_four_verbs_from_many_threads() -> None:
    hub = MemoryHub()
    nodes = [live(hub, number) for number in range(3)]
    found: list[list[object]] = [[], [], []]

    def use(place: int) -> None:
        node = nodes[place]
        for number in range(40):
            node.share(Rollout(number, node.identity.name))
            node.share(Champion(node.identity.name, number))
            found[place] += [received.item for received in node.gather() if received.kind == "rollout"]
            node.peers()
            time.sleep(0.005)

    threads = [threading.Thread(target=use, args=(place % 3,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    def complete() -> bool:
        for place, node in enumerate(nodes):
            found[place] += [received.item for received in node.gather() if received.kind == "rollout"]
        return all(len(items) == 80 for items in found)

    wait_for(complete)
    assert all(len(set(items)) == 80 for items in found)
    assert len(nodes[0].latest("champion")) == 2
    with pytest.raises(ShareRefused):
        nodes[0].share(Champion("x" * 100_000))
    for node in nodes:
        node.close()
        node.close()
    assert not any(thread.name.startswith("exchange") for thread in threading.enumerate())


def test_accounts_that_cannot_be_saved_do_not_hide_an_earlier_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise PeerError(f"{path.name} cannot be written")

    first, second = live(MemoryHub(), 1, tmp_path / "one.json"), live(MemoryHub(), 1, tmp_path / "two.json")
    monkeypatch.setattr("shoal.swarm.live.write_accounts", full)
    with pytest.raises(RuntimeError, match="the journal") as caught, first:
        raise RuntimeError("the journal")
    assert caught.value.__notes__ == ["and then: one.json cannot be written"]
    with pytest.raises(PeerError, match=r"two.json cannot be written"), second:
        pass


def test_what_waits_is_sent_on_close_and_accounts_are_kept(tmp_path: Path) -> None:
    hub = MemoryHub()
    receiver = live(hub, 1, tmp_path / "accounts.json")
    with live(hub, 2) as sender:
        sender.share(Rollout(1, "last words"))
    gathered = []
    wait_for(lambda: gathered.extend(receiver.gather()) or gathered)
    receiver.credit(gathered[0].author, gathered[0].place, "verified")
    receiver.close()
    with live(hub, 1, tmp_path / "accounts.json") as again:
        account = again.accounts.get(identity(2).node_id)
        assert account is not None
        assert account.verified == 1
        assert again.epoch > receiver.epoch


@pytest.mark.parametrize(
    ("failure", "kind"), [(ZeroDivisionError("a defect"), DefectError), (PeerError("a defect"), PeerError)]
)
def test_a_defect_in_the_thread_is_not_silent(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: type[PeerError]
) -> None:
    """A mistake of Shoal's, which a new process may be spared, is told apart from a failure that it names."""
    node = live(MemoryHub(), 1)

    def broken(now: float) -> bool:
        raise failure

    monkeypatch.setattr(node._exchange, "tick", broken)
    wait_for(lambda: node._failure is not None)
    with pytest.raises(PeerError, match="a defect") as raised:
        node.gather()
    assert raised.type is kind
    node.close()


def test_a_closed_exchange_refuses_every_verb() -> None:
    hub = MemoryHub()
    node, other = live(hub, 1), live(hub, 2)
    other.share(Rollout(1, "heard"))
    gathered = []
    wait_for(lambda: gathered.extend(node.gather()) or gathered)
    node.close()
    for verb in (
        lambda: node.share(Rollout(2, "too late")),
        node.gather,
        node.peers,
        node.figures,
        lambda: node.latest("champion"),
        lambda: node.credit(gathered[0].author, gathered[0].place, "verified"),
    ):
        with pytest.raises(PeerError, match="the exchange is closed") as caught:
            verb()
        assert "\n" not in str(caught.value)
    other.close()
