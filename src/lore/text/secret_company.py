"""Secret company: values that look like a secret, near a word that speaks of getting in.

Other rules know a place and judge what stands there. Here the value is seen first, as a person
sees it: it is no word and no name, and something on its line says what it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from lore.text import secret_values
from lore.text.linear import compile_linear
from lore.text.secret_fitting import Span, is_named_password, is_plain_secret
from lore.text.secret_habits import is_plain_phrase, is_short_phrase, is_word_and_number

__all__ = ["find_company"]

_DOORS = (
    r"passw|passphrase|passcode|\bpass\b|pwd|\bpw\b|\bp/w\b|credential|\bcreds\b"
    r"|\blog(?:ged|ging)?[ _\-]?(?:in|on)|\blogins\b|sign(?:ed|ing)?[ _\-]?in|\bsudo\b|\bssh\b"
    r"|unlock|unprotect|decrypt|encrypt|bcrypt|argon2|scrypt|pbkdf2|pbekey|kdf\b|\bcrypt\("
    r"|basic_?auth|httpbasic|\.basic\(|authenticat|\bauth\b|plainauth|userpass|usernamepass|userpwd"
    r"|\b[sv]?ftps?\b|\bsmtps?\b|\bimaps?\b|\bldap|_bind|\bbind\(|connect\(|connection\("
    r"|wi-?fi|wlan|\bssid\b|\bwpa2?\b|hotspot|htaccess|htpasswd|user_?name|superuser|create_?user"
    r"|add_?user|\busers?\b|\badmin\b|\broot\b|zugang|anmeld|einlogg|\bmdp\b|identifiant|connecte"
    r"|accedi|usuario|utente|benutzer|gebruiker|sendline|send_?keys|typewrite|keystore|chararray"
    r"|neo4j|mysql|postgres|oracle|redis|mongo|rabbit|mqtt|sasl|kerberos|kinit|\bvnc\b|\brdp\b"
)
"""What somebody gets into with a password, and what is done with one."""

_LOCKS = (
    r"api[ _\-]?key|secret|token|bearer|hmac|cipher|\baes\b|\bjwts?\b|fernet|wallet|signedstring"
    r"|signwith|signing"
)
"""What is opened or signed with a key."""

_WORDS = compile_linear(rf"(?i){_DOORS}|{_LOCKS}", groups=False)
_DOOR = compile_linear(rf"(?i){_DOORS}", groups=False)
_LOCK = compile_linear(rf"(?i){_LOCKS}", groups=False)

_BEFORE, _BEHIND = 120, 200
"""Bytes around a word in which it is said to be near."""

_BREAK = re.compile(rb"\r?\n|\\+[nr]|\0")
_TOKEN = re.compile(rb"[!#-&*+\-./0-9:=?@A-Z^_a-z~]{8,}")
_TELLING = re.compile(rb"[0-9]|-[a-z]+-[a-z]+-")
_LONGEST = 72
"""Characters: what is longer is no password, and keys have forms and names."""

_ENDS = b".,:;"
_ACCOUNT = re.compile(r"^[A-Za-z][a-z0-9_.@+\\\-]{0,40}[:/](?=[^/])")
"""The account that stands before its password."""

_AT_HOST = re.compile(r"@[\w\-]+(?:\.[\w\-]+)*(?::\d+)?(?:/.*)?$")
_NAME = re.compile(r"^\W?[\w.\-\[\]]{1,48}=(?=[^=])")
_ASSIGNED = re.compile(rb"([\w.\-]+)[\"'`]?[\])]?[ \t]*[:=]>?[ \t]*[bfruN@$]?[\"'`]?$")
"""A name of its own before a value: what the name says decides, and is judged elsewhere."""

_PERSON = re.compile(rb"(?i)^(?:root|admin\w*|sa|postgres|[pu]|pi|ubuntu|guest|wi-?fi|wlan)$")
"""Accounts whose password follows them at once."""

_ARGUMENT = re.compile(rb"[(,\[{]\s*(?:[\w.:\[\]]{1,24}[({]\s*)?[bfruN@]?[\"'`]$")
_SECOND = re.compile(rb",\s*(?:[\w.:\[\]]{1,24}[({]\s*)?[bfruN@]?[\"'`]$")
_TAKING = re.compile(
    rb"(?i)(?:passw\w*|pwd|pass|hash\w*|crypt\w*|login|auth\w*|compare|verify|check\w*|matches"
    rb"|derive\w*|encode|kdf\w*|argon2\w*|pbkdf2\w*|scrypt\w*|line|keys|write|text)"
    rb"[!]?\([ \t]*[bfruN@]?[\"'`]$"
)
"""Calls whose first argument is a password."""

_OPENED = re.compile(rb"(?i)passw|passphrase|\bpw\b|\bcreds\b|unlock|decrypt|credential")
_OTHER_THING = compile_linear(
    r"(?i)hash\b|digest|fingerprint|thumbprint|checksum|\bsha-?\d|md5|commit|\bids?\b|uuid|publickey"
    r"|public[ _]key|\bssh-(?:rsa|ed25519|dss)|ecdsa|\.pub\b|pubkey|ciphertext|encrypted|sealed"
    r"|\bENC[\[(]|\bvault:v\d|csrf|nonce|next_?(?:page_?)?token|page_?token|continuation|cursor"
    r"|integrity|signature|etag|cache|trace|\brequest[ _\-]?id|secure:|\$argon2|pbkdf2:|address"
    r"|expected|snapshot|fixture|\bmint|contract|holders",
    groups=False,
)
"""Words that say that what looks drawn by lot is no secret but something of it."""

_NO_SECRET = re.compile(
    r"://|^[\w.+\-]+@[\w\-]+\.\w|^\.{0,2}/|^~/|\.(?:[a-z]{2,5}|[a-z]{1,4}\d)$|^#[0-9a-fA-F]{3,8}$"
    r"|^\d[\d.,:/\-]*\w{0,3}$|^v?\d+\.\d+|::|->|=>|\(\)|^--?[a-z]|^@[a-z]|/[a-z][\w.\-]*/|^\$\{?\w"
    r"|^[A-Z]{2,}-\d+$|^0x[0-9a-fA-F]+$|^[A-Za-z]+\.[A-Za-z]+\.[A-Za-z]|\.\.|[0-9a-f]{16,}"
    r"|^\^?[0-9a-f]+$|^(?i:ctrl|alt|shift|cmd|meta|super|option)\+|\$[A-Za-z0-9+/.]{16,}"
    r"|(?i:sha-?\d|md5|utf-?\d|oauth|base64|base32|ipv\d|http\d|aes-?\d|rsa-?\d|passw|token|x86"
    r"|amd64|arm64|win32|linux|es20\d\d|^aaaa)"
)
"""Addresses, paths, files, colours, moments, flags, versions, issues, names of algorithms."""

_KEY = re.compile(r"^[A-Za-z0-9+/_\-]{20,}={0,2}$")
_MARK = re.compile(r"[!@#$%^&*?~]")
_UUID = re.compile(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_ONE_CASE = re.compile(r"^[0-9a-f]+$|^[a-z0-9]+$|^[A-Z0-9]+$")
_NUMBERED = re.compile(r"^[A-Za-z]+[\-_.:]\d+$")
"""Bare, it is the name of a machine or of a step."""

_QUOTES = (b'"', b"'", b"`")
_SHORTEST = 8
_MANY_JUMPS = 4


def find_company(data: bytes, at: int = 0) -> Iterator[Span]:
    """Yield what can only be a secret and stands near a word that speaks of secrets."""
    while (word := _WORDS.search(data, at)) is not None:
        start, end = word.span()
        low = max(at, start - _BEFORE)
        for cut in _BREAK.finditer(data, low, start):
            low = cut.end()
        high = min(len(data), end + _BEHIND)
        if line := _BREAK.search(data, end, high):
            high = line.start()
        at = high
        if _TELLING.search(data, low, high):
            yield from _judged(data, low, high)


def _judged(data: bytes, low: int, high: int) -> Iterator[Span]:
    """Judge the words of one stretch of a line."""
    door = _DOOR.search(data, low, high) is not None
    lock = _LOCK.search(data, low, high) is not None
    other = _OTHER_THING.search(data, low, high) is not None
    for token in _TOKEN.finditer(data, low, high):
        if not _TELLING.search(token.group()):
            continue
        start, text = _bare(token.start(), token.group().rstrip(_ENDS).decode("latin-1"))
        if not _SHORTEST <= len(text) <= _LONGEST:
            continue
        end = start + len(text)
        before = data[max(low, start - 60) : start]
        quoted = before[-1:] in _QUOTES and data[end : end + 1] in _QUOTES
        if start == token.start() and (named := _ASSIGNED.search(before)):
            if not _PERSON.match(named.group(1)):
                continue
        if _KEY.match(text):
            if not other and _is_key(text, before, quoted=quoted, lock=lock):
                yield start, end, "secret"
        elif door and (
            _is_password(text, quoted=quoted)
            or (quoted and _is_given(text, before))
            or (is_plain_phrase(text) and _OPENED.search(data, low, high))
        ):
            yield start, end, "password"


def _bare(start: int, text: str) -> tuple[int, str]:
    """Return a word without the account before it and the host behind it."""
    if _NAME.match(text):
        return start, ""
    if found := _ACCOUNT.match(text):
        start, text = start + found.end(), text[found.end() :]
        if host := _AT_HOST.search(text):
            text = text[: host.start()]
    return start, text


def _is_key(text: str, before: bytes, *, quoted: bool, lock: bool) -> bool:
    prefix = re.split(r"[_\-]", text, maxsplit=1)[0]
    if prefix in secret_values.ID_PREFIXES or _UUID.match(text):
        return False
    if not secret_values.is_random(text, least=20):
        return False
    if quoted:
        return _ARGUMENT.search(before) is not None and (lock or not _ONE_CASE.match(text))
    alone = lock and before[-1:] in (b" ", b"\t") and not _ONE_CASE.match(text)
    return alone and secret_values.is_jumbled(text)


def _is_password(text: str, *, quoted: bool) -> bool:
    """Tell whether a word can be nothing but a password."""
    if _NO_SECRET.search(text) or _ONE_CASE.match(text):
        return False
    if secret_values.is_example(text) or not secret_values.is_chosen(text):
        return False
    if is_short_phrase(text):
        return True
    if not quoted and _NUMBERED.match(text):
        return False
    if text.replace("_", "").isalnum():
        return is_plain_secret(text) and _is_drawn(text)
    return is_named_password(text) and bool(_MARK.search(text) or _is_drawn(text))


def _is_given(text: str, before: bytes) -> bool:
    """Tell whether a word in quotes is a password because of the call that it is given to."""
    if not (_SECOND.search(before) or _TAKING.search(before)) or _NO_SECRET.search(text):
        return False
    if is_named_password(text):
        return True
    return _count_jumps(text) >= _MANY_JUMPS and secret_values.is_random(text)


def _is_drawn(text: str) -> bool:
    """Tell whether the sorts of characters change too often for a name."""
    if secret_values.is_named_number(text) or is_word_and_number(text):
        return True
    return secret_values.is_jumbled(text)


def _count_jumps(text: str) -> int:
    sorts = [(letter.isupper(), letter.isdigit()) for letter in text]
    return sum(a != b for a, b in pairwise(sorts))
