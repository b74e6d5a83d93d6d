"""Assignment rules: values that are secret because of the name or syntax before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from lore.redaction import PATTERNS, compile_bytes, load_pattern, value_checks
from lore.redaction.command_rules import COMMAND_RULES, URL_RULES, cookies
from lore.redaction.dense_text import (
    DENSE_BYTES,
    DENSE_COUNT,
    IDLE_LIMIT,
    OVERLAP_BYTES,
    find_in_dense_text,
    is_dense,
    skip_repeats,
)
from lore.redaction.name_rules import NameKind, classify_name, means_secret
from lore.redaction.otp_rules import OTP_RULES
from lore.redaction.password_shapes import (
    fits_kind,
    fits_setting,
    is_named_password,
    is_plain_secret,
    is_striking,
    secret_kind,
)
from lore.redaction.prose_rules import (
    PROSE_RULES,
    SENTENCE_LINKS,
    find_nearby,
    is_about_metadata,
    is_location,
)
from lore.redaction.value_reader import (
    Judge,
    Span,
    Value,
    full_end,
    is_in_settings,
    match_app_password,
    read_entry,
    read_quoted,
    read_value,
    skip_quote,
)
from lore.text.regex import HeadSearch, compile_lazy, compile_re2, group_numbers

_WORD_STARTS = load_pattern("word_starts")

_SHORTEST_NAME = 2
_LOOSE = frozenset(("said", "near", "kwarg", "turned", "positional"))
"""Prose and commands: the text after the name may be another name."""

_NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-$"
_LEFT_WORDS = frozenset(
    b"""api access secret private auth account signing encryption master admin service recovery
    license webhook deploy bot client unseal root""".split()
)
"""Words before a name that belong to it: API key, recovery key."""

_LEFT_BYTES = 64
"""Bytes to look left for the start of a name."""

_ENV_LINE = compile_lazy(rb"(?:^|\n|\\n)[ \t]*(?:export[ \t]+|set[ \t]+)?[A-Z0-9_]+=$")
_VALUE_WRAPPER = compile_bytes("value_wrapper")

_SCHEME = compile_lazy(rb"[A-Za-z][A-Za-z0-9\-]{1,24}[ \t]+(?:token=)?\\*[\"']?", re.IGNORECASE)
_ARN_BYTES = 90
_KEY_CHARS = 20
_OWNER = compile_lazy(r"(?:^|\W)(my|this|your|our|the|new|api)[ \t]+$")
_FOR = compile_lazy(r" (for) ")
_KEY_PARENT = compile_bytes("key_parent")

_ABOVE_BYTES = 240
_AHEAD_BYTES = 80
_NAME = compile_lazy(
    rb"(?i)\b\w*(?:passw|secret|token|key|credential|pwd|pass\b|random_string)[\w.\-]*"
)
_OPTION = compile_lazy(rb"[ \t]--[\w\-]*$")
_STRING_IN_CODE = compile_lazy(r"[(\[{=,][\"'`]")
_NO_SETTING = compile_lazy(r"\s|://")
_GENERIC_NAMES = frozenset(("keyname", "secrets", "random_string"))
_MOST_ENTRIES = 20
"""Entries of a list that are judged."""

_NEXT_ENTRY = compile_lazy(rb"\\*[\"'`]?[ \t]*(?:,?(?:\s|\\+[nrt])*(?:-[ \t]+)?|,)(?=[\"'`\\\w])")
_NEXT_ARGUMENT = compile_lazy(rb"\\*[\"'`][ \t]*,[ \t]*(?=\\*[\"'`])")
_COMMAS = compile_lazy(
    rb"(?:,[^\s\"'`\\<>|;&(){}\[\]:,=]*)+[^\s\"'`\\<>|;&(){}\[\]:,=](?=$|[\s\"'`\\])"
)
_KEYED = compile_lazy(r"(?i)hmac|cipher|secretkey|signingkey")
_SIGNING_IN = compile_lazy(rb"(?i)\b(?:login|auth\w*|configure|init\w*|client)\([^()\n]{0,40}$")
_QUOTED = (b'"', b"'", b"`")
_TEST = compile_lazy(r"(?i)test")
_TERM = compile_lazy(r"^[a-z]{1,10}(?:-[a-z]+)*-?\d{0,3}$")
"""A technical term: utf8, scram-sha-256."""


def is_secret_value(name: str, value: str) -> bool:
    """Return whether the value of a name is a secret."""
    return fits_kind(classify_name(name), value, bare=False)


def _judge_named(link: str, data: bytes, match: Any, at: int) -> Iterator[Span]:
    """Judge the value after a name; the caller passes the link because reading it is slow."""
    start, _ = match.span(_WORD)
    name, before = _whole_name(data, start, match.group(_WORD))
    kind = classify_name(name)
    if not kind and link == "call" and _KEYED.search(name):
        yield from _judge_crypto_argument(data, match, at)
        return
    if not kind and name.lower() == "key":
        yield from _judge_bare_key(data, start, at, link)
        return
    if link == "typed" and at - start > _ABOVE_BYTES:
        return
    if (
        not kind
        or _is_unrelated(link, before, data[at - 2 : at])
        or _is_resource_name(data, match, before, at)
    ):
        return
    if kind == "cookie":
        cookie_spans = list(cookies(data, at))
        yield from cookie_spans
        if cookie_spans or link != "said":
            return
    yield from _judge_value(link, data, match, at, kind)


def _is_resource_name(data: bytes, match: Any, before: bytes, at: int) -> bool:
    """Return whether a name is part of an ARN or of a checksum line."""
    start, _ = match.span(_WORD)
    if before == b"(":
        return b")=" in data[start:at]
    return before == b":" and b"arn:" in data[max(0, start - _ARN_BYTES) : start]


def _judge_value(link: str, data: bytes, match: Any, at: int, kind: NameKind) -> Iterator[Span]:
    """Judge a value by the kind of its name and by the link between them."""
    start, _ = match.span(_WORD)
    whole_line = link == "assign" and bool(_ENV_LINE.search(data, max(0, start - 64), at))
    if wrapped := _VALUE_WRAPPER.match(data, at, at + 120):
        at = wrapped.end()
    if link == "assign":
        at = _skip_back(data, at)
        if data.endswith(b":?", at - 1, at + 1):
            return  # ${NAME:?message}: what a shell prints if the variable is not set.
        setting = _judge_setting(data, start, at, kind)
        yield from setting
        if any(span[2] for span in setting):
            return
    yield from _judge_linked(link, data, match, at, kind, whole_line=whole_line)


def _judge_linked(
    link: str, data: bytes, match: Any, at: int, kind: NameKind, *, whole_line: bool
) -> Iterator[Span]:
    """Judge a value that may belong to something other than the name before it."""
    start, _ = match.span(_WORD)
    in_talk = link in ("said", "next", "near")
    value = read_value(data, at, whole_line=whole_line, prose=in_talk)
    if kind in ("password", "pass") and data[value.end : value.end + 1] == b",":
        value = _with_commas(data, value)
    if link == "filled" and value.text.endswith("{enter}"):
        value = value._replace(text=value.text.removesuffix("{enter}"))
    if in_talk and is_about_metadata(data, start, value):
        return
    loose = (
        link == "near"
        or (in_talk and is_location(value.text))
        or _is_coincidence(link, kind, value, data[at - 2 : at])
    )
    if kind == "password" and (apart := match_app_password(data, value.start)):
        yield *apart.span(), secret_kind(kind)
    elif not loose and (
        fits_kind(kind, value.text, bare=not (value.quoted or whole_line))
        or (_OPTION.search(data, max(0, start - _LEFT_BYTES), start) is not None
            and fits_setting(kind, value.text, is_certain=data[at - 1 : at] == b"="))
    ):  # fmt: skip
        yield value.start, value.end, secret_kind(kind)
    elif link == "call" and value.quoted and b"redential" in match.group(_WORD):
        yield from _judge_second_argument(data, value)
    elif in_talk or (link == "assign" and not value.quoted and value.text.isalpha()):
        end = start + len(match.group(_WORD))
        yield from find_nearby(data, end, secret_kind(kind), since=at if link == "assign" else end)


def _judge_setting(data: bytes, name_at: int, at: int, kind: NameKind) -> list[Span]:
    """Judge a value that belongs to its name without doubt: quoted, or alone on its line.

    If it is no secret in itself, the span has no kind.
    """
    if kind not in ("password", "secret"):
        return []
    is_variable = data[at - 1 : at] == b"=" and data[name_at : name_at + 1].isupper()
    value = read_entry(data, at, name_at=name_at) or read_quoted(data, at)
    if value is None and is_variable:
        value = _read_lone_word(data, at)
    if value is None or _NO_SETTING.search(value.text):
        return []
    is_certain = value.quoted or is_variable or is_in_settings(data, value)
    is_code = not (value.quoted or is_variable) and _STRING_IN_CODE.search(value.text)
    fits = not is_code and fits_setting(kind, value.text, is_certain=is_certain)
    return [(value.start, value.end, secret_kind(kind) if fits else "")]


def _read_lone_word(data: bytes, at: int) -> Value | None:
    """Return the word that is assigned to a variable before a command: PASSWORD=marigold ./run."""
    value = read_value(data, at)
    is_whole = not data[value.end : value.end + 1].strip()
    return value if is_whole and value_checks.is_lone_word(value.text) else None


def _skip_back(data: bytes, at: int) -> int:
    """Return where a value starts; the link may have taken its first characters for emphasis."""
    last = data[max(0, at - 2) : at]
    return at if last == b"**" else at - (len(last) - len(last.rstrip(b"_*")))


def _with_commas(data: bytes, value: Value) -> Value:
    """Extend a bare value across its commas, if only the whole looks like a secret."""
    rest = None if value.quoted else _COMMAS.match(data, value.end, value.end + _AHEAD_BYTES)
    if rest is None:
        return value
    text = data[value.start : rest.end()].decode("utf-8", "replace")
    return Value(value.start, rest.end(), text) if is_named_password(text) else value


def _judge_second_argument(data: bytes, first: Value) -> Iterator[Span]:
    link = _NEXT_ARGUMENT.match(data, first.end, first.end + 8)
    if link is not None:
        yield from _judge_login_pair(data, None, link.end())


def _judge_bare_key(data: bytes, start: int, at: int, link: str) -> Iterator[Span]:
    """Judge the value of the word 'key' alone: it needs an owner or a section around it."""
    value = read_value(data, at, prose=True)
    if not value_checks.is_random(value.text, least=_KEY_CHARS) or value.text.startswith("0x"):
        return
    before_name = data[max(0, start - 16) : start].decode("latin-1").lower()
    owner = _OWNER.search(before_name)
    if link == "said" and data[start + 3 : start + 8] == b" for ":
        owner = owner or _FOR.search(data[start:at].decode("latin-1"))
    plain = value.text.islower() or value.text.isupper()
    if (owner and (not plain or owner.group(1) != "the")) or (
        link == "assign"
        and (
            _KEY_PARENT.search(_text_above(data, start))
            or _SIGNING_IN.search(data, max(0, start - _ABOVE_BYTES), start)
        )
    ):
        yield value.start, value.end, "secret"


def _text_above(data: bytes, start: int) -> bytes:
    """Return the text shortly before a name, in the same block of lines or braces."""
    above = data[max(0, start - _ABOVE_BYTES) : start]
    return above[max(map(above.rfind, (b"}", b"\n\n", b"</", b"\0"))) + 1 :]


def _judge_generic_value(data: bytes, match: Any, at: int) -> Iterator[Span]:
    """Judge a value that is only called a value, by the names around it."""
    value = read_value(data, at)
    if not is_named_password(value.text):
        return
    ahead = data[value.end : value.end + _AHEAD_BYTES].split(b"\n", 1)[0].split(b"}", 1)[0]
    around = _text_above(data, match.start()) + b" " + ahead
    for name in _NAME.findall(around):
        text = name.decode("latin-1")
        kind = classify_name(text)
        kind = kind or classify_name(text.partition(".")[0])
        if text.lower() in _GENERIC_NAMES or kind in ("password", "secret", "key", "phrase"):
            yield value.start, value.end, secret_kind(kind or "secret")
            return


def _judge_list(data: bytes, match: Any, at: int) -> Iterator[Span]:
    name = _whole_name(data, match.start(), match.group()[:0])[0] + "key"
    if not classify_name(name) and b"key" in match.group().lower()[:4]:
        return
    for _ in range(_MOST_ENTRIES):
        value = read_value(data, at)
        text = value.text
        if is_plain_secret(text) or (
            value.quoted and fits_kind("password", text, bare=True) and is_striking(text)
        ):
            yield value.start, value.end, "secret"
        following = _NEXT_ENTRY.match(data, value.end, value.end + 80)
        if following is None:
            return
        at = following.end()


def _judge_crypto_argument(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    """Judge an argument of a call that signs, encrypts or connects."""
    value = read_value(data, at)
    if value.quoted and is_plain_secret(value.text) and len(value.text) >= _KEY_CHARS:
        yield value.start, value.end, "secret"


def _judge_assertion(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    rest = data[value.end : value.end + _AHEAD_BYTES].split(b"\n", 1)[0]
    names = [name.decode("latin-1") for name in _NAME.findall(rest)]
    if value.quoted and is_plain_secret(value.text) and any(map(classify_name, names)):
        yield value.start, value.end, "secret"


def _judge_sql_row(data: bytes, match: Any, at: int) -> Iterator[Span]:
    """Judge the values of a row by the names of its columns."""
    opening = data.rfind(b"(", max(0, match.start() - _ABOVE_BYTES), match.start())
    names = data[opening + 1 : match.start()].decode("latin-1").split(",") if opening >= 0 else []
    for name in names[:_MOST_ENTRIES]:
        value = read_value(data, at)
        kind = classify_name(name.strip(" \t\n`\"'[]"))
        if (
            kind
            and value.quoted
            and is_striking(value.text)
            and fits_kind(kind, value.text, bare=False)
        ):
            yield value.start, value.end, secret_kind(kind)
        comma = data.find(b",", value.end, value.end + _ABOVE_BYTES)
        if comma < 0:
            return
        at = comma + 1
        at += len(data[at : at + 8]) - len(data[at : at + 8].lstrip())


def _is_unrelated(link: str, before: bytes, joined: bytes) -> bool:
    """Return whether the name belongs to something other than the value."""
    if link == "tag":
        return before != b"<" and joined[:1] not in _QUOTED and joined != b"g>"
    return link == "comma" and before not in (*_QUOTED, b"#", b"/")


def _is_coincidence(link: str, kind: NameKind, value: Value, before: bytes) -> bool:
    """Return whether name and value may just stand side by side: a test result, a list of names."""
    if link == "assign":
        bare = kind == "pass" and before == b": " and not value.quoted
        return bare and (_TEST.match(value.text) is not None or not is_named_password(value.text))
    if link in ("fallback", "default"):
        return False
    if link in ("next", "kwarg"):
        is_named = link == "kwarg" or kind not in ("key", "auth")
        return not (is_named and is_plain_secret(value.text))
    if kind == "password" and is_named_password(value.text):
        return False
    if link == "comma" and (kind == "key" or _TERM.match(value.text)):
        return not value_checks.is_random(value.text, least=_KEY_CHARS)
    return kind == "key" or not is_striking(value.text)


def _whole_name(data: bytes, start: int, word: bytes) -> tuple[str, bytes]:
    """Return a name with the words on its left that belong to it, and the byte before it."""
    before_name = data[max(0, start - _LEFT_BYTES) : start]
    rest = before_name.rstrip(_NAME_BYTES)
    head = before_name[len(rest) :]
    if rest.endswith((b" ", b"\t")):
        word_before = rest[len(rest[:-1].rstrip(_NAME_BYTES)) : -1]
        if word_before.lower() in _LEFT_WORDS or means_secret(word_before.decode("latin-1")):
            head = word_before + b" " + head
            rest = rest[: -len(word_before) - 1]
    before = rest[-1:]
    if before == b"\\" and head:
        head = head[1:]
    return (head + word).decode("latin-1"), before


def _judge_header(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    start = skip_quote(data, at)
    scheme = _SCHEME.match(data, start)
    value = read_value(data, scheme.end() if scheme else start)
    if not value.quoted and fits_kind("secret", value.text, bare=True):
        yield value.start, value.end, "authorization"


def _judge_bearer(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if value_checks.is_random(value.text, least=12) or value_checks.is_named_number(value.text):
        yield value.start, value.end, "authorization"


def _judge_basic(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if value_checks.is_basic_auth(value.text):
        yield value.start, value.end, "authorization"


def _judge_login_pair(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    text = value.text
    if value.quoted and (
        is_named_password(text) or (is_striking(text) and fits_kind("password", text, bare=False))
    ):
        yield value.start, value.end, "password"


def _judge_account(data: bytes, _match: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at, prose=True)
    if is_named_password(value.text) and not is_location(value.text):
        yield value.start, value.end, "password"


_LINKS = (
    "markup", "assign", "fallback", "filled", "comma", "typed", "kwarg", "call", "tag", "beside",
    "default", "part", *SENTENCE_LINKS, "cell", "literal", "near",
)  # fmt: skip
"""How a name of a secret is linked to its value, in the order in which they are tried."""

_PROSE_LINKS = frozenset((*SENTENCE_LINKS, "near"))
_NEVER = r"[^\s\S]"


def _rule_pattern(name: str, *, prose: bool) -> str:
    """Return the pattern of a rule; `word` matches a name of a secret with any link."""
    if name != "word":
        return load_pattern(name)
    links = (
        load_pattern(link) if prose or link not in _PROSE_LINKS else rf"(?P<{link}>{_NEVER})"
        for link in _LINKS
    )
    return rf"{load_pattern(name)}(?:{'|'.join(links)})"


def _disabled_pattern(name: str) -> str:
    """Return a pattern that never matches and has the groups of a rule."""
    links = "".join(f"(?P<{link}>)" for link in _LINKS) if name == "word" else ""
    return rf"(?P<{name}>{_NEVER}){links}"


_HTTP_AND_LOGIN_RULES: dict[str, Judge] = {
    "header": _judge_header,
    "bearer": _judge_bearer,
    "basic": _judge_basic,
    "pair": _judge_login_pair,
    "account": _judge_account,
}
_CODE_RULES: dict[str, Judge] = {
    "keyed": _judge_crypto_argument,
    "typing": _judge_login_pair,
    "asserted": _judge_assertion,
    "insert": _judge_sql_row,
    "list": _judge_list,
    "word": partial(_judge_named, "word"),
    "valued": _judge_generic_value,
}
FAMILIES = {
    "logins": _HTTP_AND_LOGIN_RULES,
    "otp": OTP_RULES,
    "commands": COMMAND_RULES,
    "assignments": _CODE_RULES,
    "prose": PROSE_RULES,
    "urls": URL_RULES,
}
"""The rules by family. Order matters: of two rules that match at one place the first counts."""


_LONG_HEADS = frozenset(
    """account flag valued user typing turned entered positional url lone dsn""".split()
)
"""Rules whose heads run on over words.

