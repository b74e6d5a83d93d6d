"""Redact secrets: replace each with a mark that names its kind but not the secret.

The same secret gets the same mark as long as the key is the same; without the key nobody can
test guesses against a mark."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate, chain, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import re2

from lore.config_files import ensure_key
from lore.errors import InvalidInput
from lore.redaction import RULES_FOLDER, value_checks
from lore.redaction.assignment_rules import find_by_place, is_secret_value
from lore.redaction.context_rules import find_by_context
from lore.redaction.line_rules import find_by_line, has_lines
from lore.redaction.value_reader import ANSI_COLOUR, Span
from lore.text import words
from lore.text.regex import HeadSearch, compile_lazy, compile_re2, loosen_counts

if TYPE_CHECKING:
    from lore.settings import Settings


class KeyFormat(NamedTuple):
    """The format of one vendor's key; `before` must precede it and stays in the text.

    Ordinary names can match a `weak` format, so a match must also look random. A `mixed` format
    covers vendors that are not listed: it must stand alone, be no id, and mix upper case, lower
    case and digits.
    """

    kind: str
    pattern: str
    before: str = ""
    weak: bool = False
    mixed: bool = False


_SHORTHANDS = {
    "<url>": r"[A-Za-z0-9_\-]",
    "<uuid>": r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}


def _read_formats() -> Iterator[KeyFormat]:
    table = (RULES_FOLDER / "key_formats.tsv").read_text("utf-8")
    for shorthand, pattern in _SHORTHANDS.items():
        table = table.replace(shorthand, pattern)
    for row in table.splitlines()[1:]:
        kind, flags, before, pattern = row.split("\t")
        yield KeyFormat(kind, pattern, before, weak="weak" in flags, mixed="mixed" in flags)


KEY_FORMATS = tuple(_read_formats())
"""More specific formats come first; the caller adds the left boundary."""


_BEGIN = compile_re2(
    r"-----? ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?|Private-Lines: \d{1,3}"
)
_END = compile_re2(r"-----? ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-----?")
_RUN = compile_re2(r"[A-Za-z0-9+/=]{16,}")
_TRUNCATED = compile_re2(
    r"(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset): ?[^\n\\]*"
    r"|[\s\"'+,|>]|\\+[nrt\"]|\d{1,5}(?:\xe2\x86\x92|:|\|)|[A-Za-z0-9+/]{24,}={0,2}"
    r"|[A-Za-z0-9+/]+={1,2}(?:=[A-Za-z0-9+/]{4})?)*"
)
_TAIL = compile_re2(r"(?:[nrt\"]\\+|[\s\"'+,|>])*")
"""What follows a truncated key, matched backwards: forwards it would restart at every space."""

_LARGEST_KEY = 40_000
"""Bytes: a key of 16,384 bits is a third of this, with escaped and numbered lines."""

_SHORTEST, _FEWEST_DISTINCT = 40, 12
"""Base64 characters, and distinct ones among them; a sample in documentation has fewer."""


def find_pem(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield the private keys in a text, each from its first line to its last."""
    if b"PRIVATE KEY" not in data and b"Private-Lines" not in data:
        return
    for (start, at), (following, _) in pairwise(
        chain(_find_begins(data), [(len(data), len(data))])
    ):
        limit = min(following, at + _LARGEST_KEY)
        # This check is cheap and rejects text that repeats first lines only.
        if limit - at < _SHORTEST or not _is_key(data[at:limit]):
            continue
        end = _end(data, at, limit)
        if _is_key(data[at:end]):
            yield start, end, "private-key"


def _find_begins(data: bytes) -> Iterator[tuple[int, int]]:
    return (begin.span() for begin in _BEGIN.finditer(data))


def _is_key(between: bytes) -> bool:
    body = b"".join(_RUN.findall(between))
    return len(body) >= _SHORTEST and len(set(body)) >= _FEWEST_DISTINCT


