"""Rules for statements that hold only for a moment or are withdrawn later."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lore.llm.offline.sentence_rules import parse_tool_calls
from lore.records import MessageText
from lore.text import call_text, entities, words
from lore.text.statements import Statement

MAX_FOLLOWUPS = 24
"""An agent repairs a defect within so many of its messages, or not at all."""

_NEXT_STEP = re.compile(
    r"^(?:(?:now|so|first|then|next|ok(?:ay)?|actually|but|and|good|great|perfect|yes)\b,? ?)*"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|i am going to|we need to"
    r"|want me to|should i|shall i)\b (?:(?:also|just|now|then|first|quickly|both)\b ?)*"
    r"(?P<verb>[\w-]+)",
    re.IGNORECASE,
)
_CHECKS = frozenset("verify run rerun re-run test confirm commit push format lint".split())
"""An agent that continues with one of these treats its statement as settled."""

_EXTERNAL = re.compile(r"\b(?:docs?|documentation|manual|upstream|release notes)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:can't|cannot|(?:doesn't|does not|don't|do not) support|(?:isn't|not) supported"
    r"|circular)\b",
    re.IGNORECASE,
)
"""A limitation stays, whatever the next step is."""

_THINKS_ALOUD = re.compile(
    r"^(?:(?:but|actually|oh|no|hmm+|hm)\b[,.]? ?)*(?:wait\b|hmm+\b|hold on\b)"
    r"|^actually,? (?:no\b|let me|looking|i\b|that)"
    r"|\blet me (?:re-?(?:examine|read|think|consider|trace|check|visit)\w*|think|trace)\b"
    r"|\blooking (?:more )?(?:carefully|closely|again)\b|\bthat changes the\b",
    re.IGNORECASE,
)
"""An agent that thinks aloud withdraws what it says two sentences later."""

_DEFECT = re.compile(
    r"\b(?:instead of|but|regardless|even (?:with|when|if|though|after)|hard-?coded|never|always"
    r"|(?:doesn't|does not|don't|isn't|is not|aren't|wasn't|won't|no)\b"
    r"|is (?:dropped|lost|ignored|missing|skipped|gone|overwritten|a hard error))\b",
    re.IGNORECASE,
)
_NAMES_PROBLEM = re.compile(
    r"\b(?:that's|this is|which is|that is) (?:exactly |really |probably )?(?:the|why|what|a)"
    r" ?(?:\w+ )?(?:issue|problem|cause|bug|regression|culprit|gap|reason)?\b",
    re.IGNORECASE,
)
_OWN_CODE = re.compile(r"[a-z][A-Z]|[A-Za-z]_[A-Za-z]|\w\(|^--[a-z]|\w\.[A-Z]\w")
_PAST_STATE = re.compile(
    r"\b(?:was|were) (?:also |only |just |still |always |never )*\w+ing\b|^(?:until recently"
    r"|previously|formerly|before (?:this|the|that)|originally)\b|\bjust moved\b",
    re.IGNORECASE,
)
_COMPILER_COMPLAINT = re.compile(
    r"\b(?:undefined|undeclared|already declared|not declared|was declared|needs? its own"
    r" declaration|unused (?:import|variable|parameter)|missing import|syntax error|typo"
    r"|linters?)\b|:=",
    re.IGNORECASE,
)
"""Complaints of a compiler or linter end with the next edit."""

_PLANNED = re.compile(
    r"\b(?:to get|for (?:the|this|a) test|in (?:the|this|a) test|we need|we want|i need"
    r"|the test (?:just )?needs?|that changes)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:must|needs? to|has to|have to)\b", re.IGNORECASE)


def is_transient(parts: Sequence[Statement], place: int, after: Sequence[MessageText]) -> bool:
    """Return whether an agent's statement is a step of its work rather than lasting knowledge."""
    text = parts[place].text
    if _PAST_STATE.search(text) or is_compiler_complaint(text):
        return True
    rest = [one.text for one in parts[place + 1 :]]
    if any(map(_THINKS_ALOUD.search, (*rest, *(one.text for one in parts[:place])))):
        return not _LIMIT.search(text)
    if _CONDITION.search(text) and _PLANNED.search(f"{parts[place].before} {parts[place].lead}"):
        return True
    if not _LIMIT.search(text) and any(map(_is_next_step, rest)):
        return True
    return not rest and not _LIMIT.search(text) and is_followed_by_edit(after[:1])


