"""Identity: a node is an ed25519 key. Its id is a hash of the public key, so nobody can claim another's.

Guarantee of `Identity.load_or_create(path)`: the file has mode 0600 from the moment it exists under any name,
it appears complete or not at all, and processes that create it at the same time end with the same key.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from shoal.errors import IdentityError
from shoal.files import force_to_disk

NodeId: TypeAlias = str  # 32 characters of base32 in lower case: 20 bytes of a hash of the public key

KEY_BYTES = 32
SIGNATURE_BYTES = 64
ID_BYTES = 20
FILE_MARK = "shoal-key-1"

# Points of small order: with such a key one signature can fit every message, so that a frame could be made
# without knowing the swarm secret. Compared with the sign bit cleared.
WEAK_KEYS = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)

ADJECTIVES = """
agile amber arctic bold brave bright brisk calm clever copper crimson curious daring deep drifting eager
early ebony fair fleet free gentle gilded glad golden grand happy hardy honest humble indigo ivory
jade jolly keen kind lively lucky lunar mellow merry misty nimble noble olive pearly placid proud
quick quiet rapid rosy ruby sandy serene silent silver sleek solar steady sunny swift tidal vivid
""".split()
ANIMALS = """
anchovy barb bass beluga blenny bream brill carp catfish char clam cod conger coral crab dab
dolphin dory eel flounder garfish goby grayling grouper gurnard haddock hake halibut herring kipper koi krill
lamprey ling lobster mackerel manatee manta marlin minnow mullet narwhal oyster perch pike pilchard plaice
pollock porpoise prawn ray salmon sardine seal shad shrimp smelt snapper sole sprat squid tench trout tuna
""".split()


@lru_cache(maxsize=1 << 14)
def node_id(public_key: bytes) -> NodeId:
    """The id of the node with this public key."""
    return id_text(blake2b(public_key, digest_size=ID_BYTES, person=b"shoal node id").digest())


@lru_cache(maxsize=1 << 14)
def id_text(raw: bytes) -> NodeId:
    """The id as text, from its 20 raw bytes in vectors and pulls."""
    return base64.b32encode(raw).decode("ascii").lower()


@lru_cache(maxsize=1 << 14)
def id_bytes(node: NodeId) -> bytes:
    """The 20 raw bytes of an id."""
    return base64.b32decode(node.upper())


def short_name(node: NodeId) -> str:
    """A name that people can tell apart and say aloud, e.g. `calm-herring-k3`; not unique, proves nothing."""
    number = int.from_bytes(id_bytes(node)[:4], "big")
    adjective = ADJECTIVES[number % len(ADJECTIVES)]
    animal = ANIMALS[number // len(ADJECTIVES) % len(ANIMALS)]
    return f"{adjective}-{animal}-{node[-2:]}"


def usable_key(public_key: bytes) -> bool:
    """Whether these bytes can be an author's key: right length and not a point of small order."""
    if len(public_key) != KEY_BYTES:
        return False
    return public_key[:-1] + bytes((public_key[-1] & 0x7F,)) not in WEAK_KEYS


def verify(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether this key signed `message`; False for bytes that are no key."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


class Identity:
    """A node's private key, its public key and its id."""

    __slots__ = ("_private", "_seed", "node_id", "public_key")

    def __init__(self, seed: bytes) -> None:
        """From the 32 secret bytes. `Identity.load_or_create` is the way to get them from a file."""
        if len(seed) != KEY_BYTES:
            raise IdentityError(f"an identity is made from {KEY_BYTES} secret bytes, not {len(seed)}")
        self._seed = seed
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key = self._private.public_key().public_bytes_raw()
        self.node_id: NodeId = node_id(self.public_key)

    @property
    def name(self) -> str:
        return short_name(self.node_id)

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)

    def __repr__(self) -> str:
        return f"Identity({self.node_id})"

    @classmethod
    def create(cls) -> Identity:
        """A new identity that lives only in memory."""
        return cls(os.urandom(KEY_BYTES))

    @classmethod
    def load_or_create(cls, path: str | Path) -> Identity:
        """The identity kept at `path`, created there on first use."""
        path = Path(path)
        if not path.exists():
            _write_new(path, cls.create())
        return cls.load(path)

    @classmethod
    def load(cls, path: str | Path) -> Identity:
        """The identity kept at `path`; refuses a file that others could have read."""
        path = Path(path)
        try:
            with open(path, "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                text = file.read(256).decode("ascii", "replace")
        except OSError as error:
            raise IdentityError(f"the key file {path} cannot be read: {error.strerror}") from error
        if os.name == "posix" and mode & 0o077:
            raise IdentityError(
                f"the key file {path} is open to others (mode {mode & 0o777:03o}). Anybody who read it can "
                f"sign as this node: delete it to get a new identity, or `chmod 600 {path}` if nobody has"
            )
        found = re.fullmatch(rf"\s*{FILE_MARK}\s+([0-9A-Fa-f]{{{2 * KEY_BYTES}}})\s*", text)
        if found is None:
            raise IdentityError(
                f"the key file {path} is damaged: expected one line `{FILE_MARK} <64 hex digits>`. "
                "Restore it from a copy, or delete it to get a new identity"
            )
        return cls(bytes.fromhex(found[1]))


def _write_new(path: Path, identity: Identity) -> None:
    """Puts the key at `path`, complete, unless a file is there already."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(6).hex()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(f"{FILE_MARK} {identity._seed.hex()}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            # A link, not a rename: the second process must not replace the first one's key.
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        finally:
            os.unlink(aside)
        if os.name == "posix":
            force_to_disk(path.parent)
    except OSError as error:
        raise IdentityError(f"the key file {path} cannot be created: {error.strerror}") from error
