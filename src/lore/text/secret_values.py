"""Secret values: does a value look like one somebody really uses, or like an example or code?"""

from __future__ import annotations

import base64
import binascii
import re
from itertools import pairwise

from lore.text.later import compile_later
from lore.text.linear import compile_linear_text

__all__ = [
    "ID_PREFIXES",
    "is_basic_auth",
    "is_broken_up",
    "is_chosen",
    "is_dotted",
    "is_drawn",
    "is_example",
    "is_example_key",
    "is_foreign_key",
    "is_jumbled",
    "is_named_number",
    "is_password",
    "is_random",
    "is_word_chain",
]

_EXAMPLE = (
    r"(?i:your|y0ur|example|change[_\-]?(?:me|this|it)|replace[_\-]?(?:me|this|with)|placeholder"
    r"|redacted|dummy|sample|insert[_\-]|goes[_\-]?here|[_\-]here\b|\btodo\b|fill[_\-]?in"
    r"|(?:^|[^a-z])fake(?:$|[^a-z])|foobar|not[_\-]?(?:a[_\-]?)?real|censored|removed|omitted"
    r"|masked"
    r"|hidden|invalid|undefined|lorem|notreal|my[_\-](?:api|secret|token|key|pass|super)"
    r"|some[_\-](?:api|secret|token|key)|deadbeef"
    r"|\*\*\*|\.\.\.|…|----|____)"
)
"""Words of documentation; a random key of forty characters has one in far fewer than 1 of 1,000."""

_ROW = r"(?i:abcdefgh|0123456789|1234567890|12345678)"
"""Characters in the order of a keyboard or an alphabet, as examples have them."""

_CROSSES = r"x{4}|X{4}|(?:^|[_\-])(?:xxx|XXX)(?:$|[_\-])"
_OPEN = (
    r"^(?:[<{]|[\[(].{0,60}[\])]$|\$[A-Za-z_{(]|%[A-Za-z_]+%|%[(sdv]|@[{(]|#\{|\\?\$|!\w+\s"
    r"|![a-z_]+$|[&*][a-z_]+$|//|\|)"
    r"|\$\{|\{\{|\$\(|<%|#\{|[<>]|\{[a-z_.]*\}|^%s|%s$"
    r"|^(?:pbkdf2|\$2[abxy]\$|\$argon2|\$[156]\$|\{S?SHA|(?i:sha)\d+[:$\-]|md5:)"
    r"|^md5[0-9a-f]{32}$|^SCRAM-SHA|^\*[0-9A-F]{40}$|^0x[0-9a-fA-F]{40}$"
    r"|^\d{4}-\d\d-\d\dT\d\d:"
)
"""What stands for a value that comes from elsewhere, is a hash, an address on a chain, a moment."""

_SEALED = (
    r"^(?:Ag[A-Za-z0-9+/]{198,}|ENC[\[(]|EJ\[\d|vault:v\d|encrypted:|U2FsdGVkX1|AQICAH|AQECAH"
    r"|gAAAAA[A-Za-z0-9_\-]{70,}|\$ANSIBLE_VAULT|v\d:[A-Za-z0-9+/=]{12,}:|01000000d08c9ddf"
    r"|ey[A-Za-z0-9_\-]{10,}\.[A-Za-z0-9_\-]*\.\.)"
)
"""How ciphertexts begin: of sealed secrets, sops, ejson, vaults, jasypt, openssl, kms, fernet."""

_REGEX = r"a-zA-Z|A-Za-z|0-9a-f|0-9A-F|a-z0-9|\(\?[:=!<P]|\]\{\d|\]\+|\[\^|\\[wds]\+"

_NO_VALUE = compile_linear_text("|".join((_EXAMPLE, _ROW, _CROSSES, _OPEN, _SEALED, _REGEX)))
"""One look tells all of these: a value is judged at every name that could have one."""

_NO_KEY = compile_linear_text("|".join((_EXAMPLE, _CROSSES, _OPEN, _REGEX)))
_IN_A_ROW = compile_linear_text(_ROW)
_NEXT = frozenset((0, 1, ord("0") - ord("9")))
"""Steps from a character to the same, or to the one that comes after it."""


