"""What recall reads from: the database, the embedder, the vector index, and caches over them."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lore.embed import Embedder
from lore.errors import EmbedderError, IndexUnavailable
from lore.index.nearest_items import NearestItems
from lore.index.vector_index import VectorFilter
from lore.settings import Settings
from lore.store import candidate_rows, items, keywords, maintenance, vectors
from lore.store.candidate_rows import Retrieval
from lore.store.database import Connection, Database
from lore.store.overview import is_known_empty
from lore.store.task_rows import EconomicsKey

CountRead = Callable[[Connection], EconomicsKey | None]
"""Counts the tokens of a retrieval, and returns whose they are; None if nobody's."""

_CACHE_CHARS = 8_000_000
"""Cache size in characters; the least recently added texts are evicted."""

_BLANKS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_DENSE = 0.8
"""Below this share of ASCII a text is in another script, and its letters are kept."""

_NOT_ALNUM = re.compile(r"[^\w]+|_")


def plain(text: str) -> str:
    """Return a text in lower case with blanks for everything but letters and digits."""
    lowered = text.lower()
    if lowered.isascii():
        return f" {lowered.encode().translate(_BLANKS).decode()} "
    narrow = lowered.encode("ascii", "replace")
    if len(narrow) < _DENSE * len(lowered.encode()):
        return f" {_NOT_ALNUM.sub(' ', lowered)} "
    return f" {narrow.translate(_BLANKS).decode()} "


class Texts:
    """An LRU cache of the plain beginnings of items; only immutable items are cached."""

    def __init__(self, most_chars: int, *, cache_chars: int = _CACHE_CHARS) -> None:
        self._most_chars = most_chars
        self._cache_chars = cache_chars
        self._cache: OrderedDict[int, str] = OrderedDict()
        self._chars = 0
        self._epoch = ""
        self._was_read = False
        self._lock = threading.Lock()

    def of(
        self, db: Connection, ns: candidate_rows.Numbers, changing: candidate_rows.Numbers
    ) -> dict[int, str]:
        """Return the plain texts of items; those of `changing` ones are never cached."""
        requested = ns.tolist()
        epoch = maintenance.get_epoch(db)
        with self._lock:
            if epoch != self._epoch:
                self._cache.clear()
                self._chars, self._epoch = 0, epoch
            self._was_read = True
            texts = {n: self._cache[n] for n in requested if n in self._cache}
        missing = [n for n in requested if n not in texts]
        if missing:
            loaded = candidate_rows.searchable_texts(db, missing, self._most_chars)
            fresh = {n: plain(text) for n, text in loaded.items()}
            texts |= fresh
            self._add(fresh, set(changing.tolist()))
        return texts

    def release(self) -> None:
        """Empty the cache unless it was read since the last call."""
        if not self._was_read:
            self.clear()
        self._was_read = False

    def clear(self) -> None:
        """Empty the cache: some of its texts may have been forgotten."""
        with self._lock:
            self._cache.clear()
            self._chars = 0

    def _add(self, fresh: dict[int, str], changing: set[int]) -> None:
        with self._lock:
            for n, text in fresh.items():
                if n not in changing and n not in self._cache:
                    self._cache[n] = text
                    self._chars += len(text)
            while self._chars > self._cache_chars:
                _, dropped = self._cache.popitem(last=False)
                self._chars -= len(dropped)


OWN_CHARS, BESIDE_CHARS = 40_000, 300
"""Characters of a candidate, and of the messages beside it, that are compared with the question."""

_RETRY_AFTER_S = 30.0
"""Seconds until a failed embedder is tried again: each attempt takes seconds."""

_CACHED_QUERIES = 128
_CACHED_USES = 20_000

_MEMORY_FILE = "memory.db"

_RESCORED = 48
"""The nearest are re-ranked by their float vectors, the rest by the index's own scores."""

Numbers = NDArray[np.int64]
Scores = NDArray[np.float32]


