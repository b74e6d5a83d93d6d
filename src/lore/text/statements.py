"""Statements: split text into statements with context, and find assertions in questions."""

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
            heading, lead = _plain(block.text).rstrip(":"), ""
        elif block.kind == "code":
            if statements and block.text.count("\n") < CODE_LINES:
                statements[-1] = replace(statements[-1], code=block.text, language=block.language)
        else:
            is_item = block.kind == "item"
            lead = lead if is_item else ""
            before = ""
            for sentence in sentences.split_sentences(_plain(block.text), typed=by_line):
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


def _plain(text: str) -> str:
    """Return a text without emphasis and link addresses; code keeps its backticks."""
    pieces: list[str] = []
    at = 0
    for code in _re.ticked.finditer(text):
        pieces += [_unmarked(text[at : code.start()]), code.group()]
        at = code.end()
    pieces.append(_unmarked(text[at:]))
    return " ".join("".join(pieces).split())


def _unmarked(text: str) -> str:
    return _re.emphasis.sub("", _re.link.sub(r"\1", text))


def assertion_part(sentence: str) -> str:
    """Return the part of a person's sentence that asserts something; empty if it only asks."""
    text = strip_opening(_re.mark_tail.sub("", sentence))
    ask = _re.ask.search(text)
    if ask is None and not text.rstrip().endswith("?"):
        return _tidy(text)
    head = _tidy(text[: ask.start()]) if ask else ""
    if head and not _re.question_start.match(head):
        return head
    own = _re.own_clause.search(text, ask.end() if ask else 0)
    reason = _re.given.search(text)
    start = min((match.end() for match in (own, reason) if match), default=None)
    return "" if start is None else _clause(text[start:])


def assertion_after_question(sentence: str) -> str:
    """Return what a sentence asserts after its question, if anything.

    'I moved here in May, can you help me, since I sold my car?' asserts two things.
    """
    text = strip_opening(_re.mark_tail.sub("", sentence))
    ask = _re.ask.search(text)
    head = assertion_part(sentence) if ask and ask.start() else ""
    if ask is None or not head or not text.startswith(head[:1]) or head not in text[: ask.start()]:
        return ""
    clauses = (_re.own_clause.search(text, ask.end()), _re.given.search(text, ask.end()))
    start = min((one.end() for one in clauses if one), default=None)
    clause = "" if start is None else _clause(text[start:])
    if not clause or _re.verbless.match(clause):
        return ""
    return f"{head}. {clause}" if _re.elsewhere.search(clause) else clause


def question_day(sentence: str) -> str:
    """Return the day that only the question of a sentence names, with its event."""
    text = strip_opening(sentence)
    ask = _re.ask.search(text)
    if ask is None or _re.day.search(text[: ask.start()]):
        return ""
    day = _re.on_day.search(text, ask.end())
    return day.group().strip() if day else ""


def _clause(text: str) -> str:
    """Return a clause of a question up to the next question."""
    inner = _re.ask.search(text)
    clause = _tidy(text[: inner.start()] if inner else text)
    return "" if _re.question_start.match(clause) else clause


def strip_opening(sentence: str) -> str:
    """Return a sentence without its leading interjections and conjunctions."""
    text = _re.opening.sub("", sentence.strip())
    text = _re.joined.sub("", text)
    return text[:1].upper() + text[1:] if text else ""


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence can be understood without the one before it."""
    return not _re.pointing.search(sentence)


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


def _tidy(text: str) -> str:
    text = _re.trailing.sub("", _re.thinking.sub("", text.strip().rstrip("?")))
    return text[:1].upper() + text[1:] if text else ""
