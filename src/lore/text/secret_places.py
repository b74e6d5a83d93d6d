"""Secret places: values that are secret because of where they stand.

Behind a name that says so (in code, configuration, JSON, shells, headers, talk), in an address,
behind a flag of a command. A pattern finds the place, and what follows is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lore.text import secret_values
from lore.text.linear import compile_linear
from lore.text.secret_names import NameKind, classify
from lore.text.secret_reading import Value, read_address, read_value, skip_quote, whole_end

__all__ = ["Span", "find_places", "is_secret"]

Span = tuple[int, int, str]
"""Where a secret starts and ends, in bytes, and its kind."""

_LINE_CHARS = 500
"""So far back a command is looked for on the line of its flag."""

_QUOTES = r"(?:\\*[\"'`])"
_WORDS = (
    r"passw(?:or)?d|passwort|passphrase|passcode|pass|pwd|pw|secret|token|key|credentials?"
    r"|creds|jwt|psk|auth|cookies?|pat|mnemonic"
)
_ASSIGN = (
    rf"{_QUOTES}?[\])]?[*_]{{0,2}}(?:[ \t]*\([^()\n]{{1,24}}\))?[ \t]*"
    r"(?:=>|:=|\?\?=|={1,3}|:[ \t]*[A-Za-z][\w.\[\]|]*[ \t]+=|:|%3[AaDd])[*_]{0,2}[ \t]*"
)
_PLACE = compile_linear(
    rf"(?i)(?P<header>authorization{_QUOTES}?\]?[ \t]*(?::|=>|=|,)[ \t]*)"
    r"|(?P<bearer>\bbearer[ \t]+)"
    r"|(?P<basic>\bbasic[ \t]+)"
    rf"|(?P<word>(?:{_WORDS})[\w.\-]*)(?:"
    rf"(?P<assign>{_ASSIGN})"
    rf"|(?P<comma>{_QUOTES}[ \t]*,[ \t]*){_QUOTES}"
    rf"|(?P<call>\([ \t]*){_QUOTES}"
    r"|(?P<tag>>[ \t]*)"
    rf"|(?P<beside>{_QUOTES}?,?(?:\s|\\+[nrt])*{_QUOTES}?\bvalue{_QUOTES}?[ \t]*[:=][ \t]*)"
    r"|(?P<said>(?:[ \t]+(?:for|of|on|to)[ \t][^\n.:=]{1,40})?[ \t]+(?:is|was)[ \t:]+)"
    r"|(?P<cell>[*_`]{0,3}[ \t]+\|[ \t]+)"
    rf"|(?P<literal>[ \t]+){_QUOTES})"
    rf"|(?P<flag>(?:(?:^|[\s\"'`,\[])(?:--[\w\-]*(?:{_WORDS})"
    r"|-(?:password|passwd|token|secret|api-?key|credential))[\w\-]*"
    rf"|\b(?:env|setx|setenv|set[ \t]+-\w+|configure[ \t]+set)[ \t]+[\w.]*(?:{_WORDS})[\w.]*"
    rf"|login[ \t]+\S+\s+password|secure-?string(?:[ \t]+-string)?){_QUOTES}?,?[ \t]+)"
    r"|(?P<user>[ \t](?:-u|-a|--user|--auth|--proxy-user)(?:[ \t]*|=)"
    rf"{_QUOTES}?[^\s:\"'`\\]*:)"
    r"|(?P<short>[ \t]-(?:p|a|w|pw)[ \t]*|\bpass(?:in|out)?[ \t]+pass:|[ \t]-storepass[ \t]+"
    r"|requirepass[ \t]+|:(?:5432|5433|6432):[^:\s]+:[^:\s]+:"
    r"|identified[ \t]+by[ \t]+['\"])"
    r"|(?P<url>://[^\s:/?#@\[\"'`<>\\]*:)"
    r"|(?P<lone>://)[A-Za-z0-9_\-]{20,}@"
)
_NAMES = {index: name.decode() for name, index in _PLACE.groupindex.items()}
_WORD = _PLACE.groupindex[b"word"]

_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-$"
_NAME_CHARS = 64
"""So far back a name is looked for."""

_BEFORE_NAME = re.compile(
    rb"(?:^|[^A-Za-z])(?:api|access|secret|private|auth|account|signing|encryption|master|admin"
    rb"|service|recovery|license)[ \t]\Z",
    re.IGNORECASE,
)
_BEFORE_CHARS = 12
"""The longest of these words, with what stands on both sides of it."""

_ENV_LINE = re.compile(rb"(?:^|\n|\\n)[ \t]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]+=$")
_SCHEME = re.compile(
    rb"(?:bearer|basic|token|digest|api-?key|bot|key|sso-key|genie-?key|splunk|discogs|hmac)[ \t]+"
    rb"(?:token=)?",
    re.IGNORECASE,
)
_COOKIE = re.compile(rb"([^\s=;,\"'\\]+)=([^\s;,\"'\\]+)")
_COOKIE_WORDS = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority"))
_UUID = re.compile(r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_TERM = re.compile(r"^[a-z]{1,10}(?:-[a-z]+)*-?\d{0,3}$")
"""One of a list of names: utf8, scram-sha-256."""

_DIGIT = re.compile(r"\d")
_MAPPING = re.compile(r"^[\d.:\-\[\]]+(?:/\w+)?$")
_USER_COMMAND = re.compile(rb"\b(?:curl|wget|https?|xh|ab|hey)\b[^\n]*$")
_SHORT_COMMANDS = {
    b"-p": re.compile(
        rb"\b(?:(?:mysql\w*|mariadb\w*|mycli|sshpass|mongo\w*|7z|cqlsh|sqlcmd)\b"
        rb"|(?:docker|podman|helm|az|oc|skopeo|buildah|crane|registry)\b[^\n]*\blogin\b"
        rb"|twine[ \t]+upload\b)[^\n]*$"
    ),
    b"-a": re.compile(rb"\bredis-cli\b[^\n]*$"),
    b"-w": re.compile(rb"\bldap\w+\b[^\n]*$"),
    b"-P": re.compile(rb"\b(?:zip|unzip|sqlcmd)\b[^\n]*$"),
    b"-pw": re.compile(rb"\b(?:plink|pscp|putty)\b[^\n]*$"),
}


def find_places(data: bytes) -> Iterator[Span]:
    """Yield the secrets that are known by their place."""
    at = 0
    while (found := _PLACE.search(data, at)) is not None:
        index = found.lastindex
        _, at = found.span(index)
        for start, judged, kind in _JUDGES[_NAMES[index]](data, found, at):
            end = whole_end(data, start, judged)
            yield start, end, kind
            at = max(at, end)


def is_secret(name: str, value: str) -> bool:
    """Tell whether a value that belongs to a name is a secret."""
    return _fits(classify(name), value, bare=False)


def _fits(kind: NameKind, value: str, *, bare: bool) -> bool:
    """Tell whether a value is what its name promises; in quotes it may be made of words."""
    if kind in ("password", "phrase"):
        joint = "-" if kind == "password" else " "
        in_words = not bare and secret_values.is_word_chain(value, joint)
        return in_words or secret_values.is_password(value, bare=bare)
    return kind in _TESTS and _TESTS[kind](value)


def _is_short(value: str) -> bool:
    mixed = secret_values.is_random(value, least=6) and _DIGIT.search(value)
    return bool(mixed and not _MAPPING.match(value))


def _is_secret(value: str) -> bool:
    return secret_values.is_random(value, least=8) or _is_encoded(value)


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


def _named(joint: str, data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge what follows a name."""
    start, _ = found.span(_WORD)
    name, before = _whole_name(data, start, found.group(_WORD))
    kind = classify(name)
    if not kind or (joint == "tag" and before != b"<"):
        return
    if kind == "cookie":
        yield from _cookies(data, at)
        return
    whole_line = joint == "assign" and _is_env_line(data, start, at)
    value = read_value(data, at, whole_line=whole_line, prose=joint == "said")
    if _is_loose(joint, kind, value, data[at - 2 : at]):
        return
    if _fits(kind, value.text, bare=not (value.quoted or whole_line)):
        yield value.start, value.end, _told(kind)


