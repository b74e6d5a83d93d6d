"""An OpenTelemetry collector on loopback: it parses what it is sent, and keeps the bytes too."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class SentSpan:
    """A span that arrived."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    failed: bool
    seconds: float
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What a collector has received."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    @property
    def spans(self) -> list[SentSpan]:
        return [span for body in list(self.bodies) for span in _parse(body)]

    @property
    def names(self) -> set[str]:
        return {span.name for span in self.spans}

    @property
    def resources(self) -> list[dict[str, Any]]:
        return [
            {one.key: _value(one.value) for one in group.resource.attributes}
            for body in self.bodies
            for group in ExportTraceServiceRequest.FromString(body).resource_spans
        ]

    def find(self, name: str) -> SentSpan:
        return next(span for span in self.spans if span.name == name)


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind) if kind else None


def _parse(body: bytes) -> Iterator[SentSpan]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                assert not span.events
                assert not span.status.message
                yield SentSpan(
                    span.name,
                    span.kind,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.status.code == 2,
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                    {one.key: _value(one.value) for one in span.attributes},
                )


@contextmanager
def collecting(*, hangs: bool = False) -> Iterator[Collector]:
    """Run a collector until the block ends; one that hangs answers only then."""
    collector = Collector()
    if not hangs:
        collector.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            collector.requests.append((self.path, headers))
            collector.may_answer.wait()
            collector.bodies.append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            collector.may_answer.set()
            server.shutdown()
