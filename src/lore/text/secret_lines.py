"""Secret lines: values that the line before them, the head of their table or their document names.

A command is asked for a secret and answers with nothing else; an installer prints a label and the
password below it; a table has a column of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from lore.text import secret_values
from lore.text.later import compile_later
from lore.text.linear import compile_linear, groups_of, loosened
from lore.text.secret_fitting import (
    Span,
    fits,
    is_named_password,
    is_plain_secret,
    is_striking,
    told,
)
from lore.text.secret_names import NameKind, classify
from lore.text.secret_talk import FOREIGN_NAME, speaks_of_other

__all__ = ["LINES", "find_lines", "has_lines"]

_BREAK = r"(?:\r?\n|(?:\\+r)?\\+n)"
_NUMBERED = r"(?:[ \t]*\d{1,6}(?:\xe2\x86\x92|\t))?"
"""The number that tools set before a line."""

_SIGN = r"[!#-&*+./0-9:=?@A-Z^_a-z~\-]"
_FIRST = r"[!#-&*/0-9=?@A-Z^_a-z~]"
_TELLING = r"[0-9%*!#+_.?]"
_COLUMNS = r"passw(?:or)?d|passwd|pass|pwd|passphrase|secret|token|api[_ \-]?key|access[_ ]key"
LINES = (
    rf"(?i){_BREAK}{_NUMBERED}(?:\+|-|[ \t]*##\[debug\])?[ \t]*"
    rf"(?:(?:[\-*>+]|=>|\d{{1,2}}[.)])[ \t]+)?[`\"']{{0,3}}"
    rf"(?P<alone>{_FIRST}{_SIGN}{{3,64}}{_TELLING}{_SIGN}{{3,200}}|[0-9]{_SIGN}{{7,200}}"
    rf"|{_FIRST}{_SIGN}{{0,2}}{_TELLING}{_SIGN}{{7,200}}"
    rf"|{_FIRST}{_SIGN}{{6,64}}[0-9]{_SIGN}?)[`\"']{{0,3}}[ \t]*"
    rf"(?:\r?\n|\\+[nr]|[\"']|\z)"
    rf"|(?P<rule>\|[ \t]*:?-+:?[ \t]*\||-{{3,}}[+|]-{{3,}}|\+-{{3,}}\+"
    rf"|\xe2\x94\x80\xe2\x94[\xac\xbc])"
    rf"|(?P<head>[,;\t]\"?[\w ]{{0,20}}(?:{_COLUMNS})(?:[ _]\w{{1,8}})?\"?(?:[,;\t]|{_BREAK}))"
    rf"|(?P<column>[ \t]{{2,}}(?:{_COLUMNS})[ \t]*{_BREAK})"
)
"""Lines that another line explains; each group has its judge below."""

_LINES = compile_linear(LINES)
_LOOSE = compile_linear(loosened(LINES), groups=False)
_NAMES = {index: name for name, index in groups_of(LINES).items()}

_BACK = 400
"""So far back the line is looked for that names a lone value."""

_HINT = compile_linear(
    r"(?i)pass|pwd|pw|secret|token|key|credential|creds|vault|op[ \t]|bw[ \t]|chamber|doppler"
    r"|kubectl|whoami|get-parameter|terraform|tofu|pulumi|config:get|printenv|getenv|openssl|apg"
    rf"|genpsk|urandom|randombytes|fernet|diceware|sops|mdp|{FOREIGN_NAME.pattern.decode('latin-1')}",
    groups=False,
)
"""What a line has in it that names a lone value: most lone values have nothing of it near them."""

_PATHS = ("/", "./", "~/", "../")
_SPLIT = compile_later(rb"\r?\n|(?:\\+r)?\\+n")
_FENCE = compile_later(rb"^[ \t]*(?:[`~]{3,}\w*|[=\-]{3,})?[ \t]*$")
_UNNUMBERED = compile_later(rb"^[ \t]*(?:\d{1,6}(?:\xe2\x86\x92|\t)[ \t]*)?(?:[+\-](?=[$%#>]))?")
_PROMPT = compile_later(
    rb"(?:^|[ \t])(?:[$%#>]|\xe2\x9d\xaf|>>>|\(Pdb\)|irb[^>]*>|In \[\d+\]:)[ \t]+(.+)$"
)
_ASKED = compile_later(
    rb"\b(?:vault[ \t]+(?:kv[ \t]+get|read|print)|op[ \t]+(?:read|item|get)"
    rb"|pass[ \t]+(?!(?:ls|git|find|grep|rm|mv|cp|init|edit|help)\b)(?:show[ \t]+)?\w"
    rb"|gopass|lpass[ \t]+show|bw[ \t]+get|chamber[ \t]+read|doppler[ \t]+secrets|keyctl"
    rb"|secret-tool"
    rb"|kubectl[ \t][^\n]*\b(?:secrets?|create[ \t]+token)\b|oc[ \t]+whoami[ \t]+-t"
    rb"|secretsmanager|get-secret-value|get-parameter|find-(?:generic|internet)-password"
    rb"|keyvault[ \t]+secret|get-access-token|get-login-password|print-(?:access|identity)-token"
    rb"|gcloud[ \t]+secrets|terraform[ \t]+output|tofu[ \t]+output|pulumi[ \t]+config[ \t]+get"
    rb"|config:get|printenv|getenv|gh[ \t]+auth[ \t]+token|npm[ \t]+token|initial-password"
    rb"|openssl[ \t]+rand|pwgen|apg\b|genpass|token_(?:hex|urlsafe|bytes)|rails[ \t]+secret"
    rb"|key:generate|genkey|genpsk|urandom|randomBytes|auth[ \t]+secret|dumpprivkey|generate_secret"
    rb"|mkpasswd|makepasswd|xkcdpass|age-keygen|generate-key|fernet|pwqgen|diceware|auth:token"
    rb"|auth[ \t]+token|oauth-token|tokens?[ \t]+create|create[ \t]+token|credentials:show"
    rb"|keepassxc-cli|systemd-creds[ \t]+cat|secrets?[ \t]+get|sops[ \t]+(?:-d|decrypt)"
    rb"|ansible-vault[ \t]+view|Evaluating:[ \t]+secrets\.)",
    re.IGNORECASE,
)
"""Commands that answer with a secret, or make one."""

_SHOWN = compile_later(
    rb"\b(?:cat|type|less|head|tail|echo|print|puts|p)\b|[\w\])]$", re.IGNORECASE
)
_LISTS = compile_later(
    rb"(?i)\bpubkey|\.pub\b|sha\d+sum|md5sum|list\b|status\b|\bwc\b"
    rb"|--grep|(?:^|[|;&$%#>][ \t]*)(?:ls|grep|rg|find|git|diff|openssl[ \t]+dgst)\b(?!-)"
)
_LABEL = compile_later(
    rb"(?i)\b(?:passw(?:or)?d|passphrase|passcode|pass|pwd|secret|tokens?|credentials?"
    rb"|(?:api|access|private|secret|master|root|license|unseal|recovery|encryption)[ _\-]?key)\b"
)
_HEX = compile_later(r"^[0-9a-fA-F]+$")
_FEW_WORDS = 5
_ROWS = 40
_TABLE_BYTES = 6_000
_HEAD_BYTES = 800
"""So far above the rule of a table its head starts."""

_CELL = b" \t\"'`*"
_BARS = compile_later(rb"\||\xe2\x94\x82|\xe2\x94\xac|\xe2\x94\xbc")
_LINE_CHARS = b" \t-+|:\xe2\x94\x80\x82\x8c\x90\x98\xac\xb4\xbc\xa4\x9c\xa0"
_HEADING = compile_later(rb"^[A-Za-z][\w \-/()]{0,30}$")


def has_lines(text: str) -> bool:
    """Tell whether a text has a line that another one could explain."""
    return text.find("\n", 0, -1) >= 0 or "\\n" in text


def find_lines(data: bytes, at: int = 0) -> Iterator[Span]:
    """Yield the secrets that another line of the text gives away, from some place on."""
    if data.find(b"\n", at, -1) < 0 and b"\\n" not in data:
        return
    while (head := _LOOSE.search(data, at)) is not None:
        nameless = _is_nameless(data, *head.span())
        if nameless or (found := _LINES.match(data, head.start())) is None:
            at = _behind_break(data, *head.span())
            continue
        index = found.lastindex
        start, at = found.span(index)
        for span in _JUDGES[_NAMES[index]](data, start, at):
            yield span
            at = max(at, span[1])


def _is_nameless(data: bytes, start: int, end: int) -> bool:
    """Tell whether what starts at a break is a lone value that nothing before it can name."""
    if data[start] not in b"\r\n\\" or data.find(b"---", start, end) >= 0:
        return False
    return _HINT.search(data[max(0, start - _BACK) : end]) is None


def _behind_break(data: bytes, start: int, end: int) -> int:
    slashes = end - start - len(data[start:end].lstrip(b"\\"))
    return start + max(1, slashes)


def _alone(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge a value that is alone on its line, by the line before it."""
    text = data[start : min(end, start + 256)].decode("utf-8", "replace").rstrip(".:")
    if text.startswith(_PATHS) or not is_striking(text):
        return
    label = _line_before(data, start)
    if label and _is_answer(label, text):
        yield start, start + len(text.encode()) if end - start <= 256 else end, "secret"


