"""The absence of an embedder: search goes by keywords alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


class NoEmbedder:
    """An embedder whose vectors have no dimensions."""

    name = "none"
    identity = "none"
    dimension = 0

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:  # noqa: ARG002 - the protocol's parameter
        """Return a matrix of no columns."""
        import numpy as np  # opening an embedder must not cost the import of numpy

        return np.zeros((len(texts), 0), np.float32)

    def close(self) -> None:
        """Do nothing: there is nothing to give back."""
