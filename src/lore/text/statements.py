"""Statements: a text cut into its sentences, each with what it stands under and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lore.text import sentences
from lore.text.later import compile_later

READ_CHARS = 60_000
"""Of one text, so much is cut; what comes later is a document, not talk."""

LINE_CHARS, LONGEST_CHARS = 4_000, 1_500
"""Of one line so much is read; a longer sentence is data that nobody wrote as one."""

CODE_LINES = 3
"""A block of code up to so long may be what the line before it announces."""

_FENCE = compile_later(r"^[ \t]*(```|~~~)[ \t]*([\w+-]*)[^\n]*$")
_HEADING = compile_later(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
_BOLD_HEADING = compile_later(r"^\s*\*\*([^*]{2,80}?):?\*\*:?\s*$")
_ITEM = compile_later(r"^(\s*)(?:[-*•+]|(\d{1,3})[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_QUOTE = compile_later(r"^\s*>")
_TABLE = compile_later(r"^\s*\|.*\|\s*$|^\s*[│┌├└╭╰─━═=+-]{3,}")
_EMPHASIS = compile_later(r"\*\*\*?|(?<![\w`*])[*_](?=\S)|(?<=\S)[*_](?![\w`*])|~~")
_TICKED = compile_later(r"`[^`\n]+`")
_LINK = compile_later(r"!?\[([^\]\n]{1,200})\]\((?:[^()\s]{1,400})\)")


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence: `lead` introduces the list it is an item of, `before` stands before it."""

    text: str
    heading: str = ""
    lead: str = ""
    before: str = ""
    is_item: bool = False
    code: str = ""
    language: str = ""


def cut(text: str, *, by_line: bool = False) -> list[Statement]:
    """Return the sentences of a text without code, quotes, tables and emphasis, in order.

    People end a sentence with the line where agents wrap it: `by_line` is for them.
    """
    found: list[Statement] = []
    heading = lead = ""
    for block in _blocks(text[:READ_CHARS], by_line=by_line):
        if block.kind == "heading":
            heading, lead = _plain(block.text).rstrip(":"), ""
        elif block.kind == "code":
            if found and block.text.count("\n") < CODE_LINES:
                found[-1] = replace(found[-1], code=block.text, language=block.language)
        else:
            is_item = block.kind == "item"
            lead = lead if is_item else ""
            before = ""
            for sentence in sentences.cut(_plain(block.text), typed=by_line):
                if len(sentence) > LONGEST_CHARS:
                    continue
                found.append(Statement(sentence, heading, lead, before, is_item))
                before = sentence
            if not is_item and before.endswith(":"):
                lead = before
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    text: str
    language: str = ""


def _blocks(text: str, *, by_line: bool) -> Iterator[_Block]:
    """Yield headings, paragraphs, items and blocks of code; quotes and tables are left out."""
    kept: list[str] = []
    kind = "prose"
    lines = (line[:LINE_CHARS] for line in text.splitlines())
    for line in lines:
        fence = _FENCE.match(line)
        item = _ITEM.match(line)
        heading = _HEADING.match(line) or _BOLD_HEADING.match(line)
        starts = fence or item or heading or by_line or not line.strip()
        if starts or _QUOTE.match(line) or _TABLE.match(line):
            if kept:
                yield _Block(kind, " ".join(kept))
            kept, kind = [], "prose"
        if fence:
            yield _Block("code", "\n".join(_fenced(lines, fence[1])), fence[2].lower())
        elif heading:
            yield _Block("heading", heading[1])
        elif item:
            kept, kind = [item[3].strip()], "item"
        elif line.strip() and not _QUOTE.match(line) and not _TABLE.match(line):
            kept.append(line.strip())
    if kept:
        yield _Block(kind, " ".join(kept))


def _fenced(lines: Iterator[str], fence: str) -> Iterator[str]:
    for line in lines:
        if line.strip().startswith(fence):
            return
        yield line


def _plain(text: str) -> str:
    """Return a text without emphasis and the addresses of links; code keeps its backticks."""
    pieces: list[str] = []
    at = 0
    for code in _TICKED.finditer(text):
        pieces += [_unmarked(text[at : code.start()]), code.group()]
        at = code.end()
    pieces.append(_unmarked(text[at:]))
    return " ".join("".join(pieces).split())


def _unmarked(text: str) -> str:
    return _EMPHASIS.sub("", _LINK.sub(r"\1", text))
