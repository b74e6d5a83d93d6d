"""Statements: split text into sentences with their heading, list and neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from lore.text import sentences
from lore.text.regex import PatternFile

_re = PatternFile("statements")

READ_CHARS = 60_000
"""Characters of one text that are split; what follows is a document, not dialogue."""

LINE_CHARS, LONGEST_CHARS = 4_000, 1_500
"""Characters read of one line, and of one sentence; longer ones are data."""

CODE_LINES = 3
"""A code block up to this length may belong to the line before it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence: `lead` introduces its list, `before` precedes it."""

    text: str
    heading: str = ""
    lead: str = ""
    before: str = ""
    is_item: bool = False
    code: str = ""
    language: str = ""


def split_statements(text: str, *, by_line: bool = False) -> list[Statement]:
    """Return the sentences of a text without code, quotes, tables and emphasis, in order.

    With `by_line` a sentence ends with its line, as people type it.
    """
    statements: list[Statement] = []
    heading = lead = ""
    for block in _blocks(text[:READ_CHARS], by_line=by_line):
        if block.kind == "heading":
            heading, lead = strip_markup(block.text).rstrip(":"), ""
        elif block.kind == "code":
            if statements and block.text.count("\n") < CODE_LINES:
                statements[-1] = replace(statements[-1], code=block.text, language=block.language)
        else:
            is_item = block.kind == "item"
            lead = lead if is_item else ""
            before = ""
            for sentence in sentences.split_sentences(strip_markup(block.text), typed=by_line):
                if len(sentence) > LONGEST_CHARS:
                    continue
                statements.append(Statement(sentence, heading, lead, before, is_item))
                before = sentence
            if not is_item and before.endswith(":"):
                lead = before
    return statements


@dataclass(frozen=True, slots=True)
class _Block:
    kind: str
    text: str
    language: str = ""


def _blocks(text: str, *, by_line: bool) -> Iterator[_Block]:
    """Yield headings, paragraphs, items and code blocks, without quotes and tables."""
    collected: list[str] = []
    kind = "prose"
    lines = (line[:LINE_CHARS] for line in text.splitlines())
    for line in lines:
        fence = _re.fence.match(line)
        item = _re.item.match(line)
        heading = _re.heading.match(line) or _re.bold_heading.match(line)
        starts = fence or item or heading or by_line or not line.strip()
        if starts or _re.quote.match(line) or _re.table.match(line):
            if collected:
                yield _Block(kind, " ".join(collected))
            collected, kind = [], "prose"
        if fence:
            yield _Block("code", "\n".join(_fenced(lines, fence[1])), fence[2].lower())
        elif heading:
            yield _Block("heading", heading[1])
        elif item:
            collected, kind = [item[3].strip()], "item"
        elif line.strip() and not _re.quote.match(line) and not _re.table.match(line):
            collected.append(line.strip())
    if collected:
        yield _Block(kind, " ".join(collected))


def _fenced(lines: Iterator[str], fence: str) -> Iterator[str]:
    for line in lines:
        if line.strip().startswith(fence):
            return
        yield line


def strip_markup(text: str) -> str:
    """Return a text on one line without emphasis and link addresses.

    Code keeps its backticks, and nothing inside code, names, paths, patterns and tags changes.
    """
    if "*" in text or "](" in text:
        text = _without_emphasis(_without_emphasis(text))  # one may enclose another
    return _re.space_or_code.sub(lambda match: match["code"] or " ", text).strip()


def _without_emphasis(text: str) -> str:
    masked = _re.ticked.sub(lambda code: "\x01" * len(code.group()), text)
    marks: list[tuple[int, int]] = []
    for markup in (*_re.emphasis.finditer(masked), *_re.link.finditer(masked)):
        marks += [(markup.start(), markup.start("inner")), (markup.end("inner"), markup.end())]
    for start, end in sorted(marks, reverse=True):
        text = text[:start] + text[end:]
    return text


def strip_opening(sentence: str) -> str:
    """Return a sentence without its leading interjections and conjunctions."""
    text = _re.joined.sub("", _re.opening.sub("", sentence.strip()))
    return text[:1].upper() + text[1:] if text != sentence else sentence


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence can be understood without the one before it."""
    return not _re.pointing.search(sentence)


def is_proposal(text: str) -> bool:
    """Return whether a sentence only proposes something: it does not say what holds."""
    return bool(_re.proposal.search(text))


def is_whole(text: str) -> bool:
    """Return whether a sentence is complete: it ends, and brackets and quotes are balanced."""
    return (
        not _re.cut_off.search(text)
        and text.count("(") == text.count(")")
        and text.count("`") % 2 == 0
        and text.count('"') % 2 == 0
        and text.count("“") == text.count("”")
        and text.count("[") == text.count("]")
    )
