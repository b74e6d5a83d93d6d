"""Value checks: does a value look like a real secret, or like an example or code?"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise

from lore.redaction import load_pattern, load_words
from lore.text.regex import compile_lazy, compile_re2_text

_EXAMPLE = f"(?i:{load_pattern('examples')})"

_SEQUENCE = r"(?i:abcdefgh|0123456789|1234567890|12345678)"
"""Characters in the order of a keyboard or an alphabet."""

_MASK = r"x{4}|X{4}|(?:^|[_\-])(?:xxx|XXX)(?:$|[_\-])"
_REFERENCE = load_pattern("references")

_CIPHERTEXT = f"^(?:{load_pattern('ciphertexts')})"

_REGEX = r"a-zA-Z|A-Za-z|0-9a-f|0-9A-F|a-z0-9|\(\?[:=!<P]|\]\{\d|\]\+|\[\^|\\[wds]\+"

_NOT_A_VALUE = compile_re2_text(
    "|".join((_EXAMPLE, _SEQUENCE, _MASK, _REFERENCE, _CIPHERTEXT, _REGEX))
)
"""One pattern for all, because every candidate value is checked against it."""

_DOLLAR = compile_lazy(r"^\$[A-Za-z0-9!@#%^&*?~+=\-]{7,}$")
"""A value that starts like a variable; the parts of a name are words."""

_ODD_HUMPS = 3

_NOT_A_KEY = compile_re2_text("|".join((_EXAMPLE, _MASK, _REFERENCE, _REGEX)))
_HAS_SEQUENCE = compile_re2_text(_SEQUENCE)
_NEXT = frozenset((0, 1, ord("0") - ord("9")))
"""Steps from a character to the same or the next one."""


_CODE = compile_lazy(f"^(?:{load_pattern('code')})", re.IGNORECASE)

_CALL = compile_lazy(r"^[A-Za-z_][\w.]*\([\w\s.,:=\"'\[\]{}<>\-]*\)?$")
"""A call, also if cut off at its bracket."""

_PATH = compile_lazy(r"^[\w.\-~]*(?:/[\w.\-]+)+/?$")
_FOLDER = compile_lazy(r"(?:^|/)[a-z][a-z._\-]+(?:/|$)")

_MIXED_CHARS = 24
"""From this length on, a value with all character classes is no code."""

_COMMON = load_words("common_values")
_SPACE = compile_lazy(r"\s")
_SEPARATORS = compile_lazy(r"[^A-Za-z0-9]+")
_LETTERS = compile_lazy(r"[^A-Za-z]+")
_WORDY = compile_lazy(r"^(?:[A-Za-z]?[a-z]+|[A-Z]+|(?:[A-Z]*[a-z]{2,})+[A-Z]*|v?\d{1,12})$")
_NUMBERED = compile_lazy(r"^[A-Za-z]?[a-z]{1,12}\d{1,3}$|^[A-Z]{2,10}\d{1,2}$")
_PHRASE = compile_lazy(r"^[A-Za-z]+(?:[_\-./ ][A-Za-z]+)+[.,;:!?)]*$|^[A-Za-z]+[.,;:!?)]+$")
_ARGUMENT = compile_lazy(r"^(?:[\[(:].*|[a-z_]+(?:[A-Z][a-z]+)*\d?[),;]+|[\d.,:;%)(]+\w?)$")
_LONGEST_PASSWORD = 256
_FEWEST_WORDS = 4
"""Words of a passphrase; names have up to three."""

_SCRAMBLED_CHARS, _SCRAMBLED_SYMBOLS = 10, 3
_EXAMPLES = compile_re2_text("|".join((_EXAMPLE, _MASK)))
_WEAK = compile_lazy(r"^([A-Za-z]{3,16})(\d{1,6})[!?#*$%]{0,2}$")
_STEMS = load_words("stems")
_LONE_WORD = compile_lazy(r"^[A-Z]?[a-z]{5,23}$")
_SPOKEN = frozenset().union(
    *map(load_words, ("common_values", "technical_words", "sentence_words", "secret_properties",
                      "trailing_words", "password_names", "state_words"))
)  # fmt: skip
"""Words that describe a password or a program."""

_STATE_ENDINGS = ("ed", "ing", "tion", "ity", "able", "ible", "less", "ment", "word", "hash")

_TYPE = compile_lazy(load_pattern("value_type"))
HUMP = compile_lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_VOWEL = compile_lazy(r"[aeiouyAEIOUY]")
_PIECES = compile_lazy(r"[A-Za-z0-9]{5,}[._\-]?|[._\-]")
_JUMBLED_CHARS = 10
_JUMBLED_HUMPS = 4
"""Names in code have fewer and longer parts: getAccessToken has three in fourteen letters."""

_NAMED_NUMBER = compile_lazy(load_pattern("named_number"))
_DOTTED = compile_lazy(r"^[A-Za-z]{3,12}(?:[._][A-Za-z]{3,12})+[._]\d{2,4}$")
"""Words and a number joined by dots; no name in code ends like this."""

_SYMBOL = compile_lazy(r"[!@#$%^&*?~+=]")
_PIECE_CHARS = 4
_DENSE_CAPITALS = 6
_MANY_JUMPS = 5
"""Changes between upper case, lower case and digits; words have fewer."""

_MIXED_LEAST = 2
ID_PREFIXES = load_words("id_prefixes")

_PREFIX_END = compile_lazy(r"[_\-]")
_RANDOM_TAIL = 28
"""Characters at the end of a key that must look random."""

_SORTS = tuple(map(compile_lazy, (r"[A-Z]", r"[a-z]", r"[0-9]", r"[^A-Za-z0-9._()\[\]]")))
_CONSONANTS = compile_lazy(r"[bcdfghjklmnpqrstvwxz]{5,}")
UUID = compile_lazy(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_KEY_HEX = compile_lazy(r"^[0-9a-f]+$|^[0-9A-F]+$")


def is_example(value: str) -> bool:
    """Return whether a value is a placeholder, a mask or a reference."""
    if _DOLLAR.match(value) and _odd_humps(value) >= _ODD_HUMPS:
        value = value[1:]
    return bool(_NOT_A_VALUE.search(value)) or _is_monotonous(value)


def is_example_key(value: str) -> bool:
    """Return whether a vendor key is an example; a real key may contain a short sequence."""
    if _NOT_A_KEY.search(value) or _is_monotonous(value):
        return True
    if not _HAS_SEQUENCE.search(value):
        return False
    steps = [ord(after) - ord(before) for before, after in pairwise(value.lower())]
    return sum(step in _NEXT for step in steps) > len(steps) / 2


def _is_monotonous(value: str) -> bool:
    return len(set(value)) < max(3, min(6, len(value) // 3))


def is_unknown_vendor_key(value: str, before: bytes) -> bool:
    """Return whether a prefix and a random part form a key of a vendor that is not listed."""
    prefix, tail = _PREFIX_END.split(value, maxsplit=1)[0], value[-_RANDOM_TAIL:]
    if before.isalnum() or before in (b"_", b"-", b"/", b"+", b"."):
        return False
    if prefix in ID_PREFIXES or prefix.startswith(("sha", "id")):
        return False
    sorts = (str.isupper, str.islower, str.isdigit)
    return all(sum(map(sort, tail)) >= _MIXED_LEAST for sort in sorts)


def is_named_number(value: str) -> bool:
    """Return whether a value is capitalised words and a number, as people make up a secret."""
    if not _NAMED_NUMBER.match(value) or is_example(value):
        return False
    return _COMMON.isdisjoint(_SEPARATORS.split(value.lower()))


def is_jumbled(value: str) -> bool:
    """Return whether letters and digits alternate too often for words."""
    humps = HUMP.findall(value)
    if len(value) < _JUMBLED_CHARS or len(humps) < _JUMBLED_HUMPS:
        return False
    return _odd_humps(value) >= 0.6 * len(humps) and _PIECES.sub("", value) == ""


def _odd_humps(value: str) -> int:
    return sum(len(hump) <= 2 or not _VOWEL.search(hump) for hump in HUMP.findall(value))


def is_dotted(value: str) -> bool:
    """Return whether a value is words and a number joined by dots, as people make up a secret."""
    return bool(_DOTTED.match(value)) and not is_example(value)


def is_broken_up(value: str) -> bool:
    """Return whether symbols separate pieces that are no words."""
    if not _SYMBOL.search(value) or len(value) < _JUMBLED_CHARS:
        return False
    pieces = [piece for piece in _SEPARATORS.split(value) if len(piece) >= _PIECE_CHARS]
    odd = [piece for piece in pieces if not _WORDY.match(piece) and not _NUMBERED.match(piece)]
    jumps = sorted(map(count_jumps, odd))
    return (len(jumps) >= 2 and jumps[-2] >= 2) or jumps[-1:] >= [_MANY_JUMPS]


def count_jumps(piece: str) -> int:
    """Count the changes between upper case, lower case and digits; words have few."""
    sorts = [(letter.isupper(), letter.isdigit()) for letter in piece]
    return sum(a != b for a, b in pairwise(sorts))


def is_random(value: str, *, least: int = 8) -> bool:
    """Return whether a value looks random: no words, no code, no name, no example."""
    return len(value) >= least and not is_example(value) and has_random_shape(value, least=least)


def has_random_shape(value: str, *, least: int = 8) -> bool:
    """Return whether a value that is no example looks random."""
    if _is_code(value) and not is_jumbled(value):
        return False
    pieces = set(_SEPARATORS.split(value)) - {""}
    if all(_WORDY.match(piece) or _NUMBERED.match(piece) for piece in pieces):
        return _is_unpronounceable(max(sorted(pieces), key=len, default=""))
    if is_broken_up(value):
        return True
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if not letters:
        return digits >= 16 and len(set(value)) > 5
    if not digits:
        return _is_random_letters(max(sorted(pieces), key=len))
    return len(set(value)) >= min(6, least)


def is_password(value: str, *, bare: bool) -> bool:
    """Return whether a value could be a password that a person chose."""
    if not 4 <= len(value) <= _LONGEST_PASSWORD or not is_chosen(value):
        return False
    is_place = _CALL.match(value) or _is_path(value)
    if _is_code(value) and (not _is_mixed(value) or is_place) and not is_jumbled(value):
        return False
    word = _LETTERS.sub("", value).lower()
    if not word:
        return len(value) >= 6 and len(set(value)) > 3 and value.isdigit() and not bare
    if "password" in word or "passwd" in word:
        return False
    if is_jumbled(value) or value.isalpha():
        return is_jumbled(value) or _is_random_letters(value)
    return not (_PHRASE.match(value) or (bare and _ARGUMENT.match(value)))


def is_scrambled(value: str) -> bool:
    """Return whether a value mixes so many symbols that it is no code and no reference."""
    if len(value) < _SCRAMBLED_CHARS or _SPACE.search(value) or _EXAMPLES.search(value):
        return False
    symbols = set(_SYMBOL.findall(value))
    return len(symbols) >= _SCRAMBLED_SYMBOLS and count_jumps(value) >= _MANY_JUMPS


def is_weak_password(value: str) -> bool:
    """Return whether a value is a word with digits, as people choose a weak password."""
    weak = _WEAK.match(value)
    return weak is not None and weak[1].lower() not in _STEMS


def is_lone_word(value: str) -> bool:
    """Return whether a value is one word that says nothing about a password."""
    if not _LONE_WORD.match(value) or _is_monotonous(value) or is_example(value):
        return False
    word = value.lower()
    return word not in _SPOKEN and not word.endswith(_STATE_ENDINGS) and "pass" not in word


def is_word_chain(value: str, joint: str) -> bool:
    """Return whether a value is several plain words in a row, as diceware generates them."""
    words = value.split(joint)
    return len(words) >= _FEWEST_WORDS and all(
        len(word) >= 3 and word.isalpha() and word.islower() and word not in _COMMON
        for word in words
    )


def is_chosen(value: str) -> bool:
    """Return whether a value where a password belongs is more than an example."""
    if len(value) < 3 or is_example(value) or _SPACE.search(value):
        return False
    return value.lower() not in _COMMON and _LETTERS.sub("", value).lower() not in _COMMON


def is_basic_auth(value: str) -> bool:
    """Return whether a value is `user:password` in Base64."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and all(32 <= byte < 127 for byte in plain)