def _is_loose(joint: str, kind: NameKind, value: Value, before: bytes) -> bool:
    """Tell whether name and value may just stand side by side: a test result, a list of names."""
    if joint == "assign":
        return kind == "pass" and before == b": " and not value.quoted
    if joint == "comma" and _TERM.match(value.text):
        return True
    return kind == "key" or not _DIGIT.search(value.text)


def _told(kind: NameKind) -> str:
    return "password" if kind in ("password", "pass", "phrase") else "secret"


def _whole_name(data: bytes, start: int, word: bytes) -> tuple[str, bytes]:
    """Return a name with what stands on its left, and the byte before it."""
    low = max(0, start - _NAME_CHARS)
    near = data[low:start].removesuffix(b"\n")
    begin = low + len(near.rstrip(_NAME_BYTES))
    if begin > low and data[begin - 1] in b" \t":
        word_before = _BEFORE_NAME.search(data, max(low, begin - _BEFORE_CHARS), begin)
        begin = word_before.start() if word_before else begin
    head = data[begin : low + len(near)]
    before = data[begin - 1 : begin] if begin else b""
    if before == b"\\" and head:
        head = head[1:]
    return (head + word).decode("latin-1"), before


def _is_env_line(data: bytes, start: int, at: int) -> bool:
    """Tell whether a name and its sign are all that stands on a line before a value."""
    if data[at - 1 : at] != b"=":
        return False
    return _ENV_LINE.search(data, max(0, start - _NAME_CHARS), at) is not None


