"""Rows and vectors for the tests of the vector index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lore.index.vector_index import VectorIndex, VectorRow

if TYPE_CHECKING:
    from pathlib import Path

DIMENSION = 16


def open_index(folder: Path, *, dimension: int = DIMENSION, **rest) -> VectorIndex:
    given = {"identity": "test", "epoch": "one"} | rest
    return VectorIndex.open(folder, dimension=dimension, **given)


def row(seq: int, n: int | None = None, *, project: int = 0, kind: int = 0, at: int = 0):
    return VectorRow(seq, seq if n is None else n, project, kind, at)


def vector_of(seq: int, dimension: int = DIMENSION) -> np.ndarray:
    vector = np.random.default_rng(seq).standard_normal(dimension).astype(np.float32)
    return vector / np.linalg.norm(vector)


def fill(index: VectorIndex, seqs, dimension: int = DIMENSION) -> None:
    seqs = list(seqs)
    index.append([row(seq) for seq in seqs], np.stack([vector_of(s, dimension) for s in seqs]))


def clustered(rows: int, dimension: int) -> np.ndarray:
    """Vectors as a sentence model makes them: around topics, and off centre."""
    draw = np.random.default_rng(7)
    topics = draw.standard_normal((200, dimension))
    vectors = topics[draw.integers(0, 200, rows)] + draw.standard_normal((rows, dimension)) + 0.7
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32)
