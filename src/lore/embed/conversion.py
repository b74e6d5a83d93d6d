"""Convert MiniLM's safetensors weights to an ONNX graph with fused operators, once."""

from __future__ import annotations

import errno
import json
import mmap
import struct
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from lore import clock
from lore.embed.models import PART, WEIGHTS, Model, verify_weights, whole_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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


_STEPS = 127


def quantize(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize a matrix of (in, out) to int8; return the levels and the scale of each column."""
    scales = np.abs(weight).max(axis=0) / np.float32(_STEPS)
    scales[scales == 0] = 1
    return np.rint(weight / scales).astype(np.int8), scales


Precision = Literal["float32", "int8"]
Tensors = Mapping[str, NDArray[np.float32]]

# Raised whenever the graph changes, so that graphs converted before are not used any more.
GRAPH_VERSION = 1

# From the model's config.json; the tensors do not contain it.
HEADS = 12

# The tensor with a row for each word of the vocabulary: half of the model.
WORDS = "words"
EPSILON = 1e-12

_TINY = 1e-9


def write_graph(tensors: Tensors, data: BinaryIO, data_name: str, precision: Precision) -> bytes:
    """Write the tensors to `data` and return the graph that reads them from `data_name`.

    Inputs are `ids` and `mask`, both int32 of (batch, length); the output is `vectors`, float32 of
    (batch, dimension), each row the normalized mean over its unmasked tokens.
    """
    model = OnnxModel(data, data_name)
    # The embeddings come first: `map_words` relies on it.
    ids = model.input("ids", INT32, ["batch", "length"])
    mask = model.input("mask", INT32, ["batch", "length"])
    layer = _Layer(model, tensors, mask, precision)
    x = _embeddings(model, tensors, ids)
    count = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder."))
    for index in range(count):
        x = layer.write(f"encoder.layer.{index}.", x)
    _pool(model, x, mask)
    dimension = tensors["embeddings.word_embeddings.weight"].shape[1]
    model.output("vectors", FLOAT, ["batch", dimension])
    return model.to_bytes()


def _embeddings(model: OnnxModel, tensors: Tensors, ids: str) -> str:
    # Every token is of type 0, so the type's row is added to the positions once, here.
    place = tensors["embeddings.position_embeddings.weight"]
    kind = tensors["embeddings.token_type_embeddings.weight"][0]
    inputs = [
        ids,
        "",
        model.tensor(WORDS, tensors["embeddings.word_embeddings.weight"]),
        model.tensor("positions", place + kind),
        "",
        model.tensor("embeddings.gain", tensors["embeddings.LayerNorm.weight"]),
        model.tensor("embeddings.shift", tensors["embeddings.LayerNorm.bias"]),
    ]
    return model.node(
        "EmbedLayerNormalization",
        inputs,
        "embeddings",
        more=["embeddings.lengths"],
        domain=MICROSOFT,
        epsilon=EPSILON,
    )


def _pool(model: OnnxModel, x: str, mask: str) -> None:
    first, last = model.constant("first", [1]), model.constant("last", [2])
    tiny = model.constant("tiny", [_TINY])
    model.node("Cast", [mask], "weights", to=FLOAT)
    model.node("Unsqueeze", ["weights", first], "row")
    model.node("MatMul", ["row", x], "sum.row")
    model.node("Squeeze", ["sum.row", first], "sum")
    model.node("ReduceSum", ["row", last], "count", keepdims=0)
    model.node("Div", ["sum", "count"], "mean")
    model.node("ReduceL2", ["mean", first], "length", keepdims=1)
    model.node("Max", ["length", tiny], "length.positive")
    model.node("Div", ["mean", "length.positive"], "vectors")


class _Layer:
    """Writer of the layers of one graph, which differ only in their tensors."""

    def __init__(self, model: OnnxModel, tensors: Tensors, mask: str, precision: Precision) -> None:
        self._model = model
        self._tensors = tensors
        self._mask = mask
        self._precision = precision

    def write(self, prefix: str, x: str) -> str:
        """Add one layer after `x` and return the name of its output."""
        mixed = self._attention(prefix + "attention.self.", x)
        hidden = self._dense(prefix + "attention.output.dense", mixed)
        x = self._add_and_normalise(prefix + "attention.output.", hidden, x)
        hidden = self._dense(prefix + "intermediate.dense", x)
        bias = self._keep(prefix + "intermediate.dense.bias")
        hidden = self._model.node("BiasGelu", [hidden, bias], prefix + "gelu", domain=MICROSOFT)
        hidden = self._dense(prefix + "output.dense", hidden)
        return self._add_and_normalise(prefix + "output.", hidden, x)

    def _attention(self, prefix: str, x: str) -> str:
        parts = [prefix + part for part in ("query", "key", "value")]
        joined = np.concatenate([self._tensors[f"{part}.weight"] for part in parts])
        biases = np.concatenate([self._tensors[f"{part}.bias"] for part in parts])
        weight, scale = self._weight(prefix + "weight", joined)
        bias = self._model.tensor(prefix + "bias", biases)
        output = prefix + "mix"
        if not scale:
            inputs = [x, weight, bias, self._mask]
            return self._model.node("Attention", inputs, output, domain=MICROSOFT, num_heads=HEADS)
        levels, step, zero = (f"{prefix}input.{part}" for part in ("levels", "step", "zero"))
        self._model.node("DynamicQuantizeLinear", [x], levels, more=[step, zero])
        inputs = [levels, weight, bias, step, scale, self._mask, zero]
        return self._model.node("QAttention", inputs, output, domain=MICROSOFT, num_heads=HEADS)

    def _dense(self, prefix: str, x: str) -> str:
        weight, scale = self._weight(prefix + ".weight", self._tensors[prefix + ".weight"])
        if not scale:
            return self._model.node("MatMul", [x, weight], prefix)
        inputs = [x, weight, scale]
        return self._model.node("DynamicQuantizeMatMul", inputs, prefix, domain=MICROSOFT)

    def _weight(self, name: str, weight: NDArray[np.float32]) -> tuple[str, str]:
        """Add a matrix, stored as (in, out), and return its name and that of its scales."""
        if self._precision == "float32":
            return self._model.tensor(name, weight.T), ""
        levels, scales = quantize(weight.T)
        return self._model.tensor(name, levels), self._model.tensor(name + ".scale", scales)

    def _add_and_normalise(self, prefix: str, x: str, skipped: str) -> str:
        inputs = [
            x,
            skipped,
            self._keep(prefix + "LayerNorm.weight"),
            self._keep(prefix + "LayerNorm.bias"),
            self._keep(prefix + "dense.bias"),
        ]
        return self._model.node(
            "SkipLayerNormalization", inputs, prefix + "normal", domain=MICROSOFT, epsilon=EPSILON
        )

    def _keep(self, name: str) -> str:
        return self._model.tensor(name, self._tensors[name])


def read_tensors(path: Path, dtype: Literal["F32", "I8"] = "F32") -> dict[str, NDArray[Any]]:
    """Return the tensors of one type in a safetensors file by name, memory-mapped."""
    content = np.memmap(path, dtype=np.uint8, mode="r")
    (header_bytes,) = struct.unpack("<Q", content[:8].tobytes())
    start = 8 + header_bytes
    tensors: dict[str, NDArray[Any]] = {}
    for name, entry in json.loads(content[8:start].tobytes()).items():
        if name == "__metadata__" or entry["dtype"] != dtype:
            continue
        first, end = entry["data_offsets"]
        flat = content[start + first : start + end].view(_DTYPES[dtype])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


_DTYPES = {"F32": np.float32, "I8": np.int8}


def add_delta(tensors: Tensors, path: Path) -> dict[str, NDArray[np.float32]]:
    """Return tensors with what training changed: int8 levels, and a scale for each row."""
    changed = dict(tensors)
    scales = read_tensors(path)
    for name, levels in read_tensors(path, "I8").items():
        scale = scales[f"{name}.scale"].reshape(-1, *[1] * (levels.ndim - 1))
        changed[name] = tensors[name] + levels.astype(np.float32) * scale
    return changed


# A conversion takes a second; what is older was left by a process that was killed.
_ABANDONED = timedelta(hours=1)


@contextmanager
def converted_graph(
    folder: Path, model: Model, precision: Precision, cache: Path
) -> Iterator[Path]:
    """Yield the path of the verified and converted graph, valid while it is being loaded.

    The graph is cached in `cache`. If that is not writable, it is converted in a temporary folder.
    """
    verify_weights(folder, model, cache)
    graph = cache / graph_name(model, precision)
    if graph.is_file() and _data(graph).is_file():
        yield graph
        return
    if model.is_former:
        raise FileNotFoundError(errno.ENOENT, "the graph of a former version is gone", str(graph))
    try:
        _remove_abandoned(cache)
        _convert(folder / WEIGHTS, model.delta_path, graph, precision)
    except OSError:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as private:
            graph = Path(private) / graph.name
            _convert(folder / WEIGHTS, model.delta_path, graph, precision)
            yield graph
    else:
        yield graph


def graph_name(model: Model, precision: Precision) -> str:
    """Return the file name of a graph; it depends on the weights, precision and writer version."""
    weights = model.delta or next(file for file in model.files if file.name == WEIGHTS)
    return f"{precision}-{weights.sha256[:12]}-{GRAPH_VERSION}.onnx"


def map_words(folder: Path, graph: Path) -> tuple[mmap.mmap, NDArray[np.float32]]:
    """Map the table of the words from the beginning of a graph's data; return mapping and table."""
    shape = read_tensors(folder / WEIGHTS)["embeddings.word_embeddings.weight"].shape
    with _data(graph).open("rb") as opened:
        length = shape[0] * shape[1] * 4
        mapping = mmap.mmap(opened.fileno(), length, access=mmap.ACCESS_READ)
    return mapping, np.frombuffer(mapping, np.float32).reshape(shape)


def find_former_version(cache: Path, model: Model, precision: str, version: str) -> Model | None:
    """Return a former version of a model by the start of its SHA-256, if its graph is cached."""
    for graph in cache.glob(f"{precision}-{version}*-{GRAPH_VERSION}.onnx"):
        if model.delta and _data(graph).is_file():
            delta = replace(model.delta, sha256=graph.name.split("-")[1])
            return replace(model, delta=delta, is_former=True)
    return None


def _data(graph: Path) -> Path:
    return graph.with_suffix(".data")


def _convert(weights: Path, delta: Path | None, graph: Path, precision: Precision) -> None:
    # Two processes that convert at once write the same bytes, so the later rename does no
    # harm; the graph appears last and only beside its whole data.
    data = _data(graph)
    tensors = read_tensors(weights)
    if delta:
        tensors = add_delta(tensors, delta)
    with whole_file(data) as opened:
        content = write_graph(tensors, opened, data.name, precision)
    with whole_file(graph) as opened:
        opened.write(content)


def _remove_abandoned(cache: Path) -> None:
    for part in cache.glob(f"{PART}*"):
        # A part that is gone was finished by its process in between.
        with suppress(FileNotFoundError):
            changed = datetime.fromtimestamp(part.stat().st_mtime, UTC)
            if clock.now() - changed > _ABANDONED:
                part.unlink()
