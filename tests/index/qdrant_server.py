"""An HTTP server that speaks Qdrant's REST interface, for tests of what goes over the wire.

It is not Qdrant: the requests are parsed by the models of the official client and answered by that
client's own engine in the process. Nothing here is faster or more tolerant than the real one has to
be, and nothing says how the real one searches a graph.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import TypeAdapter
from qdrant_client import QdrantClient, models

_PATH = re.compile(r"/collections(?:/(\w+)(?:/(exists|index|points(?:/\w+)?))?)?")


class QdrantServer:
    """A server that can be stopped, started again on its port with its data, and emptied."""

    def __init__(self, api_key: str = "") -> None:
        self.api_key = api_key
        self.searches = 0
        self.failures: list[BaseException] = []
        self.engine = QdrantClient(":memory:")
        self.indexed: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._port = 0
        self._http: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        server = self

        class Handler(_Handler):
            qdrant = server

        self._http = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._http.daemon_threads = True
        self._port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def lose_all(self) -> None:
        """Go on with no data."""
        self.engine, self.indexed = QdrantClient(":memory:"), {}

    def payloads(self) -> list[dict[str, Any]]:
        """Return the payloads of all points of all collections."""
        return [
            record.payload or {}
            for one in self.engine.get_collections().collections
            for record in self.engine.scroll(one.name, limit=100_000)[0]
        ]

    def answer(self, method: str, path: str, body: Any) -> Any:
        match = _PATH.fullmatch(path)
        if match is None:
            raise KeyError(path)
        name, rest = match.groups()
        if name is None:
            return self.engine.get_collections()
        if rest == "exists":
            return {"exists": self.engine.collection_exists(name)}
        if rest is None and method == "PUT":
            wanted = models.CreateCollection.model_validate(body)
            return self.engine.create_collection(name, vectors_config=wanted.vectors)
        if not self.engine.collection_exists(name):
            raise KeyError(name)
        if rest is None:
            schema = {
                field: {"data_type": kind, "points": 0} for field, kind in self.indexed.items()
            }
            return self.engine.get_collection(name).model_dump() | {"payload_schema": schema}
        if rest == "index":
            index = models.CreateFieldIndex.model_validate(body)
            kind = index.field_schema
            self.indexed[index.field_name] = getattr(kind, "type", None) or kind
            return _DONE
        return self._answer_points(name, rest, body)

    def _answer_points(self, name: str, rest: str, body: Any) -> Any:
        if rest == "points":
            points = TypeAdapter(models.PointInsertOperations).validate_python(body)
            assert isinstance(points, models.PointsBatch)
            return self.engine.upsert(name, points.batch)
        if rest == "points/delete":
            selector = models.FilterSelector.model_validate(body)
            return self.engine.delete(name, selector)
        if rest == "points/scroll":
            scroll = models.ScrollRequest.model_validate(body)
            records, offset = self.engine.scroll(
                name, scroll_filter=scroll.filter, limit=scroll.limit or 10, offset=scroll.offset,
                with_payload=True,
            )  # fmt: skip
            return models.ScrollResult(points=records, next_page_offset=offset)
        if rest == "points/count":
            count = models.CountRequest.model_validate(body)
            return self.engine.count(name, count.filter, exact=True)
        query = models.QueryRequest.model_validate(body)
        assert isinstance(query.query, models.NearestQuery)
        assert isinstance(query.query.nearest, list)
        self.searches += 1
        return self.engine.query_points(
            name, query=query.query.nearest, query_filter=query.filter, limit=query.limit or 10
        )

    def locked(self, work: Callable[[], Any]) -> Any:
        with self._lock:
            return work()


_DONE = {"operation_id": 1, "status": "completed"}


class _Handler(BaseHTTPRequestHandler):
    qdrant: QdrantServer

    def _serve(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(size)
        path = self.path.partition("?")[0]
        if self.qdrant.api_key and self.headers.get("api-key") != self.qdrant.api_key:
            self._reply(401, {"status": {"error": "Must provide an API key"}})
            return
        body = json.loads(raw) if raw else None
        try:
            result = self.qdrant.locked(lambda: self.qdrant.answer(self.command, path, body))
        except KeyError:
            self._reply(404, {"status": {"error": "Not found"}})
            return
        except BaseException as error:
            self.qdrant.failures.append(error)
            raise
        self._reply(200, {"result": result, "status": "ok", "time": 0.0})

    do_GET = do_PUT = do_POST = _serve  # noqa: N815 - as http.server calls them

    def _reply(self, status: int, content: Any) -> None:
        raw = json.dumps(content, default=lambda model: model.model_dump(mode="json")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def running() -> Iterator[QdrantServer]:
    """A server for the tests of a module."""
    server = QdrantServer()
    yield server
    server.stop()


@pytest.fixture
def qdrant(running: QdrantServer) -> Iterator[QdrantServer]:
    """The running server, empty; no request to it failed."""
    running.stop()
    running.lose_all()
    running.start()
    yield running
    assert running.failures == []