_CODE = compile_later(
    r"^(?:(?:self|this|req|request|os|process|config|settings|env|args|options|opts|ctx|props"
    r"|params|data|user|app|secrets|vars?|local|module|st|cfg|conf|context|event|body|form)[.\[]"
    r"|(?:new|await|async|lambda|return|function|typeof|null|none|nil|true|false|yes|no)\b"
    r"|f?[\"']|[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*[(\[{<]"
    r"|[A-Za-z_][\w]*(?:::|->|\?\.|=>|\|\|)"
    r"|[A-Za-z_]{1,30}\d{0,5}[A-Za-z_]{0,30}(?:\.[A-Za-z_]{1,30}\d{0,5}[A-Za-z_]{0,30})+"
    r"(?:[);,]*$|=)"
    r"|[A-Za-z]:[\\/]|\.{1,2}/|~/|/(?:[a-z][a-z.\-_]+/)+|https?:|file:|arn:|s3:|gs:|vault:|op:)",
    re.IGNORECASE,
)
"""Names, calls, paths and addresses: the value itself is not there."""

_CALL = compile_later(r"^[A-Za-z_][\w.]*\([\w\s.,:=\"'\[\]{}<>\-]*\)?$")
"""A call that was cut at its bracket: it has all sorts of characters and is code all the same."""

_PATH = compile_later(r"^[\w.\-~]*(?:/[\w.\-]+)+/?$")
_FOLDER = compile_later(r"(?:^|/)[a-z][a-z._\-]+(?:/|$)")

_MIXED_CHARS = 24
"""So long a value with all sorts of characters is no code, even if it starts like some."""

_COMMON = frozenset(
    """a abc admin administrator any auth bar basic baz bearer bool boolean bytes char client
    credentials current default demo dev disabled email empty enabled enter example
    expired failed false field foo forgot guest hello help hidden hash hashed incorrect
    input int integer invalid key letmein localhost login missing mock my mypass mypassword
    mysecret mysecretpassword mysql name new nil no none null number object off ok old on optional
    pass passphrase password passwd passwort postgres private prod production pwd qwerty random
    redis required root s secret secretpassword secrets service some staging str string super
    supersecret system test testing testpass testpassword text token topsecret true type undefined
    unknown unset user username userpass value void welcome world wrong x xxx y yes your z
    pw p usr u me db database dbpass dbuser user1 minio minioadmin rabbitmq app apppass""".split()
)
_SPACE = compile_later(r"\s")
_SEPARATORS = compile_later(r"[^A-Za-z0-9]+")
_LETTERS = compile_later(r"[^A-Za-z]+")
_WORDY = compile_later(r"^(?:[A-Za-z]?[a-z]+|[A-Z]+|(?:[A-Z]*[a-z]{2,})+[A-Z]*|v?\d{1,12})$")
_NUMBERED = compile_later(r"^[A-Za-z]?[a-z]{1,12}\d{1,3}$|^[A-Z]{2,10}\d{1,2}$")
_PHRASE = compile_later(r"^[A-Za-z]+(?:[_\-./ ][A-Za-z]+)+[.,;:!?)]*$|^[A-Za-z]+[.,;:!?)]+$")
_ARGUMENT = compile_later(r"^(?:[\[(:].*|[a-z_]+(?:[A-Z][a-z]+)*\d?[),;]+|[\d.,:;%)(]+\w?)$")
_LONGEST_PASSWORD = 256
_FEWEST_WORDS = 4
"""Words of a passphrase; three are also the name of a thing."""

