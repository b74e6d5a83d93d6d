from pathlib import Path

import numpy as np
import onnxruntime as ort

from lore.embed.onnx import FLOAT, OnnxModel


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
