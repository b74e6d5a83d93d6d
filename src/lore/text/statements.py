"""Statements: split text into statements with context, and find assertions in questions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from lore.text import sentences
from lore.text.regex import compile_lazy

READ_CHARS = 60_000
"""Characters of one text that are split; what follows is a document, not dialogue."""

LINE_CHARS, LONGEST_CHARS = 4_000, 1_500
"""Characters read of one line, and of one sentence; longer ones are data."""

CODE_LINES = 3
"""A code block up to this length may belong to the line before it."""

_FENCE = compile_lazy(r"^[ \t]*(```|~~~)[ \t]*([\w+-]*)[^\n]*$")
_HEADING = compile_lazy(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*$")
_BOLD_HEADING = compile_lazy(r"^\s*\*\*([^*]{2,80}?):?\*\*:?\s*$")
_ITEM = compile_lazy(r"^(\s*)(?:[-*•+]|(\d{1,3})[.)])\s+(?:\[[ xX]\]\s+)?(.*)$")
_QUOTE = compile_lazy(r"^\s*>")
_TABLE = compile_lazy(r"^\s*\|.*\|\s*$|^\s*[│┌├└╭╰─━═=+-]{3,}")
_EMPHASIS = compile_lazy(r"\*\*\*?|(?<![\w`*])[*_](?=\S)|(?<=\S)[*_](?![\w`*])|~~")
_TICKED = compile_lazy(r"`[^`\n]+`")
_LINK = compile_lazy(r"!?\[([^\]\n]{1,200})\]\((?:[^()\s]{1,400})\)")


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
        fence = _FENCE.match(line)
        item = _ITEM.match(line)
        heading = _HEADING.match(line) or _BOLD_HEADING.match(line)
        starts = fence or item or heading or by_line or not line.strip()
        if starts or _QUOTE.match(line) or _TABLE.match(line):
            if collected:
                yield _Block(kind, " ".join(collected))
            collected, kind = [], "prose"
        if fence:
            yield _Block("code", "\n".join(_fenced(lines, fence[1])), fence[2].lower())
        elif heading:
            yield _Block("heading", heading[1])
        elif item:
            collected, kind = [item[3].strip()], "item"
        elif line.strip() and not _QUOTE.match(line) and not _TABLE.match(line):
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
    for code in _TICKED.finditer(text):
        pieces += [_unmarked(text[at : code.start()]), code.group()]
        at = code.end()
    pieces.append(_unmarked(text[at:]))
    return " ".join("".join(pieces).split())


def _unmarked(text: str) -> str:
    return _EMPHASIS.sub("", _LINK.sub(r"\1", text))


_ASKING = r"""(?:
    (?:can|could|would|will|should|shall|do|does|did|is|are|am|was|were|has|have|may)\ (?:you|i
          |we|it|there
        |this|that|these|those|they|he|she|my|the|anyone|someone)\b
  | (?:what|how|why)(?:'s|’s|\b(?:\ \w+){0,3}?\ (?:is|are|do|does|did|can|could|should|would
        |will|might|to|about|if|it|you|i)\b)
  | (?:which|who|where|when)\ (?:\w+\ ){0,2}?(?:is|are|do|does|did|can|could|should|would|will)
        \ (?:you|i|we|the|my|it)\b
  | (?:i'm|i\ am|we're|i’m|i\ was|i've\ been)\ (?:(?:just|also|kinda|really|a\ bit|still|now|kind
        \ of|so|not|pretty|a\ little|currently)\ )*(?:wondering|sure|unsure|curious|hoping\ (?:you
        |to\ get|for)|looking\ for\ (?:some|advice|help|tips|ways|suggestions|your)|certain
        |thinking\ if|asking|trying\ to\ (?:figure|decide|understand|see
        |determine|think|process))\b
  | (?:i|we)\ (?:wonder|wanna\ know|just\ want\ to\ know)\b
  | (?:i|we)(?:'d|’d)?\ (?:need|want|could\ use|would\ like|like|would\ love|would\ appreciate
        |appreciate)\ (?:to\ know|to\ understand|to\ see\ if|(?:some\ |your\ |a\ |any\ |more\ )*
        (?:help|advice|tips|guidance|suggestions?|thoughts|feedback|input|recommendations?|hand
        |clarification|you))\b
  | i\ (?:don't|do\ not|don’t)\ (?:really\ )?(?:know|understand|get)\ (?:how|if|what|whether|why
        |where|which)\b
  | (?:any|please|pls|plz|kindly|help\ me|let\ me\ know|tell\ me|give\ me|show\ me|lemme\ know
        |maybe\ you|thanks|thank\ you|right\?|correct\?|you\ know,\ )\b
  | (?:here's|here\ is|here\ are|this\ is)\ (?:my|the|what|an|some|our)\b
)"""
_ASK = compile_lazy(
    rf"(?:^|[,;:—–]\ |\ -\ |\ (?=(?:and|but|so|or)\ ))(?:(?:and|but|so|or|then|now|also|well"
    rf"|plus|because|since),?\ )*{_ASKING}",
    re.IGNORECASE | re.VERBOSE,
)
_OPENING = compile_lazy(
    r"""^(?:(?:hm+|ok(?:ay)?(?:\ cool)?|oh|ah|sure(?:\ thing)?|got\ it|great|cool|nice|perfect
        |awesome|thanks(?:\ (?:so\ much|a\ lot|again|for[^,.!]{1,80}))?|thank\ you[^,.!]{0,60}
        |yes|yeah|yep|yup|yea|no\ worries|right|alright|sounds\ (?:good|great)|well|wow|hey|hi
        |hello|haha|lol|btw|by\ the\ way|anyway|also|and|but|so|plus|absolutely|definitely
        |exactly|totally|for\ sure|of\ course|true|good\ (?:question|idea|point)|um+|ooh|aw+
        |you\ know|honestly|actually)
        (?:,?\ (?!I\b)[A-Z][a-z]+)?\s*[,.!:;…-]+\s*)+""",
    re.IGNORECASE | re.VERBOSE,
)
_JOINED = compile_lazy(
    r"^(?:and|but|so|also|plus|then|because|or|though|given that|considering that)\s+",
    re.IGNORECASE,
)
_GIVEN = compile_lazy(
    r"\b(?:considering|given|since|because|now\ that|especially\ since|seeing\ as)\ (?:that\ )?"
    r"(?=(?:I(?:'m|'ve|’m|’ve)?|we(?:'re|'ve)?|my|our|[A-Z][a-z]+)\b)".replace("\\ ", " ")
)
_OWN_CLAUSE = compile_lazy(
    r",? (?:and|but|especially since|since|because|as) (?=(?:I(?:'ve| have| had| already| just"
    r"| also| chose| prefer| prioritize| recently| met| got| aim| plan| set| took| made)"
    r"|my \w+ (?:is"
    r"|are|was|has)|we(?:'ve| have| had))\b)"
)
"""Where a question goes on with a statement of the person's own."""