def _is_mixed(value: str) -> bool:
    return all(sort.search(value) for sort in _SORTS)


def _is_path(value: str) -> bool:
    return bool(_PATH.match(value) and _FOLDER.search(value)) and not _is_dense(value)


def _is_code(value: str) -> bool:
    if _is_path(value):
        return True
    if _CALL.match(value):
        return True
    if len(value) >= _MIXED_CHARS and _is_mixed(value):
        return False
    return bool(_CODE.match(value) or _TYPE.match(value))


def _is_dense(value: str) -> bool:
    """Return whether a path has so many capitals and digits that it is Base64."""
    if len(value) < _MIXED_CHARS or not value.replace("/", "").replace("+", "").isalnum():
        return False
    capitals, digits = sum(map(str.isupper, value)), sum(map(str.isdigit, value))
    return capitals >= _DENSE_CAPITALS and digits >= 2


def _is_random_letters(word: str) -> bool:
    """Return whether letters alone are no word: mixed case, or unpronounceable."""
    if len(word) < 16:
        return False
    if _KEY_HEX.match(word):
        return True
    if _WORDY.match(word):
        return _is_unpronounceable(word)
    jumps = sum(a.isupper() != b.isupper() for a, b in pairwise(word))
    if jumps > 0.25 * len(word):
        return True
    return _is_unpronounceable(word)


def _is_unpronounceable(word: str) -> bool:
    one_case = word.islower() or word.isupper()
    return len(word) >= 16 and one_case and bool(_CONSONANTS.search(word.lower()))
