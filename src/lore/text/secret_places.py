"""Secret places: values that are secret because of where they stand.

Behind a name that says so (in code, configuration, JSON, shells, headers, talk), in an address,
behind a flag of a command. A pattern finds the place, and what follows is judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lore.text import (
    secret_addresses,
    secret_codes,
    secret_commands,
    secret_raw_keys,
    secret_talk,
    secret_values,
)
from lore.text.later import compile_later
from lore.text.linear import compile_linear, find_headed, groups_of
from lore.text.secret_commands import cookies
from lore.text.secret_crowds import BEHIND, CROWD_PLACES, STRETCH, find_in_crowd, is_crowded
from lore.text.secret_fitting import (
    Span,
    fits,
    is_named_password,
    is_plain_secret,
    is_striking,
    told,
)
from lore.text.secret_names import NameKind, classify, means_secret
from lore.text.secret_place_patterns import PLACE_HEADS, PLACES
from lore.text.secret_reading import (
    COLOUR,
    Value,
    match_four_by_four,
    read_value,
    skip_quote,
    whole_end,
)
from lore.text.secret_repeats import CROWD, behind_repeats
from lore.text.secret_talk import (
    is_named_place,
    speaks_elsewhere,
    told_nearby,
)

__all__ = ["PLACES", "PLACE_HEADS", "Span", "find_places", "is_secret"]

_PLACE = compile_linear(PLACES)
_HEAD = compile_linear(PLACE_HEADS, groups=False)
_GROUPS = groups_of(PLACES)
_NAMES = {index: name for name, index in _GROUPS.items()}
_WORD = _GROUPS["word"]
_SHORTEST_NAME = 2
_LOOSE = frozenset(_GROUPS[name] for name in ("said", "near", "kwarg", "turned", "positional"))
"""Sentences and commands: what follows the name may be the name of something else."""

_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-$"
_LEFT_WORDS = frozenset(
    b"""api access secret private auth account signing encryption master admin service recovery
    license webhook deploy bot client unseal root""".split()
)
"""Words that stand apart from the name they belong to: API key, recovery key."""

_LEFT_BYTES = 64
"""So far left a name goes on; longer ones are no names that people give."""

_ENV_LINE = compile_later(rb"(?:^|\n|\\n)[ \t]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]+=$")
_WRAPPED = compile_later(
    rb"(?:" + COLOUR.encode() + rb"[ \t]*){1,4}"
    rb"|\s+string\(\d{1,4}\)[ \t]+|[|>][+\-]?\d?[ \t]*(?:\r?\n|(?:\\+r)?\\+n)[ \t]*"
    rb"|!![a-z]+[ \t]+|<!\[CDATA\[|\\*\"'(?=\")|'\"(?=')"
    rb"|(?:new[ \t]+)?(?:[A-Za-z_]\w{0,30}(?:\.|::))*"
    rb"(?:secretstr|secretstring|secret|sensitive|string|str|bytes|\[\]byte|byte|from|of|some|just"
    rb"|raw|text|literal|value|encode|decode|b64decode|atob|btoa|fromstring|credential|password"
    rb"|protectedstring|extra|quote|unsafe)\([ \t]*(?=[bBrRuUfF]?\\*[\"'`])",
    re.IGNORECASE,
)
"""What stands between a name and its value and is not yet the value."""

_SCHEME = compile_later(rb"[A-Za-z][A-Za-z0-9\-]{1,24}[ \t]+(?:token=)?\\*[\"']?", re.IGNORECASE)
_ARN_BYTES = 90
_KEY_CHARS = 20
_MINE = compile_later(r"(?:^|\W)(my|this|your|our|the|new|api)[ \t]+$")
_FOR = compile_later(r" (for) ")
_PARENT = compile_later(
    rb"\bapi[_ \-]?key\b"
    rb"|(?:encrypt\w*|signing|hmac|cipher|crypto\w*|jwt|webhook|secret|credentials?|auth|sealing)"
    rb"[\"'\]>]{0,2}[ \t]*[:{=\n\]]",
    re.IGNORECASE,
)
"""What needs a key: the key below it is a secret one."""

_ABOVE_BYTES = 240
_AHEAD_BYTES = 80
_NAME = compile_later(
    rb"(?i)\b\w*(?:passw|secret|token|key|credential|pwd|pass\b|random_string)[\w.\-]*"
)
_VALUED = frozenset(("keyname", "secrets", "random_string"))
_LISTED = 20
"""Entries of a list that are looked at."""

_NEXT_ENTRY = compile_later(rb"\\*[\"'`]?[ \t]*(?:,?(?:\s|\\+[nrt])*(?:-[ \t]+)?|,)(?=[\"'`\\\w])")
_NEXT_ARGUMENT = compile_later(rb"\\*[\"'`][ \t]*,[ \t]*(?=\\*[\"'`])")
_COMMAS = compile_later(
    rb"(?:,[^\s\"'`\\<>|;&(){}\[\]:,=]*)+[^\s\"'`\\<>|;&(){}\[\]:,=](?=$|[\s\"'`\\])"
)
_KEYED = compile_later(r"(?i)hmac|cipher|secretkey|signingkey")
_SIGNING_IN = compile_later(rb"(?i)\b(?:login|auth\w*|configure|init\w*|client)\([^()\n]{0,40}$")
_QUOTED = (b'"', b"'", b"`")
_TEST = compile_later(r"(?i)test")
_TERM = compile_later(r"^[a-z]{1,10}(?:-[a-z]+)*-?\d{0,3}$")
"""One of a list of names: utf8, scram-sha-256."""


def find_places(data: bytes, at: int = 0) -> Iterator[Span]:
    """Yield the secrets that are known by their place, from some place on."""
    quiet_since = crowd_since = at
    idle = places = 0
    while (found := find_headed(_HEAD, _PLACE, data, at)) is not None:
        index = found.lastindex
        _, at = place = found.span(index)
        if index in _LOOSE:
            at = max(found.start(), found.span(_WORD)[0]) + _SHORTEST_NAME
        idle += 1
        for start, judged, kind in _JUDGES[_NAMES[index]](data, found, place[1]):
            end = whole_end(data, start, judged)
            yield start, end, kind
            at = quiet_since = max(at, end)
            idle = 0
        if idle >= CROWD:
            at, idle = behind_repeats(data, at, quiet_since), 0
        places += 1
        if is_crowded(places, at - crowd_since):
            yield from find_in_crowd(data, at)
            at = max(at, min(len(data), at + STRETCH) - BEHIND)
            quiet_since = crowd_since = at
            idle = places = 0
        elif places >= CROWD_PLACES:
            crowd_since, places = at, 0


def is_secret(name: str, value: str) -> bool:
    """Tell whether a value that belongs to a name is a secret."""
    return fits(classify(name), value, bare=False)


def _named(joint: str, data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge what follows a name; reading how they are joined off a match costs as much again."""
    start, _ = found.span(_WORD)
    name, before = _whole_name(data, start, found.group(_WORD))
    kind = classify(name)
    if not kind and joint == "call" and _KEYED.search(name):
        yield from _keyed(data, found, at)
        return
    if not kind and name.lower() == "key":
        yield from _bare_key(data, start, at, joint)
        return
    if joint == "typed" and at - start > _ABOVE_BYTES:
        return
    if (
        not kind
        or _is_elsewhere(joint, before, data[at - 2 : at])
        or _is_part(data, found, before, at)
    ):
        return
    if kind == "cookie":
        found_in_pairs = list(cookies(data, at))
        yield from found_in_pairs
        if found_in_pairs or joint != "said":
            return
    yield from _judged(joint, data, found, at, kind)