def _end(data: bytes, at: int, limit: int) -> int:
    end = _END.search(data, at, limit)
    if end:
        return int(end.end())
    truncated = _TRUNCATED.match(data, at, limit).group()
    return at + len(truncated) - int(_TAIL.match(truncated[::-1]).end())


_PUBLIC = compile_re2(
    r"-----BEGIN (?:[A-Z0-9]+ )*(?:CERTIFICATE|PUBLIC KEY|CERTIFICATE REQUEST|X509 CRL|PARAMETERS)"
    r"-----(?:\s|\\+[nr]|[A-Za-z0-9+/=])*"
)
"""A certificate or public key, up to its last line."""


def _outside_public(data: bytes, spans: list[Span]) -> list[Span]:
    """Return the spans that are not within a certificate or public key."""
    if not spans or b"-----BEGIN " not in data:
        return spans
    blocks = [block.span() for block in _PUBLIC.finditer(data)]
    return [s for s in spans if not any(low <= s[0] and s[1] <= high for low, high in blocks)]


_HASH_CHARS = 8
"""32 bits: the few hundred secrets of a person differ, and a mark stays short."""

_ROUNDS = 4
"""A mark in the place of a secret can reveal another beside it; real text needs one more round."""

_LONG_TEXT, _LONG_ROUNDS = 32_768, 2
"""Texts of this many characters get fewer rounds, so that hostile text cannot cost much."""

_SEPARATOR = b"\n\0\n"
"""Stands between texts that are scanned together; no rule reads across it."""

_SPLIT_KEY = compile_lazy(rb"[A-Za-z0-9_\-]\0[A-Za-z0-9_\-]")
"""A zero byte within a word; between words it ends the word."""

_MARK = compile_lazy(rb"\[secret:[a-z0-9\-]{1,32}:[0-9a-f]{8}\]")
_BLANK = b"\0"
_FILLED = compile_lazy(rb"[^\0]+")
_BOUNDS = (r"\b", rf"(?:\\+[nrtbf]|{ANSI_COLOUR}|%[0-9A-Fa-f]{{2}}|u00[0-9a-f]{{2}}|_)")
"""A key starts at a word boundary, or after an escaped line break or colour."""

_FORMATS_PER_PATTERN = 16
"""Formats in one pattern with groups; with all of them in one it is a hundred times slower."""

SHORTEST_KEY, _SHORT_TEXT = 15, 1_000
"""Bytes without a space that the shortest key has (it may have line breaks); a short text, such as
a question, without so long a run is not searched for keys: compiling their formats takes 10 ms."""

_JUDGED_BYTES = 4_096
"""Bytes of a secret that are checked against the shape of examples."""

_UUID_CHARS = 36
"""The length of a UUID. Alone it is the key of a message, and no rule takes it for a secret."""

_REPEATS, _SHORTEST_REPEAT = 16, 8
"""How many secrets are searched for again and how often, and the shortest of them."""

_WORD_JOINT = compile_lazy(rb"[-_]")
"""Joins a word and a key to what looks like one key."""


