"""Secret company: values that look like a secret, near a word that speaks of getting in.

Other rules know a place and judge what stands there. Here the value is seen first, as a person
sees it: it is no word and no name, and something on its line, or the question before it, says
what it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.linear import compile_linear
from lore.text.secret_fitting import DIGIT, Span, is_named_password, is_plain_secret
from lore.text.secret_habits import is_plain_phrase, is_short_phrase, is_word_and_number
from lore.text.secret_repeats import CROWD, behind_repeats

__all__ = ["find_company"]

_DOORS = (
    r"passw|passphrase|passcode|\bpass\b|pwd|\bpw\b|\bp/w\b|\bu/p\b|credential|\bcreds\b"
    r"|\blog(?:ged|ging)?[ _\-]?(?:in|on)|\blogins\b|sign(?:ed|ing)?[ _\-]?in|\bsudo\b|\bssh\b"
    r"|ssh-keygen|unlock|unprotect|decrypt|encrypt|bcrypt|argon2|scrypt|pbkdf2|pbekey|kdf\b"
    r"|\bcrypt\("
    r"|basic_?auth|http-?basic|\.basic\(|authenticat|\bauth\b|plainauth|userpass|usernamepass"
    r"|userpwd|\b[sv]?ftps?\b|\bsmtps?\b|\bimaps?\b|\bldap|_bind|\bbind\(|connect\(|connection\("
    r"|wi-?fi|wlan|\bssid\b|\bwpa2?\b|hotspot|htaccess|htpasswd|user_?name|superuser|create_?user"
    r"|add_?user|addlogin|(?:^|[ _(,{;])users?\b|\badmin\b|\broot\b|zugang|anmeld|einlogg"
    r"|\bmdp\b|identifiant|connecte"
    r"|accedi|usuario|utente|benutzer|gebruiker|sendline|send_?keys|typewrite|keystore|chararray"
    r"|neo4j|mysql|postgres|oracle|redis|mongo|rabbit|mqtt|sasl|kerberos|kinit|\bvnc|\brdp\b|expdp"
    r"|impdp|openssl|\bgpg\b|veracrypt|rclone|\bborg\b|restic|hydra|keepass|xdotool|networksetup"
    r"|caddy|drush|derive|hash::|securestring|\baccess(?:[ ]data)?:|\buse[ ]\w+:|connects?[ ]as"
    r"|\bu(?:ser)?:[ ]\S+[ ,/]+p(?:ass)?:|tostring\(.base64|encodetostring|btoa|b64encode"
    r"|base64_encode|bundle_\w+__|testcase\(|inlinedata\(|oracle:thin"
)
"""What somebody gets into with a password, and what is done with one."""

_LOCKS = (
    r"api[ _\-]?key|secret|token(?:\b|[_\-a-rt-z])|bearer|hmac|cipher|\baes\b|\bjwts?\b"
    r"|fernet|wallet|signedstring"
    r"|signwith|signing|(?:master|encryption|private|shared|session|access|license|activation)"
    r"[ _\-]?key|(?:my|your|our|this|new|old)[ ]key|\bkey[ ](?:ends|expires|for|file)|unseal"
    r"|\bkey\b[^\n]{0,24}(?:fromhex|decodestring|buffer\.from|b64decode|getbytes)|--key\b|cookie"
    r"|algorithm\.h|__auth|(?:client|bot|api|sdk|stripe|twilio|telegram|github|gitlab|sendgrid"
    r"|resend|pusher|mixpanel|amplitude|algolia\w*|session|securitykey)(?:\.init)?[\"']?\)?\("
    r"|\bbot\.run\(|client\.run\("
    r"|--session\b|(?:here's|rotate|revoke|replace|leaked|with|get)[ ](?:the|my|this|your)[ ]key"
    r"|pragma[ ]key|[ ]key[ ]'"
)
"""What is opened or signed with a key."""

_WORDS = compile_linear(rf"(?i){_DOORS}|{_LOCKS}", groups=False)
_DOOR = compile_linear(rf"(?i){_DOORS}", groups=False)
_LOCK = compile_linear(rf"(?i){_LOCKS}", groups=False)
_OPENED = compile_linear(
    r"(?i)passw|passphrase|\bpw\b|\bcreds\b|unlock|decrypt|credential|ssh-keygen|\bpwd\b|secret",
    groups=False,
)
"""Doors that plain words open too."""

_JUST_BEFORE = 60
_BEFORE, _BEHIND = 120, 200
"""Bytes around a word in which it is said to be near."""

_BREAK = compile_later(rb"\r?\n|\\+[nr]|\0")
_BREAKS = (b"\n", b"\\n", b"\\r", b"\0")
"""How each of these ends."""

_CHARS = rb"[!#-&*+\-./0-9:=?@A-Z^_a-z~]"
_TELLING = rb"(?:[0-9]|[a-z]([\-_.])[a-z]+\1[a-z]+\1[a-z]|[a-z][A-Z]{2}|[A-Z][a-z][A-Z])"
_TOKEN = compile_later(
    rb"(?<!%b)(?=%b{8})(?=%b*?%b)%b+" % (_CHARS, _CHARS, _CHARS, _TELLING, _CHARS)
)
"""Words with a digit or odd capitals, and words in a row."""

_TOLD = compile_later(_TOKEN.pattern + rb"|[\"'`\x80-\xbf] ?[a-z]+ [a-z]+ [a-z]+")
_SPOKEN = compile_later(
    rb"(?:[\"'`]|\xe2\x80[\x9c\x9e\x98]|\xc2\xab[ ]?)([a-z]{3,12}(?:[ ][a-z]{3,12}){2,8})"
    rb"(?:[\"'`]|\xe2\x80[\x99\x9c\x9d]|[ ]?\xc2\xbb)"
)
"""Words in quotes, as a passphrase is told."""

_DULL = compile_later(
    rb"(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|\d{4}-\d\d-\d\d[T0-9:.Z+\-]*"
    rb"|[a-z0-9_.\-@~]*/[a-z0-9_.\-@]*/[\w.\-@/]*|[\d.:\-+%/,]+|[a-z_.]+\d?)[.,:;]*$"
)
"""Ids, moments, paths, numbers and words: most of what has a digit in it."""

_CHARACTER = compile_later(_CHARS)
_CHARACTERS = bytes(byte for byte in range(128) if _CHARACTER.match(bytes((byte,))))
_REST = compile_later(_CHARACTER.pattern + rb"+")
_SHORTEST, _LONGEST = 8, 90
"""Characters: what is longer is no password, and keys have forms and names."""

_ENDS = b".,:;"
_ACCOUNT = compile_later(r"^(?:thin:)?[A-Za-z][a-z0-9_.@+\\\-]{0,40}[:/](?=[^/])")
"""The account that stands before its password."""

_AT_HOST = compile_later(r"@[\w\-]+(?:\.[\w\-]+)*(?::\d+)?(?:[:/].*)?$")
_NAME = compile_later(r"^\W?[\w.\-\[\]]{1,48}=(?=[^=])")
_PLACED = compile_later(r"\.\w{1,5}:\d+|^arn:|^[\w.\-]+/[\w.\-]+#\d+$")
"""A line of a file, the name of a resource, an issue."""

_ASSIGNED = compile_later(rb"([\w.\-]+)[\"'`]?[\])]?[ \t]*[:=]>?[ \t]*[bfruN@$]?[\"'`]?$")
"""A name of its own before a value: what the name says decides, and is judged elsewhere."""

_IS_NAME = compile_later(rb"\\?[\"'`]\]?[ \t]*(?::[ \t]*[\w\"'\[{\-]|=>)")
"""What follows a name in quotes: its value."""

_PERSON = compile_later(
    rb"(?i)^(?:root|admin\w*|sa|postgres|[pwu]|key|psk|pi|ubuntu|guest|wi-?fi|wlan|it|this|here"
    rb"|below|now)$"
)
"""Accounts whose password follows them at once, and words that are no names."""

_HOLDER = compile_later(
    rb"(?i)(?:users|credentials?|creds|accounts|logins|passwords|auth\w*)[\"']?[ \t]*(?:=|:|=>|\()+"
    rb"[ \t]*[\[{(]"
)
"""What holds passwords by the names of their accounts."""

_SAID = compile_later(rb"(?:[A-Za-z\x80-\xff']+,?[ ]){2,}[\w\x80-\xff']+[ ]?:[ \t]+[\"'`]?$")
"""A sentence before a colon."""

_WRAP = rb"(?:[\w.:\[\]]{1,32}[({]\s*){0,2}[bfruN@]?[\"'`]$"
_ARGUMENT = compile_later(
    rb"(?i)(?:[(,\[{]|\|\||\?\?|\bor\b|\belse\b|\b(?:key|token|secret|password)\b)\s*" + _WRAP
)
_SECOND = compile_later(rb",\s*" + _WRAP)
_TAKING = compile_later(
    rb"(?i)(?:passw\w*|pwd|pass|hash\w*|crypt\w*|login|auth\w*|compare|verify|check\w*|matches"
    rb"|derive\w*|encode|kdf\w*|argon2\w*|pbkdf2\w*|pbekeyspec|scrypt\w*|line|keys|write|text|parse"
    rb"|make|parser|begin|equals|unprotect|hmac\w*"
    rb"|from\w*password)[!]?[( ][ \t]*(?:[\w.:\[\]]{1,16}\()?"
    rb"[bfruN@]?[\"'`]$"
)
"""Calls whose first argument is a password."""

_JOINED = compile_later(
    rb"(?i)(?:[:=>]|<<<|[ ]-[tbn]|--session|%s['\"]?|\xe2\x80\xba|\b(?:is|it|to|with|use|using"
    rb"|are|was|now|this|here|key|token|secret|auth|login"
    rb"|unseal|lookup|echo|put|revoke|rotate|leaked|est|es|ist|lautet|la|il|de))[ \t]*[\"'`(]?$"
)
"""What joins a key to the words about it."""

_OTHER_THING = compile_linear(
    r"(?i)hash\b|digest|fingerprint|thumbprint|checksum|\bsha-?\d|md5|commit|\bids?\b|uuid"
    r"|publickey"
    r"|public[ _]key|\bssh-(?:rsa|ed25519|dss)|ecdsa|\.pub\b|pubkey|ciphertext|encrypted|sealed"
    r"|\bENC[\[(]|\bvault:v\d|csrf|nonce|next_?(?:page_?)?token|page_?token|continuation|cursor"
    r"|integrity|signature|etag|cache|trace|\brequest[ _\-]?id|secure:|\$argon2|pbkdf2:|address"
    r"|expected|snapshot|fixture|\bmint|contract|holders|blob|\btree\b|evict|dedupe|revision|layer",
    groups=False,
)
"""Words that say that what looks drawn by lot is no secret but something of it."""

_NO_SECRET = compile_later(
    r"://|^[\w.+\-]+@[\w\-]+\.\w|^[a-z][\w.+\-]*@[a-z][\w\-]*$|^\.{0,2}/|^~/|\.(?:[a-z]{2,5}"
    r"|[a-z]{1,4}\d)$|^#[0-9a-fA-F]{3,8}$"
    r"|^\d[\d.,:/\-]*\w{0,3}$|^v?\d+\.\d+|::|->|=>|\(\)|^--?[a-z]|^@\w|/[a-z][\w.\-]*/|^\$\{?\w"
    r"|^[A-Z]{2,}-\d+$|^0x[0-9a-fA-F]+$|^[A-Za-z]+\.[A-Za-z]+\.[A-Za-z]|\.\.|[0-9a-f]{16,}|\*\*"
    r"|^\^?[0-9a-f]+$|^(?i:ctrl|alt|shift|cmd|meta|super|option)\+|\$[A-Za-z0-9+/.]{16,}|/\w+#\d+$"
    r"|(?i:%3a|%2f|sha-?\d|md5|utf-?\d|oauth|base64|base32|ipv\d|http\d|aes-?\d|rsa-?\d|passw|token|x86"
    r"|amd64|arm64|win32|linux|es20\d\d|^aaaa|pkcs|pbkdf|sigv\d|release)"
)
"""Addresses, paths, files, colours, moments, flags, versions, issues, names of algorithms."""

_KEY = compile_later(r"^[A-Za-z0-9+/_\-]{20,}={0,2}$")
_MARK = compile_later(r"[!@#$%^&*?~]")
_UUID = compile_later(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_ONE_CASE = compile_later(r"^[0-9a-f]+$|^[a-z0-9]+$|^[A-Z0-9]+$")
_NUMBERED = compile_later(r"^[A-Za-z]+[\-_.:]\d+$")
"""Bare, it is the name of a machine or of a step."""

_QUOTES = (b'"', b"'", b"`")
_MANY_JUMPS = 4
_MANY_KEY_JUMPS = 6
_ONE_CASE_CHARS = 28

_ASKED = compile_linear(
    r"(?i)(?:passw(?:or)?d|passphrase|\bpw\b|\bpwd\b|\bcreds\b|credentials|auth-user-pass|\blogin\b"
    r"|api[ _\-]?key|\btoken\b|\bsecret\b)",
    groups=False,
)
_SET = compile_later(rb"\w[\"'`]?[ \t]*(?:=[ \t]*\S|:[ \t]*[\"'`\w$]+[\"'`,;]*$)")
"""A name with its value on the same line."""

_LISTING = compile_linear(
    r"(?i)\b(?:git|grep|rg|ls|find|log|diff|sha\d*(?:sum)?|md5\w*|list|status|hash|digest"
    r"|fingerprint|checksum|commit|sealed|encrypted)\b|!vault|ENC\[|\bids?\b",
    groups=False,
)
"""What is followed by hashes and names, whatever it is about."""

_ANSWER_LINES = 3
_ANSWER_BYTES = 120
_ANSWER_WORDS = 5
"""An answer is short: who says it, and the secret."""


@dataclass(frozen=True)
class _Stretch:
    """A part of a line around a word; what it speaks of is looked up when it matters."""

    data: bytes
    low: int
    high: int

    @cached_property
    def door(self) -> bool:
        """Tell whether it speaks of something that a password opens."""
        return self._has(_DOOR)

    @cached_property
    def lock(self) -> bool:
        """Tell whether it speaks of keys."""
        return self._has(_LOCK)

    @cached_property
    def opened(self) -> bool:
        """Tell whether it speaks of a password itself."""
        return self.door and self._has(_OPENED)

    @cached_property
    def other(self) -> bool:
        """Tell whether it speaks of what looks like a key and is none."""
        return self._has(_OTHER_THING)

    def _has(self, words: Any) -> bool:
        return words.search(self.data, self.low, self.high) is not None


def find_company(data: bytes, at: int = 0) -> Iterator[Span]:
    """Yield what can only be a secret and stands near a word that speaks of secrets."""
    quiet_since, idle = at, 0
    while (word := _WORDS.search(data, at)) is not None:
        start, end = word.span()
        low = _line_start(data, max(at, start - _BEFORE), start)
        high = min(len(data), end + _BEHIND)
        line = _BREAK.search(data, end, high)
        high = line.start() if line else _whole_words(data, end, high)
        at = max(end, high)
        idle += 1
        for span in _near(data, low, high, line):
            yield span
            quiet_since, idle = at, 0
        if idle >= CROWD:
            at, idle = behind_repeats(data, at, quiet_since), 0


def _near(data: bytes, low: int, high: int, end: re.Match[bytes] | None) -> Iterator[Span]:
    """Judge a stretch of a line, and what follows the line if it asks for a secret."""
    if _TOLD.search(data, low, high):
        yield from _judged(_Stretch(data, low, high))
    if end and _asks(data, low, high) and not _SET.search(data, low, high):
        yield from _answers(data, end.end())


def _asks(data: bytes, low: int, high: int) -> bool:
    asked = _ASKED.search(data, low, high) is not None
    return asked and _LISTING.search(data, low, high) is None


def _line_start(data: bytes, low: int, start: int) -> int:
    """Return where the line of a word starts, or a word near enough to it."""
    for cut in _BREAKS:
        at = data.rfind(cut, low, start)
        low = at + len(cut) if at >= 0 else low
    if low and _CHARACTER.match(data, low - 1) and (cut_word := _REST.match(data, low, start)):
        return cut_word.end()
    return low


def _whole_words(data: bytes, end: int, high: int) -> int:
    """Return a place before the word that a stretch would cut in two."""
    if high == len(data) or not _CHARACTER.match(data, high):
        return high
    last = len(data[end:high]) - len(data[end:high].rstrip(_CHARACTERS))
    if last > _LONGEST:
        return _REST.match(data, high).end()  # type: ignore[union-attr]
    return high - last


def _judged(line: _Stretch) -> Iterator[Span]:
    """Judge the words of one stretch of a line."""
    for token in _TOKEN.finditer(line.data, line.low, line.high):
        if not _DULL.match(token.group()) and (span := _judge(line, token)):
            yield span
    for words in _SPOKEN.finditer(line.data, line.low, line.high):
        if line.opened and is_plain_phrase(words.group(1).decode()):
            yield *words.span(1), "password"


def _judge(line: _Stretch, token: re.Match[bytes]) -> Span | None:
    """Return where a word is a secret, if it is one."""
    start, text = _bare(*_uncoloured(line.data, token))
    paired = start > token.start() and _ACCOUNT.match(token.group().decode("latin-1")) is not None
    key = _KEY.match(text) is not None
    if not _SHORTEST <= len(text) <= _LONGEST or (not key and _NO_SECRET.search(text)):
        return None
    end = start + len(text)
    before = line.data[max(line.low, start - _JUST_BEFORE) : start]
    quoted = before[-1:] in _QUOTES and line.data[end : end + 1] in _QUOTES
    if (line.other if paired else _is_of_a_name(before)) or _IS_NAME.match(line.data, end):
        return None
    if not quoted and not DIGIT.search(text) and not is_plain_phrase(text):
        return None
    given = quoted and bool(_SECOND.search(before) or _TAKING.search(before))
    if key and _is_key(text, before, line, quoted=quoted, given=given or paired):
        return start, end, "secret"
    phrase = is_plain_phrase(text)
    if key and line.other and not (given or phrase or is_short_phrase(text)):
        return None
    told = given or (line.opened and bool(paired or _JOINED.search(before)))
    found = line.door and _is_password(text, quoted=quoted)
    found = found or (told and _is_given(text)) or (phrase and line.opened)
    return (start, end, "password") if found else None


def _uncoloured(data: bytes, token: re.Match[bytes]) -> tuple[int, str]:
    """Return a word without the end of what colours it."""
    start, word = token.start(), token.group()
    if data[start - 2 : start] == b"\x1b[":
        start, word = start + word.find(b"m") + 1, word[word.find(b"m") + 1 :]
    return start, word.rstrip(_ENDS).decode("latin-1")


def _is_of_a_name(before: bytes) -> bool:
    """Tell whether a value has a name of its own, which is no account's."""
    named = _ASSIGNED.search(before)
    if named is None or _PERSON.match(named.group(1)):
        return False
    return not (_SAID.search(before) or _HOLDER.search(before))


