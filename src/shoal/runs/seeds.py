"""Every random choice comes from a generator derived from (run seed, node, purpose, …), by a hash: two
purposes never share a stream, adding a purpose changes no other, and the same parts give the same numbers on
every platform and Python version."""

from __future__ import annotations

import hashlib
import random

Part = int | str | bytes


def derive_integer(seed: int, *purpose: Part, bits: int = 128) -> int:
    """A whole number in [0, 2**bits), e.g. for `numpy.random.default_rng` or `torch.manual_seed`."""
    if not 1 <= bits <= 512:
        raise ValueError(f"bits is {bits}; a derived seed has 1 to 512 bits")
    parts = b"".join([_encode(part) for part in (seed, *purpose)])
    digest = hashlib.blake2b(parts, digest_size=64, person=b"shoal.seeds").digest()
    return int.from_bytes(digest, "big") >> (512 - bits)


def derive(seed: int, *purpose: Part) -> random.Random:
    """A generator of its own for this purpose."""
    return random.Random(derive_integer(seed, *purpose))


def _encode(part: Part) -> bytes:
    """The length in front keeps ("ab", "c") and ("a", "bc") apart, the letter keeps 1 and "1" apart."""
    if isinstance(part, str):
        content = part.encode()
        return b"s%d:%b" % (len(content), content)
    if isinstance(part, bool):
        raise TypeError("a part of a seed is an int, a str or bytes, not a bool")
    if isinstance(part, int):
        content = b"%d" % part
        return b"i%d:%b" % (len(content), content)
    if isinstance(part, bytes):
        return b"b%d:%b" % (len(part), part)
    raise TypeError(f"a part of a seed is an int, a str or bytes, not a {type(part).__name__}")
