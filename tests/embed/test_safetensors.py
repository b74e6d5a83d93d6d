import json
import struct
from pathlib import Path

import numpy as np

from lore.embed.safetensors import read_tensors


def test_float_tensors_are_read_by_name_and_others_left(tmp_path: Path) -> None:
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
