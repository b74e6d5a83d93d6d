"""Name rules: which names of variables, fields, flags and headers hold a secret."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from lore.redaction import load_words
from lore.redaction.value_checks import HUMP
from lore.text.regex import compile_lazy

NameKind = Literal["", "password", "pass", "phrase", "secret", "key", "auth", "cookie"]
"""The kind of value a name announces;

`pass` and `auth` are ambiguous, so their value must convince.
"""


_CLOUD_HOST = compile_lazy(r"\.[\w\-]+\.[a-z]+\.core\.windows\.net$")
"""The storage account at the end of a driver setting that holds its key."""


_KINDS: dict[str, NameKind] = {
    **dict.fromkeys(load_words("password_names"), "password"),
    **dict.fromkeys(("passphrase", "mnemonic"), "phrase"),
    **dict.fromkeys(load_words("secret_names"), "secret"),
    **dict.fromkeys(("auth", "authorization", "sessid", "jsessionid", "phpsessid"), "auth"),
    **dict.fromkeys(("cookie", "cookies"), "cookie"),
}
_PASSWORD_ENDINGS = ("password", "passwd", "pass", "passphrase", "pwd", "pw", "passwort")
_NO_PASSWORDS = frozenset(("bypass", "compass", "pass", "cwd"))
_SECRET_ENDINGS = (
    "secret", "token", "apikey", "secretkey", "accesskey", "privatekey", "authkey", "signingkey",
    "encryptionkey", "masterkey", "accountkey", "sharedkey", "appkey", "passkey", "seckey",
    "privkey", "hmackey", "aeskey", "rootkey", "localkey",
)  # fmt: skip
_TRAILING = load_words("trailing_words")
_PUBLIC_WORDS = load_words("public_words")
_PUBLIC_NEIGHBOURS = load_words("public_neighbours")
"""They count only right before the last word: sort_key, but not SORT_API_KEY."""

_TRANSIENT = frozenset("confirm confirmation forgot reset change invite verification".split())
"""Also names of forms and columns, so only a clearly random value counts as a secret."""

_PHRASES = frozenset("seed recovery backup wallet secret mnemonic".split())
_SECRET_SALTS = frozenset("hash auth nonce logged secure cookie session app signing".split())
_MODEL_TOKENS = frozenset("next eos bos pad sep cls mask unk special prompt completion".split())
"""Tokens of pages and of language models."""

_ONE_TIME = frozenset("otp totp hotp mfa 2fa fa authenticator string base32".split())
_COOKIE_PROGRAMS = frozenset("erlang erl release rabbitmq xauth rpc".split())
"""Programs that call the secret between their nodes a cookie."""

_LEADING = frozenset("password passwd pwd passphrase secret token apikey credentials".split())
_PROPERTIES = load_words("secret_properties")

_KEY_MEANS_SECRET = load_words("key_owners")


_BY_NEIGHBOUR: dict[str, tuple[frozenset[str], NameKind]] = {
    **dict.fromkeys(("phrase", "words"), (_PHRASES, "phrase")),
    **dict.fromkeys(("key", "keys", "pass", "cookie"), (frozenset(), "")),
    "material": (frozenset(("key",)), "password"),
    "seed": (_ONE_TIME, "secret"),
}
"""Words that announce a secret only after certain other words."""


@lru_cache(maxsize=4096)
def classify_name(name: str) -> NameKind:
    """Return the kind of value that a name announces."""
    words = [word.lower() for word in HUMP.findall(_CLOUD_HOST.sub("", name))]
    while len(words) > 1 and (words[-1] in _TRAILING or words[-1].isdigit()):
        words.pop()
    if not words:
        return ""
    last, before = words[-1], words[:-1]
    if last in ("salt", "hash"):
        return _salt(before)
    is_model_token = (
        last == "token" and not _MODEL_TOKENS.isdisjoint(before) and "auth" not in before
    )
    if (
        is_model_token
        or not _PUBLIC_WORDS.isdisjoint(words)
        or _PUBLIC_NEIGHBOURS.intersection(words[-2:])
    ):
        return ""
    if not _TRANSIENT.isdisjoint(words):
        return "auth" if last == "token" else ""
    last = "key" if last == "kye" else last
    if last in _BY_NEIGHBOUR:
        return _by_neighbour(name, last, before)
    return _KINDS.get(last) or _by_ending(last) or _by_beginning(words) or _by_whole(name, words)


def _by_whole(name: str, words: list[str]) -> NameKind:
    if words[-2:] in (["secret", "id"], ["sonar", "login"]):
        return "secret"
    return "auth" if words[-1] == "session" and len(words) > 1 and name.isupper() else ""


def means_secret(word: str) -> bool:
    """Return whether a key that belongs to this word is secret: of a vendor, of an API."""
    return word.lower() in _KEY_MEANS_SECRET


def _by_neighbour(name: str, last: str, before: list[str]) -> NameKind:
    if last in ("key", "keys"):
        return _key(name, before)
    if last == "pass":
        return "password" if before else "pass"
    if last == "cookie":
        return "cookie" if _COOKIE_PROGRAMS.isdisjoint(before) else "secret"
    neighbours, kind = _BY_NEIGHBOUR[last]
    return "" if neighbours.isdisjoint(before) else kind


def _salt(before: list[str]) -> NameKind:
    return "secret" if before[-1:] == ["api"] or not _SECRET_SALTS.isdisjoint(before) else ""


def _by_ending(word: str) -> NameKind:
    """Classify a name written as one word: PGPASSWORD, authtoken, dbpass."""
    if word.endswith(_PASSWORD_ENDINGS) and word not in _NO_PASSWORDS:
        return "password"
    return "secret" if word.endswith(_SECRET_ENDINGS) else ""


def _by_beginning(words: list[str]) -> NameKind:
    """Classify a name that ends with its owner: TOKEN_GITHUB, secretStripe."""
    if len(words) < 2 or words[-1] in _PROPERTIES:
        return ""
    if words[0] in ("password", "passwd", "pwd"):
        return "pass"
    is_prefixed = words[0] in _LEADING or (len(words) > 2 and words[:2] == ["api", "key"])
    return "auth" if is_prefixed else ""


def _key(name: str, before: list[str]) -> NameKind:
    if not _KEY_MEANS_SECRET.isdisjoint(before):
        return "secret"
    return "key" if before and name.rstrip("sS0123456789_").endswith("KEY") else ""
