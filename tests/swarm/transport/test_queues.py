from __future__ import annotations

from hypothesis import given, strategies as st

from shoal.swarm.transport.queues import Inbox, Outbox

messages = st.lists(st.binary(max_size=20), max_size=60)


@given(messages, st.integers(1, 10), st.integers(20, 100))
def test_inbox_keeps_the_newest_within_both_bounds(sent: list[bytes], most: int, most_bytes: int) -> None:
    inbox = Inbox(most, most_bytes)
    for message in sent:
        inbox.put(message)
    kept = inbox.take(1000)
    assert kept == sent[len(sent) - len(kept) :]
    assert len(kept) <= most
    assert sum(map(len, kept)) <= most_bytes
    assert inbox.arrived == len(sent)
    assert inbox.overflowed == len(sent) - len(kept)
    if inbox.overflowed:  # nothing was dropped without need
        fuller = sent[len(sent) - len(kept) - 1 :]
        assert len(fuller) > most or sum(map(len, fuller)) > most_bytes


@given(messages, st.integers(1, 10), st.integers(20, 100))
def test_outbox_keeps_the_oldest_within_both_bounds(sent: list[bytes], most: int, most_bytes: int) -> None:
    outbox = Outbox(most, most_bytes)
    accepted = [message for message in sent if outbox.offer("topic", message)]
    assert len(outbox) == len(accepted) <= most
    assert sum(map(len, accepted)) <= most_bytes
    assert outbox.take(2) == [("topic", message) for message in accepted[:2]]
    assert outbox.clear() == max(0, len(accepted) - 2)
    assert outbox.offer("topic", b"room again")
