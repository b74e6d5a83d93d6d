"""Conversion of model weights into an ONNX graph."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lore
from lore.embed.conversion import converted_graph, graph_name, quantize, read_tensors
from lore.embed.models import STAMPS, Model
from lore.errors import WeightsRejected

SOURCE = Path(lore.__file__).parents[1]
CONVERT = """
import sys
from pathlib import Path
from lore.embed.models import find_model
from lore.embed.conversion import converted_graph
sys.stdin.readline()
model = find_model("local", "all-MiniLM-L6-v2")
with converted_graph(Path(sys.argv[1]), model, "int8", Path(sys.argv[2])) as graph:
    print(graph.stat().st_size, graph.with_suffix(".data").stat().st_size)
"""


def test_a_graph_is_converted_once(tmp_path: Path, weights: Path, minilm: Model) -> None:
    cache = tmp_path / "cache"
    with converted_graph(weights, minilm, "int8", cache) as graph:
        first = graph.stat()
    names = {path.name for path in cache.iterdir()}
    assert names == {graph.name, graph.with_suffix(".data").name, STAMPS}
    with converted_graph(weights, minilm, "int8", cache) as again:
        assert again.stat().st_mtime_ns == first.st_mtime_ns
    graph.with_suffix(".data").unlink()
    with converted_graph(weights, minilm, "int8", cache) as whole:
        assert whole.with_suffix(".data").is_file()


def test_concurrent_conversions_do_not_interfere(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CONVERT, str(weights), str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
        )
        for _ in range(2)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert answers[0] == answers[1]
    assert not list(tmp_path.glob(".part-*"))
    assert (tmp_path / graph_name(minilm, "int8")).is_file()


def test_graph_is_temporary_if_cache_is_read_only(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    (tmp_path / "file").write_text("")
    with converted_graph(weights, minilm, "int8", tmp_path / "file" / "cache") as graph:
        assert graph.is_file()
    assert not graph.parent.exists()


def test_leftovers_of_a_killed_process_are_removed(
    tmp_path: Path, weights: Path, minilm: Model
) -> None:
    old, recent = tmp_path / ".part-old", tmp_path / ".part-recent"
    old.write_text("")
    recent.write_text("")
    os.utime(old, (0, 0))
    with converted_graph(weights, minilm, "int8", tmp_path):
        pass
    assert not old.exists()
    assert recent.exists()


def test_rejected_weights_are_not_converted(tmp_path: Path, weights: Path, minilm: Model) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_text("tampered")
    (folder / "tokenizer.json").write_text("tampered")
    with (
        pytest.raises(WeightsRejected),
        converted_graph(folder, minilm, "float32", tmp_path / "cache"),
    ):
        pass
    assert not (tmp_path / "cache").exists()


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-4, 1.0, 50.0]))
def test_quantization_error_is_at_most_half_a_step(seed: int, size: float) -> None:
    weight = (np.random.default_rng(seed).standard_normal((8, 5)) * size).astype(np.float32)
    levels, scales = quantize(weight)
    assert levels.dtype == np.int8
    assert scales.shape == (5,)
    assert np.all(np.abs(levels * scales - weight) <= scales * 0.5001)


def test_a_column_of_zeros_stays_zero() -> None:
    levels, scales = quantize(np.zeros((4, 2), np.float32))
    assert not levels.any()
    assert np.isfinite(scales).all()


def test_float_tensors_are_read_by_name(tmp_path: Path) -> None:
    numbers = np.arange(6, dtype=np.float32)
    header = json.dumps({
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
        "places": {"dtype": "I64", "shape": [1], "data_offsets": [24, 32]},
    }).encode()
    header += b" " * (-len(header) % 8)
    path = tmp_path / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + numbers.tobytes() + b"\0" * 8)
    tensors = read_tensors(path)
    assert sorted(tensors) == ["a", "b"]
    np.testing.assert_array_equal(tensors["a"], [[0, 1], [2, 3]])
    np.testing.assert_array_equal(tensors["b"], [4, 5])