One automaton with the others needs 20 ns for a byte of text that is new to it, two automata 10.
"""


class RuleSet:
    """Rules compiled into one pattern, and two smaller patterns for where any of them starts.

    The `_head` of a rule matches wherever its pattern starts; without one the pattern serves.
    """

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        judges: dict[str, Judge] = {}
        patterns: list[str] = []
        short_heads: list[str] = []
        long_heads: list[str] = []
        for family, rules in FAMILIES.items():
            judges |= rules
            if family in without:
                patterns += map(_disabled_pattern, rules)
                continue
            for name in rules:
                patterns.append(_rule_pattern(name, prose="prose" not in without))
                has_head = f"{name}_head" in PATTERNS.sections
                heads = long_heads if name in _LONG_HEADS else short_heads
                heads.append(load_pattern(f"{name}_head") if has_head else patterns[-1])
        self.pattern = "(?i)" + "|".join(patterns)
        self.compiled = compile_re2(self.pattern)
        self.heads = [
            compile_re2("(?i)" + "|".join(heads), groups=False)
            for heads in (short_heads, long_heads)
            if heads
        ]
        groups = group_numbers(self.pattern)
        judges |= {link: partial(_judge_named, link) for link in _LINKS}
        self.judges = {index: judges[name] for name, index in groups.items()}
        self.loose = frozenset(index for name, index in groups.items() if name in _LOOSE)


@cache
def rule_set(without: frozenset[str]) -> RuleSet:
    """Return the compiled rules without some families; measurements switch families off."""
    return RuleSet(without)


_WORD = group_numbers(rule_set(frozenset()).pattern)["word"]
"""The number of the group that holds the name; families switched off keep their groups."""


def find_by_place(
    data: bytes, at: int = 0, *, without: frozenset[str] = frozenset()
) -> Iterator[Span]:
    """Yield the secrets that the text before them gives away."""
    rules = rule_set(without)
    clean_since = dense_since = at
    idle = places = 0
    search = HeadSearch(rules.heads, rules.compiled, data)
    while (match := search.find(at)) is not None:
        index = match.lastindex
        _, at = place = match.span(index)
        if index in rules.loose:
            at = max(match.start(), match.span(_WORD)[0]) + _SHORTEST_NAME
        idle += 1
        for start, judged, kind in rules.judges[index](data, match, place[1]):
            end = full_end(data, start, judged)
            yield start, end, kind
            if not kind:
                continue
            at = clean_since = max(at, end)
            idle = 0
        if idle >= IDLE_LIMIT:
            at, idle = skip_repeats(data, at, clean_since), 0
        places += 1
        if is_dense(places, at - dense_since):
            yield from find_in_dense_text(data, at)
            at = max(at, min(len(data), at + DENSE_BYTES) - OVERLAP_BYTES)
            clean_since = dense_since = at
            idle = places = 0
        elif places >= DENSE_COUNT:
            dense_since, places = at, 0