def is_compiler_complaint(text: str) -> bool:
    """Return whether a sentence quotes a compiler or linter."""
    return bool(_COMPILER_COMPLAINT.search(text))


def is_defect(parts: Sequence[Statement], place: int) -> bool:
    """Return whether a statement describes a defect of the project's own code."""
    text = parts[place].text
    if _LIMIT.search(text) or _FIX_SUBJECT.match(text) or not project_identifiers(text):
        return False
    following = parts[place + 1].text if place + 1 < len(parts) else ""
    return bool(_DEFECT.search(text) or _NAMES_PROBLEM.match(following))


_FIX_SUBJECT = re.compile(r"^(?:the |this |my )?(?:fix|change|solution)\b", re.IGNORECASE)


def project_identifiers(text: str) -> tuple[str, ...]:
    """Return the identifiers in a text that belong to the project's own code."""
    return tuple(name for name in entities.identifiers(text) if _OWN_CODE.search(name))


def is_followed_by_edit(after: Sequence[MessageText]) -> bool:
    """Return whether an agent edits code soon after; plans and notes do not count."""
    acts = [one for one in after if one.voice == "assistant"][:MAX_FOLLOWUPS]
    return any(
        not file.endswith((".md", ".txt"))
        for one in acts
        for name, argument in parse_tool_calls(one.text)
        for file in _changed_files(name, argument)
    )


def _changed_files(name: str, argument: str) -> tuple[str, ...]:
    call = call_text.read_call(name, argument)
    return call.changed or ((argument,) if call.action in ("edit", "write") else ())


def _is_next_step(sentence: str) -> bool:
    step = _NEXT_STEP.match(sentence)
    if step is None or step["verb"].lower() in _CHECKS:
        return False
    return not _EXTERNAL.search(sentence)


MIN_SHARED_NAMES = 0.5
"""Share of a claim's names that a message must have to be about it."""

MIN_SHARED_WORDS = 2
"""Words of a claim that a user's doubt must have to be about it."""

_WITHDRAWN = re.compile(
    r"\b(?:uh[ -]?oh|you're (?:absolutely |completely |totally )?right|you are right"
    r"|i was (?:wrong|mistaken)|my mistake|i stand corrected|turns out|contrary to"
    r"|that's (?:not (?:right|true|correct)|wrong|incorrect)|actually,? (?:both|no|it|they|the)"
    r"|correction|not what i (?:said|thought|expected)|i (?:said|assumed|claimed) earlier)\b",
    re.IGNORECASE,
)
_DOUBTED = re.compile(
    r"\b(?:double[ -]?check|are you sure|is (?:that|this|it) (?:really|actually|true|right|correct)"
    r"|can (?:you|we) (?:verify|confirm|check|test)|really\?|i doubt|i don't (?:think|believe)"
    r"|that's not (?:right|true)|isn't it)\b",
    re.IGNORECASE,
)


def is_withdrawn(claim: str, after: Sequence[MessageText]) -> bool:
    """Return whether the user doubts a claim next, or the agent says later that it was wrong."""
    names = {name.strip("`()") for name in entities.identifiers(claim)}
    question = next((one for one in after if _is_person(one)), None)
    if question is not None and _DOUBTED.search(question.text) and _is_about(claim, question.text):
        return True
    for one in after:
        if one.voice == "assistant" and _WITHDRAWN.search(one.text):
            shared = sum(name in one.text for name in names)
            if names and shared >= MIN_SHARED_NAMES * len(names):
                return True
    return False


def _is_person(one: MessageText) -> bool:
    return one.voice not in ("assistant", "tool", "system")


def _is_about(claim: str, doubt: str) -> bool:
    claim_words = {_stem(word) for word in words.split(claim) if word not in words.STOP_WORDS}
    doubt_words = {_stem(word) for word in words.split(doubt) if word not in words.STOP_WORDS}
    return len(claim_words & doubt_words) >= MIN_SHARED_WORDS


def _stem(word: str) -> str:
    return word[:6].rstrip("s")
