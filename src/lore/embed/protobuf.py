"""The part of the protobuf wire format that an ONNX graph needs, for writing only."""

from __future__ import annotations

import struct

_VARINT = 0
_BYTES = 2
_FIXED32 = 5


def write_int(field: int, value: int) -> bytes:
    """Return an integer field; the values of an ONNX graph are never negative."""
    return _varint(field << 3 | _VARINT) + _varint(value)


def write_float(field: int, value: float) -> bytes:
    """Return a 32-bit float field."""
    return _varint(field << 3 | _FIXED32) + struct.pack("<f", value)


def write_bytes(field: int, value: bytes | str) -> bytes:
    """Return a field of bytes, text (as UTF-8) or an embedded message."""
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | _BYTES) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
