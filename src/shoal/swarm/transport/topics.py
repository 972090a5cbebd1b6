"""How a swarm's name and its topics become keys that every engine accepts.

The name is hashed: people may call a swarm anything, engines give a meaning to `*`, `.`, `/`, `$` and spaces,
and Unix sockets have little room for a path.
"""

from __future__ import annotations

import hashlib
import re

_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}(?:/[A-Za-z0-9_-]{1,64}){0,7}")


def short_hash(text: str) -> str:
    """16 hexadecimal digits that stand for `text` in keys and file names."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def is_topic(topic: str) -> bool:
    """Whether `topic` is up to eight words of letters, digits, `_` and `-`, with slashes between them."""
    return _TOPIC.fullmatch(topic) is not None


def check_topics(topics: frozenset[str]) -> None:
    for topic in topics:
        if not is_topic(topic):
            raise ValueError(f"{topic!r} is not a topic: words of A-Z a-z 0-9 _ - with slashes between them")
