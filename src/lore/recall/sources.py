"""Sources: what recall draws from — the database, the embedder and the vector index."""

from __future__ import annotations

import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.errors import EmbedderError
from lore.recall.texts import Texts
from lore.settings import Settings
from lore.store import items, keywords, retrievals, upkeep, vectors
from lore.store.db import Connection, Database
from lore.store.retrievals import Retrieval
from lore.store.vector_index import VectorIndex, Where

OWN_CHARS, BESIDE_CHARS = 40_000, 300
"""So much of a candidate, and of the messages beside it, is compared with the question."""

_WITHOUT_S = 30.0
"""A model that could not be loaded is not tried again before that: each attempt takes seconds."""

_REMEMBERED_QUERIES = 128
_REMEMBERED_USES = 20_000

_RESCORED = 48
"""The nearest are ranked by their float vectors, the rest by the index's own."""

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]


class Sources:
    """The database, the embedder and the vector index of one memory, opened when needed."""

    def __init__(
        self, database: Database, embedder: Embedder, settings: Settings, *, owns_embedder: bool
    ) -> None:
        self.database = database
        self.embedder = embedder
        self.settings = settings
        self._owns_embedder = owns_embedder
        self._index: VectorIndex | None = None
        self._embedder_n: int | None = None
        self._epoch = ""
        self._uses: dict[str, tuple[int, int]] = {}
        self._queries: OrderedDict[str, Scores] = OrderedDict()
        self._lock = threading.RLock()
        self._missing = ""
        self._again_s = 0.0
        self.texts = Texts(OWN_CHARS)
        self.beginnings = Texts(BESIDE_CHARS)

    @property
    def index_folder(self) -> Path:
        """Return the folder of the vector index, beside the database."""
        path = self.database.path
        return path.with_name(f"{path.stem}.vectors")

    def vector_index(self) -> VectorIndex:
        """Return the vector index, opened at the first call and again after a restore."""
        with self.database.read() as db:
            epoch = upkeep.epoch(db)
        with self._lock:
            if self._index is not None and self._epoch != epoch:
                self._index.close()
                self._index = None
            if self._index is None:
                self._epoch = epoch
                self._drop_link()
                self._index = VectorIndex.open(
                    self.index_folder,
                    identity=self.embedder.identity,
                    dimension=self.embedder.dimension,
                    epoch=epoch,
                    writable=not self.database.read_only,
                )
            return self._index

    def embed_query(self, text: str) -> Scores:
        """Return the vector of a question, of zeros if there is none for now.

        The last few are remembered.
        """
        with self._lock:
            known = self._queries.get(text)
            if known is not None:
                self._queries.move_to_end(text)
                return known
        if self.missing:
            return np.zeros(self.embedder.dimension, np.float32)
        try:
            vector: Scores = self.embedder.embed([text], query=True)[0]
        except EmbedderError as error:
            self.do_without(error)
            return np.zeros(self.embedder.dimension, np.float32)
        with self._lock:
            self._queries[text] = vector
            while len(self._queries) > _REMEMBERED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    @property
    def missing(self) -> str:
        """Say why there is no meaning to search by at the moment; nothing if there is."""
        return self._missing if time.monotonic() < self._again_s else ""

    def do_without(self, error: EmbedderError) -> None:
        """Search by keywords alone for a while, and say so."""
        self._missing = f"{str(error).rstrip('.')}. Searching by keywords only."
        self._again_s = time.monotonic() + _WITHOUT_S

    def nearest(
        self, query: Scores, k: int, *, where: Where | None = None
    ) -> tuple[Numbers, Scores]:
        """Return the items nearest to a question's vector; none without an embedder."""
        dimension = self.embedder.dimension
        embedder_n = self._known_embedder()
        if not query.any() or embedder_n is None:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        index = self.vector_index()
        with self.database.read() as db:
            vectors.feed(db, index, embedder_n, dimension)
            ns, scores = index.search(query, k, where=where)
            return _rescored(query, ns, scores, vectors.load(db, ns[:_RESCORED], dimension))

    def cosines(self, query: Scores, ns: Numbers) -> NDArray[np.float64]:
        """Return how near items are to a question's vector, to the precision of the index."""
        found = np.zeros(len(ns))
        if not len(ns) or not query.any() or self._known_embedder() is None:
            return found
        return self.vector_index().cosines(query, ns)

    def count_uses(self, db: Connection, term: str, total: int) -> int:
        """Return about how many messages have a word; counted anew once the memory has grown."""
        uses, then = self._uses.get(term, (0, 0))
        if not 0.9 * total <= then <= 1.1 * total:
            if len(self._uses) >= _REMEMBERED_USES:
                self._uses.clear()
            uses = keywords.count_rows(db, "message_words", term)
            self._uses[term] = (uses, total)
        return uses

    def load_vectors(self, ns: Numbers) -> Scores:
        """Return the vectors of items, zeros for one that has none."""
        with self.database.read() as db:
            return vectors.load(db, ns, self.embedder.dimension)

    def let_go(self) -> None:
        """Have no words in mind that may have been forgotten, here or by another process."""
        self.texts.clear()
        self.beginnings.clear()
        with self._lock:
            self._queries.clear()
            self._uses.clear()

    def forget_vectors(self, ns: Sequence[int]) -> None:
        """Erase vectors of items that are gone from the files of the index.

        Rows that another process has read but not yet added are refused from then on. An index
        of an embedder that is not in use is derived state like any other: it goes as a whole.
        """
        self._drop_link()
        if not self.index_folder.exists() or not len(ns):
            return
        embedder_n = self._known_embedder()
        if embedder_n is None or not self.embedder.dimension:
            shutil.rmtree(self.index_folder)
            return
        index = self.vector_index()
        with self.database.read() as db:
            vectors.feed(db, index, embedder_n, self.embedder.dimension)
            index.remove(ns, through_seq=vectors.newest_seq(db))

    def drop_hidden(self, ids: Sequence[str] = ()) -> None:
        """Take what is no longer shown, of some fragments or of all, out of the index in use."""
        if self.embedder.dimension and self.index_folder.exists():
            index = self.vector_index()
            with self.database.read() as db:
                ns = [items.resolve(db, id_).n for id_ in ids] or index.numbers().tolist()
                gone = vectors.without(db, ns)
            if gone:
                index.remove(gone)

    def log_retrieval(self, verb: str, query: str, hits: Sequence[str], took_ms: float) -> None:
        """Write down what was asked and given, without waiting for it."""
        if not self.database.read_only:
            entry = Retrieval(self.database.now(), verb, query, tuple(hits), took_ms)
            self.database.submit(lambda db: retrievals.log(db, entry), patient=True)

    def close(self) -> None:
        """Close the index, and the embedder unless the caller brought it."""
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None
        if self._owns_embedder:
            self.embedder.close()

    def _drop_link(self) -> None:
        """Remove a symbolic link in the place of the index; where it leads, nothing changes.

        What Lore keeps stays in its home. The index is derived, so it is simply made anew.
        """
        if self.index_folder.is_symlink() and not self.database.read_only:
            with suppress(OSError):
                self.index_folder.unlink()

    def _known_embedder(self) -> int | None:
        if self._embedder_n is None:
            with self.database.read() as db:
                self._embedder_n = vectors.find_embedder(db, self.embedder.identity)
        return self._embedder_n


def _rescored(query: Scores, ns: Numbers, scores: Scores, exact: Scores) -> tuple[Numbers, Scores]:
    """Rank the first few by their float vectors; one that is gone from the store drops out."""
    count = len(exact)
    there = exact.any(axis=1)
    near = exact @ query
    order = np.argsort(-near[there], kind="stable")
    best = ns[:count][there][order]
    return np.concatenate([best, ns[count:]]), np.concatenate([near[there][order], scores[count:]])