class Sources:
    """The database, the embedder and the vector index of one memory, opened when needed."""

    def __init__(self, database: Database, embedder: Embedder, settings: Settings) -> None:
        self.database = database
        self.embedder = embedder
        self.settings = settings
        self._index: NearestItems | None = None
        self._embedder_n: int | None = None
        self._epoch = ""
        self._uses: dict[tuple[str, str], tuple[int, int]] = {}
        self._queries: OrderedDict[str, Scores] = OrderedDict()
        self._lock = threading.RLock()
        self._missing = ""
        self._retry_at_s = 0.0
        self.derived: dict[Hashable, Any] = {}
        """What other parts derive from texts and cache until the memory changes."""
        self.texts = Texts(OWN_CHARS)
        self.beginnings = Texts(BESIDE_CHARS)

    @property
    def index_folder(self) -> Path:
        """Return the folder of the vector index, beside the database."""
        path = self.database.path
        return path.with_name(f"{path.stem}.vectors")

    @property
    def fragment_weights(self) -> tuple[float, ...]:
        """Return the weights of the columns of the fragment words."""
        return tuple(float(weight) for weight in self.settings.search_fts_weights.split(","))

    def vector_index(self) -> NearestItems:
        """Return the vector index; it is opened at the first call and again after a restore."""
        with self.database.read() as db:
            epoch = maintenance.get_epoch(db)
        with self._lock:
            if self._index is not None and self._epoch != epoch:
                self._index.close()
                self._index = None
            if self._index is None:
                self._epoch = epoch
                self._drop_link()
                self._drop_former_files()
                self._index = self.database.open_index(
                    self.index_folder,
                    identity=self.embedder.identity,
                    dimension=self.embedder.dimension,
                )
            return self._index

    def embed_query(self, text: str) -> Scores:
        """Return the vector of a question from the cache or the embedder; zeros if it fails."""
        with self._lock:
            cached = self._queries.get(text)
            if cached is not None:
                self._queries.move_to_end(text)
                return cached
        if self.missing:
            return np.zeros(self.embedder.dimension, np.float32)
        try:
            vector: Scores = self.embedder.embed([text], query=True)[0]
        except EmbedderError as error:
            self.do_without(error)
            return np.zeros(self.embedder.dimension, np.float32)
        with self._lock:
            self._queries[text] = vector
            while len(self._queries) > _CACHED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    @property
    def missing(self) -> str:
        """Return why vector search is unavailable at the moment, or an empty string."""
        return self._missing if time.monotonic() < self._retry_at_s else ""

    @property
    def index_notice(self) -> str:
        """Return why a vector server is not searched at the moment, or an empty text."""
        is_remote = self.database.vector_server is not None and self.embedder.dimension
        return self.vector_index().notice if is_remote else ""

    def do_without(self, error: EmbedderError) -> None:
        """Search by keywords only until the retry time, and record why."""
        self._missing = f"{str(error).rstrip('.')}. Searching by keywords only."
        self._retry_at_s = time.monotonic() + _RETRY_AFTER_S

    def nearest(
        self, query: Scores, k: int, *, where: VectorFilter | None = None
    ) -> tuple[Numbers, Scores]:
        """Return the items nearest to a question's vector; none without an embedder."""
        dimension, embedder_n = self.embedder.dimension, self.embedder_n
        with self.database.read() as db:
            if not query.any() or embedder_n is None or not self._serves(db):
                return np.empty(0, np.int64), np.empty(0, np.float32)
            index = self.vector_index()
            vectors.update_index(db, index, embedder_n, dimension, within_s=index.catch_up_s)
            ns, scores = index.search(query, k, where=where)
            if index.is_precise:
                return ns, scores
            exact = vectors.load_passages(db, embedder_n, ns[:_RESCORED], dimension)
            return _rerank(query, ns, scores, exact)

    def cosines(self, query: Scores, ns: Numbers) -> NDArray[np.float64]:
        """Return the cosines of items to a question's vector, at the index's precision.

        That of number 0, which stands for no item, is 0.
        """
        cosines = np.zeros(len(ns))
        there = np.flatnonzero(ns)
        with self.database.read() as db:
            if len(there) and query.any() and self.embedder_n is not None and self._serves(db):
                cosines[there] = self.vector_index().cosines(query, ns[there])
        return cosines

    def count_uses(self, db: Connection, terms: Sequence[str], total: int) -> list[int]:
        """Return about how many messages have each word, or fragments where no messages are.

        The cached counts expire as the memory grows.
        """
        table = "fragment_words" if is_known_empty(db, "messages") else "message_words"
        counts = {}
        for term in terms:
            uses, then = self._uses.get((table, term), (0, 0))
            if 0.9 * total <= then <= 1.1 * total:
                counts[term] = uses
        missing = [term for term in dict.fromkeys(terms) if term not in counts]
        if missing:
            counts |= zip(missing, keywords.count_rows(db, table, *missing), strict=True)
            if len(self._uses) >= _CACHED_USES:
                self._uses.clear()
            self._uses |= {(table, term): (counts[term], total) for term in missing}
        return [counts[term] for term in terms]

    def load_vectors(self, ns: Numbers) -> Scores:
        """Return the vectors of items; zeros for an item without one."""
        with self.database.read() as db:
            return vectors.load(db, self.embedder_n, ns, self.embedder.dimension)

    def clear_caches(self) -> None:
        """Clear the caches: their texts may have been forgotten, here or by another process."""
        self.texts.clear()
        self.beginnings.clear()
        self.derived.clear()
        with self._lock:
            self._queries.clear()
            self._uses.clear()

    def forget_vectors(self, ns: Sequence[int]) -> None:
        """Erase the vectors of forgotten items from the index files.

        Rows that another process has read but not yet added are rejected from then on. The index of
        an embedder that is not in use is deleted as a whole: it can be rebuilt.
        """
        self._drop_link()
        if not self.database.has_index_files:
            self._drop_former_files()
        if not self._has_index or not len(ns):
            return
        embedder_n = self.embedder_n
        if embedder_n is None or not self.embedder.dimension:
            self._delete_index()
            return
        index = self.vector_index()
        with self.database.read() as db:
            vectors.update_index(db, index, embedder_n, self.embedder.dimension)
            index.remove(ns, through_seq=vectors.newest_seq(db))

    def update_index(self, *, within_s: float | None = None) -> int:
        """Append stored vectors to the index until the time is up; return how many were added."""
        embedder_n = self.embedder_n
        with self.database.read() as db:
            if embedder_n is None or not self._has_index or not self._serves(db):
                return 0
            return vectors.update_index(
                db, self.vector_index(), embedder_n, self.embedder.dimension, within_s=within_s
            )

    def drop_hidden(self, ids: Sequence[str] = ()) -> None:
        """Remove fragments that are no longer visible (some, or all) from the index in use."""
        if self.embedder.dimension and self._has_index:
            index = self.vector_index()
            with self.database.read() as db:
                ns = [items.resolve(db, id_).n for id_ in ids] or index.numbers().tolist()
                hidden = vectors.items_without_vectors(db, self.embedder_n, ns)
            if hidden:
                index.remove(hidden)

    def log_retrieval(
        self,
        verb: str,
        query: str,
        hits: Sequence[str],
        took_ms: float,
        count: CountRead | None = None,
        **known: Any,
    ) -> None:
        """Log a query, its hits, and what else is known of it in the background.

        `count` counts its tokens in the same write, and returns whose they are.
        """
        if self.database.read_only:
            return
        entry = Retrieval(self.database.now(), verb, query, tuple(hits), took_ms, **known)

        def work(db: Connection) -> None:
            key = count(db) if count else None
            known_by = entry._replace(session_n=key.session_n, task_n=key.task_n) if key else entry
            candidate_rows.log_retrieval(db, known_by)

        self.database.submit(work, patient=True)

    def release_memory(self) -> None:
        """Empty the caches of texts and unmap the pages of the vector index, if they are idle."""
        self.derived.clear()
        self.texts.release()
        self.beginnings.release()
        with self._lock:
            if self._index is not None:
                self._index.release_pages()

    def close(self) -> None:
        """Close the index."""
        with self._lock:
            if self._index is not None:
                self._index.close()
                self._index = None

    @property
    def _has_index(self) -> bool:
        """Return whether there is an index that does not follow the database by itself."""
        return self.database.vector_server is not None or self.index_folder.exists()

    def _delete_index(self) -> None:
        """Delete the whole index: its embedder is not at hand, and it can be rebuilt."""
        if self.index_folder.exists():
            shutil.rmtree(self.index_folder)
        if self.database.vector_server is not None:
            from lore.index.qdrant_points import erase_owner  # an extra, and a slow import

            with suppress(IndexUnavailable):  # compared before anything is searched there
                erase_owner(self.database.vector_server)

    def _drop_former_files(self) -> None:
        """Delete the index file of a memory whose vectors are searched on a server by now."""
        folder = self.index_folder
        if not self.database.has_index_files:  # that of a file which was moved into the database
            file = folder.with_name(_MEMORY_FILE)
            folder = folder if file.exists() else file.with_suffix(folder.suffix)
        elif self.database.vector_server is None:
            return
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)

    def _drop_link(self) -> None:
        """Remove a symbolic link in place of the index; its target is left alone.

        Lore's data stays in its home, and the index can be rebuilt.
        """
        if self.index_folder.is_symlink() and not self.database.read_only:
            with suppress(OSError):
                self.index_folder.unlink()

    def _serves(self, db: Connection) -> bool:
        """Return whether the vectors of the embedder are searched, not those of another by now."""
        return vectors.find_active_identity(db) in (None, self.embedder.identity)

    @property
    def embedder_n(self) -> int | None:
        """Return the number of the embedder; None if it never stored vectors."""
        if self._embedder_n is None:
            with self.database.read() as db:
                self._embedder_n = vectors.find_embedder(db, self.embedder.identity)
        return self._embedder_n


def _rerank(
    query: Scores, ns: Numbers, scores: Scores, exact: dict[int, Scores]
) -> tuple[Numbers, Scores]:
    """Re-rank the first few by their float vectors; drop those that are gone from the store."""
    there = np.array([n for n in ns[:_RESCORED].tolist() if n in exact], np.int64)
    near = vectors.best_cosines(query, [exact[n] for n in there.tolist()])
    order = np.argsort(-near, kind="stable")
    return (
        np.concatenate([there[order], ns[_RESCORED:]]),
        np.concatenate([near[order], scores[_RESCORED:]]),
    )
