"""Secret talk: values that somebody tells in a sentence, in one of several languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lore.text.secret_fitting import Span, fits, is_plain_secret, is_striking
from lore.text.secret_reading import read_value

__all__ = ["JUDGES", "SAID", "TALK"]


def _utf8(words: str) -> str:
    """Return words as a pattern of bytes."""
    return "|".join(words.split()).replace("_", r"[ \t]+").encode().decode("latin-1")


_FOREIGN_IS = _utf8(
    "ist lautet war wäre est était es é era è jest to is je är er on это этот είναι הוא هي هو है คือ"
    " adalah là olarak sitt zu auf en a"
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

_FOREIGN = _utf8(
    "contraseña contrasena clave_de_acceso clave mot_de_passe mdp jeton clé_d'api clé_api clé"
    " passwort kennwort zugangsschlüssel schlüssel zugangsdaten losung senha palavra-passe chave"
    " parola_d'ordine parola chiave wachtwoord sleutel hasło haslo klucz heslo klíč jelszó lösenord"
    " lösen passord adgangskode kodeord salasana avain şifre sifre parole пароль Пароль ПАРОЛЬ"
    " ключ Ключ токен Токен секрет Секрет пароля гасло mật_khẩu mật_mã kata_sandi sandi"
    " 密码 密碼 口令 令牌 密钥 金鑰 密鑰 パスワード トークン シークレット 秘密鍵 비밀번호 암호 토큰"
    " κωδικός κωδικό סיסמה סיסמא كلمة_المرور كلمة_السر पासवर्ड รหัสผ่าน"
)
_JOINED = _utf8("是 คือ 为 為 は が 는 은 이 가 : \uff1a = \uff1d → -> — –")
TALK = (
    rf"(?P<foreign>(?:{_FOREIGN})(?:[^\n:=]{{0,40}}[ \t](?:{_FOREIGN_IS})[ \t:]+"
    rf"|[^\n:=.]{{0,40}}(?:{_JOINED})[ \t:]*|[ \t]+))"
    r"|(?P<turned>[ \t]+(?:is|as|was)[ \t]+(?:the|my|our|your|their|his|her|its|a)[ \t]+"
    r"(?:[\w\-]+[ \t]+){0,2}(?:passw(?:or)?d|passphrase|token|secret|api[ \-]?key))\b"
)
"""How other languages join them, and sentences in which the secret stands first."""

_LONGEST_TURNED = 100
_AROUND = b"\"'`*,;()[]"


def _foreign(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if not is_striking(value.text) or len(value.text) < 6:
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
