"""Reading of the safetensors format: a JSON header, then the tensors as raw bytes."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def read_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Return the float32 tensors of a file by name, mapped and not yet read."""
    content = np.memmap(path, dtype=np.uint8, mode="r")
    (header_bytes,) = struct.unpack("<Q", content[:8].tobytes())
    start = 8 + header_bytes
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, entry in json.loads(content[8:start].tobytes()).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        first, end = entry["data_offsets"]
        flat = content[start + first : start + end].view(np.float32)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
