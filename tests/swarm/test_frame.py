"""Frames: sealed items come back, and any bytes give items or one named rejection."""

from __future__ import annotations

import random
import tracemalloc

import msgspec
import pytest
import zstandard
from hypothesis import given, strategies as st

from shoal.errors import ConfigError, ShareRefused
from shoal.swarm.body import MOST_ITEMS, ZSTD, PackedItem, Packing, body_digest, content_digest
from shoal.swarm.codec import Codec, Contents, Draft
from shoal.swarm.frame import Bundle, Envelope, Frame, Header, encode, parse_topic
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.rejection import Rejection
from tests.swarm.samples import NOW, Champion, Rollout, codec, identity, kinds, rollout, seal

AUTHOR = identity(1)


def opened(message: bytes, by: Codec | None = None) -> Contents | Rejection:
    """A message through all checks that need no memory."""
    by = by or codec()
    frame = by.read(message)
    if isinstance(frame, Rejection):
        return frame
    assert isinstance(frame, Frame)
    if not by.authentic(frame):
        return Rejection.FORGED
    return by.intact(frame) or by.contents(frame)


def digest_of(body: bytes) -> bytes:
    """What to sign for a body; anything for one that cannot be read."""
    entries = Packing(1 << 20, compress=False).unpack(memoryview(body))
    if isinstance(entries, Rejection):
        return bytes(32)
    return body_digest(content_digest(entry.kind, entry.payload) for entry in entries)


def signed(body: bytes, header: list[object] | None = None, key: Identity = AUTHOR) -> bytes:
    """An authentic frame around any body and any header."""
    membership = Membership("shoal")
    fields = header or [
        1,
        membership.swarm_id,
        key.public_key,
        1,
        1,
        int(NOW * 1e6),
        "log/0",
        digest_of(body),
    ]
    packed = encode(fields)
    return encode([packed, key.sign(membership.domain_tag + packed), body])


@given(
    st.lists(st.builds(Rollout, st.integers(0, 2**40), st.text(max_size=200)), min_size=1, max_size=16),
    st.booleans(),
)
def test_what_is_sealed_comes_back(items: list[Rollout], compress: bool) -> None:
    by = codec(compress)
    frame = seal(AUTHOR, 3, [PackedItem("rollout", encode(item)) for item in items], by=by)
    contents = opened(frame.encode(), by)
    assert isinstance(contents, Contents)
    assert [item.value for item in contents.items] == items
    again = by.read(frame.encode())
    assert isinstance(again, Frame)
    assert (again.author, again.epoch, again.seq, again.channel) == (AUTHOR.node_id, frame.epoch, 3, "log")


def test_fields_added_at_the_end_are_ignored() -> None:
    body = b"\0" + encode([["rollout", encode([7, "text", "a new field"])]])
    membership = Membership("shoal")
    header = [
        1,
        membership.swarm_id,
        AUTHOR.public_key,
        1,
        1,
        int(NOW * 1e6),
        "log/0",
        digest_of(body),
        1,
        "newer",
    ]
    frame = msgspec.msgpack.decode(signed(body, header))
    contents = opened(encode([*frame, b"", "unsigned extra"]))
    assert isinstance(contents, Contents)
    assert [item.value for item in contents.items] == [Rollout(7, "text")]
    read = codec().read(encode([*frame, b"", bytes(1000)]))
    assert isinstance(read, Frame)
    assert len(read.encode()) < 600, "what is not signed is not passed on"


def test_fields_missing_at_the_end_take_their_default() -> None:
    body = b"\0" + encode([["champion", encode(["MOV 0, 1"])]])
    membership = Membership("shoal")
    header = [1, membership.swarm_id, AUTHOR.public_key, 1, 1, int(NOW * 1e6), "latest/0", digest_of(body)]
    contents = opened(signed(body, header))
    assert isinstance(contents, Contents)
    assert contents.items[0].value == Champion("MOV 0, 1", 0.0)


def test_unknown_kinds_are_counted() -> None:
    contents = opened(seal(AUTHOR, 1, [rollout(1), PackedItem("rumour", b"?"), rollout(2)]).encode())
    assert isinstance(contents, Contents)
    assert contents.unknown_kinds == 1
    assert [item.index for item in contents.items] == [0, 2]


