"""Glancing: what a request says of its cost, without a look at what it tells the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec

from lore.errors import InvalidInput
from lore.gateway.exchanges import Incoming

_LONG_CACHE = re.compile(rb'"ttl"\s*:\s*"1h"')
_PATH_MODEL = re.compile(r"/models/([^/:]{1,200}):")
_STREAMING = "alt=sse"
"""Else Gemini sends a stream as one list."""

_COMMAND = b"lore:"
"""What a person types to Lore itself begins so, in any case of letters."""

_LAST = 4
"""A command is the last that was said: agents put a message or two of their own behind it."""

_INNER = (b"maxOutputTokens", b"candidateCount")
"""What Gemini is told one step deeper."""


class _Head(msgspec.Struct):
    """What stands at the top of a request on any wire; the rest is skipped."""

    model: Any = ""
    stream: Any = False
    max_tokens: Any = None
    max_completion_tokens: Any = None
    max_output_tokens: Any = None
    n: Any = None
    service_tier: Any = None
    speed: Any = None
    generationConfig: Any = None  # noqa: N815 - as Gemini spells it


class _Talk(msgspec.Struct):
    """What is said, as each wire calls it; read no further than where it ends."""

    messages: msgspec.Raw = msgspec.Raw()
    input: msgspec.Raw = msgspec.Raw()
    contents: msgspec.Raw = msgspec.Raw()


_NAME = rb'"(%b)"\s*+:' % b"|".join((*(one.encode() for one in _Head.__struct_fields__), *_INNER))
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
"""It may be cut off."""
_PART = re.compile(
    rb'(?:[^"\[\]{}]++|(?!%b)%b)*+(?:%b|([\[{]++)|([\]}]++)|\Z)' % (_NAME, _TEXT, _NAME), re.DOTALL
)
"""The next name of those above, or brackets, or the end; what stands before is passed over."""
_TOLD = re.compile(rb'\s*(?:"([^"]{0,200})"|(\d++)(?![.eE])|(true)\b)')
"""What stands behind a name: a text, a number or a yes."""
_DEEPEST = 2
_DIGITS = 20
"""A number of more is as good as none."""


@dataclass(frozen=True, slots=True)
class Glance:
    """The model of a request, what it asks for, and how long it is without encodings."""

    model: str
    asks: dict[str, object]
    streams: bool
    length: int
    long: bool = False
    """It asks for something to be cached for an hour."""


def glance(incoming: Incoming) -> Glance:
    """Return what a request says of its cost, as far as that can be found."""
    try:
        body = incoming.body()
    except InvalidInput:
        body = incoming.raw
    try:
        head = msgspec.structs.asdict(msgspec.json.decode(body, type=_Head))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # Upstreams read some things that are no JSON by the letter, and deeper ones.
        head = {"model": "", "stream": False, **_skimmed(body)}
    named = _PATH_MODEL.search(incoming.path)
    told = head.pop("model")
    model = told if isinstance(told, str) and told else named[1] if named else ""
    streams = head.pop("stream") is True or _STREAMING in incoming.target
    return Glance(model, head, streams, len(body), is_cached_long(body))


def may_be_command(incoming: Incoming) -> bool:
    """Tell whether a request may end with what a person typed to Lore; 1 MB takes a millisecond."""
    try:
        body = incoming.body()
    except InvalidInput:
        return False
    try:
        talk = msgspec.json.decode(body, type=_Talk)
        said = bytes(talk.messages or talk.input or talk.contents)
        parts = msgspec.json.decode(said, type=list[msgspec.Raw])[-_LAST:]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _COMMAND in body.lower()
    return any(_COMMAND in bytes(part).lower() for part in parts)


def is_cached_long(body: bytes) -> bool:
    """Tell whether a request asks for anything to be cached for an hour."""
    return _LONG_CACHE.search(body) is not None


def _skimmed(body: bytes) -> dict[str, object]:
    """Return what stands at the top of a body of any shape and depth, as far as it is plain."""
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
        elif name and depth <= _DEEPEST and (told := _TOLD.match(body, part.end())):
            if depth == 1 and name not in _INNER:
                top[name.decode()] = _value(told)
            elif depth > 1 and name in _INNER:
                inner[name.decode()] = _value(told)
    return {**top, "generationConfig": inner} if inner else top


def _value(told: re.Match[bytes]) -> object:
    text, number, _ = told.groups()
    if text is not None:
        return text.decode(errors="replace")
    return int(number[:_DIGITS]) if number else True