def _answers(data: bytes, at: int) -> Iterator[Span]:
    """Judge the short lines that follow a line which asks for a secret."""
    for _ in range(_ANSWER_LINES):
        line = _BREAK.search(data, at, at + _ANSWER_BYTES)
        high = line.start() if line else min(len(data), at + _ANSWER_BYTES)
        words = data[at:high].split()
        if line and line.group() == b"\0":
            return
        if len(words) > _ANSWER_WORDS or (line is None and high < len(data)):
            return
        for token in _TOKEN.finditer(data, at, high):
            start, text = _bare(token.start(), token.group().rstrip(_ENDS).decode("latin-1"))
            if _SHORTEST <= len(text) <= _LONGEST and _is_answer(text, alone=len(words) == 1):
                yield start, start + len(text), "password"
                return
        if line is None:
            return
        at = line.end()


def _is_answer(text: str, *, alone: bool) -> bool:
    if _KEY.match(text) and _is_drawn_key(text):
        return alone or not _ONE_CASE.match(text)
    if _NO_SECRET.search(text):
        return False
    return is_plain_phrase(text) or _is_password(text, quoted=False) or (alone and _is_given(text))


def _bare(start: int, text: str) -> tuple[int, str]:
    """Return a word without the account before it and the host behind it."""
    if _NAME.match(text) or _PLACED.search(text):
        return start, ""
    if found := _ACCOUNT.match(text):
        start, text = start + found.end(), text[found.end() :]
        if host := _AT_HOST.search(text):
            text = text[: host.start()]
    return start, text


