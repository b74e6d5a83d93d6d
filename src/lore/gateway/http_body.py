"""HTTP bodies: read within a size limit, and decoded from gzip, brotli or zstd.

A few hundred bytes may decode to gigabytes, so no step decodes more than a few megabytes.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Protocol

import brotli
import zstandard
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from lore.errors import InvalidInput

DECODE_ERRORS = (zlib.error, brotli.error, zstandard.ZstdError)
"""What decoders raise for a body in another encoding than theirs."""

_DECODED_STEP_BYTES = 262_144
"""Made at once, of zlib; brotli, which only ends once it has made more, makes up to 2 MB."""

_PIECE_BYTES = 65_536
"""Decoded at once: what is left behind a member is copied, and there may be thousands of them."""

_ZSTD_PIECE_BYTES = 64
"""Decoded at once of zstd, whose decoder knows no limit: 4 bytes are a block of 128 KiB at most,
so these are 2 MiB. Larger pieces are hardly faster."""

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_WIDEST_ZSTD_BYTES = 128_000_000
"""Largest window of a zstd decoder: the widest that zstd makes by default."""


class Decoder(Protocol):
    """Decodes one encoding of one body."""

    @property
    def is_complete(self) -> bool:
        """Return whether the body so far is complete, with nothing behind it."""

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of the next chunk; raise one of `DECODE_ERRORS`."""


class _GzipDecoder:
    """Decodes gzip and zlib, of one or more members."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)

    @property
    def is_complete(self) -> bool:
        return self._decoder.eof

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), _PIECE_BYTES):
            left = chunk[start : start + _PIECE_BYTES]
            is_full = False
            while left or (is_full and not self._decoder.eof):
                if self._decoder.eof:
                    self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
                decoded = self._decoder.decompress(left, _DECODED_STEP_BYTES)
                left = self._decoder.unused_data or self._decoder.unconsumed_tail
                is_full = len(decoded) == _DECODED_STEP_BYTES
                yield decoded


class _BrotliDecoder:
    """Decodes brotli."""

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    @property
    def is_complete(self) -> bool:
        return bool(self._decoder.is_finished())

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        while decoded := bytes(
            self._decoder.process(chunk, output_buffer_limit=_DECODED_STEP_BYTES)
        ):
            yield decoded
            if self.is_complete:
                return
            chunk = b""


class _ZstdDecoder:
    """Decodes zstd, of one or more frames."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_WIDEST_ZSTD_BYTES)
        self._frame = self._decoder.decompressobj()

    @property
    def is_complete(self) -> bool:
        return self._frame.eof

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        for start in range(0, len(chunk), _ZSTD_PIECE_BYTES):
            left = chunk[start : start + _ZSTD_PIECE_BYTES]
            while left:
                if self._frame.eof:
                    self._frame = self._decoder.decompressobj()
                decoded = self._frame.decompress(left)
                left = self._frame.unused_data
                yield decoded


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": _GzipDecoder,
    "x-gzip": _GzipDecoder,
    "deflate": _GzipDecoder,
    "br": _BrotliDecoder,
    "zstd": _ZstdDecoder,
}
"""By the names of content encodings."""


READ_TIMEOUT_S = 60.0
"""A client that sends no part of its body for this long gets status 408."""

_DISCARD_FACTOR = 4
"""So many times the limit is read and discarded before a client is cut off."""

MAX_DECODED_BYTES = 64_000_000
"""Maximum size of a response that is decoded while it streams; no model writes more."""

_STEP_BYTES = 1_000_000
"""Returned at once of a chunk that decodes to more: others are served meanwhile."""


async def iter_body(receive: Receive, max_bytes: int = 0) -> AsyncIterator[bytes]:
    """Yield a body as it comes; `max_bytes` 0 for any length."""
    size = 0
    while True:
        try:
            async with asyncio.timeout(READ_TIMEOUT_S):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "The body was not sent in time.") from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if max_bytes and size > max_bytes:
            raise _too_large(max_bytes)
        if chunk:
            yield chunk
        if not message.get("more_body", False):
            return


