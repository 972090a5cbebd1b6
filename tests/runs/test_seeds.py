import pytest
from hypothesis import given, settings, strategies as st

from shoal.runs import derive, derive_integer

parts = st.lists(
    st.integers() | st.text(st.characters(blacklist_categories=["Cs"])) | st.binary(), max_size=4
)


def test_the_numbers_are_these_on_every_platform_and_version() -> None:
    assert derive_integer(1, "node", "purpose") == 207796826940732642007170147106398585025
    generator = derive(1, "node", "purpose", 7)
    assert generator.random() == 0.8142599772444514
    assert [generator.randrange(1000) for _ in range(4)] == [818, 16, 939, 546]
    assert generator.sample(range(100), 5) == [98, 33, 88, 11, 16]
    assert generator.choice("abcdefghij") == "b"


@given(parts, parts)
@settings(deadline=None)
def test_different_purposes_have_different_seeds(one: list, other: list) -> None:
    assert (derive_integer(0, *one) == derive_integer(0, *other)) == (one == other)


@given(st.integers(1, 512))
@settings(deadline=None)
def test_a_seed_has_the_bits_that_were_asked_for(bits: int) -> None:
    assert 0 <= derive_integer(3, "x", bits=bits) < 2**bits


def test_other_parts_are_refused() -> None:
    with pytest.raises(TypeError, match="not a bool"):
        derive(0, True)
    with pytest.raises(TypeError, match="not a float"):
        derive(0, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1 to 512 bits"):
        derive_integer(0, bits=0)
