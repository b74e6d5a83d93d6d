"""Line rules: values that another line names: a prompt, a label, or the head of a table.

A command prints a secret and nothing else; an installer prints a label and the password below it; a
table has a column of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lore.redaction import compile_bytes, load_pattern, value_checks
from lore.redaction.name_rules import NameKind, classify_name
from lore.redaction.password_shapes import (
    fits_kind,
    is_named_password,
    is_plain_secret,
    is_striking,
    secret_kind,
)
from lore.redaction.prose_rules import FOREIGN_PASSWORD_WORD, mentions_metadata
from lore.redaction.value_reader import Span
from lore.text.regex import compile_lazy, compile_re2, group_numbers, loosen_counts

LINES = load_pattern("lines")

_LINES = compile_re2(LINES)
_LOOSE = compile_re2(loosen_counts(LINES), groups=False)
_NAMES = {index: name for name, index in group_numbers(LINES).items()}

_LOOKBACK = 400
"""Bytes to look back for the line that names a lone value."""

_LABEL_HINT = compile_re2(load_pattern("label_hint"), groups=False)

_PATHS = ("/", "./", "~/", "../")
_SPLIT = compile_lazy(rb"\r?\n|(?:\\+r)?\\+n")
_FENCE = compile_lazy(rb"^[ \t]*(?:[`~]{3,}\w*|[=\-]{3,})?[ \t]*$")
_UNNUMBERED = compile_lazy(rb"^[ \t]*(?:\d{1,6}(?:\xe2\x86\x92|\t)[ \t]*)?(?:[+\-](?=[$%#>]))?")
_PROMPT = compile_lazy(
    rb"(?:^|[ \t])(?:[$%#>]|\xe2\x9d\xaf|>>>|\(Pdb\)|irb[^>]*>|In \[\d+\]:)[ \t]+(.+)$"
)
_SECRET_COMMAND = compile_lazy(rf"\b(?:{load_pattern('secret_commands')})".encode(), re.IGNORECASE)

_PRINT_COMMAND = compile_lazy(
    rb"\b(?:cat|type|less|head|tail|echo|print|puts|p)\b|[\w\])]$", re.IGNORECASE
)
_LISTING = compile_bytes("line_listing")
_LABEL = compile_bytes("label")
_HEX = compile_lazy(r"^[0-9a-fA-F]+$")
_FEW_WORDS = 5
_ROWS = 40
_TABLE_BYTES = 6_000
_HEAD_BYTES = 800
"""Bytes above the rule of a table in which its head starts."""

_NEAR = 2 * _HEAD_BYTES
"""Bytes before a hint that are searched: the head of a table, or the longest lone value."""

_CELL = b" \t\"'`*"
_BARS = compile_lazy(rb"\||\xe2\x94\x82|\xe2\x94\xac|\xe2\x94\xbc")
_LINE_CHARS = b" \t-+|:\xe2\x94\x80\x82\x8c\x90\x98\xac\xb4\xbc\xa4\x9c\xa0"
_HEADING = compile_lazy(rb"^[A-Za-z][\w \-/()]{0,30}$")


def has_lines(text: str) -> bool:
    """Return whether a text has a line that another one could explain."""
    return text.find("\n", 0, -1) >= 0 or "\\n" in text


def find_by_line(data: bytes, at: int = 0, *, skip: bool = True) -> Iterator[Span]:
    """Yield the secrets that another line of the text gives away.

    Text without a word that hints at a secret is skipped; without `skip` all of it is searched.
    """
    if data.find(b"\n", at, -1) < 0 and b"\\n" not in data:
        return
    near = at - 1 if skip else len(data)
    while True:
        if at > near:
            at, near = _skip_to_hint(data, at)
        head = _LOOSE.find_span(data, at) if at >= 0 else None
        if head is None:
            return
        if head[0] > near:
            at = head[0]
            continue
        nameless = _has_no_label(data, *head)
        if nameless or (match := _LINES.match(data, head[0])) is None:
            at = _skip_break(data, *head)
            continue
        index = match.lastindex
        start, at = match.span(index)
        for span in _JUDGES[_NAMES[index]](data, start, at):
            yield span
            at = max(at, span[1])


def _skip_to_hint(data: bytes, at: int) -> tuple[int, int]:
    """Return where the next secret may start, or -1, and how far the word that hints at it reaches.

    Every rule needs such a word: before a lone value, or in the head of a table.
    """
    hint = _LABEL_HINT.find_span(data, max(0, at - _HEAD_BYTES))
    if hint is None:
        return -1, -1
    start, end = hint
    return max(at, data.rfind(b"\n", at, max(at, start - _NEAR))), end + _HEAD_BYTES


def _has_no_label(data: bytes, start: int, end: int) -> bool:
    """Return whether a lone value has no text before it that could name it."""
    if data[start] not in b"\r\n\\" or data.find(b"---", start, end) >= 0:
        return False
    return _LABEL_HINT.find_span(data, max(0, start - _LOOKBACK), end) is None


def _skip_break(data: bytes, start: int, end: int) -> int:
    slashes = end - start - len(data[start:end].lstrip(b"\\"))
    return start + max(1, slashes)


def _judge_lone_value(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge a value that is alone on its line, by the line before it."""
    text = data[start : min(end, start + 256)].decode("utf-8", "replace").rstrip(".:")
    if text.startswith(_PATHS) or not is_striking(text):
        return
    label = _line_before(data, start)
    if label and _is_answer(label, text):
        yield start, start + len(text.encode()) if end - start <= 256 else end, "secret"


