"""What recall asks of a vector index, whichever engine has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lore.index.quantization import Float32s, Int64s
    from lore.index.vector_index import VectorFilter, VectorRow

    Nearest: TypeAlias = tuple[Int64s, Float32s]
    """The numbers of items and their cosines, best first."""

NEWEST = 2**62
"""The change number of an index that lacks nothing, or can be given nothing now."""


class VectorServer(NamedTuple):
    """A Qdrant server, and the hash by which it knows the owner of a memory."""

    url: str
    api_key: str
    owner: str
    timeout_s: int = 3
    """A request that takes longer has failed: recall goes on without the server."""
    is_of_many: bool = False
    """Whether many memories of this process have vectors there: it is enough that one waits."""


class NearestItems(Protocol):
    """Finds the items whose vectors are most similar to a query."""

    @property
    def notice(self) -> str:
        """What is degraded at the moment, or an empty text."""

    @property
    def catch_up_s(self) -> float | None:
        """Seconds that a search may spend on adding vectors; None: as many as it takes."""

    @property
    def is_precise(self) -> bool:
        """Whether the best of a search were compared by their vectors, not by codes of them."""

    @property
    def last_seq(self) -> int:
        """The highest change number of the vectors that it has."""

    def __len__(self) -> int: ...

    def numbers(self) -> Int64s:
        """Return the numbers of the items that have a vector here."""

    def append(
        self,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.floating],
        *,
        after_seq: int | None = None,
    ) -> None:
        """Add vectors, replacing those of the same items."""

    def remove(self, ns: Iterable[int], *, through_seq: int = 0) -> None:
        """Erase the vectors of items."""

    def clear(self) -> None:
        """Start again with no rows."""

    def search(self, query: Float32s, k: int, *, where: VectorFilter | None = None) -> Nearest:
        """Return the numbers and cosines of the k nearest items, best first."""

    def cosines(self, query: Float32s, ns: Int64s) -> NDArray[np.float64]:
        """Return the cosine of each item's best passage; 0 for an item without a vector."""

    def release_pages(self) -> None:
        """Free memory unless something was read since the last call."""

    def check(self) -> list[str]:
        """Return the damage found."""

    def close(self) -> None:
        """Close the index."""


class DatabaseItems:
    """The methods of an index whose rows the database itself adds and deletes with the vectors."""

    notice = ""
    catch_up_s = None
    is_precise = True
    last_seq = NEWEST

    def append(
        self,
        rows: Sequence[VectorRow],
        vectors: NDArray[np.floating],
        *,
        after_seq: int | None = None,
    ) -> None:
        """Do nothing: a row is added with its vector."""

    def remove(self, ns: Iterable[int], *, through_seq: int = 0) -> None:
        """Do nothing: a row is deleted with its vector."""

    def clear(self) -> None:
        """Do nothing: a row is added and deleted with its vector."""

    def release_pages(self) -> None:
        """Do nothing: the server caches the pages."""

    def check(self) -> list[str]:
        """Return nothing: the server checks its own files."""
        return []

    def close(self) -> None:
        """Do nothing: connections belong to the pool."""