_TYPE = compile_later(
    r"^(?:str|string|int|bool|boolean|bytes|any|number|object|unknown|void|never|null|None|Optional"
    r"|Union|List|Dict|SecretStr|Secret|text|varchar|char|uuid|i32|u64|&str|String|Vec|Option)"
    r"\b[\w\[\]<>|?,.\s()]*$"
)
_HUMP = compile_later(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_VOWEL = compile_later(r"[aeiouyAEIOUY]")
_PIECES = compile_later(r"[A-Za-z0-9]{5,}[._\-]?|[._\-]")
_JUMBLED_CHARS = 10
_JUMBLED_HUMPS = 4
"""Names in code have fewer and longer humps: getAccessToken has three in fourteen letters."""

_NAMED_NUMBER = compile_later(
    r"^[A-Z][a-z]{2,}(?:[_\-.]?[A-Z][a-z]{2,}|[_\-.][a-z]{3,})+[_\-.]?\d{2,}[!?.#*$%]*$"
    r"|^[A-Z][a-z]{2,}[_\-.]?\d{2,}[!?#*$%]+$"
)
_DOTTED = compile_later(r"^[A-Za-z]{3,12}(?:[._][A-Za-z]{3,12})+[._]\d{2,4}$")
"""Words and a number, joined by dots: no name in code ends in a number of its own."""

_SYMBOL = compile_later(r"[!@#$%^&*?~+=]")
_PIECE_CHARS = 4
_DENSE_CAPITALS = 6
_MANY_JUMPS = 5
"""Changes between capitals, small letters and digits: one piece with so many is no word."""

_MIXED_LEAST = 2
ID_PREFIXES = frozenset(
    """toolu msg call req resp rs fc file thread run step batch asst cs seti pi evt price acct cus
    sub phc pk ws ig ctc item chatcmpl srvtoolu user org sess session event hash etag css chunk
    img image asset build deploy dpl prj team node index mcpl vs modelcall trace span
    gen env snap page part test pub public inv ch ach cache vite next css style font svg blob url
    module modules lib app main docs gid oid uid""".split()
)
"""What stands before ids of agents and providers, which are no keys."""

_PREFIX_END = compile_later(r"[_\-]")
_DRAWN_CHARS = 28
"""Characters at the end of a key by which it is seen to be drawn by lot."""

_SORTS = tuple(map(compile_later, (r"[A-Z]", r"[a-z]", r"[0-9]", r"[^A-Za-z0-9._()\[\]]")))
_CONSONANTS = compile_later(r"[bcdfghjklmnpqrstvwxz]{5,}")
_KEY_HEX = compile_later(r"^[0-9a-f]+$|^[0-9A-F]+$")


def is_example(value: str) -> bool:
    """Tell whether a value is a placeholder, a mask or a reference to another place."""
    return bool(_NO_VALUE.search(value)) or _is_monotonous(value)


def is_example_key(value: str) -> bool:
    """Tell whether what has the form of a key is an example: a key may have a row in it too."""
    if _NO_KEY.search(value) or _is_monotonous(value):
        return True
    if not _IN_A_ROW.search(value):
        return False
    steps = [ord(after) - ord(before) for before, after in pairwise(value.lower())]
    return sum(step in _NEXT for step in steps) > len(steps) / 2


def _is_monotonous(value: str) -> bool:
    return len(set(value)) < max(3, min(6, len(value) // 3))


def is_foreign_key(value: str, before: bytes) -> bool:
    """Tell whether a prefix and what follows it are the key of a provider that has no form yet."""
    prefix, drawn = _PREFIX_END.split(value, maxsplit=1)[0], value[-_DRAWN_CHARS:]
    if before.isalnum() or before in (b"_", b"-", b"/", b"+", b"."):
        return False
    if prefix in ID_PREFIXES or prefix.startswith(("sha", "id")):
        return False
    sorts = (str.isupper, str.islower, str.isdigit)
    return all(sum(map(sort, drawn)) >= _MIXED_LEAST for sort in sorts)


def is_named_number(value: str) -> bool:
    """Tell whether a value is capitalised words and a number, as people make up a secret."""
    if not _NAMED_NUMBER.match(value) or is_example(value):
        return False
    return _COMMON.isdisjoint(_SEPARATORS.split(value.lower()))


def is_jumbled(value: str) -> bool:
    """Tell whether letters and digits change so often that nobody reads words in them."""
    humps = _HUMP.findall(value)
    if len(value) < _JUMBLED_CHARS or len(humps) < _JUMBLED_HUMPS:
        return False
    odd = sum(len(hump) <= 2 or not _VOWEL.search(hump) for hump in humps)
    return odd >= 0.6 * len(humps) and _PIECES.sub("", value) == ""


def is_dotted(value: str) -> bool:
    """Tell whether a value is words and a number joined by dots, as people make up a secret."""
    return bool(_DOTTED.match(value)) and not is_example(value)


def is_broken_up(value: str) -> bool:
    """Tell whether symbols stand between pieces that are no words."""
    if not _SYMBOL.search(value) or len(value) < _JUMBLED_CHARS:
        return False
    pieces = [piece for piece in _SEPARATORS.split(value) if len(piece) >= _PIECE_CHARS]
    odd = [piece for piece in pieces if not _WORDY.match(piece) and not _NUMBERED.match(piece)]
    jumps = sorted(map(_count_jumps, odd))
    return (len(jumps) >= 2 and jumps[-2] >= 2) or jumps[-1:] >= [_MANY_JUMPS]


def _count_jumps(piece: str) -> int:
    sorts = [(letter.isupper(), letter.isdigit()) for letter in piece]
    return sum(a != b for a, b in pairwise(sorts))


def is_random(value: str, *, least: int = 8) -> bool:
    """Tell whether a value looks drawn by lot: no words, no code, no name of something."""
    return len(value) >= least and not is_example(value) and is_drawn(value, least=least)


def is_drawn(value: str, *, least: int = 8) -> bool:
    """Tell whether a value that is no example looks drawn by lot."""
    if _is_code(value) and not is_jumbled(value):
        return False
    pieces = set(_SEPARATORS.split(value)) - {""}
    if all(_WORDY.match(piece) or _NUMBERED.match(piece) for piece in pieces):
        return _is_unspeakable(max(sorted(pieces), key=len, default=""))
    if is_broken_up(value):
        return True
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if not letters:
        return digits >= 16 and len(set(value)) > 5
    if not digits:
        return _is_scrambled(max(sorted(pieces), key=len))
    return len(set(value)) >= min(6, least)


def is_password(value: str, *, bare: bool) -> bool:
    """Tell whether a value could be a password that somebody chose."""
    if not 4 <= len(value) <= _LONGEST_PASSWORD or not is_chosen(value):
        return False
    if _is_code(value) and (not _is_mixed(value) or _CALL.match(value)) and not is_jumbled(value):
        return False
    word = _LETTERS.sub("", value).lower()
    if not word:
        return len(value) >= 6 and len(set(value)) > 3 and value.isdigit() and not bare
    if "password" in word or "passwd" in word:
        return False
    if is_jumbled(value) or value.isalpha():
        return is_jumbled(value) or _is_scrambled(value)
    return not (_PHRASE.match(value) or (bare and _ARGUMENT.match(value)))


def is_word_chain(value: str, joint: str) -> bool:
    """Tell whether a value is several plain words in a row, as dice choose them."""
    words = value.split(joint)
    return len(words) >= _FEWEST_WORDS and all(
        len(word) >= 3 and word.isalpha() and word.islower() and word not in _COMMON
        for word in words
    )


def is_chosen(value: str) -> bool:
    """Tell whether a value at a place for passwords is more than an example."""
    if len(value) < 3 or is_example(value) or _SPACE.search(value):
        return False
    return value.lower() not in _COMMON and _LETTERS.sub("", value).lower() not in _COMMON


def is_basic_auth(value: str) -> bool:
    """Tell whether a value is `user:password` in Base64."""
    try:
        plain = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in plain and plain.isascii() and all(32 <= byte < 127 for byte in plain)


def _is_mixed(value: str) -> bool:
    return all(sort.search(value) for sort in _SORTS)


def _is_code(value: str) -> bool:
    if _PATH.match(value) and _FOLDER.search(value) and not _is_dense(value):
        return True
    if _CALL.match(value):
        return True
    if len(value) >= _MIXED_CHARS and _is_mixed(value):
        return False
    return bool(_CODE.match(value) or _TYPE.match(value))


def _is_dense(value: str) -> bool:
    """Tell whether a path has so many capitals and digits that it is Base64."""
    if len(value) < _MIXED_CHARS or not value.replace("/", "").replace("+", "").isalnum():
        return False
    capitals, digits = sum(map(str.isupper, value)), sum(map(str.isdigit, value))
    return capitals >= _DENSE_CAPITALS and digits >= 2


def _is_scrambled(word: str) -> bool:
    """Tell whether letters alone are no word: the case jumps about, or nobody could say it."""
    if len(word) < 16:
        return False
    if _KEY_HEX.match(word):
        return True
    if _WORDY.match(word):
        return _is_unspeakable(word)
    jumps = sum(a.isupper() != b.isupper() for a, b in pairwise(word))
    if jumps > 0.25 * len(word):
        return True
    return _is_unspeakable(word)


def _is_unspeakable(word: str) -> bool:
    one_case = word.islower() or word.isupper()
    return len(word) >= 16 and one_case and bool(_CONSONANTS.search(word.lower()))
