"""Moments of the work: what an agent says on its way, which its next step makes untrue or idle."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lore.llm.offline.tool_lines import calls_in
from lore.records import Said
from lore.text import calls, specifics
from lore.text.statements import Statement

NEXT_ACTS = 24
"""A defect that an agent names is repaired within so many of its messages, or not at all."""

_GOES_ON = re.compile(
    r"^(?:(?:now|so|first|then|next|ok(?:ay)?|actually|but|and|good|great|perfect|yes)\b,? ?)*"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|i am going to|we need to"
    r"|want me to|should i|shall i)\b (?:(?:also|just|now|then|first|quickly|both)\b ?)*"
    r"(?P<verb>[\w-]+)",
    re.IGNORECASE,
)
_CHECKS = frozenset("verify run rerun re-run test confirm commit push format lint".split())
"""An agent that goes on with these takes what it said as settled."""

_OUTWARD = re.compile(r"\b(?:docs?|documentation|manual|upstream|release notes)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:can't|cannot|(?:doesn't|does not|don't|do not) support|(?:isn't|not) supported"
    r"|circular)\b",
    re.IGNORECASE,
)
"""What cannot be done stays so, whatever the next step is."""

_ALOUD = re.compile(
    r"^(?:(?:but|actually|oh|no|hmm+|hm)\b[,.]? ?)*(?:wait\b|hmm+\b|hold on\b)"
    r"|^actually,? (?:no\b|let me|looking|i\b|that)"
    r"|\blet me (?:re-?(?:examine|read|think|consider|trace|check|visit)\w*|think|trace)\b"
    r"|\blooking (?:more )?(?:carefully|closely|again)\b|\bthat changes the\b",
    re.IGNORECASE,
)
"""An agent that thinks aloud says what it will take back two sentences later."""

_DEFECT = re.compile(
    r"\b(?:instead of|but|regardless|even (?:with|when|if|though|after)|hard-?coded|never|always"
    r"|(?:doesn't|does not|don't|isn't|is not|aren't|wasn't|won't|no)\b"
    r"|is (?:dropped|lost|ignored|missing|skipped|gone|overwritten|a hard error))\b",
    re.IGNORECASE,
)
_NAMED_SO = re.compile(
    r"\b(?:that's|this is|which is|that is) (?:exactly |really |probably )?(?:the|why|what|a)"
    r" ?(?:\w+ )?(?:issue|problem|cause|bug|regression|culprit|gap|reason)?\b",
    re.IGNORECASE,
)
_OWN_CODE = re.compile(r"[a-z][A-Z]|[A-Za-z]_[A-Za-z]|\w\(|^--[a-z]|\w\.[A-Z]\w")
_BEFORE = re.compile(
    r"\b(?:was|were) (?:also |only |just |still |always |never )*\w+ing\b"
    r"|^(?:until recently|previously|formerly|before (?:this|the|that)|originally)\b"
    r"|\bjust moved\b",
    re.IGNORECASE,
)
_COMPILING = re.compile(
    r"\b(?:undefined|undeclared|already declared|not declared|was declared|needs? its own"
    r" declaration|unused (?:import|variable|parameter)|missing import|syntax error|typo"
    r"|linters?)\b|:=",
    re.IGNORECASE,
)
"""What a compiler or a linter says of an edit is over with the next one."""

_PLANNED = re.compile(
    r"\b(?:to get|for (?:the|this|a) test|in (?:the|this|a) test|we need|we want|i need"
    r"|the test (?:just )?needs?|that changes)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:must|needs? to|has to|have to)\b", re.IGNORECASE)


def is_passing(told: Sequence[Statement], place: int, after: Sequence[Said]) -> bool:
    """Tell whether a statement of an agent is a step of its work rather than what holds."""
    text = told[place].text
    if _BEFORE.search(text) or is_of_an_edit(text):
        return True
    rest = [one.text for one in told[place + 1 :]]
    if any(map(_ALOUD.search, (*rest, *(one.text for one in told[:place])))):
        return not _LIMIT.search(text)
    if _CONDITION.search(text) and _PLANNED.search(f"{told[place].before} {told[place].lead}"):
        return True
    if not _LIMIT.search(text) and any(map(_is_next_step, rest)):
        return True
    return not rest and not _LIMIT.search(text) and is_edited(after[:1])


def is_of_an_edit(text: str) -> bool:
    """Tell whether a sentence says what a compiler or a linter has against an edit."""
    return bool(_COMPILING.search(text))


def is_defect(told: Sequence[Statement], place: int) -> bool:
    """Tell whether a statement says of the project's own code what is wrong with it."""
    text = told[place].text
    if _LIMIT.search(text) or _MENDED.match(text) or not own_names(text):
        return False
    following = told[place + 1].text if place + 1 < len(told) else ""
    return bool(_DEFECT.search(text) or _NAMED_SO.match(following))


_MENDED = re.compile(r"^(?:the |this |my )?(?:fix|change|solution)\b", re.IGNORECASE)


def own_names(text: str) -> tuple[str, ...]:
    """Return the names in a text that a project gave to its own code."""
    return tuple(name for name in specifics.identifiers(text) if _OWN_CODE.search(name))


def is_edited(after: Sequence[Said]) -> bool:
    """Tell whether an agent changes code soon after; a plan or a note that it writes is no code."""
    acts = [one for one in after if one.voice == "assistant"][:NEXT_ACTS]
    return any(
        not file.endswith((".md", ".txt"))
        for one in acts
        for name, given in calls_in(one.text)
        for file in _changed(name, given)
    )


def _changed(name: str, given: str) -> tuple[str, ...]:
    call = calls.read_call(name, given)
    return call.changed or ((given,) if call.deed in ("edit", "write") else ())


def _is_next_step(sentence: str) -> bool:
    step = _GOES_ON.match(sentence)
    if step is None or step["verb"].lower() in _CHECKS:
        return False
    return not _OUTWARD.search(sentence)
