"""Traces: spans of requests and background work, sent to an OpenTelemetry collector.

Off by default, and free then: no package of OpenTelemetry is imported. A span has numbers and names
of Lore's own, never contents, keys, or names of people and projects. Spans wait in a bounded queue
for a thread that sends them; a collector that fails or hangs delays nothing.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeVar

from lore.errors import InvalidInput

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import Tracer

T = TypeVar("T")

Kind = Literal["internal", "server", "client"]
Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
MODEL: Final = "gen_ai.request.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
TOOL: Final = "gen_ai.tool.name"
METHOD: Final = "http.request.method"
ROUTE: Final = "http.route"
STATUS: Final = "http.response.status_code"
ERROR: Final = "error.type"
"""Names of the semantic conventions; those that begin with `lore.` are Lore's own."""

GEN_AI_PROVIDERS: Final[Mapping[str, str]] = {"google": "gcp.gemini", "gemini": "gcp.gemini"}
"""Providers whose name in the semantic conventions is another one."""

INSTALL: Final = "Install agent-lore[telemetry]: pip install 'agent-lore[telemetry]'."

_NAME = re.compile(r"[A-Za-z0-9/][\w.:/@+{}-]{0,99}", re.ASCII)
"""Values that are texts: names of models, routes, tools and errors. Others are left out."""

_QUEUED_SPANS = 2_048
"""Spans that wait for the collector, some 4 MB; the oldest are dropped beyond."""

_EXPORT_TIMEOUT_S = 5.0
_CLOSE_TIMEOUT_S = 1.0
"""How long a stop waits for the last spans: the server has two seconds to stop."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PATH = "/v1/traces"

_SERVER_ERRORS = 500

_tracer: Tracer | None = None


class Span:
    """A span as a context manager; what the block raises is recorded by its type alone."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: OtelSpan) -> None:
        self._span = span

    def __enter__(self) -> Self:
        """Make this the current span."""
        from opentelemetry import context, trace

        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """End the span."""
        from opentelemetry import context

        context.detach(self._token)
        if kind is not None:
            self.fail(kind.__name__)
        self._span.end()

    def set(self, name: str, value: Value) -> None:
        """Set an attribute."""
        self._span.set_attributes(_clean({name: value}))

    def set_status(self, status: int) -> None:
        """Set the status of a response; a refusal is no failure of the server."""
        self.set(STATUS, status)
        if status >= _SERVER_ERRORS:
            self.fail(str(status))

    def rename(self, name: str) -> None:
        """Give the span another name."""
        self._span.update_name(name)

    def fail(self, error: str) -> None:
        """Mark the span as failed by a type of error."""
        from opentelemetry.trace import StatusCode

        self._span.set_attributes(_clean({ERROR: error}))
        self._span.set_status(StatusCode.ERROR)


