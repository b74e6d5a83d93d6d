"""What curation works with: who reads, who embeds, what is near, what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.llm import Digester
from lore.redaction import UNKEPT
from lore.store.vector_index import Where
from lore.text.secrets import Redactor

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]


class Nearest(Protocol):
    """Finds the items nearest to a vector, as `Sources.nearest` of recall does."""

    def __call__(
        self, query: Scores, k: int, *, where: Where | None = None
    ) -> tuple[Numbers, Scores]:
        """Return the numbers of items and their cosines, nearest first."""


@dataclass(frozen=True, slots=True)
class CurationMeans:
    """The digester, the embedder, the search for near items and the redactor of one memory."""

    digester: Digester
    embedder: Embedder
    nearest: Nearest
    redactor: Redactor = field(default=UNKEPT)

    def embed(self, texts: Sequence[str]) -> Scores | None:
        """Return vectors of texts; None without an embedder."""
        if not self.embedder.dimension or not texts:
            return None
        return self.embedder.embed(texts)
