from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from lore.errors import InvalidInput
from lore.gateway.observer import (
    MAX_DOCUMENT_BYTES,
    MAX_STREAM_BYTES,
    STREAM_TAIL_BYTES,
    ResponseBuffer,
    is_stream,
)

BODY = b'{"usage": {}}'


@pytest.mark.parametrize(
    ("form", "streams"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        (" text/event-stream", True),
        ("application/json", False),
        ("", None),
    ],
)
def test_content_type_decides_whether_a_response_streams(form: str, streams: bool | None):
    assert is_stream({"content-type": form}) is streams


@pytest.mark.parametrize(("status", "streams"), [(200, True), (206, True), (404, False)])
def test_error_response_is_not_a_stream(status: int, streams: bool):
    assert ResponseBuffer.of(status, {}, streams=True).streams is streams


@pytest.mark.parametrize(
    ("encodings", "pack"),
    [
        ("", bytes),
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("br", brotli.compress),
        ("zstd", zstandard.ZstdCompressor().compress),
        ("gzip, BR", lambda body: brotli.compress(gzip.compress(body))),
    ],
)
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_compressed_response_is_decoded(
    encodings: str, pack: Callable[[bytes], bytes], mark: bytes
):
    kept = ResponseBuffer.of(200, {"content-encoding": encodings}, streams=False)
    packed = pack(mark + BODY)
    for at in range(len(packed)):
        kept.add(packed[at : at + 1])
    assert kept.body() == BODY
    assert kept.length == len(packed)


@pytest.mark.parametrize(
    ("encodings", "packed"),
    [
        ("gzip", BODY),
        ("gzip", gzip.compress(BODY)[:-9]),
        ("secret", BODY),
        ("gzip", gzip.compress(bytes(MAX_DOCUMENT_BYTES + STREAM_TAIL_BYTES + 1))),
    ],
    ids=["no gzip", "torn", "unknown", "too long"],
)
def test_undecodable_response_is_refused(encodings: str, packed: bytes):
    kept = ResponseBuffer.of(200, {"content-encoding": encodings}, streams=False)
    kept.add(packed)
    with pytest.raises(InvalidInput):
        kept.body()


def test_middle_of_a_long_stream_is_dropped():
    kept = ResponseBuffer.of(200, {}, streams=True)
    kept.add(b"a" * MAX_STREAM_BYTES)
    for _ in range(10):
        kept.add(b"b" * STREAM_TAIL_BYTES)
    assert kept.body() == b"a" * MAX_STREAM_BYTES + b"\n\n" + b"b" * STREAM_TAIL_BYTES
