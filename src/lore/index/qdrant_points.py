"""The vectors of one owner in Qdrant: a point for each passage, with numbers and no text.

All owners share a collection for each dimension. Every request names the owner, by a hash.
"""

from __future__ import annotations

import hashlib
import os
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from lore.errors import IndexUnavailable
from lore.index.nearest_items import VectorServer
from lore.index.quantization import Float32s, Int64s
from lore.index.vector_index import MOST_PASSAGES, PASSAGES, VectorFilter, VectorRow

if TYPE_CHECKING:
    from lore.index.nearest_items import Nearest

COLLECTION = "lore_{}"
"""The collection of the vectors of a dimension."""

IN_PROCESS = ":memory:"
"""The address of a Qdrant that is part of the client: it searches exactly, and nothing is kept."""

EXACT_POINTS = 20_000
"""Up to this many points of an owner are compared one by one, as on PostgreSQL."""

_GRAPH_CANDIDATES = 200
"""Candidates that a search in the graph looks at (`hnsw_ef`)."""

_BATCH_NUMBERS = 250_000
"""Numbers of the vectors in one request: some 2.5 MB of JSON."""

_PAGE_POINTS = 5_000
_MOST_VALUES = 5_000
"""Values that one condition of a deletion lists."""

_BAD_KEY = (401, 403)

_INDEXED: dict[str, Any] = {
    "owner": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    "space": models.PayloadSchemaType.KEYWORD,
    "seq": models.PayloadSchemaType.INTEGER,
    "n": models.PayloadSchemaType.INTEGER,
    "project": models.PayloadSchemaType.INTEGER,
    "type": models.PayloadSchemaType.INTEGER,
    "created": models.PayloadSchemaType.INTEGER,
}
"""What points are selected by."""

T = TypeVar("T")