def _is_key(text: str, before: bytes, line: _Stretch, *, quoted: bool, given: bool) -> bool:
    if not _is_drawn_key(text):
        return False
    if given and line.door:
        return line.lock or not _ONE_CASE.match(text)
    if line.other:
        return False
    if quoted and _ARGUMENT.search(before):
        return line.lock or not _ONE_CASE.match(text)
    alone = line.lock and before[-1:] in (b" ", b"\t", *_QUOTES)
    if alone and _ONE_CASE.match(text):
        return len(text) >= _ONE_CASE_CHARS and _JOINED.search(before) is not None
    return alone


def _is_drawn_key(text: str) -> bool:
    if _is_id(text) or _UUID.match(text) or text.startswith("AAAA"):
        return False
    if not DIGIT.search(text) or not secret_values.is_random(text, least=20):
        return False
    return bool(_ONE_CASE.match(text)) or _count_jumps(text) >= _MANY_KEY_JUMPS


def _is_id(text: str) -> bool:
    prefix, joint, _ = text.partition("_")
    return bool(joint) and prefix in secret_values.ID_PREFIXES


def _is_password(text: str, *, quoted: bool) -> bool:
    """Tell whether a word can be nothing but a password."""
    if _NO_SECRET.search(text) or _ONE_CASE.match(text) or _is_id(text):
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


def _is_given(text: str) -> bool:
    """Tell whether a word in quotes is a password where a call takes one."""
    if _NO_SECRET.search(text) or _is_id(text):
        return False
    return is_named_password(text) or (
        _count_jumps(text) >= _MANY_JUMPS and secret_values.is_random(text)
    )


def _is_drawn(text: str) -> bool:
    """Tell whether the sorts of characters change too often for a name."""
    if secret_values.is_named_number(text) or is_word_and_number(text):
        return True
    return secret_values.is_jumbled(text)


def _count_jumps(text: str) -> int:
    sorts = [(letter.isupper(), letter.isdigit()) for letter in text]
    return sum(a != b for a, b in pairwise(sorts))
