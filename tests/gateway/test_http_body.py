from __future__ import annotations

import gzip
import resource
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.gateway.http_body import BodyDecoder, can_decode, decode_body

ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
}
MOST = 100_000
EVERY = pytest.mark.parametrize("name", ENCODERS)


@given(st.sampled_from(sorted(ENCODERS)), st.binary(max_size=5_000))
def test_encoded_body_is_decoded(name: str, body: bytes):
    assert decode_body(ENCODERS[name](body), name, MOST) == body


@given(st.lists(st.sampled_from(sorted(ENCODERS)), max_size=3), st.binary(max_size=500))
def test_encodings_are_decoded_in_reverse_order(names: list[str], body: bytes):
    encoded = body
    for name in names:
        encoded = ENCODERS[name](encoded)
    assert decode_body(encoded, ", ".join(names), MOST) == body


@EVERY
def test_decompression_bomb_is_refused(name: str):
    with pytest.raises(InvalidInput):
        decode_body(ENCODERS[name](b"\0" * 20_000_000), name, MOST)


@EVERY
def test_body_of_maximum_length_is_accepted(name: str):
    assert decode_body(ENCODERS[name](b"\0" * MOST), name, MOST) == b"\0" * MOST


@given(st.sampled_from(sorted(ENCODERS)), st.binary(min_size=1, max_size=300))
def test_garbage_is_decoded_or_refused_without_other_errors(name: str, body: bytes):
    try:
        decode_body(body, name, MOST)
    except InvalidInput:
        return


@EVERY
def test_truncated_encoded_body_is_refused(name: str):
    encoded = ENCODERS[name](bytes(range(256)) * 50)
    with pytest.raises(InvalidInput):
        decode_body(encoded[: len(encoded) // 2], name, MOST)


def test_several_members_and_frames_form_one_body():
    assert decode_body(gzip.compress(b"a") + gzip.compress(b"b"), "gzip", MOST) == b"ab"
    frame = zstandard.ZstdCompressor().compress
    assert decode_body(frame(b"a") + frame(b"b"), "zstd", MOST) == b"ab"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_many_members_share_one_size_limit(name: str):
    bomb = ENCODERS[name](b"\0" * MOST) * 300
    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput):
            decode_body(bomb, name, MOST)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MOST


def test_members_of_maximum_total_length_are_accepted():
    assert decode_body(gzip.compress(b"\0" * (MOST // 2)) * 2, "gzip", MOST) == b"\0" * MOST


def test_unknown_encoding_is_refused_and_identity_is_accepted():
    with pytest.raises(InvalidInput):
        decode_body(b"x", "rot13", MOST)
    assert decode_body(b"x", "", MOST) == decode_body(b"x", "identity", MOST) == b"x"


def _unpacked(encoded: bytes, names: str, at_once: int, max_bytes: int = MOST) -> bytes:
    unpacking = BodyDecoder(names, max_bytes)
    pieces = [encoded[at : at + at_once] for at in range(0, len(encoded), at_once)]
    return b"".join(map(unpacking.feed, pieces))


@given(
    st.lists(st.sampled_from(sorted(ENCODERS)), max_size=3),
    st.binary(max_size=500),
    st.integers(1, 50),
)
def test_body_is_decoded_while_it_arrives(names: list[str], body: bytes, at_once: int):
    encoded = body
    for name in names:
        encoded = ENCODERS[name](encoded)
    assert _unpacked(encoded, ", ".join(names), at_once) == body


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_several_members_are_decoded_as_one(name: str):
    twice = ENCODERS[name](b"The tide ") + ENCODERS[name](b"is low.")
    assert _unpacked(twice, name, 7) == b"The tide is low."


def test_decoded_bytes_are_returned_before_the_body_ends():
    packing, unpacking = zlib.compressobj(), BodyDecoder("deflate")
    for said in (b"data: 1\n\n", b"data: 2\n\n"):
        piece = packing.compress(said) + packing.flush(zlib.Z_SYNC_FLUSH)
        assert unpacking.feed(piece) == said


@EVERY
def test_body_that_grows_too_long_while_decoding_is_refused(name: str):
    with pytest.raises(InvalidInput):
        _unpacked(ENCODERS[name](b"\0" * (MOST + 1)), name, 1_000)


def _bomb(name: str) -> bytes:
    """Return half a gigabyte in a few bytes."""
    packing: Any = {
        "gzip": lambda: zlib.compressobj(wbits=31),
        "deflate": zlib.compressobj,
        "br": lambda: _Brotli(quality=1),
        "zstd": zstandard.ZstdCompressor().compressobj,
    }[name]()
    zeros = bytes(10_000_000)
    return b"".join([*(packing.compress(zeros) for _ in range(50)), packing.flush()])


class _Brotli:
    """Brotli's compressor under the names that the others have."""

    def __init__(self, quality: int) -> None:
        packing = brotli.Compressor(quality=quality)
        self.compress, self.flush = packing.process, packing.finish


@EVERY
def test_large_chunk_is_decoded_in_steps(name: str):
    packed, before = _bomb(name), _peak_kb()
    unpacking, longest, whole = BodyDecoder(name, 1_000_000_000), 0, 0
    for step in unpacking.steps(packed):
        longest, whole = max(longest, len(step)), whole + len(step)
    assert whole == 500_000_000
    assert longest < 5_000_000
    assert _peak_kb() - before < 60_000
    assert unpacking.is_complete


@EVERY
def test_too_large_chunk_is_refused_before_it_is_decoded(name: str):
    packed, before = _bomb(name), _peak_kb()
    with pytest.raises(InvalidInput):
        BodyDecoder(name, 5_000_000).feed(packed)
    assert _peak_kb() - before < 60_000


def _peak_kb() -> int:
    """Return the most memory that this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_every_encoding_has_its_own_size_limit():
    hidden = gzip.compress(gzip.compress(b"\0" * 100) + b"".join([gzip.compress(b"")] * 10_000))
    with pytest.raises(InvalidInput):
        BodyDecoder("gzip, gzip", MOST).feed(hidden)


@EVERY
def test_body_in_another_encoding_is_refused(name: str):
    with pytest.raises(InvalidInput):
        _unpacked(b'{"type": "message", "content": []}', name, 1_000)


def test_unknown_encoding_cannot_be_decoded():
    assert can_decode("gzip, identity")
    assert not can_decode("gzip, compress")
    with pytest.raises(InvalidInput):
        BodyDecoder("compress")