def _is_part(data: bytes, found: Any, before: bytes, at: int) -> bool:
    """Tell whether a name is part of a resource's, or stands in the line of a checksum."""
    start, _ = found.span(_WORD)
    if before == b"(":
        return b")=" in data[start:at]
    return before == b":" and b"arn:" in data[max(0, start - _ARN_BYTES) : start]


def _judged(joint: str, data: bytes, found: Any, at: int, kind: NameKind) -> Iterator[Span]:
    """Judge a value by the kind of its name and how it is joined to it."""
    start, _ = found.span(_WORD)
    whole_line = joint == "assign" and bool(_ENV_LINE.search(data, max(0, start - 64), at))
    if wrapped := _WRAPPED.match(data, at, at + 120):
        at = wrapped.end()
    in_talk = joint in ("said", "next", "near")
    value = read_value(data, at, whole_line=whole_line, prose=in_talk)
    if kind in ("password", "pass") and data[value.end : value.end + 1] == b",":
        value = _with_commas(data, value)
    if joint == "filled" and value.text.endswith("{enter}"):
        value = value._replace(text=value.text.removesuffix("{enter}"))
    if in_talk and speaks_elsewhere(data, start, value):
        return
    if joint == "assign" and value.text.startswith("?") and data[at - 1 : at] == b":":
        return  # What a shell says where a variable is not set.
    loose = (
        joint == "near"
        or (in_talk and is_named_place(value.text))
        or _is_loose(joint, kind, value, data[at - 2 : at])
    )
    if kind == "password" and (apart := match_four_by_four(data, value.start)):
        yield *apart.span(), told(kind)
    elif not loose and fits(kind, value.text, bare=not (value.quoted or whole_line)):
        yield value.start, value.end, told(kind)
    elif joint == "call" and value.quoted and b"redential" in found.group(_WORD):
        yield from _second(data, value)
    elif in_talk or (joint == "assign" and not value.quoted and value.text.isalpha()):
        end = start + len(found.group(_WORD))
        yield from told_nearby(data, end, told(kind), since=at if joint == "assign" else end)


