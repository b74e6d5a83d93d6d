"""Refusals: what the gateway itself has to say no to, in the words of the wire it is asked on."""

from __future__ import annotations

from http import HTTPStatus

import orjson

from lore.gateway.exchanges import Answer, Provider

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GEMINI = {
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


def refusal(provider: Provider, status: int, told: str) -> Answer:
    """Return an error in the shape that the clients of a provider know."""
    tree: dict[str, object]
    if provider == "anthropic":
        kind = _ANTHROPIC.get(status, "api_error")
        tree = {"type": "error", "error": {"type": kind, "message": told}}
    elif provider == "gemini":
        kind = _GEMINI.get(status, "UNAVAILABLE" if status == 502 else "INTERNAL")
        tree = {"error": {"code": status, "message": told, "status": kind}}
    else:
        kind = "server_error" if status >= 500 else "invalid_request_error"
        code = _PHRASES.get(status, "error").lower().replace(" ", "_")
        tree = {"error": {"message": told, "type": kind, "param": None, "code": code}}
    headers = (("content-type", "application/json"), *(_UPGRADE if status == 426 else ()))
    return Answer(status, headers, orjson.dumps(tree))


def error_of(provider: Provider, status: int, body: bytes) -> bytes:
    """Return the error of an upstream on one line: its own, or its text in the clients' shape."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        tree = None
    if isinstance(tree, dict) and isinstance(tree.get("error"), dict):
        return orjson.dumps(tree)
    return refusal(provider, status, body.decode(errors="replace")).body