def drafts(count: int) -> list[Draft]:
    entries = [PackedItem("rollout", encode([number, "text"])) for number in range(count)]
    return [
        Draft(number + 1, int(NOW * 1e6), "log/0", [entry], [content_digest(entry.kind, entry.payload)])
        for number, entry in enumerate(entries)
    ]


def test_frames_that_leave_together_share_a_signature_and_stand_alone() -> None:
    frames = codec().seal_all(AUTHOR, 1, drafts(16))
    assert len({frame.signature for frame in frames}) == 1
    for frame in frames:
        assert isinstance(opened(frame.encode()), Contents), "by a codec that saw none of the others"
    (alone,) = codec().seal_all(AUTHOR, 1, drafts(1))
    assert alone.roll == b""


def test_a_checked_roll_lets_nothing_else_in() -> None:
    by = codec()
    one, other, stranger = *by.seal_all(AUTHOR, 1, drafts(2)), seal(AUTHOR, 9)
    assert isinstance(opened(one.encode(), by), Contents)
    foreign = seal(identity(2), 1)
    roll = bytearray(one.roll)
    roll[40] ^= 1
    for header, signature, used in (
        (stranger.header, one.signature, one.roll),  # not on the roll
        (foreign.header, one.signature, one.roll),  # another author's
        (other.header, other.signature, bytes(roll)),  # a roll that was changed
        (one.header, one.signature, one.roll[:32]),
        (one.header, one.signature, one.roll + b"x"),
        (one.header, one.signature, b"x" + one.roll),
        (one.header, one.signature, b""),
        (one.header, stranger.signature, one.roll),
        (stranger.header, stranger.signature, one.roll),
    ):
        assert opened(encode([header, signature, one.body, used]), by) is Rejection.FORGED
    assert isinstance(opened(other.encode(), by), Contents)


def test_a_roll_is_no_header_and_a_header_no_roll() -> None:
    """A signature of the one never passes for the other."""
    by = codec()
    frame = by.seal_all(AUTHOR, 1, drafts(2))[0]
    assert opened(encode([b"\xc1" + frame.roll, frame.signature, frame.body]), by) is Rejection.MALFORMED


def bomb(declared: bool) -> bytes:
    plain = bytes(50 << 20)
    if declared:
        return zstandard.ZstdCompressor().compress(plain)
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return packer.compress(plain) + packer.flush()


def with_header(place: int, value: object) -> bytes:
    body = b"\0" + encode([["rollout", encode([1, "x"])]])
    membership = Membership("shoal")
    header: list[object] = [
        1, membership.swarm_id, AUTHOR.public_key, 1, 1, int(NOW * 1e6), "log/0", digest_of(body),
    ]  # fmt: skip
    header[place] = value
    return signed(body, header)


