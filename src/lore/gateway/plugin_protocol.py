"""Interface between the proxy and a plugin that plans requests and records responses.

The proxy itself (`app`, `upstream_client`, `response_stream`) knows no format of any provider.
Memory is plugged in as a `RequestPlugin`:

1. `plan(incoming)` is called once for each request of a known API, in a worker thread, or in
   the event loop if it never waits. It returns a `RequestPlan`: another body, or None for the
   original bytes; response headers; a delay; an `Observer`; a `ResponseInterceptor`; or a
   `LocalResponse` in place of all that. The deadline is 150 ms. If `plan` raises or is late,
   `plan_from_cache` plans with the cached state of the session; if that is late too, the
   original bytes are sent. The response header `x-lore-degraded` says so. A plan that is not
   used is released: its observer gets `settle("unused")`. Before original bytes are sent,
   `passthrough` checks the budget; also for requests of no known API that may cost something,
   whose bodies nobody reads (`api` and `raw` are empty then), and for requests that fetch a
   background response. If `is_limited`, no request is sent before `passthrough` has allowed it.
   A `Command` that a person typed to Lore may take some seconds, and no upstream is ever asked
   instead.

2. The `Observer` sees a copy of the upstream responses: `begin` with status and headers, `see`
   for each chunk (on the event loop: buffer it, parse it later), and `end` or `settle` exactly
   once, in a worker thread. Its errors are logged and end there.

3. A `ResponseInterceptor` stands in the response itself: `feed` returns what of a chunk is sent
   to the client now. Once the upstream response has ended, `follow` returns the body of a
   follow-up request, whose response is fed in turn, or None (then `rest` ends the response), or
   a `LocalResponse` that refuses the follow-up like an upstream would. Observers see what
   upstream sent, not what the interceptor made of it. Only responses with status 200 are
   intercepted.

Credentials are in none of this. Without a plugin, every byte passes unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, Protocol

import orjson

from lore.gateway import http_body
from lore.gateway.upstream_call import UpstreamCall
from lore.gateway.workers import Workers

ApiName = Literal["anthropic", "chat", "responses", "gemini", ""]
"""The API of a request; empty where Lore does not read it."""

Provider = Literal["anthropic", "openai", "chatgpt", "gemini"]
"""ChatGPT is the upstream of Codex for people who log in with an account instead of a key."""

Outcome = Literal["complete", "aborted", "failed", "unused"]
"""How a response ended: complete, aborted by the client or a stop, failed upstream, or never begun.
"""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A request of a client, with only those headers and query parameters that memory reads."""

    api: ApiName
    path: str
    query: str
    headers: Mapping[str, str]
    raw: bytes
    max_bytes: int
    provider: Provider = "openai"
    """The provider that it is meant for, whatever its API is."""
    background_response_id: str = ""
    """The id of the background response that it fetches."""

    @property
    def target(self) -> str:
        """Return path and query: Gemini states there whether it streams."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def encoding(self) -> str:
        """Return the content encoding of the body, '' for none."""
        return self.headers.get("content-encoding", "")

    def body(self) -> bytes:
        """Return the decoded body; raise `InvalidInput` if it cannot be decoded."""
        return http_body.decode_body(self.raw, self.encoding, self.max_bytes)


class Observer(Protocol):
    """Sees the responses of the upstream."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Start a response; again for each follow-up request."""

    def see(self, piece: bytes) -> None:
        """Take a copy of the next chunk; on the event loop, so it must be quick."""

    def end(self, outcome: Outcome) -> None:
        """Record the finished request; called once, in a thread unless the plan `ends_quickly`."""

    def settle(self, outcome: Outcome) -> None:
        """Settle only its cost, in place of `end`; it never waits for the store."""


