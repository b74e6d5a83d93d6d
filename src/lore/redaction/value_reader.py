"""Value reader: find where a value ends, in quotes or bare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lore.redaction import compile_bytes, load_pattern
from lore.text.regex import compile_lazy

LONGEST_VALUE = 2_048
"""Bytes to search for the end of a value, so that nested quotes cost linear time."""

JUDGED_BYTES = 256
"""Bytes of a value that the checks look at."""

QUOTE = load_pattern("quote")

ANSI_COLOUR = load_pattern("ansi_colour")

GAP = load_pattern("gap")

_OPENING = compile_lazy(
    rb"[bfruNL@$]{0,2}\\*(?:\"\"\"|''\'|[\"'`])|r#{1,3}\"|&quot;|&#3[49];|%2[27]|\\+u002[27]"
)
_PREFIXES = b"bfruNL@$#"
_BARE = compile_lazy(
    rb"(?:[^\x00\x1b\s\"'`\\<>|,;&]|\\[^nrt\"'`\\u]|&(?![&\s]|[\w.\-%\[\]]+=|#?\w+;|$))+"
)
"""A value without quotes; `&` belongs to it unless another field or an entity follows."""

_WHOLE_LINE = compile_lazy(rb"(?:[^\x00\x1b\s\"'`\\]|\\[^nrt\"'`\\])+")
_ADDRESS = compile_lazy(rb"[^\x00\s\"'`\\<>]+")
_STOP = compile_lazy(rb"\xef\xbc[\x8c\x9b\x89]|\xe3\x80|\xe2\x80[\x98-\x9f]")
"""Non-ASCII punctuation that ends a value in prose."""

_HOST = compile_lazy(rb"[A-Za-z0-9\[$%{_.\-]")
_PORT = compile_lazy(rb"\d{1,5}(?:[/?#,]|$)")


_APP_PASSWORD = compile_bytes("app_password")
_PRONOUNCEABLE = compile_lazy(rb"^.(?:[aeiouy]|.[aeiouy])")


_ENTRY = compile_lazy(
    rb"(?:^|\n)(?:[ \t]*\d{1,6}(?:\xe2\x86\x92|\t|:))?[+\-]?[ \t]*(?:-[ \t]+)?"
    rb"(?:(?:export|set|ENV|ARG)[ \t]+(?:[A-Za-z_]\w*=[^\s\"'`]*[ \t]+)*)?[\w.\-]+[ \t]*[=:][ \t]*$"
)
"""The name of a setting that has a line for itself, also in a diff or a numbered listing."""

_ALONE = compile_lazy(rb"[^\s\x00\x1b]+(?=[ \t]*(?:\r?\n|\Z|[ \t]#))")
_MARKUP = compile_lazy(rb"</[A-Za-z][\w\-]*>|<br/?>|&(?:amp|quot|lt|gt|#\d+);")
_OTHER_FIELD = compile_lazy(_MARKUP.pattern + rb"|[&;,][A-Za-z_]{2,}=")
"""What may follow a value without a space: markup, another field of a form."""

_VARIABLE = compile_lazy(rb"[A-Z0-9_.\-]*=")

_CODE_END = ",;)"
"""Ends a value in code; in a settings file it may belong to the value."""

_SECTION = compile_lazy(rb"(?:^|\n)[+ ]?\[[\w.\- ]+\][ \t]*\r?\n(?:[^\n({]*\r?\n)*$")
_PLAIN_ENTRY = compile_lazy(
    rb"(?:^|\n)[+\- \t]*[\w.\-]+:[ \t]+(?:\d+|true|false|yes|no|localhost|[\w\-]+(?:\.[\w\-]+)+)"
    rb"[ \t]*(?=\r?\n|\Z)"
)
"""A number, a switch or a host, without the comma or semicolon of code."""

_ACCOUNT_ENTRY = rb"[+\- \t]*(?:user(?:_?name)?|login|account|email|host):[ \t]+[^\s,;]+[ \t]*"
_AFTER_ACCOUNT = compile_lazy(rb"(?:^|\n)" + _ACCOUNT_ENTRY + rb"\r?\n\Z")
_BEFORE_ACCOUNT = compile_lazy(rb"[ \t]*\r?\n" + _ACCOUNT_ENTRY + rb"(?:\r?\n|\Z)")
"""The entry of a user or a host, in the line beside a password."""

_COMPOUND_NAME = compile_lazy(rb"(?:^|\n)[+\- \t]*[a-z][a-z0-9]*(?:[_.][a-z0-9]+)+[ \t]*:[ \t]+\Z")
"""A name that consists of several words; sentences have none."""

_PROPERTY = compile_lazy(rb"(?:^|\n)[a-z][\w\-]*(?:\.[a-z][\w\-]*){2,}=\Z")
"""A property of Java, without the spaces that code has."""

_AFTER_COLON = compile_lazy(rb":[ \t]+\Z")
_ALIGNED_BYTES = 32
"""Bytes between a colon and a value that is aligned with others."""

_COMMENT = compile_lazy(rb"[ \t]+#[ \t]*\w")

_AROUND_BYTES = 240

_ENTRY_BYTES = 96
"""Bytes before a value in which the line of its setting starts."""

_REQUOTED = (b"'\"'\"'", b"'\\''")
"""A single quote within single quotes, as a shell writes it."""


Span = tuple[int, int, str]
"""Where a secret starts and ends, in bytes, and its kind.