_TRAILING = compile_lazy(
    r"(?:[\s,;:—–-]| (?:and|but|so|or|because|since|which|that)(?=[\s,;:—–-]|$))+$"
)
_THINKING = compile_lazy(r",? and I(?: was|'m| am|'ve been) (?:just )?(?:thinking|wondering)$")
_CUT_OFF = compile_lazy(
    r"\b(?:either|neither|to|with|the|a|an|of|like|for|in|on|at|from|by|than|is|are|was|if|when|as"
    r"|my|our|this|these|about|into|whether|including|such)\s*[.:]?$",
    re.IGNORECASE,
)
_QUESTION_START = compile_lazy(
    r"^(?:what|how|why|which|who|whose|where|when|can|could|would|will|should|shall|do|does|did|is"
    r"|are|am|was|were|has|have|any|may|might)\b",
    re.IGNORECASE,
)
_MARK_TAIL = compile_lazy(r"\s*->->\s*[\d, ]*\)?\s*$")

_POINTING = compile_lazy(
    r"""^(?:(?:and|but|so|also|then)\s+)?(?:this|that|these|those|it|they|he|she|him|her|them
        |its|their|his|both|neither|same|such|either|one|which|there|here|the\ same
        |the\ (?:first|second|third|last|latter|former|other|next|above|following|only|current
        |new|old|same))\b
      | \b(?:(?:the|as)\ (?:above|below|aforementioned|following)|listed\ above|see\ below
        |(?:option|approach|step|comment|item|point|issue|finding|suggestion|problem|choice)
        \ (?:\#?\d|[A-C]\b)|\#\d\b|(?:these|those)\ (?:changes|two|three|files|tests|lines
        |functions|issues|steps|options|fixes|comments|errors)
        |this\ (?:one|change|issue|fix|approach|way|function|file|code|test|pr|plan|case|part
        |error|problem|bug|branch|commit|line|method|package|point|repo|session|pattern|is|was
        |stuff|thing|time|in|to|and|but|for|would|will|means|field|check|step|logic|behaviou?r
        |feature|command|value|path|block|section|task|project|work|idea)
        |(?:that|the)\ (?:one|part|thing|stuff|other\ one))\b
      | \b(?:do|did|does|doing|like|about|with|of|for|on|from|at|than|and|fix|use|using|see
        |love|enjoy|try|tried|need|want|make|made|handle|handles)
        \ (?:this|that|it|them|these|those)\s*(?:[.,;!?:)]|$)""",
    re.IGNORECASE | re.VERBOSE,
)


