"""What every embedder offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Something that turns texts into vectors; safe to use from several threads."""

    @property
    def name(self) -> str:
        """Name of the model."""

    @property
    def identity(self) -> str:
        """Model, precision and input limit: vectors of two identities are never mixed."""

    @property
    def dimension(self) -> int:
        """Length of a vector; 0 if there are no vectors at all."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Return one row of length 1 for each text, in their order."""

    def close(self) -> None:
        """Give back what the embedder holds."""


@dataclass(frozen=True, slots=True)
class OpenedEmbedder:
    """An embedder that can serve, and one sentence if it is less than was asked for."""

    embedder: Embedder
    notice: str
