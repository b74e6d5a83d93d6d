"""Encodings: how bodies are packed, and how that is undone in steps of a bounded size.

A few hundred bytes may hold gigabytes, so no step makes more than a few megabytes of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

import brotli
import zstandard

WRONG = (zlib.error, brotli.error, zstandard.ZstdError)
"""What decoders raise where a body is in another encoding than theirs."""

_STEP_BYTES = 262_144
"""Made at once, of zlib; brotli, which only ends once it has made more, makes up to 2 MB."""

_PIECE_BYTES = 65_536
"""Decoded at once: what is left behind a member is copied, and there may be thousands of them."""

_ZSTD_PIECE_BYTES = 64
"""Decoded at once of zstd, whose decoder knows no limit: 4 bytes are a block of 128 KiB at most,
so these are 2 MiB. Larger pieces are hardly faster."""

_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_WIDEST_ZSTD_BYTES = 128_000_000
"""What a decoder may keep of what went before; the widest that zstd makes without being told."""


class Unpacker(Protocol):
    """Undoes one encoding of one body."""

    @property
    def is_whole(self) -> bool:
        """Tell whether what came so far has an end, and nothing behind it."""

    def steps(self, piece: bytes) -> Iterator[bytes]:
        """Yield what the next piece says, as far as that can be told; raise one of `WRONG`."""


class _Gunzip:
    """Undoes gzip and zlib, of one or more members."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)

    @property
    def is_whole(self) -> bool:
        return self._decoder.eof

    def steps(self, piece: bytes) -> Iterator[bytes]:
        for start in range(0, len(piece), _PIECE_BYTES):
            left = piece[start : start + _PIECE_BYTES]
            is_full = False
            while left or (is_full and not self._decoder.eof):
                if self._decoder.eof:
                    self._decoder = zlib.decompressobj(_GZIP_OR_ZLIB)
                found = self._decoder.decompress(left, _STEP_BYTES)
                left = self._decoder.unused_data or self._decoder.unconsumed_tail
                is_full = len(found) == _STEP_BYTES
                yield found


class _Unbrotli:
    """Undoes brotli."""

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    @property
    def is_whole(self) -> bool:
        return bool(self._decoder.is_finished())

    def steps(self, piece: bytes) -> Iterator[bytes]:
        while found := bytes(self._decoder.process(piece, output_buffer_limit=_STEP_BYTES)):
            yield found
            if self.is_whole:
                return
            piece = b""


class _Unzstd:
    """Undoes zstd, of one or more frames."""

    def __init__(self) -> None:
        self._decoder = zstandard.ZstdDecompressor(max_window_size=_WIDEST_ZSTD_BYTES)
        self._frame = self._decoder.decompressobj()

    @property
    def is_whole(self) -> bool:
        return self._frame.eof

    def steps(self, piece: bytes) -> Iterator[bytes]:
        for start in range(0, len(piece), _ZSTD_PIECE_BYTES):
            left = piece[start : start + _ZSTD_PIECE_BYTES]
            while left:
                if self._frame.eof:
                    self._frame = self._decoder.decompressobj()
                found = self._frame.decompress(left)
                left = self._frame.unused_data
                yield found


UNPACKERS: dict[str, Callable[[], Unpacker]] = {
    "gzip": _Gunzip,
    "x-gzip": _Gunzip,
    "deflate": _Gunzip,
    "br": _Unbrotli,
    "zstd": _Unzstd,
}
"""By the names that headers have for them."""