@cache
def _open_client(url: str, api_key: str, timeout_s: int, process: int) -> QdrantClient:
    del process  # connections are not shared with a forked process
    if url == IN_PROCESS:
        return QdrantClient(IN_PROCESS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a key without TLS, which the documentation is about
        return QdrantClient(
            url=url, api_key=api_key or None, timeout=timeout_s, check_compatibility=False
        )


def connect(server: VectorServer) -> QdrantClient:
    """Return the client of a server, which the memories of this process share."""
    return _open_client(server.url, server.api_key, server.timeout_s, os.getpid())


def call(work: Callable[[], T]) -> T:
    """Run a request; raise `IndexUnavailable` for whatever Qdrant answers but its result."""
    try:
        return work()
    except UnexpectedResponse as error:
        status = error.status_code
        if status in _BAD_KEY:
            msg = "Qdrant refuses the API key"
            raise IndexUnavailable(msg, hint="Check 'vectors.api_key'.") from error
        msg = f"Qdrant answers with status {status}"
        raise IndexUnavailable(msg, hint="Look into the log of Qdrant.") from error
    except ApiException as error:
        msg = "Qdrant cannot be reached"
        raise IndexUnavailable(msg, hint="Check 'vectors.url', and whether it runs.") from error
    except ValueError as error:  # of the client in the process, which has no status
        msg = "Qdrant refuses a request"
        raise IndexUnavailable(msg, hint="Look into the log of Qdrant.") from error


def is_unreachable(error: IndexUnavailable) -> bool:
    """Return whether a server did not answer at all, whoever asked for whatever."""
    cause = error.__cause__
    return isinstance(cause, ApiException) and not isinstance(cause, UnexpectedResponse)


@dataclass(slots=True)
class Outage:
    """Until when a server that did not answer is left alone, and why."""

    until_s: float = 0.0
    error: IndexUnavailable | None = None


@cache
def outage_of(url: str) -> Outage:
    """Return the outage of a server, which the memories of this process share."""
    del url
    return Outage()


def erase_owner(server: VectorServer) -> None:
    """Delete all points of an owner, of every dimension."""
    client = connect(server)
    for name in _collections(client):
        _delete(client, name, models.Filter(must=[_is("owner", server.owner)]))


class QdrantPoints:
    """The points of one owner's vectors of one embedder."""

    def __init__(self, server: VectorServer, *, identity: str, dimension: int, epoch: str) -> None:
        self._server = server
        self.dimension = dimension
        self._collection = COLLECTION.format(dimension)
        self._space = hashlib.sha256(f"{identity}\0{epoch}".encode()).hexdigest()[:16]
        self._own: list[models.Condition] = [_is("owner", server.owner), _is("space", self._space)]

    @property
    def _client(self) -> QdrantClient:
        return connect(self._server)

    def prepare(self) -> None:
        """Create the collection if it is missing; delete the owner's points of other vectors.

        These are of a former embedder, or of a database that was replaced by a backup.
        """
        client = self._client
        for name in _collections(client):
            others = models.Filter(must=[_is("owner", self._server.owner)])
            if name == self._collection:
                others.must_not = [_is("space", self._space)]
            _delete(client, name, others)
        if not self._exists():
            self._create()
        if self._server.url != IN_PROCESS:  # that has no indexes of payloads
            self._index_payloads()

    def _exists(self) -> bool:
        return call(lambda: self._client.collection_exists(self._collection))

    def _create(self) -> None:
        """Create the collection with a graph for each owner, and none across owners."""
        params = models.VectorParams(size=self.dimension, distance=models.Distance.COSINE)
        graph = models.HnswConfigDiff(m=0, payload_m=16)
        try:
            call(
                lambda: self._client.create_collection(
                    self._collection, vectors_config=params, hnsw_config=graph
                )
            )
        except IndexUnavailable:
            if not self._exists():  # otherwise another process was quicker
                raise

    def _index_payloads(self) -> None:
        client, name = self._client, self._collection
        indexed = call(lambda: client.get_collection(name)).payload_schema
        for field, schema in _INDEXED.items():
            if field not in indexed:
                create = partial(client.create_payload_index, name, field, field_schema=schema)
                call(create)

    def put(self, rows: Sequence[VectorRow], parts: Sequence[int], vectors: Float32s) -> None:
        """Add the passages of items, or replace them; to repeat it changes nothing."""
        size = max(1, _BATCH_NUMBERS // self.dimension)
        for start in range(0, len(rows), size):
            batch = slice(start, start + size)
            points = models.Batch(
                ids=[self.point_id(r.n, p) for r, p in zip(rows[batch], parts[batch], strict=True)],
                payloads=[
                    self._payload(r, p) for r, p in zip(rows[batch], parts[batch], strict=True)
                ],
                vectors=vectors[batch].tolist(),
            )
            call(partial(self._client.upsert, self._collection, points, wait=True))

    def point_id(self, n: int, part: int) -> str:
        """Return the id of the point of an item's passage: the same whenever it is added."""
        name = f"{self._server.owner}\0{n}\0{part}"
        return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16]))

    def _payload(self, row: VectorRow, part: int) -> dict[str, str | int]:
        return {
            "owner": self._server.owner,
            "space": self._space,
            "seq": row.seq,
            "n": row.n,
            "part": part,
            "project": row.project,
            "type": row.type,
            "created": row.created_at_us,
        }

    def remove_items(self, ns: Iterable[int]) -> None:
        """Delete the points of items."""
        self._remove("n", ns)

    def remove_changes(self, seqs: Iterable[int]) -> None:
        """Delete the points that were added for change numbers."""
        self._remove("seq", seqs)

    def _remove(self, key: str, values: Iterable[int]) -> None:
        wanted = list(values)
        for start in range(0, len(wanted), _MOST_VALUES):
            condition = _any(key, wanted[start : start + _MOST_VALUES])
            selected = models.Filter(must=[*self._own, condition])
            _delete(self._client, self._collection, selected)

    def remove_all(self) -> None:
        """Delete all points of the owner, of every dimension."""
        erase_owner(self._server)

    def list_points(self) -> Int64s:
        """Return for each point the change number, the item and the number of the passage."""
        listed: list[tuple[int, int, int]] = []
        offset: Any = None
        while True:
            records, offset = call(partial(self._scroll, offset))
            payloads = [record.payload or {} for record in records]
            listed += [(p["seq"], p["n"], p["part"]) for p in payloads]
            if offset is None:
                return np.array(listed, np.int64).reshape(-1, 3)

    def _scroll(self, offset: Any) -> tuple[list[models.Record], Any]:
        return self._client.scroll(
            self._collection,
            scroll_filter=models.Filter(must=self._own),
            limit=_PAGE_POINTS,
            offset=offset,
            with_payload=["seq", "n", "part"],
            with_vectors=False,
        )

    def count(self, through_seq: int) -> int:
        """Return the exact number of points up to a change number."""
        known = models.FieldCondition(key="seq", range=models.Range(lte=through_seq))
        selected = models.Filter(must=[*self._own, known])
        counted = call(lambda: self._client.count(self._collection, selected, exact=True))
        return counted.count

    def search(
        self, query: Float32s, k: int, where: VectorFilter | None, *, is_exact: bool
    ) -> Nearest:
        """Return the numbers and cosines of the k nearest items, best first."""
        if where is not None and _matches_nothing(where):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        ns, scores, is_all = self._search_points(query, PASSAGES * k, where, is_exact=is_exact)
        if len(ns) < k and not is_all:  # a few long texts took most of the points
            ns, scores, _ = self._search_points(query, MOST_PASSAGES * k, where, is_exact=is_exact)
        return ns[:k], scores[:k]

    def _search_points(
        self, query: Float32s, limit: int, where: VectorFilter | None, *, is_exact: bool
    ) -> tuple[Int64s, Float32s, bool]:
        how = None
        if self._server.url != IN_PROCESS:  # there all is exact, and a choice gives a warning
            how = models.SearchParams(exact=is_exact, hnsw_ef=_GRAPH_CANDIDATES)
        response = call(
            lambda: self._client.query_points(
                self._collection,
                query=query.tolist(),
                query_filter=models.Filter(must=[*self._own, *_conditions(where)]),
                limit=limit,
                search_params=how,
                with_payload=["n"],
                timeout=self._server.timeout_s,
            )
        )
        ns = np.array([(point.payload or {})["n"] for point in response.points], np.int64)
        scores = np.array([point.score for point in response.points], np.float32)
        first = np.sort(np.unique(ns, return_index=True)[1])
        return ns[first], scores[first], len(ns) < limit


