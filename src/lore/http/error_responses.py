"""Error responses as application/problem+json (RFC 9457), and the status code of each error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from http import HTTPStatus

import orjson
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from lore.errors import (
    BudgetSpent,
    CaptureError,
    CycleRunning,
    EmbedderError,
    IndexUnavailable,
    InvalidInput,
    LoreError,
    NotFound,
    ProviderError,
    RateLimited,
    SchemaTooNew,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnreachable,
    SyncError,
)

PROBLEM_JSON = "application/problem+json"

STATUS_CODES: dict[type[LoreError], int] = {
    LoreError: 500,
    InvalidInput: 422,
    CaptureError: 422,
    NotFound: 404,
    StoreBusy: 503,
    StoreReadOnly: 503,
    StoreUnreachable: 503,
    SchemaTooNew: 503,
    StoreFull: 507,
    IndexUnavailable: 503,
    EmbedderError: 503,
    ProviderError: 502,
    RateLimited: 503,
    BudgetSpent: 503,
    CycleRunning: 503,
    SyncError: 502,
}
"""An error class that is not here has the status of its nearest base class."""

_RETRY_AFTER_S: dict[type[LoreError], int] = {StoreBusy: 1, StoreUnreachable: 5}
"""When to try again: locks are short, and a database server takes seconds to start."""


def status_code(kind: type[LoreError]) -> int:
    """Return the status code of an error class."""
    return next(STATUS_CODES[above] for above in kind.__mro__ if above in STATUS_CODES)


def lore_error_response(error: LoreError) -> Response:
    """Return the response for one of Lore's errors."""
    headers = {}
    wait_s: float = _RETRY_AFTER_S.get(type(error), 0)
    if isinstance(error, RateLimited):
        wait_s = error.retry_after_s
    if wait_s:
        headers["retry-after"] = str(math.ceil(wait_s))
    status = status_code(type(error))
    return problem_response(
        status, type(error).__name__, str(error), hint=error.hint, headers=headers
    )


_LOGIN_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Lore</title>
<h1>Lore runs here</h1>
<p>What it remembers is shown to the person it belongs to. In a terminal of theirs,</p>
<pre>lore open</pre>
<p>opens this page for them, logged in; on a server for many people it is</p>
<pre>lore open --server ADDRESS</pre>
"""
"""For a person who opens the address in a browser; it says no more than the JSON response."""

_PAGE_HEADERS = {"content-security-policy": "default-src 'none'", "cache-control": "no-store"}


def http_error_response(refused: HTTPException, scope: Scope) -> Response:
    """Return the response for an HTTP error such as 401 or 413."""
    if refused.status_code == HTTPStatus.UNAUTHORIZED and _is_browser(scope):
        headers = {**_PAGE_HEADERS, **(refused.headers or {})}
        return HTMLResponse(_LOGIN_PAGE, refused.status_code, headers)
    name = HTTPStatus(refused.status_code).phrase.title().replace(" ", "").replace("-", "")
    return problem_response(refused.status_code, name, refused.detail, headers=refused.headers)


def _is_browser(scope: Scope) -> bool:
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")


def internal_error_response() -> Response:
    """Return the response for an unexpected error; only the log has the details."""
    return problem_response(
        500, "Accident", "The server could not do that.", hint="'lore logs' has more."
    )


def problem_response(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response; `code` names the error."""
    problem = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        **({"hint": hint} if hint else {}),
    }
    body = orjson.dumps(problem)
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, PROBLEM_JSON)
