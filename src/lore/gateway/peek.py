"""Peeks at a request for its cost, or for a command, without parsing its messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from lore.errors import InvalidInput
from lore.gateway.plugin_protocol import ClientRequest

_LONG_CACHE = re.compile(rb'"ttl"\s*:\s*"1h"')
_PATH_MODEL = re.compile(r"/models/([^/:]{1,200}):")
_STREAMING = "alt=sse"
"""Without it, Gemini sends a stream as one list."""

_COMMAND = b"lore:"
"""Start of a command to Lore, in any case."""

_LAST_MESSAGES = 4
"""A command is the last typed message: agents put a message or two of their own behind it."""

_NESTED_NAMES = (b"maxOutputTokens", b"candidateCount")
"""Names that Gemini nests in `generationConfig`."""


class _Head(msgspec.Struct):
    """The top-level fields of a request in any API; the rest is skipped."""

    model: Any = ""
    stream: Any = False
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    n: Any = None
    service_tier: Any = None
    speed: Any = None
    generationConfig: Any = None  # noqa: N815 - as Gemini spells it


class _Conversation(msgspec.Struct):
    """The messages, as each API names them; not parsed further."""

    messages: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    contents: msgspec.Raw = msgspec.Raw()


_NAME = rb'"(%b)"\s*+:' % b"|".join((
    *(one.encode() for one in _Head.__struct_fields__),
    *_NESTED_NAMES,
))
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""A string, which may be cut off."""
_PART = re.compile(
    rb'(?:[^"\[\]{}]++|(?!%b)%b)*+(?:%b|([\[{]++)|([\]}]++)|\Z)' % (_NAME, _TEXT, _NAME), re.DOTALL
)
"""The next known name, brackets, or the end; skips what comes before."""
_VALUE = re.compile(rb'\s*(?:"([^"]{0,200})"|(\d++)(?![.eE])|(true)\b)')
"""What follows a name: a text, a number or `true`."""
_MAX_DEPTH = 2
_MAX_DIGITS = 20
"""A longer number is as good as none."""


@dataclass(frozen=True, slots=True)
class CostPeek:
    """The model of a request, what it asks for, and its decoded length."""

    model: str
    asks: dict[str, object]
    streams: bool
    length: int
    long: bool = False
    """Whether it asks for a cache of one hour."""


def peek_cost(incoming: ClientRequest) -> CostPeek:
    """Return what a request says of its cost, as far as it can be found."""
    try:
        body = incoming.body()
    except InvalidInput:
        body = incoming.raw
    try:
        head = msgspec.structs.asdict(msgspec.json.decode(body, type=_Head))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Upstreams accept some malformed JSON, and deeper nesting.
        head = {"model": "", "stream": False, **_scan(body)}
    path_model = _PATH_MODEL.search(incoming.path)
    match = head.pop("model")
    model = match if isinstance(match, str) and match else path_model[1] if path_model else ""
    streams = head.pop("stream") is True or _STREAMING in incoming.target
    return CostPeek(model, head, streams, len(body), has_long_cache(body))


def may_be_command(incoming: ClientRequest) -> bool:
    """Return whether a request may end with a command to Lore; 1 MB takes a millisecond."""
    try:
        body = incoming.body()
    except InvalidInput:
        return False
    try:
        conversation = msgspec.json.decode(body, type=_Conversation)
        messages = bytes(conversation.messages or conversation.input or conversation.contents)
        parts = msgspec.json.decode(messages, type=list[msgspec.Raw])[-_LAST_MESSAGES:]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _COMMAND in body.lower()
    return any(_COMMAND in bytes(part).lower() for part in parts)


def has_long_cache(body: bytes) -> bool:
    """Return whether a request asks for a cache of one hour."""
    return _LONG_CACHE.search(body) is not None


def _scan(body: bytes) -> dict[str, object]:
    """Return the top-level fields of a body that is no valid JSON, as far as they are plain."""
    top: dict[str, object] = {}
    inner: dict[str, object] = {}
    depth = 0
    for part in _PART.finditer(body):
        _, name, opening, closing = part.groups()
        if opening:
            depth += len(opening)
        elif closing:
            depth -= len(closing)
            if depth <= 0:
                break
        elif name and depth <= _MAX_DEPTH and (match := _VALUE.match(body, part.end())):
            if depth == 1 and name not in _NESTED_NAMES:
                top[name.decode()] = _value(match)
            elif depth > 1 and name in _NESTED_NAMES:
                inner[name.decode()] = _value(match)
    return {**top, "generationConfig": inner} if inner else top


def _value(match: re.Match[bytes]) -> object:
    text, number, _ = match.groups()
    if text is not None:
        return text.decode(errors="replace")
    return int(number[:_MAX_DIGITS]) if number else True
