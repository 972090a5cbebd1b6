"""An invitation reads back as it was written, or is refused in words."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shoal.errors import ConfigError
from shoal.swarm.membership import Invitation, parse_invitation

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(
    words,
    st.one_of(st.just(""), words),
    st.sampled_from(["tcp/host:7447", "tls/[::1]:80", "nats://a.b:4222"]),
)
def test_what_goes_in_comes_out(swarm: str, secret: str, address: str) -> None:
    invitation = Invitation(address, swarm, secret)
    text = str(invitation)
    if len(text) <= 1000:
        assert parse_invitation(text) == invitation
    assert text.split() == [text]


@given(st.text(max_size=80).map(lambda tail: f"shoal://{tail}"))
def test_anything_else_is_refused_in_words(text: str) -> None:
    try:
        parse_invitation(text)
    except ConfigError as error:
        assert str(error)


def test_the_secret_shows_up_nowhere_else() -> None:
    assert "hunter2" not in repr(Invitation("tcp/host:1", "herring", "hunter2"))
    with pytest.raises(ConfigError) as caught:
        parse_invitation("shoal://tcp/host/herring?secret=hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_local_socket_is_no_place_to_invite_to() -> None:
    with pytest.raises(ConfigError, match="no other machine"):
        str(Invitation("unix//tmp/a.sock", "herring"))