Without a kind it is a value that is redacted as a whole if another rule finds a secret in it.
"""

Judge = Callable[[bytes, Any, int], Iterator[Span]]
"""Yield the secrets at a match, given the data, the match and the end of its named group.

A rule is a place where a secret may stand: a pattern of `rules/patterns.txt` with a group of the
rule's name that ends where the value starts, and a judge that decides about the value.
"""


class Value(NamedTuple):
    """A value, its offsets in bytes, and whether it is quoted."""

    start: int
    end: int
    text: str
    quoted: bool = False


def read_value(data: bytes, at: int, *, whole_line: bool = False, prose: bool = False) -> Value:
    """Return the value that starts at an offset."""
    start = skip_quote(data, at)
    if start > at:
        inner = skip_quote(data, start)
        if data[start : start + 1] == b"\\" and inner > start:
            at, start = start, inner
        end = _closing(data, data[at:start].lstrip(_PREFIXES), start)
        if end >= 0:
            return _value(data, start, end, quoted=True)
        at = start
    match = (_WHOLE_LINE if whole_line else _BARE).match(data, at, at + JUDGED_BYTES)
    if match is None:
        return Value(at, at, "")
    text = match.group()
    if prose and (stop := _STOP.search(text)):
        text = text[: stop.start()]
    trimmed = text if whole_line else text.rstrip(b")]},:" + (b".!?*" if prose else b""))
    return _value(data, at, at + len(trimmed), quoted=False)


def read_quoted(data: bytes, at: int) -> Value | None:
    """Return the value in quotes that starts at an offset."""
    value = read_value(data, at)
    return value if value.quoted and value.text else None


def read_entry(data: bytes, at: int, *, name_at: int) -> Value | None:
    """Return the value of a setting, if it has no quotes and is alone on the rest of its line.

    Its text lacks what may be the end of a statement, and the value has it.
    """
    variable = _VARIABLE.match(data, name_at, at)
    at = variable.end() if variable else at
    if not _ENTRY.search(data, max(0, name_at - _ENTRY_BYTES), at) or skip_quote(data, at) > at:
        return None
    alone = _ALONE.match(data, at)
    if alone is None:
        return None
    following = _OTHER_FIELD if data[at - 1 : at] == b"=" else _MARKUP
    field = None if variable else following.search(alone.group())
    value = _value(data, at, field.start() + at if field else alone.end(), quoted=False)
    return value._replace(text=value.text.rstrip(_CODE_END))


def is_in_settings(data: bytes, value: Value) -> bool:
    """Return whether a value stands in settings, so that a word is no variable and no remark.

    In YAML the name, a comment behind the value or an entry beside it gives that away.
    """
    line = data.rfind(b"\n", 0, value.start) + 1
    is_whole = value.end - value.start == len(value.text)
    if is_whole and _AFTER_COLON.search(data, max(0, value.start - _ALIGNED_BYTES), value.start):
        above, below = max(0, line - _AROUND_BYTES), value.end + _AROUND_BYTES
        return bool(
            _COMPOUND_NAME.search(data, max(0, line - 1), value.start)
            or _COMMENT.match(data, value.end, below)
            or _PLAIN_ENTRY.search(data, above, line)
            or _PLAIN_ENTRY.search(data, value.end, below)
            or _AFTER_ACCOUNT.search(data, above, line)
            or _BEFORE_ACCOUNT.match(data, value.end, below)
        )
    if _PROPERTY.search(data, max(0, line - 1), value.start):
        return True
    return _SECTION.search(data, max(0, line - _AROUND_BYTES), line) is not None


def skip_quote(data: bytes, at: int) -> int:
    """Return the offset after an opening quote, or the same offset if there is none."""
    opening = _OPENING.match(data, at)
    return opening.end() if opening else at


def _value(data: bytes, start: int, end: int, *, quoted: bool) -> Value:
    return Value(
        start, end, data[start : min(end, start + JUDGED_BYTES)].decode("utf-8", "replace"), quoted
    )


def match_app_password(data: bytes, at: int) -> re.Match[bytes] | None:
    """Match an app password: groups of four letters, as mail providers issue them."""
    match = _APP_PASSWORD.match(data, at, at + 30)
    if match is None or all(map(_PRONOUNCEABLE.match, re.split(rb"[ \-]", match.group()))):
        return None
    return match


def full_end(data: bytes, start: int, end: int) -> int:
    """Return the end of a secret that is longer than the bytes that were checked."""
    if end - start < JUDGED_BYTES:
        return end
    rest = _WHOLE_LINE.match(data, end)
    return rest.end() if rest else end


_CLOSERS = b" \t\r\n,;)]}"
"""What follows the quote at the end of a value."""


def _closing(data: bytes, quote: bytes, start: int) -> int:
    """Return where the quote closes on the same line, or -1.

    A quote in JSON that is itself escaped has more backslashes within the value than at its ends.
    Within single quotes a backslash may stand for itself.
    """
    line = data.find(b"\n", start, start + LONGEST_VALUE)
    limit = line if line >= 0 else min(len(data), start + LONGEST_VALUE)
    mark = quote.lstrip(b"\\")
    level = len(quote) - len(mark)
    at, literal = start, -1
    while (end := data.find(mark, at, limit)) >= 0:
        at = end + len(mark)
        if data.startswith(_REQUOTED, end) and mark == b"'":
            at = end + (5 if data[end + 1] == 0x22 else 4)
            continue
        slashes = end - start - len(data[start:end].rstrip(b"\\"))
        if (slashes - level) % (2 * level + 2) == 0 and slashes >= level:
            return end - level
        if literal < 0 and slashes == 1 and mark == b"'" and data[at : at + 1] in _CLOSERS:
            literal = end
    return literal


def read_url_password(data: bytes, at: int) -> Value | None:
    """Return the password in a URL, between the colon after the user and the @ before the host."""
    match = _ADDRESS.match(data, at, at + LONGEST_VALUE)
    if match is None or _PORT.match(match.group()):
        return None
    run = match.group()
    cut = next((i for i, byte in enumerate(run) if byte in b"/?#"), len(run))
    end = run.rfind(b"@", 0, cut)
    if end < 0:
        end = run.find(b"@")
    if end < 1 or not _HOST.match(run, end + 1):
        return None
    return _value(data, at, at + end, quoted=False)