def _with_commas(data: bytes, value: Value) -> Value:
    """Return a bare value with what follows its commas, if only the whole looks like a secret."""
    rest = None if value.quoted else _COMMAS.match(data, value.end, value.end + _AHEAD_BYTES)
    if rest is None:
        return value
    text = data[value.start : rest.end()].decode("utf-8", "replace")
    return Value(value.start, rest.end(), text) if is_named_password(text) else value


def _second(data: bytes, first: Value) -> Iterator[Span]:
    """Judge what follows the name of an account in a call."""
    joint = _NEXT_ARGUMENT.match(data, first.end, first.end + 8)
    if joint is not None:
        yield from _pair(data, None, joint.end())


def _bare_key(data: bytes, start: int, at: int, joint: str) -> Iterator[Span]:
    """Judge what follows the word key alone: in talk of somebody's, or below what needs one."""
    value = read_value(data, at, prose=True)
    if not secret_values.is_random(value.text, least=_KEY_CHARS) or value.text.startswith("0x"):
        return
    left = data[max(0, start - 16) : start].decode("latin-1").lower()
    mine = _MINE.search(left)
    if joint == "said" and data[start + 3 : start + 8] == b" for ":
        mine = mine or _FOR.search(data[start:at].decode("latin-1"))
    plain = value.text.islower() or value.text.isupper()
    if (mine and (not plain or mine.group(1) != "the")) or (
        joint == "assign"
        and (
            _PARENT.search(_above(data, start))
            or _SIGNING_IN.search(data, max(0, start - _ABOVE_BYTES), start)
        )
    ):
        yield value.start, value.end, "secret"


def _above(data: bytes, start: int) -> bytes:
    """Return what stands shortly before a name, in the same group of lines or the same braces."""
    above = data[max(0, start - _ABOVE_BYTES) : start]
    return above[max(map(above.rfind, (b"}", b"\n\n", b"</", b"\0"))) + 1 :]


