"""Error responses of the gateway, in the format of the provider that a client expects."""

from __future__ import annotations

from http import HTTPStatus

import orjson

from lore.gateway.plugin_protocol import LocalResponse, Provider

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


def upstream_error_body(provider: Provider, status: int, body: bytes) -> bytes:
    """Return an upstream error as one line of JSON, wrapped in the provider's format if needed."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        tree = None
    if isinstance(tree, dict) and isinstance(tree.get("error"), dict):
        return orjson.dumps(tree)
    return error_response(provider, status, body.decode(errors="replace")).body
