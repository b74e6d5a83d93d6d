"""What a person tells in a sentence, without what they ask, and whether it stands alone."""

from __future__ import annotations

import re

from lore.text.later import compile_later

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
_ASK = compile_later(
    rf"(?:^|[,;:—–]\ |\ -\ |\ (?=(?:and|but|so|or)\ ))(?:(?:and|but|so|or|then|now|also|well"
    rf"|plus|because|since),?\ )*{_ASKING}",
    re.IGNORECASE | re.VERBOSE,
)
_OPENING = compile_later(
    r"""^(?:(?:hm+|ok(?:ay)?(?:\ cool)?|oh|ah|sure(?:\ thing)?|got\ it|great|cool|nice|perfect
        |awesome|thanks(?:\ (?:so\ much|a\ lot|again|for[^,.!]{1,80}))?|thank\ you[^,.!]{0,60}
        |yes|yeah|yep|yup|yea|no\ worries|right|alright|sounds\ (?:good|great)|well|wow|hey|hi
        |hello|haha|lol|btw|by\ the\ way|anyway|also|and|but|so|plus|absolutely|definitely
        |exactly|totally|for\ sure|of\ course|true|good\ (?:question|idea|point)|um+|ooh|aw+
        |you\ know|honestly|actually)
        (?:,?\ (?!I\b)[A-Z][a-z]+)?\s*[,.!:;…-]+\s*)+""",
    re.IGNORECASE | re.VERBOSE,
)
_JOINED = compile_later(
    r"^(?:and|but|so|also|plus|then|because|or|though|given that|considering that)\s+",
    re.IGNORECASE,
)
_GIVEN = compile_later(
    r"\b(?:considering|given|since|because|now\ that|especially\ since|seeing\ as)\ (?:that\ )?"
    r"(?=(?:I(?:'m|'ve|’m|’ve)?|we(?:'re|'ve)?|my|our|[A-Z][a-z]+)\b)".replace("\\ ", " ")
)
_OWN_CLAUSE = compile_later(
    r",? (?:and|but|especially since|since|because|as) (?=(?:I(?:'ve| have| had| already| just"
    r"| also| chose| prefer| prioritize| recently| met| got| aim| plan| set| took| made)"
    r"|my \w+ (?:is"
    r"|are|was|has)|we(?:'ve| have| had))\b)"
)
"""Where a person who asks goes on to tell something of their own."""

_TRAILING = compile_later(
    r"(?:[\s,;:—–-]| (?:and|but|so|or|because|since|which|that)(?=[\s,;:—–-]|$))+$"
)
_THINKING = compile_later(r",? and I(?: was|'m| am|'ve been) (?:just )?(?:thinking|wondering)$")
_CUT_OFF = compile_later(
    r"\b(?:either|neither|to|with|the|a|an|of|like|for|in|on|at|from|by|than|is|are|was|if|when|as"
    r"|my|our|this|these|about|into|whether|including|such)\s*[.:]?$",
    re.IGNORECASE,
)
_QUESTION_START = compile_later(
    r"^(?:what|how|why|which|who|whose|where|when|can|could|would|will|should|shall|do|does|did|is"
    r"|are|am|was|were|has|have|any|may|might)\b",
    re.IGNORECASE,
)
_MARK_TAIL = compile_later(r"\s*->->\s*[\d, ]*\)?\s*$")

_POINTING = compile_later(
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


def told(sentence: str) -> str:
    """Return the part of a person's sentence that tells something; empty if it only asks."""
    text = strip_opening(_MARK_TAIL.sub("", sentence))
    ask = _ASK.search(text)
    if ask is None and not text.rstrip().endswith("?"):
        return _tidy(text)
    head = _tidy(text[: ask.start()]) if ask else ""
    if head and not _QUESTION_START.match(head):
        return head
    own = _OWN_CLAUSE.search(text, ask.end() if ask else 0)
    given = _GIVEN.search(text)
    start = min((found.end() for found in (own, given) if found), default=None)
    return "" if start is None else _clause(text[start:])


def behind(sentence: str) -> str:
    """Return what a sentence tells behind its question; empty if that is all told before it.

    'I moved here in May, can you help me, since I sold my car?' tells two things.
    """
    text = strip_opening(_MARK_TAIL.sub("", sentence))
    ask = _ASK.search(text)
    head = told(sentence) if ask and ask.start() else ""
    if ask is None or not head or not text.startswith(head[:1]) or head not in text[: ask.start()]:
        return ""
    found = (_OWN_CLAUSE.search(text, ask.end()), _GIVEN.search(text, ask.end()))
    start = min((one.end() for one in found if one), default=None)
    clause = "" if start is None else _clause(text[start:])
    if not clause or _VERBLESS.match(clause):
        return ""
    return f"{head}. {clause}" if _ELSEWHERE.search(clause) else clause


_VERBLESS = compile_later(
    r"^(?:my|our)\b(?!(?:\s[\w'’-]+){1,6}?\s(?:is|are|was|were|has|have|had|will|can|\w+ed)\b)",
    re.IGNORECASE,
)
_ELSEWHERE = compile_later(
    r"^(?:(?!(?-i:[A-Z])[a-z]{2})[\w'’$%,.-]+\s){0,8}?(?:his|her|him|their|them|he|she|they|it)\b",
    re.IGNORECASE,
)
"""A clause that points at someone whom only the first half names."""


def day_asked(sentence: str) -> str:
    """Return the day that only the question of a sentence names, with what is on it."""
    text = strip_opening(sentence)
    ask = _ASK.search(text)
    if ask is None or _DAY.search(text[: ask.start()]):
        return ""
    found = _ON_DAY.search(text, ask.end())
    return found.group().strip() if found else ""


_DAY = compile_later(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r"\s\d|\b\w+day\b"
)
_ON_DAY = compile_later(
    r"\b(?:my|our)\s(?:[\w'’-]+\s){1,3}on\s(?:January|February|March|April|May|June|July|August"
    r"|September|October|November|December)\s\d{1,2}(?:,\s\d{4})?(?:\sat\s\d[\d:]*\s?[AaPp][Mm])?"
)


def _clause(text: str) -> str:
    """Return a clause of a question up to where it asks again."""
    inner = _ASK.search(text)
    clause = _tidy(text[: inner.start()] if inner else text)
    return "" if _QUESTION_START.match(clause) else clause


def strip_opening(sentence: str) -> str:
    """Return a sentence without the interjections and conjunctions it opens with."""
    text = _OPENING.sub("", sentence.strip())
    text = _JOINED.sub("", text)
    return text[:1].upper() + text[1:] if text else ""


def stands_alone(sentence: str) -> bool:
    """Tell whether a sentence can be understood without the one before it."""
    return not _POINTING.search(sentence)


def is_whole(text: str) -> bool:
    """Tell whether nothing was cut off: it has an end, and brackets and quotes come in pairs."""
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
