"""Payloads: base64 that agents put into transcripts; what is kept says that it was there."""

from __future__ import annotations

import re
from typing import Any

from lore.capture.adapters import fields
from lore.records import Origin, Part, PartKind

_URI = re.compile(r"data:([\w.+/-]{0,80})(?:;[\w=.-]{1,40}){0,3};base64,[A-Za-z0-9+/=_%-]*")
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{1000,}={0,2}")
_LONGEST_RUN = 1000
"""Longer runs of such letters are encoded bytes: words, paths and hashes are shorter."""

_PROBE = 40
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


def without_uris(text: str) -> str:
    """Return a text without the bytes of its data URIs."""
    if ";base64," not in text:
        return text
    return _URI.sub(lambda found: f"[{found[1] or 'data'}]", text)


def without(text: str) -> str:
    """Return a text of a tool without long runs of base64."""
    text = without_uris(text)
    if len(text) < _LONGEST_RUN or not _may_have_run(text):
        return text
    return _RUN.sub("[base64]", text)


def _may_have_run(text: str) -> bool:
    """Tell whether a run may be there: a run covers one of the probes, whole."""
    if not _goes_on(text):
        return False
    step = _LONGEST_RUN - _PROBE
    return any(_ALPHABET.issuperset(text[i : i + _PROBE]) for i in range(0, len(text), step))


def _goes_on(text: str) -> bool:
    """Tell whether so many letters stand together without a space or an end of a line."""
    at = 0
    while len(text) - at >= _LONGEST_RUN:
        gap = text.rfind(" ", at, at + _LONGEST_RUN)
        if gap < 0:
            gap = text.rfind("\n", at, at + _LONGEST_RUN)
        if gap < 0:
            return True
        at = gap + 1
    return False


def reference(block: dict[str, Any], origin: Origin | None = None) -> Part:
    """Return an image or document as what it is called and where it is, without its bytes.

    What a document says was written by someone else than who attached it.
    """
    kind: PartKind = "image" if "image" in fields.text(block.get("type")) else "document"
    source = fields.table(block.get("source")) or fields.table(block.get("image_url"))
    source = source or fields.table(block.get("file")) or block
    sort = _first(source, "media_type", "mime", "mimeType", "mime_type") or kind
    name = _first(block, "title", "filename", "file_name") or _first(source, "filename", "name")
    place = fields.text(block.get("image_url")) or _first(source, "url", "file_id", "path", "uri")
    if found := _URI.match(place):
        sort, place = found[1] or sort, ""
    if kind == "document" and source.get("type") == "text":
        return Part(kind, fields.text(source.get("data")), name, origin=origin or "tool")
    told = " ".join(word for word in (name, place) if word)
    return Part(kind, f"[{sort}] {told}".rstrip(), name, origin=origin)


def _first(table: dict[str, Any], *names: str) -> str:
    return next((told for name in names if (told := fields.text(table.get(name)))), "")