def assertion_part(sentence: str) -> str:
    """Return the part of a person's sentence that asserts something; empty if it only asks."""
    text = strip_opening(_MARK_TAIL.sub("", sentence))
    ask = _ASK.search(text)
    if ask is None and not text.rstrip().endswith("?"):
        return _tidy(text)
    head = _tidy(text[: ask.start()]) if ask else ""
    if head and not _QUESTION_START.match(head):
        return head
    own = _OWN_CLAUSE.search(text, ask.end() if ask else 0)
    reason = _GIVEN.search(text)
    start = min((match.end() for match in (own, reason) if match), default=None)
    return "" if start is None else _clause(text[start:])


def assertion_after_question(sentence: str) -> str:
    """Return what a sentence asserts after its question, if anything.

    'I moved here in May, can you help me, since I sold my car?' asserts two things.
    """
    text = strip_opening(_MARK_TAIL.sub("", sentence))
    ask = _ASK.search(text)
    head = assertion_part(sentence) if ask and ask.start() else ""
    if ask is None or not head or not text.startswith(head[:1]) or head not in text[: ask.start()]:
        return ""
    clauses = (_OWN_CLAUSE.search(text, ask.end()), _GIVEN.search(text, ask.end()))
    start = min((one.end() for one in clauses if one), default=None)
    clause = "" if start is None else _clause(text[start:])
    if not clause or _VERBLESS.match(clause):
        return ""
    return f"{head}. {clause}" if _ELSEWHERE.search(clause) else clause


_VERBLESS = compile_lazy(
    r"^(?:my|our)\b(?!(?:\s[\w'’-]+){1,6}?\s(?:is|are|was|were|has|have|had|will|can|\w+ed)\b)",
    re.IGNORECASE,
)
_ELSEWHERE = compile_lazy(
    r"^(?:(?!(?-i:[A-Z])[a-z]{2})[\w'’$%,.-]+\s){0,8}?(?:his|her|him|their|them|he|she|they|it)\b",
    re.IGNORECASE,
)
"""A clause that refers to someone whom only the first half names."""


def question_day(sentence: str) -> str:
    """Return the day that only the question of a sentence names, with its event."""
    text = strip_opening(sentence)
    ask = _ASK.search(text)
    if ask is None or _DAY.search(text[: ask.start()]):
        return ""
    day = _ON_DAY.search(text, ask.end())
    return day.group().strip() if day else ""


_DAY = compile_lazy(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"\s\d|\b\w+day\b"
)
_ON_DAY = compile_lazy(
    r"\b(?:my|our)\s(?:[\w'’-]+\s){1,3}on\s(?:January|February|March|April|May|June|July|August"
    r"|September|October|November|December)\s\d{1,2}(?:,\s\d{4})?(?:\sat\s\d[\d:]*\s?[AaPp][Mm])?"
)


def _clause(text: str) -> str:
    """Return a clause of a question up to the next question."""
    inner = _ASK.search(text)
    clause = _tidy(text[: inner.start()] if inner else text)
    return "" if _QUESTION_START.match(clause) else clause


def strip_opening(sentence: str) -> str:
    """Return a sentence without its leading interjections and conjunctions."""
    text = _OPENING.sub("", sentence.strip())
    text = _JOINED.sub("", text)
    return text[:1].upper() + text[1:] if text else ""


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence can be understood without the one before it."""
    return not _POINTING.search(sentence)


def is_whole(text: str) -> bool:
    """Return whether a sentence is complete: it ends, and brackets and quotes are balanced."""
    return (
        not _CUT_OFF.search(text)
        and text.count("(") == text.count(")")
        and text.count("`") % 2 == 0
        and text.count('"') % 2 == 0
        and text.count("“") == text.count("”")
        and text.count("[") == text.count("]")
    )


def _tidy(text: str) -> str:
    text = _TRAILING.sub("", _THINKING.sub("", text.strip().rstrip("?")))
    return text[:1].upper() + text[1:] if text else ""