def _collections(client: QdrantClient) -> list[str]:
    named = call(client.get_collections).collections
    mark = COLLECTION.format("")
    return [one.name for one in named if one.name.removeprefix(mark).isdecimal()]


def _delete(client: QdrantClient, collection: str, selected: models.Filter) -> None:
    selector = models.FilterSelector(filter=selected)
    call(lambda: client.delete(collection, points_selector=selector, wait=True))


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def _any(key: str, values: Iterable[int]) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchAny(any=[int(v) for v in values]))


def _matches_nothing(where: VectorFilter) -> bool:
    of_no_project = where.projects == () and not _length(where.beside)
    return of_no_project or where.types == () or (where.ns is not None and not len(where.ns))


def _length(values: NDArray[np.int64] | None) -> int:
    return 0 if values is None else len(values)


def _conditions(where: VectorFilter | None) -> list[models.Condition]:
    """Return the conditions of a filter that can match something."""
    if where is None:
        return []
    conditions: list[models.Condition] = []
    if where.projects is not None:
        either: list[models.Condition] = []
        if where.projects:
            either.append(_any("project", where.projects))
        if where.beside is not None and len(where.beside):
            either.append(_any("n", where.beside))
        conditions.append(models.Filter(should=either))
    if where.types is not None:
        conditions.append(_any("type", where.types))
    if where.ns is not None:
        conditions.append(_any("n", where.ns))
    if where.since_us is not None or where.until_us is not None:
        span = models.Range(gte=where.since_us, lt=where.until_us)
        conditions.append(models.FieldCondition(key="created", range=span))
    return conditions