class _NoSpan(Span):
    """The span of a process without traces."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        pass

    def set(self, name: str, value: Value) -> None:
        pass

    def set_status(self, status: int) -> None:
        pass

    def rename(self, name: str) -> None:
        pass

    def fail(self, error: str) -> None:
        pass


_NO_SPAN = _NoSpan()


def is_on() -> bool:
    """Return whether spans are recorded."""
    return _tracer is not None


def span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Kind = "internal",
    headers: Mapping[str, str] | None = None,
) -> Span:
    """Return a span for a `with` block, in the trace that `headers` of a caller name.

    Its name is a constant, or one with a name of Lore's own.
    """
    if _tracer is None:
        return _NO_SPAN
    return Span(_start(_tracer, name, attributes or {}, kind, _parent(headers)))


def record(
    name: str,
    attributes: Attributes,
    *,
    kind: Kind,
    parent: Context | None,
    started_ns: int,
    ended_ns: int,
    error: str = "",
) -> None:
    """Record a span that has ended, with times of the wall clock."""
    if _tracer is None:
        return
    ended = Span(_start(_tracer, name, attributes, kind, parent, started_ns))
    if error:
        ended.fail(error)
    ended._span.end(ended_ns)


def model_span(operation: str, model: str) -> str:
    """Return the name of a span of a model, as the semantic conventions have it."""
    return f"{operation} {model}" if _NAME.fullmatch(model) else operation


def _start(
    tracer: Tracer,
    name: str,
    attributes: Attributes,
    kind: Kind,
    parent: Context | None,
    started_ns: int | None = None,
) -> OtelSpan:
    from opentelemetry.trace import SpanKind

    kinds = {"internal": SpanKind.INTERNAL, "server": SpanKind.SERVER, "client": SpanKind.CLIENT}
    return tracer.start_span(
        name, parent, kinds[kind], attributes=_clean(attributes), start_time=started_ns
    )


def _clean(attributes: Attributes) -> dict[str, Value]:
    """Return the attributes that may leave: numbers, and texts that are names."""
    return {name: value for name, value in attributes.items() if _is_safe(value)}


def _is_safe(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(_is_safe(one) for one in value)
    return not isinstance(value, str) or _NAME.fullmatch(value) is not None


def _parent(headers: Mapping[str, str] | None) -> Context | None:
    """Return the context of a caller; its `tracestate` is left out, since it may say anything."""
    traceparent = (headers or {}).get("traceparent")
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})


def current() -> Context | None:
    """Return the context of the current span, as a parent for later ones."""
    if _tracer is None:
        return None
    from opentelemetry import context

    return context.get_current()


def in_current_trace(work: Callable[[], T]) -> Callable[[], T]:
    """Return some work for another thread, which then belongs to the trace of this one."""
    if _tracer is None:
        return work
    from opentelemetry import context

    here = context.get_current()

    def run() -> T:
        token = context.attach(here)
        try:
            return work()
        finally:
            context.detach(token)

    return run


def trace_id() -> str:
    """Return the id of the current trace, or an empty text."""
    if _tracer is None:
        return ""
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else ""


def trace_headers() -> dict[str, str]:
    """Return the headers that continue the current trace in another server of Lore."""
    if _tracer is None:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return {name: value for name, value in headers.items() if name == "traceparent"}


def find_endpoint(setting: str, environ: Mapping[str, str]) -> str:
    """Return where spans are sent: to the setting, else where OpenTelemetry's variables say."""
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_disabled or environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() != "otlp":
        return ""
    if setting:
        return setting.rstrip("/").removesuffix(_PATH) + _PATH
    signal, base = (environ.get(name, "").strip() for name in _ENDPOINTS)
    return signal or (base.rstrip("/") + _PATH if base else "")


def is_installed() -> bool:
    """Return whether the packages of the extra are there; nothing is imported."""
    import importlib.util  # takes a millisecond, and nothing else here needs it

    try:
        return importlib.util.find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def recording(
    setting: str, environ: Mapping[str, str], *, version: str, log: logging.Logger
) -> Iterator[None]:
    """Record spans within this context, if the setting or the environment names an endpoint.

    If the setting names an endpoint, missing packages are an error. A variable of the environment
    may be meant for other programs: then a warning is logged, and nothing is recorded.
    """
    endpoint = find_endpoint(setting, environ)
    if endpoint and not is_installed():
        if setting:
            msg = "'telemetry.endpoint' is set, but the packages of OpenTelemetry are missing."
            raise InvalidInput(msg, hint=INSTALL)
        log.warning("no traces, package missing", extra={"hint": INSTALL})
        endpoint = ""
    if not endpoint or _tracer is not None:
        yield
        return
    close = _start_exporter(endpoint, environ, version)
    log.info("traces on")
    try:
        yield
    finally:
        close()


def _start_exporter(endpoint: str, environ: Mapping[str, str], version: str) -> Callable[[], None]:
    """Send spans from now on.

    The provider is not the global one of OpenTelemetry: libraries record what they like there.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    global _tracer  # noqa: PLW0603 - one exporter for each process
    has_timeout = any(name.endswith("_TIMEOUT") for name in environ)
    exporter = OTLPSpanExporter(endpoint, timeout=None if has_timeout else _EXPORT_TIMEOUT_S)
    name = environ.get("OTEL_SERVICE_NAME", "lore")
    provider = TracerProvider(
        resource=Resource.create({"service.name": name, "service.version": version}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=_QUEUED_SPANS))
    tracer = provider.get_tracer("lore", version)
    _tracer = tracer

    def close() -> None:
        global _tracer  # noqa: PLW0603 - as above
        if _tracer is tracer:
            _tracer = None
        # It waits for the collector itself, for up to half a minute.
        ending = threading.Thread(target=provider.shutdown, name="lore-traces-end", daemon=True)
        ending.start()
        ending.join(_CLOSE_TIMEOUT_S)

    return close


Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
"""Sends a message of an ASGI app."""


def watch_status(send: Send, of: Span) -> Send:
    """Return a `send` of an ASGI app that notes the status of the response in a span."""

    async def watched(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            of.set_status(int(message["status"]))
        await send(message)

    return watched


def now_ns() -> int:
    """Return the time that spans are stamped with."""
    return time.time_ns()
