from __future__ import annotations

from hypothesis import given, strategies as st

from shoal.swarm.transport.queues import IncomingQueue, OutgoingQueue

messages = st.lists(st.binary(max_size=20), max_size=60)


@given(messages, st.integers(1, 10), st.integers(20, 100))
def test_the_incoming_queue_keeps_the_newest_within_both_bounds(
    sent: list[bytes], most: int, most_bytes: int
) -> None:
    queue = IncomingQueue(most, most_bytes)
    for message in sent:
        queue.put(message)
    kept = queue.take(1000)
    assert kept == sent[len(sent) - len(kept) :]
    assert len(kept) <= most
    assert sum(map(len, kept)) <= most_bytes
    assert queue.arrived == len(sent)
    assert queue.overflowed == len(sent) - len(kept)
    if queue.overflowed:  # nothing was dropped without need
        fuller = sent[len(sent) - len(kept) - 1 :]
        assert len(fuller) > most or sum(map(len, fuller)) > most_bytes


@given(messages, st.integers(1, 10), st.integers(20, 100))
def test_the_outgoing_queue_keeps_the_oldest_within_both_bounds(
    sent: list[bytes], most: int, most_bytes: int
) -> None:
    queue = OutgoingQueue(most, most_bytes)
    accepted = [message for message in sent if queue.offer("topic", message)]
    assert len(queue) == len(accepted) <= most
    assert sum(map(len, accepted)) <= most_bytes
    assert queue.take(2) == [("topic", message) for message in accepted[:2]]
    assert queue.clear() == max(0, len(accepted) - 2)
    assert queue.offer("topic", b"room again")
