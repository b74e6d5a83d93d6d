"""Write ONNX models whose tensors are in a second file beside the graph.

This replaces the `onnx` package, which takes seconds for a graph of this size instead of a tenth of
one. Tensors are external so that the runtime maps them into memory, shared between processes and
without a second copy.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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


MICROSOFT = "com.microsoft"
FLOAT, INT8, INT32, INT64 = 1, 3, 6, 7

_IR_VERSION = 9
_OPSETS = (("", 18), (MICROSOFT, 1))
_ELEMENT = {"float32": FLOAT, "int8": INT8, "int32": INT32, "int64": INT64}
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_OUTSIDE = 1
# Mapped files are read from the start of a page.
_PAGE_BYTES = 4096


class OnnxModel:
    """An ONNX model under construction: nodes and inputs in memory, tensors in `data`."""

    def __init__(self, data: BinaryIO, data_name: str) -> None:
        self._data = data
        self._data_name = data_name
        self._nodes: list[bytes] = []
        self._tensors: list[bytes] = []
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []

    def input(self, name: str, element: int, shape: Sequence[str | int]) -> str:
        """Declare an input and return its name."""
        self._inputs.append(write_bytes(11, _value(name, element, shape)))
        return name

    def output(self, name: str, element: int, shape: Sequence[str | int]) -> None:
        """Declare an output."""
        self._outputs.append(write_bytes(12, _value(name, element, shape)))

    def constant(self, name: str, values: Sequence[int] | Sequence[float]) -> str:
        """Add a small tensor of whole numbers or floats, kept in the graph itself."""
        array = np.array(values)
        array = array.astype(np.int64 if array.dtype.kind == "i" else np.float32)
        self._tensors.append(write_bytes(5, _tensor(name, array) + write_bytes(9, array.tobytes())))
        return name

    def tensor(self, name: str, array: NDArray[np.float32] | NDArray[np.int8]) -> str:
        """Add a tensor to the data file and return its name."""
        self._data.write(b"\0" * (-self._data.tell() % _PAGE_BYTES))
        place = {
            "location": self._data_name,
            "offset": str(self._data.tell()),
            "length": str(array.nbytes),
        }
        self._data.write(np.ascontiguousarray(array).data)
        entries = [
            write_bytes(13, write_bytes(1, key) + write_bytes(2, value))
            for key, value in place.items()
        ]
        described = _tensor(name, array) + b"".join(entries) + write_int(14, _OUTSIDE)
        self._tensors.append(write_bytes(5, described))
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        output: str,
        *,
        more: Sequence[str] = (),
        domain: str = "",
        **attributes: float,
    ) -> str:
        """Add an operator and return the name of its first output; `more` names the rest."""
        parts = [write_bytes(1, name) for name in inputs]
        parts += [write_bytes(2, name) for name in (output, *more)]
        parts += [write_bytes(3, output), write_bytes(4, operator)]
        parts += [write_bytes(5, _attribute(key, value)) for key, value in attributes.items()]
        parts.append(write_bytes(7, domain))
        self._nodes.append(write_bytes(1, b"".join(parts)))
        return output

    def to_bytes(self) -> bytes:
        """Return the finished model."""
        parts = [*self._nodes, write_bytes(2, "graph"), *self._tensors]
        graph = b"".join([*parts, *self._inputs, *self._outputs])
        opsets = [
            write_bytes(8, write_bytes(1, domain) + write_int(2, version))
            for domain, version in _OPSETS
        ]
        return b"".join([write_int(1, _IR_VERSION), write_bytes(7, graph), *opsets])


def _tensor(name: str, array: NDArray[np.generic]) -> bytes:
    sizes = b"".join(write_int(1, size) for size in array.shape)
    return sizes + write_int(2, _ELEMENT[array.dtype.name]) + write_bytes(8, name)


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return write_bytes(1, name) + write_int(3, value) + write_int(20, _ATTRIBUTE_INT)
    return write_bytes(1, name) + write_float(2, value) + write_int(20, _ATTRIBUTE_FLOAT)


def _value(name: str, element: int, shape: Sequence[str | int]) -> bytes:
    sizes = [
        write_bytes(1, write_int(1, size) if isinstance(size, int) else write_bytes(2, size))
        for size in shape
    ]
    tensor = write_int(1, element) + write_bytes(2, b"".join(sizes))
    return write_bytes(1, name) + write_bytes(2, write_bytes(1, tensor))
