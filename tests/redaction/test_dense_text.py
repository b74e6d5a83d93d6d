"""Dense text: repetitions are skipped."""

import pytest

from lore.redaction.dense_text import skip_repeats


@pytest.mark.parametrize("piece", [b"pw=", b"password=a ", b"pw=" * 300 + b"\n"])
def test_repetitions_are_skipped_to_an_equivalent_offset_near_their_end(piece):
    data = piece * (40_000 // len(piece))
    at = 9_000 // len(piece) * len(piece)
    behind = skip_repeats(data + b"something else", at, 0)
    assert (behind - at) % len(piece) == 0
    assert len(data) - 8_000 < behind < len(data) - 2_000


@pytest.mark.parametrize(
    ("data", "clean_since"),
    [
        (bytes(range(256)) * 4, 0),
        (b"pw=" * 3_000, 9_000),
        (b"pw=" * 300, 0),
        (b"", 0),
        (b"a" * 400 + b"b" + b"pw=" * 100, 0),
    ],
)
def test_nothing_is_skipped_without_repetition_or_after_a_secret(data, clean_since):
    at = min(len(data), 9_000)
    assert skip_repeats(data, at, clean_since) == at
