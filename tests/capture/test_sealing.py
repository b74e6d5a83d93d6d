from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.capture.sealing import Sealer

LINES = st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line), max_size=6)


def sealed(lines: list[bytes], key: bytes = b"key") -> list[str]:
    """Return a seal after each line."""
    sealer = Sealer(key)
    seals = []
    for line in lines:
        sealer.add(line)
        seals.append(sealer.seal())
    return seals


@given(LINES, LINES)
def test_seals_are_the_same_for_the_same_lines_only(one, other):
    assert (sealed(one) == sealed(other)) == (one == other)


def test_another_key_makes_other_seals_and_another_home():
    assert sealed([b"a"], b"one") != sealed([b"a"], b"other")
    assert Sealer(b"one").home != Sealer(b"other").home
    assert Sealer(b"one").home == Sealer(b"one").home


def test_a_seal_holds_for_its_place_only():
    first, second = sealed([b"a", b"a"])
    assert first != second
    sealer = Sealer(b"key")
    sealer.add(b"a")
    assert sealer.fits(first)
    assert not sealer.fits(first)


def test_what_is_no_seal_does_not_fit():
    for seal in (None, 7, "", "\u00e9"):
        assert not Sealer(b"key").fits(seal)