def _line_before(data: bytes, start: int) -> bytes:
    """Return the last line before a place that says something."""
    lines = _SPLIT.split(data[max(0, start - _BACK) : start].rpartition(b"\0")[2])[:-1]
    for line in reversed(lines[-4:]):
        if not _FENCE.match(line):
            return _UNNUMBERED.sub(b"", line).strip()
    return b""


def _is_answer(label: bytes, text: str) -> bool:
    asked = _ASKED.search(label)
    prompt = _PROMPT.search(label)
    if asked and not _LISTS.search(label):
        return (
            secret_values.is_random(text)
            or is_plain_secret(text)
            or fits("password", text, bare=True)
        )
    if prompt and _LABEL_WORD.search(label) and not _LISTS.search(label):
        names = re.findall(rb"[\w.\-]+", prompt.group(1))
        said = names[-2:] if len(names) == 1 else names[1:][-2:]
        named = any(classify(_ENDING.sub(b"", name).decode("latin-1")) for name in said)
        shown = named and _SHOWN.search(prompt.group(1))
        return bool(shown) and (is_plain_secret(text) or fits("password", text, bare=True))
    labelled = _LABEL.search(label) or FOREIGN_NAME.search(label)
    if prompt or not labelled or speaks_of_other(label):
        return False
    if label.endswith((b":", b"\xef\xbc\x9a", b":**", b"</b>")):
        return is_named_password(text) or fits("password", text, bare=True)
    few = len(label.split()) <= _FEW_WORDS and not _LISTS.search(label)
    return few and not _HEX.match(text) and is_plain_secret(text)


