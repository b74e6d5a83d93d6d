from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from lore.embed.local import LocalEmbedder
from lore.embed.models import Model, find_model, find_weights
from lore.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

REFERENCE = Path(__file__).with_name("reference.py")


@pytest.fixture(scope="session")
def minilm() -> Model:
    model = find_model("local", "all-MiniLM-L6-v2")
    assert model is not None
    return model


@pytest.fixture(scope="session")
def weights(minilm: Model) -> Path:
    """The folder of the installed weights."""
    folder = find_weights(Settings(home=Path("/nonexistent")), minilm)
    if folder is None:
        pytest.skip(f"the weights are not installed (package {minilm.package})")
    return folder


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that keeps the converted graphs for the whole run."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def embedder(minilm: Model, weights: Path, home: Path) -> Iterator[LocalEmbedder]:
    opened = LocalEmbedder(minilm, weights, Settings(home=home))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def reference(
    weights: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[list[str]], NDArray[np.float32]]:
    """The reference, in a process of its own: numpy's threads crawl on a busy machine."""

    def embed(texts: list[str]) -> NDArray[np.float32]:
        target = tmp_path_factory.mktemp("reference") / "vectors.npy"
        subprocess.run(
            [sys.executable, REFERENCE, str(weights), str(target)],
            input=json.dumps(texts).encode(),
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
            check=True,
        )
        vectors: NDArray[np.float32] = np.load(target)
        return vectors

    return embed
