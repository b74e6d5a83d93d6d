"""Secret talk: values that somebody tells in a sentence, in one of several languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from lore.text.later import compile_later
from lore.text.secret_fitting import (
    Span,
    fits,
    is_named_password,
    is_plain_secret,
    is_striking,
)
from lore.text.secret_habits import is_passphrase
from lore.text.secret_reading import Value, match_four_by_four, read_value
from lore.text.secret_values import is_dotted

__all__ = [
    "FOREIGN_NAME",
    "JUDGES",
    "NEAR",
    "SAID",
    "TALK",
    "TALK_HEADS",
    "is_named_place",
    "speaks_elsewhere",
    "speaks_of_other",
    "told_nearby",
]


def _utf8(words: str) -> str:
    """Return words as a pattern of bytes; capitals that are no ASCII are not known to re2."""
    each = dict.fromkeys(
        form
        for word in words.split()
        for form in ((word,) if word.isascii() else (word, word.capitalize(), word.upper()))
    )
    return "|".join(each).replace("_", r"[ \t]+").encode().decode("latin-1")


_FOREIGN_IS = _utf8(
    "ist lautet war wäre est était es é era è jest to is je är er on это этот είναι הוא هي هو है คือ"
    " adalah là este olarak sitt zu auf en in a c'est c’est jeste yra ir heißt heisst jetzt nun"
    " para maintenant ahora ora nu nå ay היא był была был є ialah"
)
_ATTACHED_IS = _utf8("是 为 為 は が 는 은 이 가 คือ")
_ARROWS = _utf8("→ -> ⇒ — –")
SAID = (
    r"(?P<said>[`\"'*]{0,2}(?:[ \t]+"
    r"(?:for|of|on|to|at|in|from|is|was|used|I|we|you|del?|du|von|da|do|dla)[ \t]"
    r"(?:[^\n.:=]|\.\w){1,48}|(?:[ \t]+[A-Za-z']+){1,4})?"
    rf"(?:[ \t]+(?:is|was|to|as|be|are|{_FOREIGN_IS})"
    r"(?:[ \t]+(?:now|set|still|just|changed|reset))?"
    rf"(?:[ \t]+to)?[ \t:]+|[ \t]*(?:{_ATTACHED_IS})[ \t:]*|:[ \t]+|[ \t]*(?:{_ARROWS})[ \t]*"
    r"|[ \t]+[\-=][ \t]+|[ \t]*\([^()\n]*\):[ \t]+|'s[ \t]+))"
    r"|(?P<next>[ \t]+)[A-Za-z!@#$%^&*+_.,\-]{0,40}\d"
)
"""How an English sentence joins a secret to its name."""

NEAR = (
    r"(?P<near>(?:[ \t]+|[?:,][ \t]+|[ \t]\(|[ \t]*\|[ \t]*|[ .]{2,24}:?[ ]?"
    r"|[ ]?\xc2\xbb[ ]?)(?:[A-Za-z0-9'/,.\-]{1,16}[ \t(:?]{1,3}){0,5}"
    r"(?:[`\"'*(]{0,3}|\xe2\x80[\x98-\x9f]|\xc2\xab[ ]?))"
    r"(?:[A-Za-z!@#$%^&*+_=?.\-]{5,40}\d|[A-Za-z!@#$%^&*+_=?.\-]{0,4}\d[!#-&*-:=?-Z^-z~]{6}"
    r"|[A-Za-z]{1,12}[!#$%^*~][A-Za-z0-9][!#-&*-:=?-Z^-z~]{3}"
    r"|[A-Za-z!@#$%^&*+_=?.,\-]{0,40}(?-i:[a-z][A-Z]{2}|[A-Z][a-z][A-Z])[!#-&*-:=?-Z^-z~]{3})"
)
"""A name, some words, and what could be a secret."""

_FOREIGN = _utf8(
    "contraseña contrasena contraseñ clave_de_acceso mot_de_passe mots_de_passe \\bmdp\\b passwort"
    " kennwort zugangscode losungswort senha palavra-passe parola_d'ordine parola parolă wachtwoord"
    " paswoord hasło haslo hasła hasłe hasłu heslo hesla heslem heslu lozink лозинк jelszó jelszav"
    " lösenord passord adgangskode kodeord salasana salasanan lykilorð aðgangsorð slaptažod parool"
    " şifre sifre пароль пароля паролем паролю паролі гасло паролата парола"
    " mật_khẩu mật_mã kata_sandi katasandi kata_laluan"
    " 密码 密碼 口令 暗証番号 パスワード パスフレーズ パスコード 비밀번호 비번 암호 패스워드"
    " κωδικός κωδικό συνθηματικό סיסמה סיסמא סיסמת كلمة_المرور كلمة_السر"
    " الرقم_السري گذرواژه رمز_عبور"
    " पासवर्ड কূটশব্দ পাসওয়ার্ড கடவுச்சொல் รหัสผ่าน"
)
_FOREIGN_KEYS = _utf8(
    "\\bclave jeton clé_d'api clé_api \\bclé schlüssel zugangsdaten losung \\bchave"
    " \\bchiave sleutel klucz klíč"
    " kľúč ključ kulcs nyckel nøgle nøkkel \\bavain anahtar \\bparole \\bsandi \\blösen"
    " \\bcheie \\bcheia \\bkunci khóa"
    " ключ токен секрет кључ κλειδί מפתח مفتاح कुंजी คีย์"
    " 令牌 密钥 金鑰 密鑰 秘钥 キー トークン シークレット 秘密鍵 키 토큰 시크릿"
)
FOREIGN_NAME = compile_later(_FOREIGN.encode("latin-1"), re.IGNORECASE)
TALK = (
    rf"(?P<foreign>{_FOREIGN})|(?P<unlocking>{_FOREIGN_KEYS})"
    r"|(?P<turned>(?:[`\"']?[ \t]+(?:is|as|was|into|in|for)[ \t]+"
    r"|[,;.?!]?[ \t]+(?:that's|that[ ]is|which[ ]is|it's|thats)[ \t]+"
    r"|[ \t]+\()(?:the|my|our|your|their|his|her|its|a)[ \t]+"
    r"(?:[\w\-]+[ \t]+){0,2}(?:passw(?:or)?d|passphrase|token|secret|api[ \-]?key)"
    r"|[ \t]+as[ \t]+(?:[\w\-]+[ \t]+)?passw(?:or)?d)\b"
    r"|(?P<entered>\b(?:log(?:ged)?|sign(?:ed)?)[ \-]?in(?:to)?[ \t]+(?:[\w\-]+[ \t]+){0,4}?"
    r"(?:as|with|using|user)[ \t]+[`\"']?[\w.@+\-]+[`\"']?[ \t]*"
    r"(?:,|[ \t]with|[ \t]and|[ \t]using|/|[ \t]+:)[ \t]+)"
)
"""How other languages join them, and sentences in which the secret stands first."""

TALK_HEADS = (
    rf"{_FOREIGN}|{_FOREIGN_KEYS}"
    r"|(?:[`\"']?[ \t]+(?:is|as|was|into|in|for)[ \t]+"
    r"|[,;.?!]?[ \t]+(?:that's|that[ ]is|which[ ]is|it's|thats)[ \t]+"
    r"|[ \t]+\()(?:the|my|our|your|their|his|her|its|a)[ \t]+"
    r"(?:[\w\-]+[ \t]+){0,2}(?:passw|passphrase|token|secret|api[ \-]?key)"
    r"|[ \t]+as[ \t]+(?:[\w\-]+[ \t]+)?passw"
    r"|\b(?:log(?:ged)?|sign(?:ed)?)[ \-]?in(?:to)?[ \t]"
)
"""How each of these begins."""

_NEARBY_BYTES = 140
_NEARBY_WORDS = 12
"""So far behind its name a secret is looked for in a sentence."""

_LINE_END = compile_later(rb"\r?\n|\\+[nr]|\. (?=[A-Z])")
_WORD = compile_later(rb"(?:[!-;=?-{}~]|[\xc2-\xdf][\x80-\xbf]|\xe2[\x80-\xbf]{2})+")
"""Letters of scripts that have no spaces, or that nobody writes passwords in, end a word."""

_WRAPPING = b"\"'`*,;:()[]{}!?="
_POINTS = b":=>?"
_QUOTES = compile_later(rb"^(?:\xe2\x80[\x98-\x9f]|\xc2\xab)+|(?:\xe2\x80[\x98-\x9f]|\xc2\xbb).*$")
"""Quotes and stops that are no ASCII."""

_SUFFIX = compile_later(rb"(?:[a-z]|[\xc3-\xdf][\x80-\xbf]|\xe2\x80\x99|'){1,14}")
"""What the grammar of a language hangs on a name."""

_JOINING = frozenset(
    b"is was to be are as now set still key token password pass secret 0 7 ascii its".split()
) | frozenset(_FOREIGN_IS.encode("latin-1").split(b"|"))
_OTHER_THING = compile_later(
    rb"(?i)\b(?:hash\w*|digest|fingerprint|thumbprint|checksum|sha-?\d*|md5|commit|address|contract"
    rb"|id|ids|uuid|holders?|version|expires?|length|encrypted|mint\w*|pub(?:lic|key)?|arn|path"
    rb"|file"
    rb"|header|field|column|name|type|limit|error|line|see|modulus|erc\d*|etag|trace|seconds)\b"
)
"""Words that say that what follows is no secret but something of it."""

_HEX = compile_later(r"^(?:0x)?[0-9a-fA-F]+$|^[0-9a-fA-F]{8}-[0-9a-fA-F\-]+$")
_PLACE_NAME = compile_later(
    r"^[\w\-]+(?:\.[\w\-]+)*\.[a-z]{2,12}(?::\d+)?$|^~?\.{0,2}/|\\|@[\w\-]+\.|^\w+://|^--?[a-z]"
    r"|^\w+\(|^(?:\d+:)?v?\d+(?:\.\d+)+"
)
"""Hosts, paths, addresses, flags, calls and versions."""

_THING_NAME = compile_later(
    r"/|\(|^[a-z_.]+=|::|->|^[A-Z]+-\d+$|^[a-z]+(?:[_\-][a-z]+)*[_\-]?v?\d*$|^[A-Z_]+\d*$|^#"
    r"|\$\{?[A-Za-z_]|(?:^|\W)%s(?:$|\W)|(?i:passw|oauth|token|utf-?\d|sha-?\d|base64|ipv\d|http)"
)
"""Issues, names in code, colours, variables."""

_MENTION = compile_later(
    r"[/(]|::|->|^#|^[a-z_]+=\d{0,3}$|^\$\{?[A-Za-z_]|(?i:passw|oauth|token|base64)"
)
"""Paths, calls, variables, and words about secrets."""

_INTO = compile_later(rb"(?i)[`\"']?[ \t]+(?:into|in|for)\b")
_LONGEST_TURNED = 100
_SHORTEST_TOLD = 7
_SHORTEST_KEY = 12
_FEW_LETTERS = 3
_NO_ASCII = 0x80
_WIDE, _WIDE_BYTES = 0xE0, 3
"""How letters begin in UTF-8 that scripts without endings have, and how many bytes they take."""

_UUID = compile_later(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_AROUND = b"\"'`*,;()[]"


def speaks_elsewhere(data: bytes, start: int, value: Value) -> bool:
    """Tell whether a sentence speaks of the hash or id of a secret."""
    before, between = data[max(0, start - 20) : start], data[start : value.start]
    before = before[max(map(before.rfind, (b",", b";", b"\n", b". "))) + 1 :]
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
    before = b":"
    for count, word in enumerate(_WORD.finditer(data, since, limit)):
        token = _QUOTES.sub(b"", word.group()).strip(_WRAPPING)
        if count >= _NEARBY_WORDS or _OTHER_THING.fullmatch(token):
            return
        joined = _joins(before) or data[word.start() - 1] >= _NO_ASCII
        before = word.group() if token else b":"
        if joined and (apart := match_four_by_four(data, word.start())):
            yield *apart.span(), kind
            return
        text = token.rstrip(b".").decode("utf-8", "replace")
        if len(text) >= _SHORTEST_TOLD and _is_told(text, kind, joined=joined):
            start = word.start() + word.group().find(token)
            yield start, start + len(text.encode("utf-8", "replace")), kind
            return


def _joins(word: bytes) -> bool:
    return word[-1:] in _POINTS or word.lower() in _JOINING


def _is_told(text: str, kind: str, *, joined: bool) -> bool:
    if is_named_place(text) or _UUID.match(text) or not is_latin(text):
        return False
    if joined and kind == "password" and _is_password(text):
        return not _MENTION.search(text)
    if kind == "password" and is_passphrase(text):
        return True
    if _THING_NAME.search(text) or (_HEX.match(text) and not joined):
        return False
    return is_plain_secret(text) or (joined and is_dotted(text))


def _is_password(text: str) -> bool:
    return is_named_password(text) or (is_striking(text) and fits("password", text, bare=True))


def is_latin(text: str) -> bool:
    """Tell whether hardly a letter of a word is of another script, as in a password."""
    return len(text.encode("utf-8", "replace")) <= len(text) + _FEW_LETTERS


def _foreign(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    yield from told_nearby(data, at, "password", since=_behind_suffix(data, at))


def _unlocking(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    for start, end, _ in told_nearby(data, at, "secret", since=_behind_suffix(data, at)):
        if end - start >= _SHORTEST_KEY:
            yield start, end, "secret"


def _behind_suffix(data: bytes, at: int) -> int:
    """Return where a name ends with what grammar adds to it, if its script has such endings."""
    if at >= _WIDE_BYTES and data[at - _WIDE_BYTES] >= _WIDE:
        return at
    suffix = _SUFFIX.match(data, at)
    return suffix.end() if suffix else at


def _turned(data: bytes, found: Any, _at: int) -> Iterator[Span]:
    end = found.start()
    line = data[max(0, end - _LONGEST_TURNED) : end]
    word = line[max(line.rfind(b" "), line.rfind(b"\n"), line.rfind(b"\t")) + 1 :]
    start = end - len(word.lstrip(_AROUND))
    end -= len(word) - len(word.rstrip(_AROUND))
    if start >= end:
        return
    text = data[start:end].decode("utf-8", "replace")
    named = b"passw" in found.group().lower() and not _MENTION.search(text)
    certain = named or not _INTO.match(found.group())
    if certain and (is_plain_secret(text) or (named and is_named_password(text))):
        yield start, end, "password"


def _entered(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    """Judge what somebody is told to log in with."""
    value = read_value(data, at, prose=True)
    if is_named_password(value.text) and not _is_mentioned(value.text):
        yield value.start, value.end, "password"


def _is_mentioned(text: str) -> bool:
    return is_named_place(text) or bool(_MENTION.search(text))


JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "foreign": _foreign, "unlocking": _unlocking, "turned": _turned, "entered": _entered,
}  # fmt: skip
