"""Texts inside stored values of task memory: found as they read, and cut out one by one.

A value is JSON, or a file of a layout: a frame around records, a text, or bytes in base64. A text
is compared as it reads, not as JSON or base64 writes it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

IsForgotten = Callable[[str], bool]

_MOST_LINES = 4
"""Over so many lines of a file a forgotten text is found and cut out."""

_ENCODINGS = ("latin-1", "utf-16-le", "utf-16-be")

_GONE: Final[Any] = object()


def read_texts(stored: str) -> Iterator[str]:
    """Yield the texts of a stored value as they read, names and values alike."""
    value = _parse(stored)
    if _is_bytes(value):
        yield from _readings(value["data"])
        return
    waiting = [stored if value is None else value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
            waiting += _inner_values(one)
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list):
            waiting += one


def cut_texts(stored: str, is_forgotten: IsForgotten) -> tuple[str | None, set[str]]:
    """Return a value without what is forgotten, and the texts that were cut.

    None stands for a value of which nothing is left. An entry of a list goes as a whole.
    """
    cutter = _Cutter(is_forgotten)
    value = _parse(stored)
    if value is None:
        left: Any = cutter.cut_file(stored)
    elif _is_bytes(value):
        left = _GONE if cutter.is_cut(value["data"], *_readings(value["data"])) else value
    elif _is_frame(value):
        left = cutter.cut_frame(value)
    elif isinstance(value, dict) and set(value) == {"text"} and isinstance(value["text"], str):
        text = cutter.cut_file(value["text"])
        left = text if text is _GONE else {"text": text}
    else:
        left = cutter.cut(value)
    if not cutter.texts:
        return stored, set()
    if left is _GONE or not left:
        return None, cutter.texts
    return (left if value is None else json.dumps(left, ensure_ascii=False)), cutter.texts


def has_text(stored: str, names: Collection[str]) -> bool:
    """Return whether a value of a stored table, under one of some names, has a text."""
    table = _parse(stored)
    waiting = [table.get(name) for name in names] if isinstance(table, dict) else []
    while waiting:
        one = waiting.pop()
        if isinstance(one, str) and one.strip():
            return True
        if isinstance(one, dict | list):
            waiting += one.values() if isinstance(one, dict) else one
    return False


class _Cutter:
    """Cuts forgotten texts out of values, and remembers which."""

    def __init__(self, is_forgotten: IsForgotten) -> None:
        self._is_forgotten = is_forgotten
        self.texts: set[str] = set()

    def is_cut(self, text: str, *readings: str) -> bool:
        """Return whether a text or one of its readings is forgotten."""
        matches = {text for one in (text, *readings) if self._is_forgotten(one)}
        self.texts |= matches
        return bool(matches)

    def cut(self, value: Any, *, is_entry: bool = False) -> Any:
        """Return a value without its forgotten texts."""
        if isinstance(value, str):
            inner = [text for one in _inner_values(value) for text in read_texts(json.dumps(one))]
            return _GONE if self.is_cut(value, *inner) else value
        if isinstance(value, list):
            entries = [self.cut(one, is_entry=True) for one in value]
            return [one for one in entries if one is not _GONE]
        if not isinstance(value, dict):
            return value
        remaining = {name: self.cut(one) for name, one in value.items() if not self.is_cut(name)}
        left = {name: one for name, one in remaining.items() if one is not _GONE}
        return _GONE if is_entry and len(left) < len(value) else left

    def cut_frame(self, frame: dict[str, Any]) -> Any:
        """Return the frame of a list; its entries have places there."""
        others = [(place, self.cut(one, is_entry=True)) for place, one in frame["others"]]
        remaining = [[place, one] for place, one in others if one is not _GONE]
        return {**frame, "around": self.cut(frame["around"]), "others": remaining}

    def cut_file(self, text: str) -> Any:
        """Return the text of a file: JSON without the entries, other text without the lines."""
        value = _parse(text)
        if value is None:
            left = self._cut_lines(text)
        else:
            before = len(self.texts)
            remaining = self.cut(value)
            is_same = len(self.texts) == before
            left = text if is_same else json.dumps(remaining, ensure_ascii=False, indent=2) + "\n"
            left = left if remaining else ""
        return _GONE if not left.strip() or self.is_cut(left) else left

    def _cut_lines(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        filled = [i for i, line in enumerate(lines) if line.strip()]
        gone: set[int] = set()
        for size in range(1, _MOST_LINES + 1):
            for start in range(len(filled) - size + 1):
                places = filled[start : start + size]
                if not gone.isdisjoint(places):
                    continue
                shown = "".join(lines[i] for i in places)
                inner = _inner_values(shown) if size == 1 else []
                readings = [one for value in inner for one in read_texts(json.dumps(value))]
                if self.is_cut(shown, *readings):
                    gone.update(places)
        return "".join(line for i, line in enumerate(lines) if i not in gone)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"data"} and isinstance(value["data"], str)


def _is_frame(value: Any) -> bool:
    """Return whether a value is a frame around records, whose other entries have places."""
    if not isinstance(value, dict) or "around" not in value:
        return False
    others = value.get("others")
    pairs = isinstance(others, list) and all(isinstance(one, list) for one in others)
    return pairs and all(len(one) == 2 for one in value["others"])


def _readings(data: str) -> Iterator[str]:
    """Yield what bytes in base64 may say."""
    yield data
    try:
        raw = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return
    for encoding in _ENCODINGS:
        yield raw.decode(encoding, "ignore")


def _inner_values(text: str) -> list[Any]:
    """Return the JSON values that a text is, or that its lines are."""
    if "{" not in text and "[" not in text:
        return []
    whole = _parse(text)
    values = [whole] if whole is not None else map(_parse, text.splitlines())
    return [value for value in values if value is not None]


def _parse(text: str) -> Any:
    """Return an object or a list; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