class Redactor:
    """Find secrets by rules and by the user's own patterns, and replace them with marks.

    Patterns in `allow` protect text from redaction. `without` switches off families of rules, for
    measurements.
    """

    def __init__(
        self,
        key: bytes,
        *,
        patterns: Sequence[str] = (),
        allow: Sequence[str] = (),
        active: bool = True,
        without: Collection[str] = (),
    ) -> None:
        self._key = key
        self._active = active
        self._without = frozenset(without)
        self._patterns = tuple(_compile_custom(pattern) for pattern in patterns)
        self._allow = tuple(_compile_custom(pattern) for pattern in allow)

    def redact(self, text: str, *, name: str = "") -> str:
        """Return the text with a mark in the place of each secret.

        `name` is the field or variable whose value the text is.
        """
        if not text:
            return text
        for _ in range(_ROUNDS if len(text) < _LONG_TEXT else _LONG_ROUNDS):
            data = text.encode("utf-8", "surrogatepass")
            spans = self._find_spans(data, name)
            if not spans:
                return text
            pieces = []
            at = 0
            for start, end, kind in spans:
                pieces += [data[at:start], self._mark(kind, data[start:end])]
                at = end
            text = b"".join([*pieces, data[at:]]).decode("utf-8", "surrogatepass")
        return text

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Return the start, end and kind of each secret in a text."""
        data = text.encode("utf-8", "surrogatepass")
        spans = self._find_spans(data, "")
        if len(data) == len(text):
            return spans
        char_spans = []
        chars = at = 0
        for start, end, kind in spans:
            first = chars + _char_count(data[at:start])
            chars = first + _char_count(data[start:end])
            at = end
            char_spans.append((first, chars, kind))
        return char_spans

    def holds_secret(self, texts: Iterable[str]) -> bool:
        """Return whether any of the texts may hold a secret, with one scan for many short ones."""
        return bool(self.find_holders({0: list(texts)}))

    def find_holders(self, groups: Mapping[int, Collection[str]]) -> set[int]:
        """Return the keys of the groups of texts that may hold a secret, with one scan for all.

        The user's own patterns may be anchored to the ends of a text, so they scan one text at a
        time.
        """
        if not self._active:
            return set()
        # Keys and names are one line: joined, each would look like a value alone on its line.
        ids: list[str] = []
        one_line: list[str] = []
        with_lines: list[str] = []
        for text in dict.fromkeys(chain.from_iterable(groups.values())):
            if len(text) == _UUID_CHARS and value_checks.UUID.fullmatch(text):
                ids.append(text)
            else:
                (with_lines if has_lines(text) else one_line).append(text)
        # One letter outside ASCII would make all of a joined text take longer to encode.
        joined = [*one_line, *with_lines]
        encoded = [text.encode("utf-8", "surrogatepass") for text in joined]
        lines_from = sum(map(len, encoded[: len(one_line)]))
        lines_from += len(_SEPARATOR) * max(0, len(one_line) - 1)
        ending = b"" if with_lines or not one_line else _SEPARATOR
        spans = self._find_spans(_SEPARATOR.join(encoded) + ending, "", lines_from=lines_from)
        holders = set()
        if spans:
            ends = list(accumulate(len(each) + len(_SEPARATOR) for each in encoded))
            holders = {joined[bisect_right(ends, start)] for start, _, _ in spans}
        if self._patterns:
            holders |= {text for text in (*ids, *one_line, *with_lines) if self.find(text)}
        return {key for key, texts in groups.items() if not holders.isdisjoint(texts)}

    def _find_spans(self, data: bytes, name: str, *, lines_from: int = 0) -> list[Span]:
        if not self._active:
            return []
        data = _blank_marks(data)
        spans = [*_find_formats(data), *find_pem(data)]
        # One pattern for both would need an automaton many times as large as the two.
        spans += find_by_place(data, without=self._without)
        spans += () if "lines" in self._without else find_by_line(data, lines_from)
        spans += () if "context" in self._without else find_by_context(data)
        spans = _outside_public(data, spans + list(_find_split(data)))
        spans += self._find_custom(data)
        if name and is_secret_value(name, data.decode("utf-8", "replace")):
            spans.append((0, len(data), "secret"))
        secret_spans = [span for span in spans if span[2]]
        if not secret_spans:
            return []
        spans += _find_repeats(data, secret_spans)
        if self._allow:
            spans = [span for span in spans if not self._is_allowed(data[span[0] : span[1]])]
        return list(_exclude_marks(data, _merge_overlaps(spans)))

    def _find_custom(self, data: bytes) -> Iterator[Span]:
        for pattern in self._patterns:
            for match in pattern.finditer(data):
                start, end = match.span(1 if pattern.groups else 0)
                if start < end:
                    yield start, end, "custom"

    def _is_allowed(self, secret: bytes) -> bool:
        return any(pattern.fullmatch(secret) for pattern in self._allow)

    def _mark(self, kind: str, secret: bytes) -> bytes:
        digest = hmac.new(self._key, secret, hashlib.sha256).hexdigest()
        return f"[secret:{kind}:{digest[:_HASH_CHARS]}]".encode()


@cache
def _any_format() -> tuple[Any, Any]:
    """Return all formats as one pattern, with loose counts and with exact ones."""
    formats = "|".join(f"{each.before}(?:{each.pattern})" for each in KEY_FORMATS)
    pattern = f"(?:{'|'.join(_BOUNDS)})(?:{formats})"
    return compile_re2(loosen_counts(pattern), groups=False), compile_re2(pattern, groups=False)


@cache
def _format_group(bound: str, first: int) -> Any:
    group = KEY_FORMATS[first : first + _FORMATS_PER_PATTERN]
    return compile_re2(f"{bound}(?:{'|'.join(f'{each.before}({each.pattern})' for each in group)})")


def _next_format(search: HeadSearch, data: bytes, at: int) -> tuple[int, int, KeyFormat] | None:
    """Return the first key format at or after an offset, with its start and end."""
    if (start_match := search.find(at)) is None:
        return None
    for bound, first in product(_BOUNDS, range(0, len(KEY_FORMATS), _FORMATS_PER_PATTERN)):
        if (match := _format_group(bound, first).match(data, start_match.start())) is not None:
            index = match.lastindex
            return *match.span(index), KEY_FORMATS[first + index - 1]
    return None


def _find_formats(data: bytes) -> Iterator[Span]:
    if len(data) <= _SHORT_TEXT and not _has_long_word(data):
        return
    loose, exact = _any_format()
    search = HeadSearch((loose,), exact, data)
    at = 0
    while hit := _next_format(search, data, at):
        start, end, key_format = hit
        if _is_real_key(
            key_format,
            data[start : min(end, start + _JUDGED_BYTES)],
            data[max(0, start - 1) : start],
        ):
            yield start, end, key_format.kind
            at = end
        else:
            # A word before a key may have matched as one key: search for the key alone.
            joint = _WORD_JOINT.search(data, start, end) if key_format.mixed else None
            at = joint.start() if joint and joint.start() > start else end


def _has_long_word(data: bytes) -> bool:
    return any(len(word) >= SHORTEST_KEY for word in data.split(b" "))


def _is_real_key(key_format: KeyFormat, secret: bytes, before: bytes) -> bool:
    """Return whether text in the format of a key is one, and not an example or a name."""
    value = secret.decode("latin-1")
    if key_format.mixed and not value_checks.is_unknown_vendor_key(value, before):
        return False
    is_example = value_checks.is_example if key_format.mixed else value_checks.is_example_key
    return not is_example(value) and (not key_format.weak or value_checks.has_random_shape(value))


def _find_repeats(data: bytes, spans: list[Span]) -> Iterator[Span]:
    """Yield further occurrences of the secrets that were found, whatever surrounds them."""
    kinds = {data[start:end]: kind for start, end, kind in spans[:_REPEATS]}
    for secret, kind in kinds.items():
        if not _SHORTEST_REPEAT <= len(secret) <= _JUDGED_BYTES:
            continue
        at = data.find(secret)
        for _ in range(_REPEATS):
            if at < 0:
                break
            yield at, at + len(secret), kind
            at = data.find(secret, at + len(secret))


def _find_split(data: bytes) -> Iterator[Span]:
    """Yield keys that a zero byte splits, by scanning the text without the zero bytes."""
    if b"\0" not in data or data.count(b"\0") == data.count(_SEPARATOR):
        return
    places = []
    at = data.find(b"\0")
    while at >= 0:
        if at and _SPLIT_KEY.match(data, at - 1):
            places.append(at)
        at = data.find(b"\0", at + 1)
    if not places:
        return
    cuts = [place - count for count, place in enumerate(places)]
    edges = [-1, *places, len(data)]
    whole = b"".join(data[low + 1 : high] for low, high in pairwise(edges))
    for start, end, kind in _find_formats(whole):
        yield start + bisect_right(cuts, start), end + bisect_left(cuts, end), kind


def _compile_custom(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern.encode("utf-8"), options)
    except (re2.error, UnicodeError) as error:
        msg = f"'{pattern}' is not a valid RE2 pattern: {error}."
        raise InvalidInput(msg, hint="See capture.redact_patterns and capture.redact_allow.") from (
            error
        )


def _merge_overlaps(spans: list[Span]) -> Iterator[Span]:
    """Merge spans that overlap; the kind is that of the rule that came first.

    Spans without a kind only extend others.
    """
    order = {span: place for place, span in reversed(list(enumerate(spans)))}
    groups: list[list[Span]] = []
    end = -1
    for span in sorted(spans):
        if span[0] >= end:
            groups.append([])
        groups[-1].append(span)
        end = max(end, span[1])
    for group in groups:
        kinds = [span for span in group if span[2]]
        if kinds:
            first = min(kinds, key=order.__getitem__)
            yield group[0][0], max(span[1] for span in group), first[2]


def _blank_marks(data: bytes) -> bytes:
    """Blank out the marks of earlier redaction, so that no rule matches inside them."""
    if b"[secret:" not in data:
        return data
    return _MARK.sub(lambda mark: _BLANK * len(mark.group()), data)


def _exclude_marks(data: bytes, spans: Iterator[Span]) -> Iterator[Span]:
    """Cut blanked marks out of the spans, and extend spans to whole UTF-8 characters."""
    for start, end, kind in spans:
        while start and data[start] & 0xC0 == 0x80:
            start -= 1
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        for piece in _FILLED.finditer(data, start, end):
            yield piece.start(), piece.end(), kind


def _char_count(data: bytes) -> int:
    return len(data.decode("utf-8", "surrogatepass"))


KEY_FILE = "redaction.key"
KEY_BYTES = 32

EPHEMERAL_REDACTOR = Redactor(secrets.token_bytes(KEY_BYTES))
"""For code without a Lore home: redacts alike, with marks that are valid in this process only."""


def open_redactor(config: Settings) -> Redactor:
    """Return the redactor of a Lore home; its key is created at the first call."""
    return Redactor(
        _load_key(config.home / KEY_FILE),
        patterns=config.capture_redact_patterns,
        allow=config.capture_redact_allow,
        active=config.capture_redact,
    )


def home_key(config: Settings, purpose: str) -> bytes:
    """Derive a key for another purpose from the key of a home; neither reveals the other."""
    return hmac.digest(_load_key(config.home / KEY_FILE), purpose.encode(), "sha256")


def _load_key(path: Path) -> bytes:
    """Return the key of a home, or one for this process where none can be stored."""
    with suppress(OSError):
        return ensure_key(
            path,
            make=lambda: secrets.token_bytes(KEY_BYTES),
            is_sound=lambda key: len(key) == KEY_BYTES,
        )
    return secrets.token_bytes(KEY_BYTES)


_NAMES = ("name", "key", "setting", "variable", "field", "header", "option", "env")
_VALUES = frozenset(("value", "val", "values", "default"))
"""The field names of name/value pairs."""


def redact_tree(redactor: Redactor, tree: Any, name: str = "") -> Any:
    """Return nested values with every text redacted, each with its field name as context.

    A field that is only called "value" gets the name beside it or above it.
    """
    if isinstance(tree, str):
        return redactor.redact(words.clean(tree), name=name)
    if isinstance(tree, Mapping):
        pair_name = _pair_name(tree) or name
        return {
            redactor.redact(words.clean(key)) if isinstance(key, str) else key: redact_tree(
                redactor,
                value,
                pair_name if pair_name and str(key).lower() in _VALUES else str(key),
            )
            for key, value in tree.items()
        }
    if isinstance(tree, list | tuple):
        return [redact_tree(redactor, value, name) for value in tree]
    return tree


def _pair_name(tree: Mapping[Any, Any]) -> str:
    """Return the name in a name/value pair, or an empty string."""
    by_key = {str(key).lower(): value for key, value in tree.items()}
    candidates = (by_key.get(key) for key in _NAMES)
    return next((name for name in candidates if isinstance(name, str) and name), "")
