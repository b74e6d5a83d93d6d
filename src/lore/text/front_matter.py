"""Front matter of Markdown files: the part of YAML that agents write, parsed without ever failing.

It is no YAML parser: people and models write front matter by hand, with colons and quotes that a
strict parser refuses, and one broken line must not lose the file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lore.text.regex import compile_lazy

_MAX_LINES = 400
"""Front matter is a few lines; a file whose second rule comes later has none."""

_MAX_DEPTH = 6
"""Nested tables below this depth are skipped, and nested brackets stay text."""

_KEY = compile_lazy(
    r"^(?P<key>[^\s:#\-\[\]{}\"'][^:#]{0,99}?|\"[^\"]{1,99}\"|'[^']{1,99}')\s*:(?:\s+|$)"
)
_BLOCK = compile_lazy(r"^[|>](?P<indent>[1-9]?)(?P<chomp>[+-]?)[1-9]?\s*(?:#.*)?$")
_COMMENT = compile_lazy(r"\s#.*$")


class FrontMatter(NamedTuple):
    """The fields of a file, its body, and the line on which the body begins, from 1."""

    fields: dict[str, Any]
    body: str
    line: int


class _Line(NamedTuple):
    """A line: its indentation, and its text without it."""

    indent: int
    text: str


def parse(text: str) -> FrontMatter:
    """Return the fields and the body of a file; a file without front matter is all body.

    Front matter without an end goes up to the first line that is neither a field nor part of one.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next((place for place, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != "---":
        return FrontMatter({}, "\n".join(lines), 1)
    ends = range(first + 1, min(len(lines), first + _MAX_LINES))
    end = next((place for place in ends if lines[place].rstrip() in ("---", "...")), None)
    last = end if end is not None else _end_of_fields(lines, first + 1)
    start = last + 1 if end is not None else last
    fields = _Parser([_split(line) for line in lines[first + 1 : last]]).parse_table(0)
    if not fields and any(line.strip() for line in lines[first + 1 : last]):
        return FrontMatter({}, "\n".join(lines), 1)  # the rule is a part of the text
    return FrontMatter(fields, "\n".join(lines[start:]), start + 1)


def _end_of_fields(lines: list[str], start: int) -> int:
    """Return where fields end in a file whose front matter is never closed."""
    last = min(len(lines), start + _MAX_LINES)
    for place in range(start, last):
        line = lines[place]
        is_field = _KEY.match(line) or (line.startswith((" ", "\t")) and line.strip())
        if not is_field:
            return place
    return last


def _split(line: str) -> _Line:
    text = line.expandtabs(2)
    bare = text.lstrip(" ")
    return _Line(len(text) - len(bare), bare.rstrip())


class _Parser:
    """Reads lines from the top; every method leaves `_at` behind what it consumed."""

    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._at = 0

    def parse_table(self, indent: int, depth: int = 0) -> dict[str, Any]:
        """Return the fields at this indentation or deeper; lines that are no field are skipped."""
        table: dict[str, Any] = {}
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text and line.indent < indent:
                break
            self._at += 1
            key = _KEY.match(line.text) if line.text and not line.text.startswith("#") else None
            if key is None:
                continue
            name = key["key"].strip("\"'").strip()
            table[name] = self._parse_value(line.text[key.end() :], line.indent, depth)
        return table

    def _parse_value(self, rest: str, indent: int, depth: int) -> Any:
        rest = rest.strip()
        block = _BLOCK.match(rest)
        if block:
            return self._parse_block(indent, rest[0], block["chomp"])
        if rest and not rest.startswith("#"):
            return _scalar(self._join_continuation(rest, indent))
        return self._parse_nested(indent, depth)

    def _join_continuation(self, rest: str, indent: int) -> str:
        """Return a plain or quoted text with the deeper lines that continue it."""
        parts = [rest]
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.text or line.indent <= indent:
                break
            parts.append(line.text)
            self._at += 1
        return " ".join(parts)

    def _parse_nested(self, indent: int, depth: int) -> Any:
        """Return the table or list below a field, or None."""
        places = range(self._at, len(self._lines))
        following = next((self._lines[at] for at in places if self._lines[at].text), None)
        if following is None:
            return None
        if following.text.startswith(("- ", "-")) and following.indent >= indent:
            return self._parse_list(following.indent)
        if following.indent <= indent:
            return None
        if depth >= _MAX_DEPTH:
            self._join_continuation("", indent)
            return None
        if _KEY.match(following.text):
            return self.parse_table(following.indent, depth + 1)
        return _scalar(self._join_continuation("", indent).strip())

    def _parse_list(self, indent: int) -> list[Any]:
        listed: list[Any] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text and (line.indent < indent or not line.text.startswith("-")):
                break
            self._at += 1
            if line.text:
                listed.append(_scalar(self._join_continuation(line.text[1:].strip(), indent)))
        return listed

    def _parse_block(self, indent: int, style: str, chomp: str) -> str:
        """Return a block scalar: `|` keeps line breaks, `>` folds them."""
        lines: list[_Line] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.text and line.indent <= indent:
                break
            lines.append(line)
            self._at += 1
        margin = min((line.indent for line in lines if line.text), default=0)
        rows = [" " * (line.indent - margin) + line.text if line.text else "" for line in lines]
        text = "\n".join(rows) if style == "|" else _fold(rows)
        return text if chomp == "+" else text.rstrip("\n")


def _fold(rows: list[str]) -> str:
    """Return rows as paragraphs: a line break becomes a space, an empty line a line break."""
    paragraphs: list[list[str]] = [[]]
    for row in rows:
        if row.strip():
            paragraphs[-1].append(row)
        else:
            paragraphs.append([])
    return "\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)


def _scalar(text: str, depth: int = 0) -> Any:
    """Return the value of a scalar or of a list in brackets; numbers stay texts."""
    if text[:1] in ("'", '"'):
        quote = text[0]
        end = text.rfind(quote)
        bare = text[1:end] if end > 0 else text[1:]
        return bare.replace("''", "'") if quote == "'" else _unescape(bare)
    text = _COMMENT.sub("", text).strip()
    if depth < _MAX_DEPTH and text.startswith("[") and text.endswith("]"):
        return [_scalar(each.strip(), depth + 1) for each in text[1:-1].split(",") if each.strip()]
    if text in ("true", "True"):
        return True
    if text in ("false", "False"):
        return False
    return None if text in ("null", "~", "") else text


def _unescape(text: str) -> str:
    escapes = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}
    pieces = text.split("\\\\")
    for place, piece in enumerate(pieces):
        first, *others = piece.split("\\")
        pieces[place] = first + "".join(
            escapes.get(each[:1], "\\" + each[:1]) + each[1:] for each in others
        )
    return "\\".join(pieces)