REJECTED: dict[str, tuple[bytes, Rejection]] = {
    "nothing": (b"", Rejection.MALFORMED),
    "a number": (b"\x01", Rejection.MALFORMED),
    "huge array": (b"\xdd\xff\xff\xff\xff", Rejection.MALFORMED),
    "huge binary": (b"\x93\xc6\xff\xff\xff\xff", Rejection.MALFORMED),
    "nested": (b"\x91" * 100_000, Rejection.MALFORMED),
    "too long": (b"\x93\xc4" + bytes(400 << 10), Rejection.OVERSIZE),
    "bundle too long": (b"\x93\xa6bundle" + bytes(2 << 20), Rejection.OVERSIZE),
    "bad bundle": (b"\x92\xa6bundle\x01", Rejection.MALFORMED),
    "short signature": (encode([b"x", b"y", b"z"]), Rejection.MALFORMED),
    "version 2": (with_header(0, 2), Rejection.VERSION),
    "version 2 of another shape": (signed(b"\0", [2, "anything"]), Rejection.VERSION),
    "version without number": (signed(b"\0", ["one"]), Rejection.MALFORMED),
    "another swarm": (with_header(1, bytes(16)), Rejection.SWARM),
    "weak key": (with_header(2, b"\1" + bytes(31)), Rejection.KEY),
    "short key": (with_header(2, bytes(31)), Rejection.MALFORMED),
    "another's key": (with_header(2, identity(2).public_key), Rejection.FORGED),
    "negative epoch": (with_header(3, -1), Rejection.MALFORMED),
    "huge epoch": (with_header(3, 2**63), Rejection.MALFORMED),
    "number zero": (with_header(4, 0), Rejection.MALFORMED),
    "unknown topic": (with_header(6, "news/0"), Rejection.TOPIC),
    "no shard": (with_header(6, "log/"), Rejection.TOPIC),
    "odd shard": (with_header(6, "log/٣"), Rejection.TOPIC),
    "padded shard": (with_header(6, "log/00"), Rejection.TOPIC),
    "topic not signed": (with_header(6, "log/00").replace(b"log/00", b"log/10"), Rejection.FORGED),
    "wrong digest": (with_header(7, bytes(32)), Rejection.DIGEST),
    "no encoding": (signed(b""), Rejection.ENCODING),
    "unknown encoding": (signed(b"\7abc"), Rejection.ENCODING),
    "not zstd": (signed(bytes((ZSTD,)) + b"abc"), Rejection.ENCODING),
    "bomb": (signed(bytes((ZSTD,)) + bomb(True)), Rejection.UNPACKED),
    "bomb of unknown size": (signed(bytes((ZSTD,)) + bomb(False)), Rejection.ENCODING),
    "not a list": (signed(b"\0" + encode({"a": 1})), Rejection.BODY),
    "nested body": (signed(b"\0" + b"\x91" * 50_000), Rejection.BODY),
    "entry of three": (signed(b"\0" + encode([["rollout", b"", b"unsigned"]])), Rejection.BODY),
    "no items": (signed(b"\0" + encode([])), Rejection.ITEM_COUNT),
    "seventeen items": (signed(b"\0" + encode([["rumour", b""]] * (MOST_ITEMS + 1))), Rejection.ITEM_COUNT),
    "wrong type": (signed(b"\0" + encode([["rollout", encode(["a", 1])]])), Rejection.MISTYPED),
    "nested item": (signed(b"\0" + encode([["rollout", b"\x91" * 50_000]])), Rejection.MISTYPED),
    "too large an item": (signed(b"\0" + encode([["champion", bytes(65 << 10)]]), [
        1, Membership("shoal").swarm_id, AUTHOR.public_key, 1, 1, 1, "latest/0",
        digest_of(b"\0" + encode([["champion", bytes(65 << 10)]])),
    ]), Rejection.ITEM_SIZE),
    "register in a log": (signed(b"\0" + encode([["champion", encode(["x"])]])), Rejection.MISPLACED),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECTED)
def test_each_fault_has_its_name(name: str) -> None:
    message, reason = REJECTED[name]
    assert opened(message) is reason


def test_a_bomb_costs_no_memory() -> None:
    message = REJECTED["bomb"][0]
    tracemalloc.start()
    opened(message)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_one_item_that_is_wrong_rejects_the_frame() -> None:
    frame = seal(AUTHOR, 1, [rollout(1), PackedItem("rollout", b"\xc1")])
    assert opened(frame.encode()) is Rejection.MISTYPED


def test_a_struct_that_raises_anything_is_mistyped() -> None:
    class Picky(msgspec.Struct, array_like=True):
        text: str

        def __post_init__(self) -> None:
            raise KeyError("never satisfied")

    by = Codec(Membership("shoal"), Kinds([Kind("picky", Picky, 100, "log")]))
    frame = seal(AUTHOR, 1, [PackedItem("picky", encode(["x"]))], by=by)
    assert opened(frame.encode(), by) is Rejection.MISTYPED


def fuzz(rounds: int, seed: int) -> dict[object, int]:
    """Random bytes, and real frames with some bytes changed, cut out, doubled or put together anew."""
    rng = random.Random(seed)
    by, packed = codec(), codec(compress=True)
    real = [
        seal(AUTHOR, n, [rollout(n, "text " * 20 * n)] * n, by=(by, packed)[n % 2]).encode()
        for n in range(1, 9)
    ]
    real.append(encode(Bundle(bytes(16), real[:2])))
    outcomes: dict[object, int] = {}
    for _ in range(rounds):
        message = bytearray(rng.choice(real))
        choice = rng.randrange(6)
        if choice == 0:
            message = bytearray(rng.randbytes(rng.randrange(300)))
        for _ in range(rng.randrange(1, 6)):
            if not message:
                break
            place = rng.randrange(len(message))
            if choice == 1:
                del message[place : place + rng.randrange(20)]
            elif choice == 2:
                message[place:place] = message[place : place + rng.randrange(50)]
            elif choice == 3:
                message[place:place] = rng.choice(real)[rng.randrange(100) :][: rng.randrange(200)]
            else:
                message[place] = rng.randrange(256)
        frame = by.read(bytes(message))
        if isinstance(frame, Frame):
            if rng.random() < 0.5:  # what an author signed that means harm
                frame.signed = digest_of(bytes(frame.body))
            result: object = by.intact(frame) or by.contents(frame)
            if frame.authentic is None and rng.random() < 0.02:
                result = by.authentic(frame)
            outcomes[result if isinstance(result, Rejection) else type(result)] = 1
        else:
            outcomes[frame if isinstance(frame, Rejection) else Bundle] = 1
    return outcomes


