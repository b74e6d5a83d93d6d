"""Context rules: values that look like a secret, near a word about logins or keys.

Other rules know a place and judge the value there. These rules start from the value: it is no word
and no name, and something on its line, or the question before it, says what it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from lore.lazy_dataclass import dataclass
from lore.redaction import compile_bytes, load_pattern, value_checks
from lore.redaction.dense_text import IDLE_LIMIT, skip_repeats
from lore.redaction.password_shapes import (
    DIGIT,
    is_named_password,
    is_plain_phrase,
    is_plain_secret,
    is_short_phrase,
    is_word_and_number,
)
from lore.redaction.value_reader import Span
from lore.text.regex import compile_lazy, compile_re2

_LOGIN_PATTERN = load_pattern("logins")

_KEY_PATTERN = load_pattern("keys")

_WORDS = compile_re2(rf"(?i){_LOGIN_PATTERN}|{_KEY_PATTERN}", groups=False)
_LOGIN_WORD = compile_re2(rf"(?i){_LOGIN_PATTERN}", groups=False)
_KEY_WORD = compile_re2(rf"(?i){_KEY_PATTERN}", groups=False)
_PASSWORD_WORD = compile_re2(load_pattern("password_word"), groups=False)

_JUST_BEFORE = 60
_BEFORE, _BEHIND = 120, 200
"""Bytes around a word that count as near."""

_BREAK = compile_lazy(rb"\r?\n|\\+[nr]|\0")
_BREAKS = (b"\n", b"\\n", b"\\r", b"\0")
"""The ends of _BREAK."""

_CHARS = rb"[!#-&*+\-./0-9:=?@A-Z^_a-z~]"
_CONSPICUOUS = rb"(?:[0-9]|[a-z]([\-_.])[a-z]+\1[a-z]+\1[a-z]|[a-z][A-Z]{2}|[A-Z][a-z][A-Z])"
_TOKEN = compile_lazy(
    rb"(?<!%b)(?=%b{8})(?=%b*?%b)%b+" % (_CHARS, _CHARS, _CHARS, _CONSPICUOUS, _CHARS)
)
"""Words with a digit or odd capitals, and words in a row."""

_CANDIDATE = compile_lazy(_TOKEN.pattern + rb"|[\"'`\x80-\xbf] ?[a-z]+ [a-z]+ [a-z]+")
_QUOTED_WORDS = compile_bytes("quoted_words")

_ORDINARY = compile_bytes("ordinary")

_CHARACTER = compile_lazy(_CHARS)
_CHARACTERS = bytes(byte for byte in range(128) if _CHARACTER.match(bytes((byte,))))
_REST = compile_lazy(_CHARACTER.pattern + rb"+")
_SHORTEST, _LONGEST = 8, 90
"""Characters: longer values are no passwords, and other rules find keys."""

_ENDS = b".,:;"
_ACCOUNT = compile_lazy(r"^(?:thin:)?[A-Za-z][a-z0-9_.@+\\\-]{0,40}[:/](?=[^/])")
"""The account before its password."""

_AT_HOST = compile_lazy(r"@[\w\-]+(?:\.[\w\-]+)*(?::\d+)?(?:[:/].*)?$")
_NAME = compile_lazy(r"^\W?[\w.\-\[\]]{1,48}=(?=[^=])")
_PLACED = compile_lazy(r"\.\w{1,5}:\d+|^arn:|^[\w.\-]+/[\w.\-]+#\d+$")
"""A line of a file, an ARN, an issue."""

_ASSIGNED = compile_lazy(rb"([\w.\-]+)[\"'`]?[\])]?[ \t]*[:=]>?[ \t]*[bfruN@$]?[\"'`]?$")
"""A name of its own before a value; other rules judge such values."""

_IS_NAME = compile_lazy(rb"\\?[\"'`]\]?[ \t]*(?::[ \t]*[\w\"'\[{\-]|=>)")
"""What follows if the quoted text is itself a name."""

_ACCOUNT_NAME = compile_bytes("account_name")

_ACCOUNT_MAP = compile_bytes("account_map")

_SENTENCE_COLON = compile_lazy(
    rb"(?:[A-Za-z\x80-\xff']+,?[ ]){2,}[\w\x80-\xff']+[ ]?:[ \t]+[\"'`]?$"
)
"""A sentence before a colon."""

_WRAP = rb"(?:[\w.:\[\]]{1,32}[({]\s*){0,2}[bfruN@]?[\"'`]$"
_ARGUMENT = compile_lazy(
    rb"(?i)(?:[(,\[{]|\|\||\?\?|\bor\b|\belse\b|\b(?:key|token|secret|password)\b)\s*" + _WRAP
)
_SECOND = compile_lazy(rb",\s*" + _WRAP)
_PASSWORD_CALL = compile_bytes("password_call")

_LINKED = compile_bytes("linked")

_METADATA = compile_re2(load_pattern("context_metadata"), groups=False)

_NOT_SECRET = compile_lazy(load_pattern("not_secrets"))

_KEY = compile_lazy(r"^[A-Za-z0-9+/_\-]{20,}={0,2}$")
_MARK = compile_lazy(r"[!@#$%^&*?~]")
_ONE_CASE = compile_lazy(r"^[0-9a-f]+$|^[a-z0-9]+$|^[A-Z0-9]+$")
_NUMBERED = compile_lazy(r"^[A-Za-z]+[\-_.:]\d+$")
"""Without quotes, the name of a machine or of a step."""

_QUOTES = (b'"', b"'", b"`")
_MANY_JUMPS = 4
_MANY_KEY_JUMPS = 6
_ONE_CASE_CHARS = 28

_QUESTION = compile_re2(load_pattern("question"), groups=False)
_ASSIGNMENT = compile_lazy(rb"\w[\"'`]?[ \t]*(?:=[ \t]*\S|:[ \t]*[\"'`\w$]+[\"'`,;]*$)")
"""A name with its value on the same line."""

_LISTING = compile_re2(load_pattern("listing"), groups=False)

_ANSWER_LINES = 3
_ANSWER_BYTES = 120
_ANSWER_WORDS = 5
"""An answer is short: the speaker and the secret."""


@dataclass(frozen=True)
class _LineWindow:
    """The part of a line around a word; what it mentions is computed on demand."""

    data: bytes
    low: int
    high: int

    @cached_property
    def has_login_word(self) -> bool:
        """Return whether it mentions something that a password opens."""
        return self._has(_LOGIN_WORD)

    @cached_property
    def has_key_word(self) -> bool:
        """Return whether it mentions keys."""
        return self._has(_KEY_WORD)

    @cached_property
    def has_password_word(self) -> bool:
        """Return whether it mentions a password itself."""
        return self.has_login_word and self._has(_PASSWORD_WORD)

    @cached_property
    def has_metadata_word(self) -> bool:
        """Return whether it mentions what looks like a key but is none."""
        return self._has(_METADATA)

    def _has(self, words: Any) -> bool:
        return words.find_span(self.data, self.low, self.high) is not None


def find_by_context(data: bytes, at: int = 0) -> Iterator[Span]:
    """Yield values that can only be secrets and stand near a word about logins or keys."""
    clean_since, idle = at, 0
    while (word := _WORDS.find_span(data, at)) is not None:
        start, end = word
        low = _line_start(data, max(at, start - _BEFORE), start)
        high = min(len(data), end + _BEHIND)
        line = _find_break(data, end, high)
        high = line[0] if line else _whole_words(data, end, high)
        at = max(end, high)
        idle += 1
        for span in _judge_window(data, low, high, line):
            yield span
            clean_since, idle = at, 0
        if idle >= IDLE_LIMIT:
            at, idle = skip_repeats(data, at, clean_since), 0


def _find_break(data: bytes, at: int, high: int) -> tuple[int, int] | None:
    """Return where the first line break is; a pattern finds it where breaks may be escaped."""
    if data.find(b"\\", at, high) >= 0:
        match = _BREAK.search(data, at, high)
        return match.span() if match else None
    newline, zero = data.find(b"\n", at, high), data.find(b"\0", at, high)
    if zero >= 0 and (newline < 0 or zero < newline):
        return zero, zero + 1
    if newline < 0:
        return None
    return newline - data.startswith(b"\r", max(at, newline - 1), newline), newline + 1


def _judge_window(data: bytes, low: int, high: int, end: tuple[int, int] | None) -> Iterator[Span]:
    """Judge a part of a line, and the lines after it if it asks for a secret."""
    if _CANDIDATE.search(data, low, high):
        yield from _judge_tokens(_LineWindow(data, low, high))
    if end and _asks_for_secret(data, low, high) and not _ASSIGNMENT.search(data, low, high):
        yield from _judge_answers(data, end[1])


def _asks_for_secret(data: bytes, low: int, high: int) -> bool:
    is_question = _QUESTION.find_span(data, low, high) is not None
    return is_question and _LISTING.find_span(data, low, high) is None


def _line_start(data: bytes, low: int, start: int) -> int:
    """Return where the line of a word starts, or a word boundary near it."""
    for cut in _BREAKS:
        at = data.rfind(cut, low, start)
        low = at + len(cut) if at >= 0 else low
    if low and _CHARACTER.match(data, low - 1) and (cut_word := _REST.match(data, low, start)):
        return cut_word.end()
    return low


def _whole_words(data: bytes, end: int, high: int) -> int:
    """Return an offset before the word that the window would cut in two."""
    if high == len(data) or not _CHARACTER.match(data, high):
        return high
    last = len(data[end:high]) - len(data[end:high].rstrip(_CHARACTERS))
    if last > _LONGEST:
        return _REST.match(data, high).end()  # type: ignore[union-attr]
    return high - last


def _judge_tokens(line: _LineWindow) -> Iterator[Span]:
    for token in _TOKEN.finditer(line.data, line.low, line.high):
        if not _ORDINARY.match(token.group()) and (span := _judge_token(line, token)):
            yield span
    for words in _QUOTED_WORDS.finditer(line.data, line.low, line.high):
        if line.has_password_word and is_plain_phrase(words.group(1).decode()):
            yield *words.span(1), "password"


def _judge_token(line: _LineWindow, token: re.Match[bytes]) -> Span | None:
    """Return the span of a token if it is a secret."""
    start, text = _strip_account(*_strip_colour(line.data, token))
    has_account = (
        start > token.start() and _ACCOUNT.match(token.group().decode("latin-1")) is not None
    )
    key = _KEY.match(text) is not None
    if not _SHORTEST <= len(text) <= _LONGEST or (not key and _NOT_SECRET.search(text)):
        return None
    end = start + len(text)
    before = line.data[max(line.low, start - _JUST_BEFORE) : start]
    quoted = before[-1:] in _QUOTES and line.data[end : end + 1] in _QUOTES
    if (line.has_metadata_word if has_account else _has_own_name(before)) or _IS_NAME.match(
        line.data, end
    ):
        return None
    if not quoted and not DIGIT.search(text) and not is_plain_phrase(text):
        return None
    is_argument = quoted and bool(_SECOND.search(before) or _PASSWORD_CALL.search(before))
    if key and _is_key(text, before, line, quoted=quoted, is_argument=is_argument or has_account):
        return start, end, "secret"
    phrase = is_plain_phrase(text)
    if key and line.has_metadata_word and not (is_argument or phrase or is_short_phrase(text)):
        return None
    is_stated = is_argument or (
        line.has_password_word and bool(has_account or _LINKED.search(before))
    )
    is_secret = line.has_login_word and _is_password(text, quoted=quoted)
    is_secret = (
        is_secret
        or (is_stated and _is_argument_password(text))
        or (phrase and line.has_password_word)
    )
    return (start, end, "password") if is_secret else None


def _strip_colour(data: bytes, token: re.Match[bytes]) -> tuple[int, str]:
    start, word = token.start(), token.group()
    if data[start - 2 : start] == b"\x1b[":
        start, word = start + word.find(b"m") + 1, word[word.find(b"m") + 1 :]
    return start, word.rstrip(_ENDS).decode("latin-1")


def _has_own_name(before: bytes) -> bool:
    """Return whether a value has a name of its own that is not an account."""
    own_name = _ASSIGNED.search(before)
    if own_name is None or _ACCOUNT_NAME.match(own_name.group(1)):
        return False
    return not (_SENTENCE_COLON.search(before) or _ACCOUNT_MAP.search(before))


def _judge_answers(data: bytes, at: int) -> Iterator[Span]:
    """Judge the short lines after a line that asks for a secret."""
    for _ in range(_ANSWER_LINES):
        line = _BREAK.search(data, at, at + _ANSWER_BYTES)
        high = line.start() if line else min(len(data), at + _ANSWER_BYTES)
        words = data[at:high].split()
        if line and line.group() == b"\0":
            return
        if len(words) > _ANSWER_WORDS or (line is None and high < len(data)):
            return
        for token in _TOKEN.finditer(data, at, high):
            start, text = _strip_account(
                token.start(), token.group().rstrip(_ENDS).decode("latin-1")
            )
            if _SHORTEST <= len(text) <= _LONGEST and _is_answer(text, alone=len(words) == 1):
                yield start, start + len(text), "password"
                return
        if line is None:
            return
        at = line.end()


def _is_answer(text: str, *, alone: bool) -> bool:
    if _KEY.match(text) and _is_random_key(text):
        return alone or not _ONE_CASE.match(text)
    if _NOT_SECRET.search(text):
        return False
    return (
        is_plain_phrase(text)
        or _is_password(text, quoted=False)
        or (alone and _is_argument_password(text))
    )


def _strip_account(start: int, text: str) -> tuple[int, str]:
    """Return a token without the account before it and the host after it."""
    if _NAME.match(text) or _PLACED.search(text):
        return start, ""
    if account := _ACCOUNT.match(text):
        start, text = start + account.end(), text[account.end() :]
        if host := _AT_HOST.search(text):
            text = text[: host.start()]
    return start, text


def _is_key(
    text: str, before: bytes, line: _LineWindow, *, quoted: bool, is_argument: bool
) -> bool:
    if not _is_random_key(text):
        return False
    if is_argument and line.has_login_word:
        return line.has_key_word or not _ONE_CASE.match(text)
    if line.has_metadata_word:
        return False
    if quoted and _ARGUMENT.search(before):
        return line.has_key_word or not _ONE_CASE.match(text)
    alone = line.has_key_word and before[-1:] in (b" ", b"\t", *_QUOTES)
    if alone and _ONE_CASE.match(text):
        return len(text) >= _ONE_CASE_CHARS and _LINKED.search(before) is not None
    return alone


def _is_random_key(text: str) -> bool:
    if _is_id(text) or value_checks.UUID.match(text) or text.startswith("AAAA"):
        return False
    if not DIGIT.search(text) or not value_checks.is_random(text, least=20):
        return False
    return bool(_ONE_CASE.match(text)) or value_checks.count_jumps(text) >= _MANY_KEY_JUMPS


def _is_id(text: str) -> bool:
    prefix, joint, _ = text.partition("_")
    return bool(joint) and prefix in value_checks.ID_PREFIXES


def _is_password(text: str, *, quoted: bool) -> bool:
    """Return whether a token can be nothing but a password."""
    if _NOT_SECRET.search(text) or _ONE_CASE.match(text) or _is_id(text):
        return False
    if value_checks.is_example(text) or not value_checks.is_chosen(text):
        return False
    if is_short_phrase(text):
        return True
    if not quoted and _NUMBERED.match(text):
        return False
    if text.replace("_", "").isalnum():
        return is_plain_secret(text) and _has_random_shape(text)
    return is_named_password(text) and bool(_MARK.search(text) or _has_random_shape(text))


def _is_argument_password(text: str) -> bool:
    """Return whether a quoted token is a password where a call takes one."""
    if _NOT_SECRET.search(text) or _is_id(text):
        return False
    return is_named_password(text) or (
        value_checks.count_jumps(text) >= _MANY_JUMPS and value_checks.is_random(text)
    )


def _has_random_shape(text: str) -> bool:
    """Return whether the character classes alternate too often for a name."""
    if value_checks.is_named_number(text) or is_word_and_number(text):
        return True
    return value_checks.is_jumbled(text)