def _valued(data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge what is only called a value, by the names that stand around it."""
    value = read_value(data, at)
    if not is_named_password(value.text):
        return
    ahead = data[value.end : value.end + _AHEAD_BYTES].split(b"\n", 1)[0].split(b"}", 1)[0]
    around = _above(data, found.start()) + b" " + ahead
    for name in _NAME.findall(around):
        text = name.decode("latin-1")
        kind = classify(text)
        kind = kind or classify(text.partition(".")[0])
        if text.lower() in _VALUED or kind in ("password", "secret", "key", "phrase"):
            yield value.start, value.end, told(kind or "secret")
            return


def _list(data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge the entries of a list of secrets."""
    name = _whole_name(data, found.start(), found.group()[:0])[0] + "key"
    if not classify(name) and b"key" in found.group().lower()[:4]:
        return
    for _ in range(_LISTED):
        value = read_value(data, at)
        text = value.text
        if is_plain_secret(text) or (
            value.quoted and fits("password", text, bare=True) and is_striking(text)
        ):
            yield value.start, value.end, "secret"
        following = _NEXT_ENTRY.match(data, value.end, value.end + 80)
        if following is None:
            return
        at = following.end()


def _keyed(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    """Judge what is given to a call that signs, encrypts or connects."""
    value = read_value(data, at)
    if value.quoted and is_plain_secret(value.text) and len(value.text) >= _KEY_CHARS:
        yield value.start, value.end, "secret"


def _asserted(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    rest = data[value.end : value.end + _AHEAD_BYTES].split(b"\n", 1)[0]
    names = [name.decode("latin-1") for name in _NAME.findall(rest)]
    if value.quoted and is_plain_secret(value.text) and any(map(classify, names)):
        yield value.start, value.end, "secret"


def _insert(data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge the values of a row by the names of its columns."""
    opening = data.rfind(b"(", max(0, found.start() - _ABOVE_BYTES), found.start())
    names = data[opening + 1 : found.start()].decode("latin-1").split(",") if opening >= 0 else []
    for name in names[:_LISTED]:
        value = read_value(data, at)
        kind = classify(name.strip(" \t\n`\"'[]"))
        if kind and value.quoted and is_striking(value.text) and fits(kind, value.text, bare=False):
            yield value.start, value.end, told(kind)
        comma = data.find(b",", value.end, value.end + _ABOVE_BYTES)
        if comma < 0:
            return
        at = comma + 1
        at += len(data[at : at + 8]) - len(data[at : at + 8].lstrip())


def _is_elsewhere(joint: str, before: bytes, joined: bytes) -> bool:
    """Tell whether the name belongs to something else than what follows."""
    if joint == "tag":
        return before != b"<" and joined[:1] not in _QUOTED and joined != b"g>"
    return joint == "comma" and before not in (*_QUOTED, b"#", b"/")


def _is_loose(joint: str, kind: NameKind, value: Value, before: bytes) -> bool:
    """Tell whether name and value may just stand side by side: a test result, a list of names."""
    if joint == "assign":
        bare = kind == "pass" and before == b": " and not value.quoted
        return bare and (_TEST.match(value.text) is not None or not is_named_password(value.text))
    if joint in ("fallback", "default"):
        return False
    if joint in ("next", "kwarg"):
        named = joint == "kwarg" or kind not in ("key", "auth")
        return not (named and is_plain_secret(value.text))
    if kind == "password" and is_named_password(value.text):
        return False
    if joint == "comma" and (kind == "key" or _TERM.match(value.text)):
        return not secret_values.is_random(value.text, least=_KEY_CHARS)
    return kind == "key" or not is_striking(value.text)


def _whole_name(data: bytes, start: int, word: bytes) -> tuple[str, bytes]:
    """Return a name with what stands on its left, and the byte before it."""
    left = data[max(0, start - _LEFT_BYTES) : start]
    rest = left.rstrip(_NAME_BYTES)
    head = left[len(rest) :]
    if rest.endswith((b" ", b"\t")):
        word_before = rest[len(rest[:-1].rstrip(_NAME_BYTES)) : -1]
        if word_before.lower() in _LEFT_WORDS or means_secret(word_before.decode("latin-1")):
            head = word_before + b" " + head
            rest = rest[: -len(word_before) - 1]
    before = rest[-1:]
    if before == b"\\" and head:
        head = head[1:]
    return (head + word).decode("latin-1"), before


def _header(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    start = skip_quote(data, at)
    scheme = _SCHEME.match(data, start)
    value = read_value(data, scheme.end() if scheme else start)
    if not value.quoted and fits("secret", value.text, bare=True):
        yield value.start, value.end, "authorization"


def _bearer(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if secret_values.is_random(value.text, least=12) or secret_values.is_named_number(value.text):
        yield value.start, value.end, "authorization"


def _basic(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if secret_values.is_basic_auth(value.text):
        yield value.start, value.end, "authorization"


def _pair(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    text = value.text
    if value.quoted and (
        is_named_password(text) or (is_striking(text) and fits("password", text, bare=False))
    ):
        yield value.start, value.end, "password"


def _account(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if is_named_password(value.text) and not is_named_place(value.text):
        yield value.start, value.end, "password"


_JOINTS = (
    "near", "kwarg", "assign", "fallback", "filled", "comma", "typed", "call", "tag",
    "beside", "default", "part", "said", "markup", "next", "cell", "literal",
)  # fmt: skip
_JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    **{joint: partial(_named, joint) for joint in _JOINTS},
    **secret_commands.JUDGES, **secret_talk.JUDGES, **secret_codes.JUDGES,
    **secret_addresses.JUDGES, **secret_raw_keys.JUDGES,
    "header": _header, "bearer": _bearer, "basic": _basic, "pair": _pair, "typing": _pair,
    "account": _account, "valued": _valued, "list": _list,
    "keyed": _keyed, "asserted": _asserted, "insert": _insert,
}  # fmt: skip
