"""Secret addresses: passwords and signatures in URLs and connection strings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.secret_fitting import Span, chosen, fits, is_striking
from lore.text.secret_reading import Value, read_address, read_value

__all__ = ["ADDRESSES", "ADDRESS_HEADS", "JUDGES"]

_QUERY = (
    r"[?&](?:amp;|u0026)?(?:key|k|signature|x-(?:amz|goog)-signature|hmac|sign|sid|code|app_?id"
    r"|auth|ticket|jwt|sas|assertion|wskey|subscription-key|oauth_signature|apitoken|sk)="
    r"|,[ ]?signature=|-dsonar\.login="
)
ADDRESSES = (
    rf"(?P<query>{_QUERY}|\t(?:TRUE|FALSE)\t\d{{1,12}}\t[^\t\n]{{1,60}}\t)"
    r"|(?P<url>://[^\s:/?#@\[\"'`<>\\]*:)"
    r"|(?P<escaped>%3a%2f%2f[^%\s\"'`]+%3a)[^%\s\"'`]+%40"
    r"|(?P<lone>://)[A-Za-z0-9_\-]{20,}@"
    r"|(?P<dsn>@)(?:(?:tcp|udp|unix)\(|[\w\-]+(?:\.[\w\-]+)+:\d{2,5}\b)"
)
"""Places in an address; each group has its judge below."""

ADDRESS_HEADS = (
    rf"{_QUERY}|\t(?:TRUE|FALSE)\t\d|://[^\s:/?#@\[\"'`<>\\]*:|%3a%2f%2f|://[A-Za-z0-9_\-]+@"
    r"|@(?:(?:tcp|udp|unix)\(|[\w\-]+(?:\.[\w\-]+)+:\d)"
)
"""How each of these begins."""

_DSN = compile_later(rb"(?:^|[\s\"'=`])[A-Za-z][\w.\-]{0,32}:([^\s:/@\"'`<>\\]{4,64})$")
_DSN_BYTES = 100
"""So far back the user of an address without a scheme is looked for."""


def _query(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if fits("auth", value.text, bare=True):
        yield value.start, value.end, "secret"


def _address(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_address(data, at)
    if value is not None:
        yield from chosen(value, "url-password")


def _dsn(data: bytes, found: Any, _at: int) -> Iterator[Span]:
    end = found.start()
    password = _DSN.search(data, max(0, end - _DSN_BYTES), end)
    if password is None:
        return
    text = password.group(1).decode("utf-8", "replace")
    if is_striking(text):
        yield from chosen(Value(password.start(1), end, text), "url-password")


def _lone(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    end = data.index(b"@", at)
    if secret_values.is_random(data[at:end].decode("latin-1"), least=20):
        yield at, end, "url-password"


def _escaped(data: bytes, found: Any, at: int) -> Iterator[Span]:
    end = found.end() - len(b"%40")
    yield from chosen(Value(at, end, data[at:end].decode("latin-1")), "url-password")


JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "query": _query, "url": _address, "escaped": _escaped, "lone": _lone, "dsn": _dsn,
}  # fmt: skip
