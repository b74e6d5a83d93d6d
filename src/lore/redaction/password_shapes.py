"""Password shapes: decide whether a value fits the kind of secret that its name announces."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lore.redaction import load_pattern, load_words, value_checks
from lore.redaction.name_rules import NameKind
from lore.redaction.value_reader import Span, Value
from lore.text.regex import compile_lazy

_PASSPHRASE = compile_lazy(load_pattern("passphrase"))

_SHORT_PHRASE = compile_lazy(load_pattern("short_phrase"))

_PLAIN_PHRASE = compile_lazy(
    r"^[A-Za-z][a-z]{2,11}(?:([ \-_.+])[A-Za-z][a-z]{2,11})(?:\1[A-Za-z][a-z]{2,11}){2,8}$"
)
"""Four or more words, as diceware generates them."""

_SENTENCE = load_words("sentence_words")

_INTERLEAVED = compile_lazy(r"^[a-z0-9]{8,24}$|^[A-Z0-9]{8,24}$")
_INTERLEAVED_GROUPS = 3
"""Groups of digits between letters; versions and names have fewer."""

_DIGITS = compile_lazy(r"\d+")

_WORD_NUMBER = compile_lazy(
    r"^[A-Za-z][a-z]{3,11}(?:[!@#$%&*+_\-.,:^~?]{1,2}\d{2,6}|=\d{4,6}|\d{3,6})[!@#$%&*+=_\-.^~?]{0,3}$"
)
"""A word and a number, as people make up a password."""

_LEET = compile_lazy(r"^(?:[A-Z][a-z]*(?:[013457@$][a-z]+)+){1,3}\d{0,4}[!?#*$%]*$")
"""A word with letters written as digits: Cl0v3rM0nk3y35."""

_HUMP = compile_lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_VOWEL = compile_lazy(r"[aeiouyAEIOUY]")
_NO_SCATTER = compile_lazy(r"[\s\"'`()<>\[\]{}\\/|;]|::|->|^[$%]|\.\w{1,4}$")
_SHORTEST_SCATTERED = 8
_SCATTERED_HUMPS = 3

_WORDS = compile_lazy(r"[A-Za-z]+")
_TECHNICAL = load_words("technical_words")


def is_passphrase(value: str) -> bool:
    """Return whether a value is words and a number, none of them technical."""
    return bool(_PASSPHRASE.match(value)) and _is_untechnical(value)


def is_short_phrase(value: str) -> bool:
    """Return whether a value is two words and a number, none of them technical."""
    return bool(_SHORT_PHRASE.match(value)) and _is_untechnical(value)


def is_plain_phrase(value: str) -> bool:
    """Return whether a value is four or more words that form no sentence and no technical name."""
    if not _PLAIN_PHRASE.match(value) or not _is_untechnical(value):
        return False
    return _SENTENCE.isdisjoint(word.lower() for word in _WORDS.findall(value))


def is_interleaved(value: str) -> bool:
    """Return whether digits interrupt letters of one case too often for a name."""
    return bool(_INTERLEAVED.match(value)) and len(_DIGITS.findall(value)) >= _INTERLEAVED_GROUPS


def is_word_and_number(value: str) -> bool:
    """Return whether a value is a word with a number after it or inside it."""
    shaped = len(value) >= 7 and _WORD_NUMBER.match(value)
    if not shaped and len(value) >= _SHORTEST_SCATTERED:
        shaped = _LEET.match(value)
    return bool(shaped) and _is_untechnical(value)


def is_scattered(value: str) -> bool:
    """Return whether upper and lower case alternate too often for words."""
    if len(value) < _SHORTEST_SCATTERED or _NO_SCATTER.search(value):
        return False
    if value.islower() or value.isupper():
        return False
    humps = _HUMP.findall(value)
    odd = sum(len(hump) <= 2 or not _VOWEL.search(hump) for hump in humps)
    share = 0.5 if len(humps) > _SCATTERED_HUMPS else 0.6
    return len(humps) >= _SCATTERED_HUMPS and odd >= share * len(humps)


def _is_untechnical(value: str) -> bool:
    return _TECHNICAL.isdisjoint(word.lower() for word in _WORDS.findall(value))


DIGIT = compile_lazy(r"\d")
_MAPPING = compile_lazy(r"^[\d.:\-\[\]]+(?:/\w+)?$")
_VERSION = compile_lazy(r"^(?:\d{1,2}:)?v?\d{1,4}\.\d{1,4}[a-z0-9.+~:\-]*$")
"""A package version: 1:4.13+dfsg1-1, 42.1-1ubuntu2."""

_SYMBOL = compile_lazy(r"[!@#$%^&*?~+]")
_TERM = compile_lazy(
    r"^(?:[a-z]{1,10}(?:[\-_./][a-z]+)*[\-_.]?v?\d{0,3}|[A-Z]+[\-_]?\d{1,4}|\d+[a-z]{0,4})$"
)
"""A technical term: utf8, scram-sha-256, SHA-512, 30min."""

_NUMBER_INSIDE = compile_lazy(r"^[A-Z][a-z]{2,}\d{2,}[A-Z][a-z]{2,}[!?#*$%]*$")
_UNNAMED = compile_lazy(r"[0-9!@#$%^&*?~+=,\-]")
_UNSPOKEN = compile_lazy(r"[0-9!@#$%^&*?~+=,_\-]")
_SHORTEST_STRIKING = 8


def fits_kind(kind: NameKind, value: str, *, bare: bool) -> bool:
    """Return whether a value is what its name announces; in quotes it may consist of words."""
    if bare and _VERSION.match(value):
        return False
    if kind in ("password", "phrase"):
        joint = "-" if kind == "password" else " "
        in_words = not bare and value_checks.is_word_chain(value, joint)
        in_words = in_words or is_plain_phrase(value)
        return (
            in_words
            or value_checks.is_password(value, bare=bare)
            or (kind == "password" and _is_scattered(value, bare=bare))
        )
    return kind in _TESTS and _TESTS[kind](value)


def fits_setting(kind: NameKind, value: str, *, is_certain: bool) -> bool:
    """Return whether a value that is assigned to a clear name is a secret, however weak.

    It is certain if the value can be no name in code, because of its quotes or its place. Only
    then a single word counts.
    """
    if kind not in ("password", "secret"):
        return False
    if value_checks.is_scrambled(value):
        return True
    if kind == "secret":
        return fits_kind(kind, value, bare=not is_certain)
    if fits_kind(kind, value, bare=not is_certain) or value_checks.is_weak_password(value):
        return True
    return is_certain and value_checks.is_lone_word(value)


def secret_kind(kind: NameKind) -> str:
    """Return the kind that a mark shows for a name of this kind."""
    return "password" if kind in ("password", "pass", "phrase") else "secret"


def judge_password(value: Value, kind: str) -> Iterator[Span]:
    """Yield a value that can only be a password, unless it is an example; even a word counts."""
    text = value.text
    if _MAPPING.match(text):
        return
    fits = value_checks.is_chosen(text) or value_checks.is_weak_password(text)
    yield value.start, value.end, kind if fits else ""


def is_striking(value: str) -> bool:
    """Return whether a value looks like a secret even in plain prose."""
    if value_checks.is_dotted(value) or is_passphrase(value):
        return True
    if _TERM.match(value) or _MAPPING.match(value):
        return False
    if DIGIT.search(value) or value_checks.is_jumbled(value):
        return True
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    return mixed and len(value) >= _SHORTEST_STRIKING and bool(_SYMBOL.search(value))


def is_plain_secret(value: str) -> bool:
    """Return whether a value cannot be anything but a secret."""
    if len(value) < _SHORTEST_STRIKING or not is_striking(value) or value_checks.UUID.match(value):
        return False
    if value_checks.is_example(value) or _VERSION.match(value):
        return False
    if value_checks.is_named_number(value) or value_checks.is_jumbled(value):
        return True
    if _is_made_up(value) or _is_numbered(value):
        return True
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    symbol = bool(_SYMBOL.search(value)) and any(map(str.isalpha, value))
    return (mixed or symbol or len(value) >= 16) and value_checks.is_random(value)


def is_named_password(value: str) -> bool:
    """Return whether a value is a secret, given that the text mentions a password."""
    if is_plain_secret(value):
        return True
    if value_checks.is_example(value) or not value_checks.is_chosen(value):
        return False
    return (
        value_checks.is_dotted(value)
        or is_passphrase(value)
        or is_word_and_number(value)
        or is_short_phrase(value)
        or is_plain_phrase(value)
        or is_interleaved(value)
        or (bool(_UNSPOKEN.search(value)) and is_scattered(value))
    )


def _is_scattered(value: str, *, bare: bool) -> bool:
    if bare and not _UNNAMED.search(value):
        return False
    return is_scattered(value) and value_checks.is_chosen(value)


def _is_short(value: str) -> bool:
    if is_named_password(value):
        return True
    if _MAPPING.match(value) or not DIGIT.search(value):
        return False
    return value_checks.is_random(value, least=6) or value_checks.is_named_number(value)


def _is_secret(value: str) -> bool:
    return (
        value_checks.is_random(value, least=8)
        or value_checks.is_named_number(value)
        or _is_encoded(value)
        or _is_made_up(value)
        or value_checks.is_dotted(value)
        or (value_checks.is_jumbled(value) and value_checks.is_password(value, bare=True))
    )


def _is_made_up(value: str) -> bool:
    symbol = _SYMBOL.search(value) and DIGIT.search(value)
    return bool(symbol and len(value) >= 8 and value_checks.is_password(value, bare=True))


def _is_numbered(value: str) -> bool:
    """Return whether a number stands between capitalised words: Otter5158Harbor."""
    return bool(_NUMBER_INSIDE.match(value)) and value_checks.is_password(value, bare=True)


def _is_key(value: str) -> bool:
    return value_checks.is_random(value, least=16)


def _is_auth(value: str) -> bool:
    random = value_checks.is_random(value, least=20) and not value_checks.UUID.match(value)
    return random or _is_encoded(value)


def _is_encoded(value: str) -> bool:
    return len(value) >= 8 and value_checks.is_basic_auth(value)


_TESTS: dict[NameKind, Callable[[str], bool]] = {
    "pass": _is_short, "secret": _is_secret, "key": _is_key, "auth": _is_auth,
}  # fmt: skip
