"""Secrets: found in any text, and replaced by a mark that names the kind but not the secret.

The same secret gets the same mark as long as the key is the same; without the key a mark
cannot be tried against guesses.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from typing import Any

import re2

from lore.errors import InvalidInput
from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.linear import compile_linear, find_headed, loosened
from lore.text.secret_company import find_company
from lore.text.secret_forms import FORMS, Form
from lore.text.secret_lines import find_lines, has_lines
from lore.text.secret_pem import find_pem
from lore.text.secret_places import Span, find_places, is_secret
from lore.text.secret_reading import COLOUR

__all__ = ["Redactor"]

_HASH_CHARS = 8
"""32 bits: a person's few hundred secrets differ, and a mark stays short."""

_ROUNDS = 4
"""A mark in the place of a secret can show another beside it; real text needs one round more."""

_LONG_TEXT, _LONG_ROUNDS = 32_768, 2
"""Characters from which on a text gets no more than that one, so that made ones end soon."""

_APART = "\n\0\n"
"""Stands between texts that are looked at together: no rule reads on over both of these."""

_SPLIT = compile_later(rb"[A-Za-z0-9_\-]\0[A-Za-z0-9_\-]")
"""A zero byte within a word; between words it is an end."""

_MARK = compile_later(rb"\[secret:[a-z0-9\-]{1,32}:[0-9a-f]{8}\]")
_BLANK = b"\0"
_FILLED = compile_later(rb"[^\0]+")
_BOUNDS = (r"\b", rf"(?:\\+[nrtbf]|{COLOUR}|%[0-9A-Fa-f]{{2}}|u00[0-9a-f]{{2}}|_)")
"""Keys stand at the start of a word, also where a line break or colour is escaped before them."""

_FORMS_AT_ONCE = 16
"""Forms of which one pattern tells the right one: with all in one, that takes a hundred times."""

_JUDGED = 4_096
"""Bytes of a secret by which it is told from an example."""

_AGAIN, _AGAIN_SHORTEST = 16, 8
"""Secrets that are looked for once more, how often at most, and the shortest of them."""

_JOINT = compile_later(rb"[-_]")
"""What joins a word and a key to what looks like one key."""