async def read_body(receive: Receive, announced: str, max_bytes: int) -> bytes:
    """Return a body; refuse one that is announced or turns out too long.

    A client that is still sending would not read the error, so some more of it is discarded first.
    """
    size, chunks = 0, list[bytes]()
    too_long = announced.isdigit() and int(announced[:20]) > max_bytes
    async for chunk in iter_body(receive, _DISCARD_FACTOR * max_bytes):
        size += len(chunk)
        too_long = too_long or size > max_bytes
        if too_long:
            chunks.clear()
        else:
            chunks.append(chunk)
    if too_long:
        raise _too_large(max_bytes)
    return b"".join(chunks)


def _too_large(max_bytes: int) -> HTTPException:
    detail = f"The body is larger than {max_bytes:,} bytes (setting gateway.max_body_bytes)."
    return HTTPException(413, detail)


def decode_body(body: bytes, encodings: str, max_bytes: int) -> bytes:
    """Return a body without its encodings, the last of which is decoded first."""
    if not encodings:
        return body
    body_decoder = BodyDecoder(encodings, max_bytes)
    decoded = body_decoder.feed(body)
    if body and not body_decoder.is_complete:
        msg = "The body is cut off, or not in the encoding that it names."
        raise InvalidInput(msg)
    return decoded


def can_decode(encodings: str) -> bool:
    """Return whether all encodings of a body are known."""
    return all(name in DECODERS for name in _names(encodings))


class BodyDecoder:
    """Decodes a body while it comes, chunk by chunk."""

    def __init__(self, encodings: str, max_bytes: int = MAX_DECODED_BYTES) -> None:
        """Start a body, or raise `InvalidInput` if an encoding is not known."""
        if not can_decode(encodings):
            msg = "The body has an encoding that is not known here."
            raise InvalidInput(msg)
        self._decoders = [DECODERS[name]() for name in _names(encodings)]
        self._max_bytes = max_bytes
        self._left_bytes = [max_bytes] * len(self._decoders)
        """What each of them may still make, so that none hides much behind little."""

    @property
    def has_encoding(self) -> bool:
        """Return whether the body has an encoding at all."""
        return bool(self._decoders)

    @property
    def is_complete(self) -> bool:
        """Return whether the body so far is complete in all its encodings."""
        return all(decoder.is_complete for decoder in self._decoders)

    def feed(self, chunk: bytes) -> bytes:
        """Return the decoded bytes of the next chunk; raise `InvalidInput` if it is malformed."""
        return b"".join(self.steps(chunk))

    def steps(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the decoded bytes of the next chunk, a few megabytes at a time."""
        decoded = bytearray()
        try:
            for step in self._decode_steps(chunk, range(len(self._decoders))):
                decoded += step
                if len(decoded) >= _STEP_BYTES:
                    yield bytes(decoded)
                    decoded.clear()
        except DECODE_ERRORS as error:
            msg = "The body is not in the encoding that it names."
            raise InvalidInput(msg) from error
        if decoded:
            yield bytes(decoded)

    def _decode_steps(self, chunk: bytes, order: Sequence[int]) -> Iterator[bytes]:
        if not order:
            yield chunk
            return
        for step in self._decoders[order[0]].steps(chunk):
            self._left_bytes[order[0]] -= len(step)
            if self._left_bytes[order[0]] < 0:
                raise _too_long(self._max_bytes)
            if step:
                yield from self._decode_steps(step, order[1:])


def _names(encodings: str) -> list[str]:
    """Return encodings in the order in which they are decoded."""
    names = [name.strip().lower() for name in encodings.split(",")]
    return [name for name in reversed(names) if name not in ("", "identity")]


def _too_long(max_bytes: int) -> InvalidInput:
    return InvalidInput(f"The body is larger than {max_bytes:,} bytes once it is decoded.")