def test_any_bytes_give_a_frame_or_a_name() -> None:
    outcomes = fuzz(20_000, seed=1)
    assert {Rejection.MALFORMED, Rejection.SWARM, Rejection.TOPIC, Rejection.BODY, Bundle, Contents} <= set(
        outcomes
    )


@pytest.mark.soak
def test_a_million_messages_and_no_growth() -> None:
    tracemalloc.start()
    fuzz(1_000_000, seed=2)
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < 12 << 20, "the ids of unknown keys, of which a bounded number is remembered"
    assert peak < 16 << 20


@given(st.binary(max_size=200))
def test_any_bytes_in_a_signed_body_give_items_or_a_name(body: bytes) -> None:
    assert isinstance(opened(signed(b"\0" + body)), Contents | Rejection)
    assert isinstance(opened(signed(bytes((ZSTD,)) + body)), Contents | Rejection)


def test_a_frame_of_an_outsider_fails_the_signature() -> None:
    inside, outside = codec(secret="of the swarm"), codec()
    frame = seal(AUTHOR, 1, by=outside)
    assert inside.read(frame.encode()) is Rejection.SWARM
    # With the swarm id copied from a real frame, what is missing is the tag that was signed.
    header = msgspec.msgpack.decode(frame.header)
    header[1] = inside.membership.swarm_id
    packed = encode(header)
    forged = encode([packed, AUTHOR.sign(outside.membership.domain_tag + packed), frame.body])
    assert opened(forged, inside) is Rejection.FORGED
    assert isinstance(opened(seal(AUTHOR, 1, by=inside).encode(), inside), Contents)


def test_a_frame_is_bound_to_its_swarm_topic_and_body() -> None:
    frame = seal(AUTHOR, 1)
    assert Codec(Membership("another"), kinds()).read(frame.encode()) is Rejection.SWARM
    other = seal(AUTHOR, 2, [rollout(99)])
    swapped = encode(Envelope(frame.header, frame.signature, other.body))
    assert opened(swapped) is Rejection.DIGEST


@pytest.mark.parametrize(
    ("topic", "place"),
    [("log/0", ("log", 0)), ("latest/12", ("latest", 12)), ("to/" + "a" * 32, ("to", "a" * 32)), ("to/a", None),
     ("log/-1", None), ("log/100000", None), ("", None), ("log", None)],
)  # fmt: skip
def test_topics(topic: str, place: object) -> None:
    assert parse_topic(topic) == place


def test_kinds_say_what_is_wrong_with_them() -> None:
    class Loose(msgspec.Struct):
        text: str

    with pytest.raises(ConfigError, match="array_like"):
        Kinds([Kind("loose", Loose, 100, "log")])
    with pytest.raises(ConfigError, match="max_bytes"):
        Kinds([Kind("rollout", Rollout, 10 << 20, "log")])
    with pytest.raises(ConfigError, match="registered already"):
        Kinds([Kind("a", Rollout, 100, "log"), Kind("a", Champion, 100, "log")])
    with pytest.raises(ShareRefused, match="champion, rollout"):
        kinds().of(Loose("x"))


def test_headers_are_what_the_protocol_says() -> None:
    frame = seal(AUTHOR, 5)
    header = msgspec.msgpack.decode(frame.header)
    assert header[:2] == [1, Membership("shoal").swarm_id]
    assert header[2] == AUTHOR.public_key
    assert header[3:7] == [frame.epoch, 5, frame.made_at, "log/0"]
    assert header[8] == 0, "the number of items shared so far, which this frame does not tell"
    assert len(header) == len(Header.__struct_fields__) == 9
    assert frame.encode().startswith(b"\x93\xc4")
