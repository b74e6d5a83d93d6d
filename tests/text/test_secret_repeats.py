"""Secret repeats: how far a text goes on as it did."""

import pytest

from lore.text.secret_repeats import behind_repeats


@pytest.mark.parametrize("piece", [b"pw=", b"password=a ", b"pw=" * 300 + b"\n"])
def test_the_next_place_is_one_like_this_near_the_end_of_the_repetition(piece):
    data = piece * (40_000 // len(piece))
    at = 9_000 // len(piece) * len(piece)
    behind = behind_repeats(data + b"something else", at, 0)
    assert (behind - at) % len(piece) == 0
    assert len(data) - 8_000 < behind < len(data) - 2_000


@pytest.mark.parametrize(
    ("data", "quiet_since"),
    [
        (bytes(range(256)) * 4, 0),
        (b"pw=" * 3_000, 9_000),
        (b"pw=" * 300, 0),
        (b"", 0),
        (b"a" * 400 + b"b" + b"pw=" * 100, 0),
    ],
)
def test_what_does_not_repeat_or_had_a_secret_is_gone_through(data, quiet_since):
    at = min(len(data), 9_000)
    assert behind_repeats(data, at, quiet_since) == at