def _line_before(data: bytes, start: int) -> bytes:
    """Return the last line with content before an offset."""
    lines = _SPLIT.split(data[max(0, start - _LOOKBACK) : start].rpartition(b"\0")[2])[:-1]
    for line in reversed(lines[-4:]):
        if not _FENCE.match(line):
            return _UNNUMBERED.sub(b"", line).strip()
    return b""


def _is_answer(label: bytes, text: str) -> bool:
    is_command = _SECRET_COMMAND.search(label)
    prompt = _PROMPT.search(label)
    if is_command and not _LISTING.search(label):
        return (
            value_checks.is_random(text)
            or is_plain_secret(text)
            or fits_kind("password", text, bare=True)
        )
    if prompt and _LABEL_WORD.search(label) and not _LISTING.search(label):
        names = re.findall(rb"[\w.\-]+", prompt.group(1))
        last_names = names[-2:] if len(names) == 1 else names[1:][-2:]
        is_named = any(
            classify_name(_ENDING.sub(b"", name).decode("latin-1")) for name in last_names
        )
        shown = is_named and _PRINT_COMMAND.search(prompt.group(1))
        return bool(shown) and (is_plain_secret(text) or fits_kind("password", text, bare=True))
    labelled = _LABEL.search(label) or FOREIGN_PASSWORD_WORD.search(label)
    if prompt or not labelled or mentions_metadata(label):
        return False
    if label.endswith((b":", b"\xef\xbc\x9a", b":**", b"</b>")):
        return is_named_password(text) or fits_kind("password", text, bare=True)
    few = len(label.split()) <= _FEW_WORDS and not _LISTING.search(label)
    return few and not _HEX.match(text) and is_plain_secret(text)


_LABEL_WORD = compile_lazy(rb"(?i)passw|secret|token|key|credential|pwd|pass\b|\bpw\b")
_ENDING = compile_lazy(rb"\.(?:txt|secret|key|env|dat|conf|pass|pw|token)$")