class Redactor:
    """Finds secrets by rules, by a person's own patterns, and spares what is allowed."""

    def __init__(
        self,
        key: bytes,
        *,
        patterns: Sequence[str] = (),
        allow: Sequence[str] = (),
        active: bool = True,
    ) -> None:
        self._key = key
        self._active = active
        self._patterns = tuple(_compiled(pattern) for pattern in patterns)
        self._allow = tuple(_compiled(pattern) for pattern in allow)

    def redact(self, text: str, *, name: str = "") -> str:
        """Return the text with a mark in the place of each secret; `name` is what it belongs to."""
        for _ in range(_ROUNDS if len(text) < _LONG_TEXT else _LONG_ROUNDS):
            data = text.encode("utf-8", "surrogatepass")
            spans = self._spans(data, name)
            if not spans:
                return text
            pieces = []
            at = 0
            for start, end, kind in spans:
                pieces += [data[at:start], self._mark(kind, data[start:end])]
                at = end
            text = b"".join([*pieces, data[at:]]).decode("utf-8", "surrogatepass")
        return text

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Return where the secrets of a text start and end, and of what kind they are."""
        data = text.encode("utf-8", "surrogatepass")
        spans = self._spans(data, "")
        if len(data) == len(text):
            return spans
        found = []
        chars = at = 0
        for start, end, kind in spans:
            first = chars + _length(data[at:start])
            chars = first + _length(data[start:end])
            at = end
            found.append((first, chars, kind))
        return found

    def holds_secret(self, texts: Iterable[str]) -> bool:
        """Tell whether any of some texts may hold a secret; one look at many short ones.

        A person's own patterns may be bound to the ends of a text, so they see one at a time.
        """
        looked_at = list(texts)
        # Keys and names have one line: joined, each would look like a value alone on its line.
        short, lined = _APART.join(t for t in looked_at if not has_lines(t)), _APART
        lined += _APART.join(t for t in looked_at if has_lines(t))
        data = short.encode("utf-8", "surrogatepass")
        whole = data + lined.encode("utf-8", "surrogatepass")
        if self._spans(whole, "", lined_from=len(data)):
            return True
        return bool(self._patterns) and any(map(self.find, looked_at))

    def _spans(self, data: bytes, name: str, *, lined_from: int = 0) -> list[Span]:
        if not self._active:
            return []
        data = _without_marks(data)
        found = [*_find_forms(data), *find_pem(data)]
        # One pattern of both would need an automaton many times as large as the two.
        found += find_places(data)
        found += find_lines(data, lined_from)
        found += find_company(data)
        found += _find_split(data)
        found += self._own(data)
        if name and is_secret(name, data.decode("utf-8", "replace")):
            found.append((0, len(data), "secret"))
        if not found:
            return []
        found += _find_again(data, found)
        if self._allow:
            found = [span for span in found if not self._is_allowed(data[span[0] : span[1]])]
        return list(_apart(data, _merged(found)))

    def _own(self, data: bytes) -> Iterator[Span]:
        for pattern in self._patterns:
            for match in pattern.finditer(data):
                start, end = match.span(1 if pattern.groups else 0)
                if start < end:
                    yield start, end, "custom"

    def _is_allowed(self, secret: bytes) -> bool:
        return any(pattern.fullmatch(secret) for pattern in self._allow)

    def _mark(self, kind: str, secret: bytes) -> bytes:
        digest = hmac.new(self._key, secret, hashlib.sha256).hexdigest()
        return f"[secret:{kind}:{digest[:_HASH_CHARS]}]".encode()


@cache
def _any_form() -> tuple[Any, Any]:
    """Return all forms as one pattern, loosened and not; it tells where one is but not which."""
    forms = "|".join(f"{form.before}(?:{form.pattern})" for form in FORMS)
    pattern = f"(?:{'|'.join(_BOUNDS)})(?:{forms})"
    return compile_linear(loosened(pattern), groups=False), compile_linear(pattern, groups=False)


@cache
def _some_forms(bound: str, first: int) -> Any:
    """Return some forms as one pattern, with a group for each."""
    some = FORMS[first : first + _FORMS_AT_ONCE]
    return compile_linear(f"{bound}(?:{'|'.join(f'{f.before}({f.pattern})' for f in some)})")


def _find_form(data: bytes, at: int) -> tuple[int, int, Form] | None:
    """Return the first form from a place on, and where it starts and ends."""
    if (found := find_headed(*_any_form(), data, at)) is None:
        return None
    for bound, first in product(_BOUNDS, range(0, len(FORMS), _FORMS_AT_ONCE)):
        if (match := _some_forms(bound, first).match(data, found.start())) is not None:
            index = match.lastindex
            return *match.span(index), FORMS[first + index - 1]
    return None


def _find_forms(data: bytes) -> Iterator[Span]:
    at = 0
    while found := _find_form(data, at):
        start, end, form = found
        if _is_meant(
            form, data[start : min(end, start + _JUDGED)], data[max(0, start - 1) : start]
        ):
            yield start, end, form.kind
            at = end
        else:
            # A word before a key may have made one of both: the key is looked for by itself.
            joint = _JOINT.search(data, start, end) if form.mixed else None
            at = joint.start() if joint and joint.start() > start else end


def _is_meant(form: Form, secret: bytes, before: bytes) -> bool:
    """Tell whether what has the form of a key is one, and no example or name."""
    value = secret.decode("latin-1")
    if form.mixed and not secret_values.is_foreign_key(value, before):
        return False
    is_example = secret_values.is_example if form.mixed else secret_values.is_example_key
    return not is_example(value) and (not form.weak or secret_values.is_drawn(value))


def _find_again(data: bytes, found: list[Span]) -> Iterator[Span]:
    """Yield where secrets that were found stand once more, with less to give them away."""
    known = {data[start:end]: kind for start, end, kind in found[:_AGAIN]}
    for secret, kind in known.items():
        if not _AGAIN_SHORTEST <= len(secret) <= _JUDGED:
            continue
        at = data.find(secret)
        for _ in range(_AGAIN):
            if at < 0:
                break
            yield at, at + len(secret), kind
            at = data.find(secret, at + len(secret))


def _find_split(data: bytes) -> Iterator[Span]:
    """Yield the keys that a zero byte splits: the text is read once more without it."""
    if b"\0" not in data or data.count(b"\0") == data.count(_APART.encode()):
        return
    places = []
    at = data.find(b"\0")
    while at >= 0:
        if at and _SPLIT.match(data, at - 1):
            places.append(at)
        at = data.find(b"\0", at + 1)
    if not places:
        return
    cuts = [place - count for count, place in enumerate(places)]
    edges = [-1, *places, len(data)]
    whole = b"".join(data[low + 1 : high] for low, high in pairwise(edges))
    for start, end, kind in _find_forms(whole):
        yield start + bisect_right(cuts, start), end + bisect_left(cuts, end), kind


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8"), options)
    except (re2.error, UnicodeError) as error:
        msg = f"'{pattern}' is no pattern that re2 understands: {error}."
        raise InvalidInput(msg, hint="See capture.redact_patterns and capture.redact_allow.") from (
            error
        )


def _merged(spans: list[Span]) -> Iterator[Span]:
    """Join spans that overlap; the kind is that of the first found, the most telling."""
    order = {span: place for place, span in reversed(list(enumerate(spans)))}
    start = end = 0
    kind, rank = "", len(spans)
    for span in sorted(spans):
        if span[0] >= end:
            if kind:
                yield start, end, kind
            (start, end, kind), rank = span, order[span]
            continue
        end = max(end, span[1])
        if order[span] < rank:
            kind, rank = span[2], order[span]
    if kind:
        yield start, end, kind


def _without_marks(data: bytes) -> bytes:
    """Blank out the marks of former redaction, so that nothing is found in them."""
    if b"[secret:" not in data:
        return data
    return _MARK.sub(lambda mark: _BLANK * len(mark.group()), data)


def _apart(data: bytes, spans: Iterator[Span]) -> Iterator[Span]:
    """Take blanked marks out of the spans, and split no character."""
    for start, end, kind in spans:
        while start and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        for piece in _FILLED.finditer(data, start, end):
            yield piece.start(), piece.end(), kind


def _length(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogatepass"))
