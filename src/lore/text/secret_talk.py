"""Secret talk: values that somebody tells in a sentence, in one of several languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from lore.text.secret_fitting import Span, fits, is_plain_secret, is_striking
from lore.text.secret_reading import Value, read_value
from lore.text.secret_values import is_dotted

__all__ = [
    "JUDGES",
    "NEAR",
    "SAID",
    "TALK",
    "is_named_place",
    "speaks_elsewhere",
    "speaks_of_other",
    "told_nearby",
]


def _utf8(words: str) -> str:
    """Return words as a pattern of bytes."""
    return "|".join(words.split()).replace("_", r"[ \t]+").encode().decode("latin-1")


_FOREIGN_IS = _utf8(
    "ist lautet war wäre est était es é era è jest to is je är er on это этот είναι הוא هي هو है คือ"
    " adalah là este olarak sitt zu auf en a"
)
_ARROWS = _utf8("→ -> ⇒ — –")
SAID = (
    r"(?P<said>(?:[ \t]+(?:for|of|on|to|at|in|from|is|was|used|I|we|you|del?|du|von|da|do|dla)[ \t]"
    r"(?:[^\n.:=]|\.\w){1,48})?"
    rf"(?:[ \t]+(?:is|was|to|as|be|are|{_FOREIGN_IS})"
    r"(?:[ \t]+(?:now|set|still|just|changed|reset))?"
    rf"(?:[ \t]+to)?[ \t:]+|:[ \t]+|[ \t]*(?:{_ARROWS})[ \t]*|[ \t]+[\-=][ \t]+))"
    r"|(?P<next>[ \t]+)[A-Za-z!@#$%^&*+_.\-]{0,40}\d"
)
"""How an English sentence joins a secret to its name."""

NEAR = (
    r"(?P<near>(?:[ \t]+|[?:,][ \t]+|[ \t]\(|[ \t]*\|[ \t]*|[ .]{2,24}:?[ ]?"
    r"|[ ]?\xc2\xbb[ ]?)(?:[A-Za-z0-9'/,.\-]{1,16}[ \t(:?]{1,3}){0,5}[`\"'*(]{0,3})"
    r"(?:[A-Za-z!@#$%^&*+_=?.\-]{5,40}\d|[A-Za-z!@#$%^&*+_=?.\-]{0,4}\d[!#-&*-:=?-Z^-z~]{6}"
    r"|[A-Za-z!@#$%^&*+_=?.\-]{0,40}(?-i:[a-z][A-Z]{2}|[A-Z][a-z][A-Z])[!#-&*-:=?-Z^-z~]{3})"
)
"""A name, some words, and what could be a secret."""

_FOREIGN = _utf8(
    "contraseña contrasena clave_de_acceso clave mot_de_passe mdp jeton clé_d'api clé_api clé"
    " passwort kennwort zugangsschlüssel schlüssel zugangsdaten losung senha palavra-passe chave"
    " parola_d'ordine parola chiave wachtwoord sleutel hasło haslo klucz heslo klíč jelszó lösenord"
    " lösen passord adgangskode kodeord salasana avain şifre sifre parole пароль Пароль ПАРОЛЬ"
    " ключ Ключ токен Токен секрет Секрет пароля гасло mật_khẩu mật_mã kata_sandi sandi"
    " 密码 密碼 口令 令牌 密钥 金鑰 密鑰 パスワード トークン シークレット 秘密鍵 비밀번호 암호 토큰"
    " κωδικός κωδικό סיסמה סיסמא كلمة_المرور كلمة_السر पासवर्ड รหัสผ่าน"
)
_JOINED = _utf8("是 了 成 คือ 为 為 は が 는 은 이 가 : \uff1a = \uff1d → -> — –")
TALK = (
    rf"(?P<foreign>(?:{_FOREIGN})(?:[^\n:=]{{0,40}}[ \t](?:{_FOREIGN_IS})[ \t:]+"
    rf"|[^\n:=.]{{0,40}}(?:{_JOINED})[ \t:]*|[ \t]+))"
    r"|(?P<turned>(?:[ \t]+(?:is|as|was)[ \t]+|,[ \t]+(?:that's|that[ ]is|which[ ]is|it's)[ \t]+"
    r"|[ \t]+\()(?:the|my|our|your|their|his|her|its|a)[ \t]+"
    r"(?:[\w\-]+[ \t]+){0,2}(?:passw(?:or)?d|passphrase|token|secret|api[ \-]?key))\b"
)
"""How other languages join them, and sentences in which the secret stands first."""

_NEARBY_BYTES = 140
_NEARBY_WORDS = 12
"""So far behind its name a secret is looked for in a sentence."""

_LINE_END = re.compile(rb"\r?\n|\\+[nr]|\. (?=[A-Z])")
_WORD = re.compile(rb"[^\s\x00<>|]+")
_WRAPPING = b"\"'`*,;:()[]{}!?"
_POINTS = b":=>?"
_QUOTES = re.compile(
    rb"^(?:\xe2\x80[\x98-\x9f]|\xc2\xab)+|(?:\xe2\x80[\x98-\x9f]|\xc2\xbb|\xef\xbc|\xe3\x80).*$"
)
"""Quotes and stops that are no ASCII."""

_JOINING = frozenset(
    b"is was to be are as now set still key token password pass secret 0 7 ascii".split()
)
_OTHER_THING = re.compile(
    rb"(?i)\b(?:hash\w*|digest|fingerprint|thumbprint|checksum|sha-?\d*|md5|commit|address|contract"
    rb"|id|ids|uuid|holders?|version|expires?|length|encrypted|mint\w*|pub(?:lic|key)?|arn|path"
    rb"|file"
    rb"|header|field|column|name|type|limit|error|line|see|modulus|erc\d*|etag|trace|seconds)\b"
)
"""Words that say that what follows is no secret but something of it."""

_HEX = re.compile(r"^(?:0x)?[0-9a-fA-F]+$|^[0-9a-fA-F]{8}-[0-9a-fA-F\-]+$")
_PLACE_NAME = re.compile(
    r"^[\w\-]+(?:\.[\w\-]+)*\.[a-z]{2,12}(?::\d+)?$|^~?\.{0,2}/|\\|@[\w\-]+\.|^\w+://|^--?[a-z]"
    r"|^\w+\(|^v?\d+(?:\.\d+)+"
)
"""Hosts, paths, addresses, flags, calls and versions."""

_THING_NAME = re.compile(
    r"/|\(|^[a-z_.]+=|::|->|^[A-Z]+-\d+$|^[a-z]+(?:[_\-][a-z]+)*[_\-]?v?\d*$|^[A-Z_]+\d*$|^#"
    r"|\$\{?[A-Za-z_]|%s|(?i:passw|oauth|token|utf-?\d|sha-?\d|base64|ipv\d|http)"
)
"""Issues, names in code, colours, variables."""

_LONGEST_TURNED = 100
_SHORTEST_TOLD = 8
_UUID = re.compile(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_AROUND = b"\"'`*,;()[]"


def speaks_elsewhere(data: bytes, start: int, value: Value) -> bool:
    """Tell whether a sentence speaks of the hash or id of a secret."""
    before, between = data[max(0, start - 20) : start], data[start : value.start]
    return bool(_OTHER_THING.search(before) or _OTHER_THING.search(between))


def speaks_of_other(text: bytes) -> bool:
    """Tell whether a text is about something of a secret and not the secret itself."""
    return bool(_OTHER_THING.search(text))


def is_named_place(text: str) -> bool:
    """Tell whether a word is the name of a host or file, or a call."""
    return bool(_PLACE_NAME.search(text)) and not is_dotted(text)


def told_nearby(data: bytes, end: int, kind: str, *, since: int) -> Iterator[Span]:
    """Judge the words that follow a name in its sentence, and take the first plain secret."""
    limit = min(len(data), end + _NEARBY_BYTES)
    line = _LINE_END.search(data, end, limit)
    limit = line.start() if line else limit
    before = b""
    for count, word in enumerate(_WORD.finditer(data, since, limit)):
        token = _QUOTES.sub(b"", word.group()).strip(_WRAPPING)
        if count >= _NEARBY_WORDS or _OTHER_THING.fullmatch(token):
            return
        text = token.rstrip(b".").decode("utf-8", "replace")
        joined = before[-1:] in _POINTS or before.lower() in _JOINING or count == 0
        before = word.group()
        if len(text) < _SHORTEST_TOLD or is_named_place(text) or _THING_NAME.search(text):
            continue
        if (_HEX.match(text) and not joined) or _UUID.match(text):
            continue
        if is_plain_secret(text) or (joined and is_dotted(text)):
            start = word.start() + word.group().find(token)
            yield start, start + len(text.encode("utf-8", "replace")), kind
            return


def _foreign(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if not is_striking(value.text) or len(value.text) < 6:
        yield from told_nearby(data, at, "password", since=at)
        return
    if fits("password", value.text, bare=True) or is_plain_secret(value.text):
        yield value.start, value.end, "password"


def _turned(data: bytes, found: Any, _at: int) -> Iterator[Span]:
    end = found.start()
    line = data[max(0, end - _LONGEST_TURNED) : end]
    word = line[max(line.rfind(b" "), line.rfind(b"\n"), line.rfind(b"\t")) + 1 :]
    start = end - len(word.lstrip(_AROUND))
    end -= len(word) - len(word.rstrip(_AROUND))
    if start < end and is_plain_secret(data[start:end].decode("utf-8", "replace")):
        yield start, end, "password"


JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "foreign": _foreign, "turned": _turned,
}  # fmt: skip
