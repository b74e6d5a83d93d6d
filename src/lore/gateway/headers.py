"""Headers: which of them go on to upstream, and which come back to the client."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode

RawHeaders = Iterable[tuple[bytes, bytes]]

HOP_BY_HOP = frozenset({
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
})
"""What concerns one connection and not those behind it (RFC 9110, 7.6.1)."""

_NOT_FOR_UPSTREAM = HOP_BY_HOP | {b"host", b"content-length", b"expect", b"cookie"}
"""What is said anew towards upstream: another host, maybe another body, other cookies."""

SHOWN = frozenset({
    "content-encoding",
    "originator",
    "session-id",
    "session_id",
    "thread-id",
    "thread_id",
    "user-agent",
    "x-claude-code-agent-id",
    "x-claude-code-session-id",
    "x-codex-turn-metadata",
    "x-lore-project",
    "x-parent-session-id",
    "x-session-id",
})
"""What memory reads of a request's headers: who asks, and how the body is written. Nobody can list
the names under which the world sends its keys, so nothing else is shown."""

_SHOWN_PARAMETER = "alt"
"""By this one, Gemini tells whether it streams."""

_OF_LORE = b"x-lore-"
_LORE_COOKIE = "lore_"
_LORE_KEY = b"lore_"

_SECRET = re.compile(rb"key|auth|token|secret")
"""What the name of a header or of a parameter has in it where a provider's key may stand."""


def for_upstream(
    headers: RawHeaders, *, identity: bool, changed: bool = False
) -> list[tuple[str, str]]:
    """Return the headers of a client as upstream is given them.

    `identity` asks for an answer that can be read; a body that was `changed` has no encoding.
    """
    kept = list(headers)
    dropped = _NOT_FOR_UPSTREAM | _named_by_connection(kept)
    if identity:
        dropped |= {b"accept-encoding"}
    if changed:
        dropped |= {b"content-encoding"}
    told = [
        (name.decode("latin-1"), _decoded(value))
        for name, value in kept
        if name not in dropped and not name.startswith(_OF_LORE)
    ]
    cookies = (_decoded(value) for name, value in kept if name == b"cookie")
    told += [("cookie", others) for others in map(_without_ours, cookies) if others]
    return [*told, ("accept-encoding", "identity")] if identity else told


def for_client(headers: RawHeaders, *, spliced: bool = False) -> list[tuple[bytes, bytes]]:
    """Return the headers of upstream as the client is given them; the server adds its own date.

    What is `spliced` has another length, and is unpacked.
    """
    kept = [(name.lower(), value) for name, value in headers]
    dropped = HOP_BY_HOP | _named_by_connection(kept) | {b"date"}
    if spliced:
        dropped |= {b"content-length", b"content-encoding"}
    return [(name, value) for name, value in kept if name not in dropped]


def to_show(headers: Mapping[str, str]) -> dict[str, str]:
    """Return what of a client's headers may be shown to others than upstream."""
    return {name: value for name, value in headers.items() if name in SHOWN}


def query_to_show(query: str) -> str:
    """Return what of a query may be shown to others than upstream."""
    return urlencode([pair for pair in parse_qsl(query) if pair[0] == _SHOWN_PARAMETER])


def shows_key_of_lore(headers: RawHeaders, target: str) -> bool:
    """Tell whether a client shows a key of Lore as if it were its provider's."""
    query = target.partition("?")[2].encode("latin-1")
    pairs = [(name, value) for name, value in headers if not name.startswith(_OF_LORE)]
    pairs += [(name.lower(), value) for name, value in parse_qsl(query)]
    # a scheme may stand before it
    words = [word for name, value in pairs if _SECRET.search(name) for word in value.split()]
    return any(word.startswith(_LORE_KEY) for word in words)


def _decoded(value: bytes) -> str:
    """Return a value so that UTF-8, which it is written in, has the same bytes."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _named_by_connection(headers: RawHeaders) -> frozenset[bytes]:
    named = [value for name, value in headers if name == b"connection"]
    return frozenset(one.strip().lower() for value in named for one in value.split(b","))


def _without_ours(cookies: str) -> str:
    """Return cookies without those that let a browser into this server."""
    pairs = [pair for pair in cookies.split(";") if not pair.strip().startswith(_LORE_COOKIE)]
    return ";".join(pairs).strip()