_LABEL_WORD = compile_later(rb"(?i)passw|secret|token|key|credential|pwd|pass\b|\bpw\b")
_ENDING = compile_later(rb"\.(?:txt|secret|key|env|dat|conf|pass|pw|token)$")


def _rule(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge a table of bars: the head stands above the rule, or between two of them."""
    breaks = list(_SPLIT.finditer(data, max(0, start - _HEAD_BYTES), start))
    first = breaks[-2].end() if len(breaks) > 1 else max(0, start - _HEAD_BYTES)
    if not _LABEL_WORD.search(data, first, end + _HEAD_BYTES):
        return
    columns: dict[int, NameKind] = {}
    for low, high in _lines(data, first, first + _TABLE_BYTES):
        cells = list(_cells(data, low, high, _BARS))
        if not columns:
            columns = _secret_columns([data[a:b] for a, b in cells])
            if low > end and not columns:
                return
            continue
        if len(cells) < 2 and low > end:
            return
        yield from _column_values(data, cells, columns)


def _head(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge rows whose first line names the columns, with commas, semicolons or tabs between."""
    joint = re.compile(re.escape(data[start : start + 1]))
    first = max(data.rfind(b"\n", max(0, start - 400), start) + 1, max(0, start - 400))
    escaped = data.rfind(b"\\n", first, start)
    first = escaped + 2 if escaped >= 0 else first
    columns: dict[int, NameKind] = {}
    for low, high in _lines(data, first, end + _TABLE_BYTES):
        cells = list(_cells(data, low, high, joint))
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


def _column(data: bytes, start: int, end: int) -> Iterator[Span]:
    """Judge the last column of rows that are lined up by spaces."""
    name = data[start:end].strip().removesuffix(b"\\n").strip().decode("latin-1")
    kind = classify(name)
    if not kind:
        return
    for low, high in _lines(data, end, end + _TABLE_BYTES):
        words = data[low:high].split()
        if len(words) < 2:
            return
        text = words[-1].decode("utf-8", "replace")
        if is_plain_secret(text):
            at = data.rfind(words[-1], low, high)
            yield at, at + len(words[-1]), told(kind)


def _lines(data: bytes, start: int, limit: int) -> Iterator[tuple[int, int]]:
    limit = min(limit, len(data))
    at = start
    for _ in range(_ROWS):
        found = _SPLIT.search(data, at, limit)
        if found is None:
            if at < limit:
                yield at, limit
            return
        yield at, found.start()
        at = found.end()


def _cells(data: bytes, low: int, high: int, joint: re.Pattern[bytes]) -> Iterator[tuple[int, int]]:
    """Yield where the cells of a row are, without what surrounds their text."""
    at = low
    edges = [match.span() for match in joint.finditer(data, low, high)]
    for start, end in [*edges, (high, high)]:
        cell = data[at:start]
        left = at + len(cell) - len(cell.lstrip(_CELL))
        yield left, max(left, at + len(cell.rstrip(_CELL)))
        at = end


def _secret_columns(texts: list[bytes]) -> dict[int, NameKind]:
    columns: dict[int, NameKind] = {}
    for index, text in enumerate(texts):
        name = text.strip(_LINE_CHARS).decode("latin-1")
        kind = classify(name.replace(" ", "_")) if 0 < len(name) < 40 else ""
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
        named = kind == "password" and is_named_password(text)
        if named or is_plain_secret(text) or (is_striking(text) and fits(kind, text, bare=True)):
            yield start, end, told(kind)


_JUDGES: dict[str, Callable[[bytes, int, int], Iterator[Span]]] = {
    "alone": _alone, "rule": _rule, "head": _head, "column": _column,
}  # fmt: skip