class ResponseInterceptor(Protocol):
    """Stands in a response and may have the upstream asked again before it ends."""

    def feed(self, piece: bytes) -> bytes:
        """Return the bytes for the client, given the next chunk from upstream."""

    @property
    def is_idle(self) -> bool:
        """Return whether `follow` has nothing to do."""

    def follow(self) -> bytes | LocalResponse | None:
        """Return the body of a follow-up request, None, or the response in place of one.

        It is called in a worker thread, unless it is idle.
        """

    def fail(self, status: int, body: bytes) -> bytes:
        """Return the bytes that end the response where upstream refused a follow-up request."""

    def rest(self) -> bytes:
        """Return the bytes that end the response."""


@dataclass(frozen=True, slots=True)
class LocalResponse:
    """A response of the gateway itself, without asking the upstream."""

    status: int
    headers: Pairs
    body: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """A command to Lore: how it is run, and the response if that fails."""

    run: Callable[[], LocalResponse]
    failure: LocalResponse


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """How a request is forwarded; by default every byte passes unchanged."""

    body: bytes | None = None
    headers: Pairs = ()
    """Added to the response."""
    delay_s: float = 0.0
    observer: Observer | None = None
    reads: bool = True
    """Whether the observer reads the body; otherwise it may have any encoding."""
    ends_quickly: bool = False
    """Whether the observer's `end` waits for nothing, so that the event loop may call it."""
    interceptor: ResponseInterceptor | None = None
    answer: LocalResponse | None = None
    command: Command | None = None
    call: UpstreamCall | None = None
    """What the span of the request to upstream is made of, if spans are recorded."""
    has_state: bool = True
    """Whether this process has the state of the session; a plan from cached state has nothing to
    say without."""


class RequestPlugin(Protocol):
    """Plans requests."""

    workers: Workers
    """The threads in which it is called, and in which it works."""

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        """Return a fresh plan; called in a worker thread."""

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        """Return a plan from the session's cached state; None for what is no turn."""

    def find_command(self, incoming: ClientRequest) -> Command | None:
        """Return the command to Lore in a request that was not planned in time."""

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        """Return a plan that sends the original bytes; the budget is not waited for beyond
        `until_s`."""

    def may_wait(self) -> bool:
        """Return whether `plan` does more than `passthrough`, or either may wait for the store."""

    def is_limited(self) -> bool:
        """Return whether there is a budget."""


_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GEMINI_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_PHRASES = {int(one): one.phrase for one in HTTPStatus}
_UPGRADE = (("upgrade", "HTTP/1.1"), ("connection", "upgrade"))


def error_response(provider: Provider, status: int, message: str) -> LocalResponse:
    """Return an error in the format of a provider."""
    tree: dict[str, object]
    if provider == "anthropic":
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        tree = {"type": "error", "error": {"type": kind, "message": message}}
    elif provider == "gemini":
        kind = _GEMINI_STATUSES.get(status, "UNAVAILABLE" if status == 502 else "INTERNAL")
        tree = {"error": {"code": status, "message": message, "status": kind}}
    else:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        code = _PHRASES.get(status, "error").lower().replace(" ", "_")
        tree = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    headers = (("content-type", "application/json"), *(_UPGRADE if status == 426 else ()))
    return LocalResponse(status, headers, orjson.dumps(tree))


def unknown_path_response(path: str) -> LocalResponse:
    """Return that neither Lore nor a provider has a path, in the format of Lore's own errors."""
    tree = {
        "type": "about:blank",
        "title": _PHRASES[404],
        "status": 404,
        "code": "NotFound",
        "detail": f"Neither Lore nor a provider has the path '{path[:100]}'.",
        "hint": "Lore's own paths for programs are below /api/v1: see /api/v1/openapi.json.",
    }
    headers = (("content-type", "application/problem+json"), ("cache-control", "no-store"))
    return LocalResponse(404, headers, orjson.dumps(tree))


def upstream_error_body(provider: Provider, status: int, body: bytes) -> bytes:
    """Return an upstream error as one line of JSON, wrapped in the provider's format if needed."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        tree = None
    if isinstance(tree, dict) and isinstance(tree.get("error"), dict):
        return orjson.dumps(tree)
    return error_response(provider, status, body.decode(errors="replace")).body
