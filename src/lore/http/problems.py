"""Problems: what went wrong, as problem+json; one table from errors to status codes."""

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
    EmbedderError,
    InvalidInput,
    LoreError,
    NotFound,
    ProviderError,
    RateLimited,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
)

PROBLEM = "application/problem+json"

STATUS_OF: dict[type[LoreError], int] = {
    LoreError: 500,
    InvalidInput: 422,
    CaptureError: 422,
    NotFound: 404,
    StoreBusy: 503,
    StoreReadOnly: 503,
    StoreFull: 507,
    EmbedderError: 503,
    ProviderError: 502,
    RateLimited: 503,
    BudgetSpent: 503,
}
"""An error that is not here has the status of the nearest one above it in the tree."""


def status_of(kind: type[LoreError]) -> int:
    """Return the status code of a kind of error."""
    return next(STATUS_OF[above] for above in kind.__mro__ if above in STATUS_OF)


def of_error(error: LoreError) -> Response:
    """Return the response for one of Lore's errors."""
    headers = {}
    if isinstance(error, RateLimited) and error.retry_after_s:
        headers["retry-after"] = str(math.ceil(error.retry_after_s))
    status = status_of(type(error))
    return _response(status, type(error).__name__, str(error), hint=error.hint, headers=headers)


def of_shut(error: LoreError) -> Response:
    """Return the response of a server that runs without its memory."""
    return _response(503, type(error).__name__, str(error), hint=error.hint)


_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Lore</title>
<h1>Lore runs here</h1>
<p>What it remembers is shown to the person it belongs to. In a terminal of theirs,</p>
<pre>lore open</pre>
<p>opens this page for them, logged in.</p>
"""
"""For a person who typed the address; it says nothing that a program is not told."""

_NOTHING_ELSE = {"content-security-policy": "default-src 'none'", "cache-control": "no-store"}


def of_refusal(refused: HTTPException, scope: Scope) -> Response:
    """Return the response for a request that HTTP itself cannot let pass."""
    if refused.status_code == HTTPStatus.UNAUTHORIZED and _is_browsing(scope):
        headers = {**_NOTHING_ELSE, **(refused.headers or {})}
        return HTMLResponse(_PAGE, refused.status_code, headers)
    name = HTTPStatus(refused.status_code).phrase.title().replace(" ", "").replace("-", "")
    return _response(refused.status_code, name, refused.detail, headers=refused.headers)


def of_malformed(told: str) -> Response:
    """Return the response for what is no request at all; nothing that follows can be one."""
    return _response(400, "BadRequest", told, headers={"connection": "close"})


def of_stop() -> Response:
    """Return the response for what is cut off, for the server stops."""
    return _response(503, "Stopping", "The server stops.", headers={"connection": "close"})


def _is_browsing(scope: Scope) -> bool:
    """Tell whether a person looks, with a browser."""
    return scope["method"] == "GET" and "text/html" in Headers(scope=scope).get("accept", "")


def of_accident() -> Response:
    """Return the response for what nobody foresaw; what it was stands in the log only."""
    return _response(500, "Accident", "The server could not do that.", hint="'lore logs' has more.")


def _response(
    status: int,
    code: str,
    detail: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    told = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        **({"hint": hint} if hint else {}),
    }
    body = orjson.dumps(told)
    return Response(body, status, {"cache-control": "no-store", **(headers or {})}, PROBLEM)
