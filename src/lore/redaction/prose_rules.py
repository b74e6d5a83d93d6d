"""Prose rules: secrets in sentences, in several languages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lore.redaction import any_word, compile_bytes, load_pattern
from lore.redaction.password_shapes import (
    fits_kind,
    is_named_password,
    is_passphrase,
    is_plain_secret,
    is_striking,
)
from lore.redaction.value_checks import UUID, is_dotted
from lore.redaction.value_reader import Judge, Span, Value, match_app_password, read_value
from lore.text.regex import compile_lazy

SENTENCE_LINKS = ("said", "next")
"""How a sentence links a name to its value: the password for X is VALUE, password VALUE."""


FOREIGN_PASSWORD_WORD = compile_bytes("foreign_password_word")
_NEARBY_BYTES = 140
_NEARBY_WORDS = 12
"""Words after its name in which a secret is searched for."""

_LINE_END = compile_lazy(rb"\r?\n|\\+[nr]|\. (?=[A-Z])")
_WORD = compile_lazy(rb"(?:[!-;=?-{}~]|[\xc2-\xdf][\x80-\xbf]|\xe2[\x80-\xbf]{2})+")
"""Letters of scripts without spaces end a word."""

_WRAPPING = b"\"'`*,;:()[]{}!?="
_POINTS = b":=>?"
_QUOTES = compile_lazy(rb"^(?:\xe2\x80[\x98-\x9f]|\xc2\xab)+|(?:\xe2\x80[\x98-\x9f]|\xc2\xbb).*$")
"""Non-ASCII quotes and stops."""

_SUFFIX = compile_lazy(rb"(?:[a-z]|[\xc3-\xdf][\x80-\xbf]|\xe2\x80\x99|'){1,14}")
"""An inflection at the end of a name."""

_LINK_WORDS = frozenset(
    b"is was to be are as now set still key token password pass secret 0 7 ascii its".split()
) | frozenset(any_word("foreign_is").encode("latin-1").split(b"|"))
_METADATA = compile_bytes("metadata")

_HEX = compile_lazy(r"^(?:0x)?[0-9a-fA-F]+$|^[0-9a-fA-F]{8}-[0-9a-fA-F\-]+$")
_PLACE_NAME = compile_lazy(load_pattern("place_name"))

_THING_NAME = compile_lazy(load_pattern("thing_name"))

_MENTION = compile_lazy(
    r"[/(]|::|->|^#|^[a-z_]+=\d{0,3}$|^\$\{?[A-Za-z_]|(?i:passw|oauth|token|base64)"
)
"""Paths, calls, variables, and words about secrets."""

_INTO = compile_lazy(rb"(?i)[`\"']?[ \t]+(?:into|in|for)\b")
_INVERTED_BYTES = 100
_SHORTEST_VALUE = 7
_SHORTEST_KEY = 12
_FEW_LETTERS = 3
_NO_ASCII = 0x80
_WIDE, _WIDE_BYTES = 0xE0, 3
"""The first byte and the length of UTF-8 letters in scripts without inflection."""

_AROUND = b"\"'`*,;()[]"


def is_about_metadata(data: bytes, start: int, value: Value) -> bool:
    """Return whether a sentence is about the hash or id of a secret."""
    before, between = data[max(0, start - 20) : start], data[start : value.start]
    before = before[max(map(before.rfind, (b",", b";", b"\n", b". "))) + 1 :]
    return bool(_METADATA.search(before) or _METADATA.search(between))


def mentions_metadata(text: bytes) -> bool:
    """Return whether a text is about a property of a secret and not the secret itself."""
    return bool(_METADATA.search(text))


def is_location(text: str) -> bool:
    """Return whether a word is a host, a file or a call."""
    return bool(_PLACE_NAME.search(text)) and not is_dotted(text)


def find_nearby(data: bytes, end: int, kind: str, *, since: int) -> Iterator[Span]:
    """Judge the words after a name in its sentence, and yield the first certain secret."""
    limit = min(len(data), end + _NEARBY_BYTES)
    line = _LINE_END.search(data, end, limit)
    limit = line.start() if line else limit
    before = b":"
    for count, word in enumerate(_WORD.finditer(data, since, limit)):
        token = _QUOTES.sub(b"", word.group()).strip(_WRAPPING)
        if count >= _NEARBY_WORDS or _METADATA.fullmatch(token):
            return
        joined = _is_link(before) or data[word.start() - 1] >= _NO_ASCII
        before = word.group() if token else b":"
        if joined and (apart := match_app_password(data, word.start())):
            yield *apart.span(), kind
            return
        text = token.rstrip(b".").decode("utf-8", "replace")
        if len(text) >= _SHORTEST_VALUE and _is_prose_secret(text, kind, joined=joined):
            start = word.start() + word.group().find(token)
            yield start, start + len(text.encode("utf-8", "replace")), kind
            return


def _is_link(word: bytes) -> bool:
    return word[-1:] in _POINTS or word.lower() in _LINK_WORDS


def _is_prose_secret(text: str, kind: str, *, joined: bool) -> bool:
    if is_location(text) or UUID.match(text) or not is_latin(text):
        return False
    if joined and kind == "password" and _is_password(text):
        return not _MENTION.search(text)
    if kind == "password" and is_passphrase(text):
        return True
    if _THING_NAME.search(text) or (_HEX.match(text) and not joined):
        return False
    return is_plain_secret(text) or (joined and is_dotted(text))


def _is_password(text: str) -> bool:
    return is_named_password(text) or (is_striking(text) and fits_kind("password", text, bare=True))


def is_latin(text: str) -> bool:
    """Return whether hardly any letter of a word is of another script, as in a password."""
    return len(text.encode("utf-8", "replace")) <= len(text) + _FEW_LETTERS


def _judge_foreign(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    yield from find_nearby(data, at, "password", since=_skip_suffix(data, at))


def _judge_foreign_key(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    for start, end, _ in find_nearby(data, at, "secret", since=_skip_suffix(data, at)):
        if end - start >= _SHORTEST_KEY:
            yield start, end, "secret"


def _skip_suffix(data: bytes, at: int) -> int:
    """Return where a name ends including its inflection, if its script has inflections."""
    if at >= _WIDE_BYTES and data[at - _WIDE_BYTES] >= _WIDE:
        return at
    suffix = _SUFFIX.match(data, at)
    return suffix.end() if suffix else at


def _judge_inverted(data: bytes, match: Any, _at: int) -> Iterator[Span]:
    end = match.start()
    line = data[max(0, end - _INVERTED_BYTES) : end]
    word = line[max(line.rfind(b" "), line.rfind(b"\n"), line.rfind(b"\t")) + 1 :]
    start = end - len(word.lstrip(_AROUND))
    end -= len(word) - len(word.rstrip(_AROUND))
    if start >= end:
        return
    text = data[start:end].decode("utf-8", "replace")
    is_password = b"passw" in match.group().lower() and not _MENTION.search(text)
    certain = is_password or not _INTO.match(match.group())
    if certain and (is_plain_secret(text) or (is_password and is_named_password(text))):
        yield start, end, "password"


def _judge_login(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if is_named_password(value.text) and not _is_mention(value.text):
        yield value.start, value.end, "password"


def _is_mention(text: str) -> bool:
    return is_location(text) or bool(_MENTION.search(text))


PROSE_RULES: dict[str, Judge] = {
    "foreign": _judge_foreign,
    "unlocking": _judge_foreign_key,
    "turned": _judge_inverted,
    "entered": _judge_login,
}