def _cookies(data: bytes, at: int) -> Iterator[Span]:
    """Judge the values of a Cookie header one by one; their names are kept."""
    end = data.find(b"\n", at, at + _LINE_CHARS)
    end = min(len(data), at + _LINE_CHARS) if end < 0 else end
    for pair in _COOKIE.finditer(data[at:end]):
        value = pair.group(2).decode("utf-8", "replace")
        if pair.group(1).lower() in _COOKIE_WORDS:
            continue
        if secret_values.is_random(value, least=8):
            yield at + pair.start(2), at + pair.end(2), "cookie"
        elif b"\\n" in data[at + pair.end() : at + pair.end() + 2]:
            return


def _header(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    start = skip_quote(data, at)
    scheme = _SCHEME.match(data, start)
    value = read_value(data, scheme.end() if scheme else start)
    if not value.quoted and _fits("secret", value.text, bare=True):
        yield value.start, value.end, "authorization"


def _bearer(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if secret_values.is_random(value.text, least=12):
        yield value.start, value.end, "authorization"


def _basic(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if secret_values.is_basic_auth(value.text):
        yield value.start, value.end, "authorization"


def _flag(data: bytes, found: Any, at: int) -> Iterator[Span]:
    words = found.group().split()
    name = words[-1].strip(b"\"'`,[-").decode("latin-1")
    secure = "tring" in name
    kind: NameKind = "password" if secure else classify(name)
    value = read_value(data, at)
    if value.text.startswith("-"):
        return
    if not value.quoted and not _DIGIT.search(value.text):
        return
    if _fits(kind, value.text, bare=not value.quoted):
        yield value.start, value.end, _told(kind)


def _user(data: bytes, found: Any, at: int) -> Iterator[Span]:
    line = data[max(0, found.start() - _LINE_CHARS) : found.start()]
    if _USER_COMMAND.search(line):
        yield from _chosen(read_value(data, at, whole_line=True), "password")


def _short(data: bytes, found: Any, at: int) -> Iterator[Span]:
    flag = found.group().strip()
    command = _SHORT_COMMANDS.get(flag)
    line = data[max(0, found.start() - _LINE_CHARS) : found.start()]
    if command is None and flag.startswith(b"-") and flag != b"-storepass":
        return
    if command is None or command.search(line):
        yield from _chosen(read_value(data, at, whole_line=True), "password")


def _address(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_address(data, at)
    if value is not None:
        yield from _chosen(value, "url-password")


def _chosen(value: Value, kind: str) -> Iterator[Span]:
    """Judge what can only be a password: also a word will do, if it is nobody's example."""
    if not _MAPPING.match(value.text) and secret_values.is_chosen(value.text):
        yield value.start, value.end, kind


def _lone(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    end = data.index(b"@", at)
    if secret_values.is_random(data[at:end].decode("latin-1"), least=20):
        yield at, end, "url-password"


_JOINTS = ("assign", "comma", "call", "tag", "beside", "said", "cell", "literal")
"""What can stand between a name and its value."""

_JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "header": _header, "bearer": _bearer, "basic": _basic, "flag": _flag, "user": _user,
    "short": _short, "url": _address, "lone": _lone,
    **{joint: partial(_named, joint) for joint in _JOINTS},
}  # fmt: skip
