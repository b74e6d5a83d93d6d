"""The writer of ONNX files."""

import struct
from pathlib import Path

import numpy as np
import onnxruntime as ort
from hypothesis import given
from hypothesis import strategies as st

from lore.embed.conversion import FLOAT, OnnxModel, write_bytes, write_float, write_int


def test_the_runtime_reads_what_the_writer_wrote(tmp_path: Path) -> None:
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    with (tmp_path / "weights.data").open("wb") as data:
        model = OnnxModel(data, "weights.data")
        x = model.input("x", FLOAT, ["rows", 2])
        model.tensor("padding", np.ones(1, np.float32))
        product = model.node("MatMul", [x, model.tensor("weight", weight)], "product")
        model.node("Add", [product, model.constant("half", [0.5])], "sum")
        model.node("Softmax", ["sum"], "y", axis=1)
        model.output("y", FLOAT, ["rows", 3])
        (tmp_path / "model.onnx").write_bytes(model.to_bytes())
    session = ort.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    given = np.array([[1, 2], [0, -1]], np.float32)
    powers = np.exp(given @ weight + 0.5)
    expected = powers / powers.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(session.run(None, {"x": given})[0], expected, rtol=1e-6)


def test_the_example_of_the_protobuf_documentation_is_written() -> None:
    assert write_int(1, 150) == bytes.fromhex("089601")
    assert write_bytes(2, "testing") == bytes.fromhex("120774657374696e67")


def test_a_field_above_fifteen_takes_two_bytes() -> None:
    assert write_int(20, 1) == bytes.fromhex("a00101")


@given(st.integers(0, 2**63 - 1))
def test_every_number_reads_back(value: int) -> None:
    raw = write_int(1, value)[1:]
    assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(raw)) == value
    assert all(byte & 0x80 for byte in raw[:-1])
    assert not raw[-1] & 0x80


@given(st.floats(width=32, allow_nan=False))
def test_every_float_reads_back(value: float) -> None:
    assert struct.unpack("<f", write_float(2, value)[1:]) == (value,)
