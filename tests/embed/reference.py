"""MiniLM in plain numpy, from the model's definition: what the graph must agree with."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Matrix = NDArray[np.float32]
LAYERS, HEADS, WIDTH, LIMIT = 6, 12, 384, 256


class Reference:
    """The model with its weights in memory; one text at a time, so nothing is padded."""

    def __init__(self, folder: Path) -> None:
        raw = memoryview((folder / "model.safetensors").read_bytes())
        start = 8 + struct.unpack("<Q", raw[:8])[0]
        self._weights: dict[str, Matrix] = {}
        for name, entry in json.loads(bytes(raw[8:start])).items():
            if name != "__metadata__" and entry["dtype"] == "F32":
                flat = np.frombuffer(raw[start:][slice(*entry["data_offsets"])], np.float32)
                self._weights[name] = flat.reshape(entry["shape"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LIMIT)

    def embed(self, texts: list[str]) -> Matrix:
        return np.stack([self._forward(self._tokenizer.encode(text).ids) for text in texts])

    def _forward(self, ids: list[int]) -> Matrix:
        words = self._weights["embeddings.word_embeddings.weight"][ids]
        places = self._weights["embeddings.position_embeddings.weight"][: len(ids)]
        kinds = self._weights["embeddings.token_type_embeddings.weight"][0]
        x = self._normal(words + places + kinds, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            p = f"encoder.layer.{layer}."
            mixed = self._dense(self._attention(x, p), p + "attention.output.dense")
            x = self._normal(mixed + x, p + "attention.output.LayerNorm")
            hidden = _gelu(self._dense(x, p + "intermediate.dense"))
            hidden = self._dense(hidden, p + "output.dense")
            x = self._normal(hidden + x, p + "output.LayerNorm")
        mean: Matrix = x.mean(axis=0)
        mean /= np.linalg.norm(mean)
        return mean

    def _attention(self, x: Matrix, p: str) -> Matrix:
        query, key, value = (
            self
            ._dense(x, f"{p}attention.self.{part}")
            .reshape(len(x), HEADS, WIDTH // HEADS)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32((WIDTH // HEADS) ** 0.5)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Matrix = (scores @ value).transpose(1, 0, 2).reshape(len(x), WIDTH)
        return mixed

    def _dense(self, x: Matrix, name: str) -> Matrix:
        return x @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]

    def _normal(self, x: Matrix, name: str) -> Matrix:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        return x * self._weights[name + ".weight"] + self._weights[name + ".bias"]


def _gelu(x: Matrix) -> Matrix:
    # Abramowitz and Stegun 7.1.26: the error function to 1.5e-7.
    size = np.abs(x) * np.float32(0.5**0.5)
    t: Matrix = np.float32(1) / (1 + np.float32(0.3275911) * size)
    tail = np.zeros_like(x)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail += np.float32(factor)
        tail *= t
    tail *= np.exp(-size * size)
    return x * np.where(x >= 0, 2 - tail, tail) * np.float32(0.5)


if __name__ == "__main__":
    np.save(sys.argv[2], Reference(Path(sys.argv[1])).embed(json.load(sys.stdin)))
