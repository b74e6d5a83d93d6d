"""Bodies: read within a limit, and freed of the encoding they came in."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable
from io import BytesIO

import brotli
import zstandard
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from lore.errors import InvalidInput

Unpack = Callable[[bytes], bytes]
"""Returns what the next piece of a body says."""

PIECE_S = 60.0
"""A client that sends nothing more of a body for so long is not waited for."""

_THROWN_AWAY = 4
"""So many times the limit is read of a body before its client is cut off."""

_PIECE_BYTES = 65_536
"""Decoded at once: what is left behind a member is copied, and there may be thousands of them."""

MOST_UNPACKED_BYTES = 64_000_000
"""Of an answer that is unpacked while it comes; no model writes so much."""

_UNKNOWN = "The body has an encoding that is not known here."

_WRONG = (zlib.error, brotli.error, zstandard.ZstdError)
"""What decoders raise where a body is in another encoding than theirs."""

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_WIDEST_ZSTD_BYTES = 128_000_000
"""What a decoder may keep of what went before; the widest that zstd makes without being told."""


async def pieces(receive: Receive, most_bytes: int = 0) -> AsyncIterator[bytes]:
    """Yield a body as it comes; `most_bytes` 0 for any length."""
    taken = 0
    while True:
        try:
            async with asyncio.timeout(PIECE_S):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(408, "The body was not sent in time.") from error
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        taken += len(piece)
        if most_bytes and taken > most_bytes:
            raise _too_large(most_bytes)
        if piece:
            yield piece
        if not message.get("more_body", False):
            return


async def whole(receive: Receive, announced: str, most_bytes: int) -> bytes:
    """Return a body; refuse one that is announced or turns out too long.

    A client that is still sending would not read why, so some more of it is thrown away first.
    """
    taken, kept = 0, list[bytes]()
    too_long = announced.isdigit() and int(announced[:20]) > most_bytes
    async for piece in pieces(receive, _THROWN_AWAY * most_bytes):
        taken += len(piece)
        too_long = too_long or taken > most_bytes
        if too_long:
            kept.clear()
        else:
            kept.append(piece)
    if too_long:
        raise _too_large(most_bytes)
    return b"".join(kept)


def _too_large(most_bytes: int) -> HTTPException:
    told = f"The body is larger than {most_bytes:,} bytes (setting gateway.max_body_bytes)."
    return HTTPException(413, told)


def decoded(body: bytes, encodings: str, most_bytes: int) -> bytes:
    """Return a body without its encodings, the last of which is undone first."""
    for name in _names(encodings):
        decode = _DECODERS.get(name)
        if decode is None:
            raise InvalidInput(_UNKNOWN)
        try:
            body = decode(body, most_bytes)
        except (*_WRONG, EOFError) as error:
            msg = f"The body is not {name}."
            raise InvalidInput(msg) from error
        if len(body) > most_bytes:
            raise _too_long(most_bytes)
    return body


def can_decode(encodings: str) -> bool:
    """Tell whether a body can be freed of all its encodings."""
    return all(name in _DECODERS for name in _names(encodings))


class Unpacking:
    """Frees a body of its encodings while it comes, piece by piece."""

    def __init__(self, encodings: str, most_bytes: int = MOST_UNPACKED_BYTES) -> None:
        """Begin a body, or raise `InvalidInput` if it has an encoding that is not known."""
        if not can_decode(encodings):
            raise InvalidInput(_UNKNOWN)
        self._steps = [_UNPACKERS[name]() for name in _names(encodings)]
        self._most_bytes = self._left_bytes = most_bytes

    def feed(self, piece: bytes) -> bytes:
        """Return what the next piece says, as far as that can be told; raise where it says none."""
        if not self._steps:
            return piece
        try:
            for unpack in self._steps:
                piece = unpack(piece)
        except _WRONG as error:
            msg = "The body is not in the encoding that it names."
            raise InvalidInput(msg) from error
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise _too_long(self._most_bytes)
        return piece


def _names(encodings: str) -> list[str]:
    """Return encodings in the order in which they are undone."""
    named = [name.strip().lower() for name in encodings.split(",")]
    return [name for name in reversed(named) if name not in ("", "identity")]


def _too_long(most_bytes: int) -> InvalidInput:
    return InvalidInput(f"The body is larger than {most_bytes:,} bytes once it is decoded.")


def _gunzip(body: bytes, most_bytes: int) -> bytes:
    """Return what one or more members of gzip hold, up to the limit for all of them."""
    found = bytearray()
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
    for start in range(0, len(body), _PIECE_BYTES):
        left = body[start : start + _PIECE_BYTES]
        while left:
            if decoder.eof:
                decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
            found += decoder.decompress(left, most_bytes + 1 - len(found))
            if len(found) > most_bytes:
                return bytes(found)
            left = decoder.unused_data
    if body and not decoder.eof:
        raise EOFError
    return bytes(found)


def _unbrotli(body: bytes, most_bytes: int) -> bytes:
    decoder = brotli.Decompressor()
    found = bytearray(decoder.process(body, output_buffer_limit=most_bytes + 1))
    while len(found) <= most_bytes and not decoder.is_finished():
        more = decoder.process(b"", output_buffer_limit=most_bytes + 1)
        if not more:
            raise EOFError
        found += more
    return bytes(found)


def _unzstd(body: bytes, most_bytes: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=_WIDEST_ZSTD_BYTES)
    with decoder.stream_reader(BytesIO(body), read_across_frames=True) as reader:
        return bytes(reader.read(most_bytes + 1))


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _gunzip,
    "br": _unbrotli,
    "zstd": _unzstd,
}


def _open_gunzip() -> Unpack:
    decoder = zlib.decompressobj(_GZIP_OR_ZLIB)

    def unpack(piece: bytes) -> bytes:
        nonlocal decoder
        found = bytearray()
        while piece:
            if decoder.eof:
                decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
            found += decoder.decompress(piece)
            piece = decoder.unused_data
        return bytes(found)

    return unpack


def _open_unbrotli() -> Unpack:
    decoder = brotli.Decompressor()
    return lambda piece: bytes(decoder.process(piece))


def _open_unzstd() -> Unpack:
    decoder = zstandard.ZstdDecompressor(max_window_size=_WIDEST_ZSTD_BYTES)
    return decoder.decompressobj(read_across_frames=True).decompress


_UNPACKERS: dict[str, Callable[[], Unpack]] = {
    "gzip": _open_gunzip,
    "x-gzip": _open_gunzip,
    "deflate": _open_gunzip,
    "br": _open_unbrotli,
    "zstd": _open_unzstd,
}
