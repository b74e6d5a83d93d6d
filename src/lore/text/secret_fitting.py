"""Secret fitting: is a value what its name promises?"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.secret_habits import (
    is_interleaved,
    is_passphrase,
    is_plain_phrase,
    is_scattered,
    is_short_phrase,
    is_word_and_number,
)
from lore.text.secret_names import NameKind
from lore.text.secret_reading import Value

__all__ = [
    "DIGIT",
    "Span",
    "chosen",
    "fits",
    "is_named_password",
    "is_plain_secret",
    "is_striking",
    "told",
]

Span = tuple[int, int, str]
"""Where a secret starts and ends, in bytes, and its kind."""

DIGIT = compile_later(r"\d")
_UUID = compile_later(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_MAPPING = compile_later(r"^[\d.:\-\[\]]+(?:/\w+)?$")
_VERSION = compile_later(r"^(?:\d{1,2}:)?v?\d{1,4}\.\d{1,4}[a-z0-9.+~:\-]*$")
"""Of a package: 1:4.13+dfsg1-1, 42.1-1ubuntu2."""

_SYMBOL = compile_later(r"[!@#$%^&*?~+]")
_TERM = compile_later(
    r"^(?:[a-z]{1,10}(?:[\-_./][a-z]+)*[\-_.]?v?\d{0,3}|[A-Z]+[\-_]?\d{1,4}|\d+[a-z]{0,4})$"
)
"""One of a list of names: utf8, scram-sha-256, SHA-512, 30min."""

_NUMBER_INSIDE = compile_later(r"^[A-Z][a-z]{2,}\d{2,}[A-Z][a-z]{2,}[!?#*$%]*$")
_UNNAMED = compile_later(r"[0-9!@#$%^&*?~+=,\-]")
_UNSPOKEN = compile_later(r"[0-9!@#$%^&*?~+=,_\-]")
_SHORTEST_STRIKING = 8


def fits(kind: NameKind, value: str, *, bare: bool) -> bool:
    """Tell whether a value is what its name promises; in quotes it may be made of words."""
    if bare and _VERSION.match(value):
        return False
    if kind in ("password", "phrase"):
        joint = "-" if kind == "password" else " "
        in_words = not bare and secret_values.is_word_chain(value, joint)
        in_words = in_words or is_plain_phrase(value)
        return (
            in_words
            or secret_values.is_password(value, bare=bare)
            or (kind == "password" and _is_scattered(value, bare=bare))
        )
    return kind in _TESTS and _TESTS[kind](value)


def told(kind: NameKind) -> str:
    """Return what a secret is called that has a name of some kind."""
    return "password" if kind in ("password", "pass", "phrase") else "secret"


def chosen(value: Value, kind: str) -> Iterator[Span]:
    """Judge what can only be a password: also a word will do, if it is nobody's example."""
    if not _MAPPING.match(value.text) and secret_values.is_chosen(value.text):
        yield value.start, value.end, kind


def is_striking(value: str) -> bool:
    """Tell whether a value looks like a secret even where only talk surrounds it."""
    if secret_values.is_dotted(value) or is_passphrase(value):
        return True
    if _TERM.match(value) or _MAPPING.match(value):
        return False
    if DIGIT.search(value) or secret_values.is_jumbled(value):
        return True
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return mixed and len(value) >= _SHORTEST_STRIKING and bool(_SYMBOL.search(value))


def is_plain_secret(value: str) -> bool:
    """Tell whether a value beside a mere word can be nothing but a secret."""
    if len(value) < _SHORTEST_STRIKING or not is_striking(value) or _UUID.match(value):
        return False
    if secret_values.is_example(value) or _VERSION.match(value):
        return False
    if secret_values.is_named_number(value) or secret_values.is_jumbled(value):
        return True
    if _is_made_up(value) or _is_numbered(value):
        return True
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    symbol = bool(_SYMBOL.search(value)) and any(map(str.isalpha, value))
    return (mixed or symbol or len(value) >= 16) and secret_values.is_random(value)


def is_named_password(value: str) -> bool:
    """Tell whether a value can be nothing but a secret where a password is spoken of."""
    if is_plain_secret(value):
        return True
    if secret_values.is_example(value) or not secret_values.is_chosen(value):
        return False
    return (
        secret_values.is_dotted(value)
        or is_passphrase(value)
        or is_word_and_number(value)
        or is_short_phrase(value)
        or is_plain_phrase(value)
        or is_interleaved(value)
        or (bool(_UNSPOKEN.search(value)) and is_scattered(value))
    )


def _is_scattered(value: str, *, bare: bool) -> bool:
    """Tell whether a value is no name in code either: bare ones have more than letters and dots."""
    if bare and not _UNNAMED.search(value):
        return False
    return is_scattered(value) and secret_values.is_chosen(value)


def _is_short(value: str) -> bool:
    if is_named_password(value):
        return True
    if _MAPPING.match(value) or not DIGIT.search(value):
        return False
    return secret_values.is_random(value, least=6) or secret_values.is_named_number(value)


def _is_secret(value: str) -> bool:
    return (
        secret_values.is_random(value, least=8)
        or secret_values.is_named_number(value)
        or _is_encoded(value)
        or _is_made_up(value)
        or secret_values.is_dotted(value)
        or (secret_values.is_jumbled(value) and secret_values.is_password(value, bare=True))
    )


def _is_made_up(value: str) -> bool:
    symbol = _SYMBOL.search(value) and DIGIT.search(value)
    return bool(symbol and len(value) >= 8 and secret_values.is_password(value, bare=True))


def _is_numbered(value: str) -> bool:
    """Tell whether a number stands between capitalised words: Otter5158Harbor."""
    return bool(_NUMBER_INSIDE.match(value)) and secret_values.is_password(value, bare=True)


def _is_key(value: str) -> bool:
    return secret_values.is_random(value, least=16)


def _is_auth(value: str) -> bool:
    random = secret_values.is_random(value, least=20) and not _UUID.match(value)
    return random or _is_encoded(value)


def _is_encoded(value: str) -> bool:
    return len(value) >= 8 and secret_values.is_basic_auth(value)


_TESTS: dict[NameKind, Callable[[str], bool]] = {
    "pass": _is_short, "secret": _is_secret, "key": _is_key, "auth": _is_auth,
}  # fmt: skip