def _judge_ruled_table(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge a table with bars; its head is above the rule, or between two rules."""
    breaks = list(_SPLIT.finditer(data, max(0, start - _HEAD_BYTES), start))
    first = breaks[-2].end() if len(breaks) > 1 else max(0, start - _HEAD_BYTES)
    if not _LABEL_WORD.search(data, first, end + _HEAD_BYTES):
        return
    columns: dict[int, NameKind] = {}
    for low, high in _split_lines(data, first, first + _TABLE_BYTES):
        cells = list(_split_cells(data, low, high, _BARS))
        if not columns:
            columns = _secret_columns([data[a:b] for a, b in cells])
            if low > end and not columns:
                return
            continue
        if len(cells) < 2 and low > end:
            return
        yield from _column_values(data, cells, columns)


def _judge_delimited_table(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge rows whose first line names the columns, separated by commas, semicolons or tabs."""
    joint = re.compile(re.escape(data[start : start + 1]))
    first = max(data.rfind(b"\n", max(0, start - 400), start) + 1, max(0, start - 400))
    escaped = data.rfind(b"\\n", first, start)
    first = escaped + 2 if escaped >= 0 else first
    columns: dict[int, NameKind] = {}
    for low, high in _split_lines(data, first, end + _TABLE_BYTES):
        cells = list(_split_cells(data, low, high, joint))
        texts = [data[a:b] for a, b in cells]
        if not columns:
            texts[0] = texts[0].lstrip(b"+-")
            if not all(map(_HEADING.match, filter(None, texts))):
                return
            columns = _secret_columns(texts)
            if not columns:
                return
            continue
        if len(cells) < 2:
            return
        yield from _column_values(data, cells, columns)


def _judge_last_column(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge the last column of rows that are aligned by spaces."""
    name = data[start:end].strip().removesuffix(b"\\n").strip().decode("latin-1")
    kind = classify_name(name)
    if not kind:
        return
    for low, high in _split_lines(data, end, end + _TABLE_BYTES):
        words = data[low:high].split()
        if len(words) < 2:
            return
        text = words[-1].decode("utf-8", "replace")
        if is_plain_secret(text):
            at = data.rfind(words[-1], low, high)
            yield at, at + len(words[-1]), secret_kind(kind)


def _split_lines(data: bytes, start: int, limit: int) -> Iterator[tuple[int, int]]:
    limit = min(limit, len(data))
    at = start
    for _ in range(_ROWS):
        line_break = _SPLIT.search(data, at, limit)
        if line_break is None:
            if at < limit:
                yield at, limit
            return
        yield at, line_break.start()
        at = line_break.end()


def _split_cells(
    data: bytes, low: int, high: int, joint: re.Pattern[bytes]
) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the cells of a row, without surrounding space and quotes."""
    at = low
    edges = [match.span() for match in joint.finditer(data, low, high)]
    for start, end in [*edges, (high, high)]:
        cell = data[at:start]
        start_of_text = at + len(cell) - len(cell.lstrip(_CELL))
        yield start_of_text, max(start_of_text, at + len(cell.rstrip(_CELL)))
        at = end


def _secret_columns(texts: list[bytes]) -> dict[int, NameKind]:
    columns: dict[int, NameKind] = {}
    for index, text in enumerate(texts):
        name = text.strip(_LINE_CHARS).decode("latin-1")
        kind = classify_name(name.replace(" ", "_")) if 0 < len(name) < 40 else ""
        if kind and kind != "cookie":
            columns[index] = "password" if kind == "pass" else kind
    return columns if len(texts) > 1 else {}


def _column_values(
    data: bytes, cells: list[tuple[int, int]], columns: dict[int, NameKind]
) -> Iterator[Span]:
    for index, kind in columns.items():
        if index >= len(cells):
            continue
        start, end = cells[index]
        text = data[start : min(end, start + 256)].decode("utf-8", "replace")
        is_password = kind == "password" and is_named_password(text)
        if (
            is_password
            or is_plain_secret(text)
            or (is_striking(text) and fits_kind(kind, text, bare=True))
        ):
            yield start, end, secret_kind(kind)


_JUDGES: dict[str, Callable[[bytes, int, int], Iterator[Span]]] = {
    "alone": _judge_lone_value,
    "rule": _judge_ruled_table,
    "head": _judge_delimited_table,
    "column": _judge_last_column,
}
