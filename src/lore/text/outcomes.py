"""Outcomes: how a session ended, by its checks, its commits and the last words in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lore.records import Outcome
from lore.text.later import compile_later

_LAST_CHARS = 1_500
"""Last words stand at the beginning and at the end of a last message."""

_UNHAPPY = compile_later(
    r"\bstill (?:not|broken|fail\w*|wrong|the same|see\w*|get\w*|happen\w*|error\w*|doesn't"
    r"|isn't)\b"
    r"|\b(?:doesn't|does not|didn't|did not|don't|isn't|not) (?:seem to )?work(?:ing)?\b"
    r"|\bthat(?:'s| is) (?:wrong|not (?:right|it|what))|\bsame (?:error|problem|issue|result)\b"
    r"|\b(?:broke|broken again|worse|useless)\b|\bgive up\b|\brevert (?:this|that|it|all"
    r"|everything)\b"
    r"|\b(?:failing|fails|failed|crash(?:es|ed)) again\b|\bundo (?:this|that|it|all|everything)\b",
    re.IGNORECASE,
)
_HAPPY = compile_later(
    r"\bthank(?:s| you)\b|\b(?:perfect|awesome|excellent|brilliant|lovely|lgtm|ship it)\b"
    r"|\bwell done\b"
    r"|\b(?:great|good|nice|amazing) (?:job|work|catch|one)\b|\b(?:it|that|this|all|now"
    r"|everything) works\b"
    r"|\bworks (?:now|great|fine|well|perfectly|as expected)\b|\blooks (?:good|great|fine"
    r"|perfect)\b"
    r"|^\s*(?:great|nice|cool|good|amazing|wonderful)\s*[.!,]*\s*$",
    re.IGNORECASE,
)
_DONE = compile_later(
    r"\b(?:done|fixed|completed?|committed|pushed|merged|implemented|resolved|updated|added|removed"
    r"|created|renamed|replaced|refactored|rebased|posted|reverted|cleaned up|addressed|simplified"
    r"|moved|written|applied|installed|finished|deleted|extracted|converted|changed)\b"
    r"|\ball (?:\w+ ){0,4}(?:pass(?:es|ed|ing)?|green|clean|good|set)\b"
    r"|\btests? (?:and \w+ )?(?:all )?(?:pass(?:es|ed|ing)?|are green)\b|\b0 (?:issues|errors"
    r"|failures)\b"
    r"|\b(?:works|working) (?:now|correctly|as expected)\b|\bnow (?:works|uses|handles|shows"
    r"|returns)\b"
    r"|\bhere(?:'s| is) (?:a |the )?(?:final |quick )?(?:summary|what (?:changed|was|i))|✅",
    re.IGNORECASE,
)
_GAVE_UP = compile_later(
    r"\b(?:i(?:'m| am) (?:unable|not able) to|i (?:can't|cannot|couldn't|could not|was unable to)"
    r" (?:find|fix|get|make|complete|access|reproduce|resolve|proceed|do)|remain(?:s"
    r"|ing)? (?:broken|unresolved)"
    r"|still (?:failing|fails|broken)|did(?:n't| not) (?:work|succeed)|ran out of|API Error"
    r"|usage limit"
    r"|credit balance|rate limit)",
    re.IGNORECASE,
)
_FAILS = compile_later(
    r"\W*(?:it|this|that|(?:the|your) [\w-]+(?: [\w-]+){0,2}) (?:still |just )?"
    r"(?:fails|failed|(?:does not|doesn't|did not|didn't) (?:work|build|compile|run|pass|start))\b",
    re.IGNORECASE,
)
"""A last message that begins so tells of no success, unless it answers what was asked."""

_ADMITS = compile_later(
    r"❌|\bstill (?:failing|fails|broken)\b|\btests? (?:are|is) (?:still )?failing\b", re.IGNORECASE
)
"""What still fails, if a question follows; without one it is a tale of before and after."""

_OFFERS = compile_later(
    r"\b(?:want me to|would you like me to|do you want me to|let me know if|i can also)\b.{0,300}$",
    re.IGNORECASE | re.DOTALL,
)
_ASKS = compile_later(
    r"\b(?:would you like (?!me to)|should i|shall i|do you want (?!me to)|what do you think"
    r"|any preference"
    r"|which (?:one|option|approach|direction|of these|would|do you)|let me know (?:which|what|how"
    r"|once|when)"
    r"|how would you like|does (?:this|that) (?:look|sound|make sense)|waiting for"
    r"|what would you)\b.{0,300}$",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = compile_later(
    r"\?\s*$|\b(?:review|explain|understand|summar\w+|analy[sz]e|investigate|check|look at|compare"
    r"|what|why|how|where|which)\b",
    re.IGNORECASE,
)
"""What an answer in words can fulfil."""
_BEGINS = compile_later(
    r"^\W*(?:(?:now|ok(?:ay)?|good|great|perfect|right|i see|so|first|next|then"
    r"|yes)[,.!:\s—-]+){0,3}"
    r"(?:let me|let's|i'll|i will|i need to|i'm going to|now i|checking|looking|running"
    r"|launching)\b",
    re.IGNORECASE,
)
"""A last message that announces work which then did not come."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What the end of a session looks like."""

    person: str = ""
    assistant: str = ""
    interrupted: bool = False
    answered: bool = False
    """The assistant had the last word after the last words of the person and the last call."""
    worked_since: bool = False
    """Something was changed or run after the last words of the person."""
    checked: bool | None = None
    """How the last test, lint or build went; None without one."""
    check: str = ""
    changed_since: bool = False
    """Files were changed after that check."""
    changed: bool = False
    landed: bool = False
    """A commit, push or pull request came after the last check that failed."""
    open_end: str = ""
    """The call that the session breaks off with."""


_Rule = tuple[object, Outcome, str]
"""What must hold, and what follows from it."""


def judge(end: Ending) -> tuple[Outcome, str]:
    """Return how a session ended, and by which sign: the first of the rules that holds."""
    person, said = end.person[:_LAST_CHARS], _ends(end.assistant)
    if not said and not end.worked_since and not end.changed:
        return "unknown", "nothing was answered or done"
    for holds, outcome, reason in (*_bad_signs(end, person, said), *_signs(end, person, said)):
        if holds:
            return outcome, reason
    return "unknown", "no sign of how it ended"


def _bad_signs(end: Ending, person: str, said: str) -> tuple[_Rule, ...]:
    good = end.checked or end.landed
    done, gave_up = _DONE.search(said), _GAVE_UP.search(said)
    unhappy = _UNHAPPY.search(person) and not good and not done
    failed = end.checked is False and not end.landed
    claimed = failed and done and not gave_up
    fails = _FAILS.match(said) and not done and not good and not _QUESTION.search(person)
    content = claimed and _HAPPY.search(person)
    return (
        (end.interrupted, "partial", "the person interrupted it"),
        (unhappy, "failure", "the person's last words say that it does not work"),
        (content, "success", "the person is content"),
        (claimed and end.answered, "partial", f"called done, but the last {end.check} failed"),
        (failed, "failure", f"the last {end.check} failed"),
        (fails, "failure", "the assistant's last words say that it fails"),
        (gave_up and not good, "failure", "the assistant's last words say that it did not succeed"),
    )


def _signs(end: Ending, person: str, said: str) -> tuple[_Rule, ...]:
    passed = end.checked and not end.changed_since
    done = _DONE.search(said)
    content = _HAPPY.search(person) and not _UNHAPPY.search(person)
    announced = end.answered and _BEGINS.match(said) and not done
    only_asked = _QUESTION.search(person) and not end.worked_since
    admits = end.answered and _ADMITS.search(said) and said.rstrip().endswith("?")
    waits = end.answered and _waits(end, person, said)
    return (
        (end.open_end and passed, "success", f"the last {end.check} passed"),
        (end.open_end, "partial", f"it breaks off at: {end.open_end}"),
        (end.landed, "success", "it ended in a commit or a pull request"),
        (admits, "partial", "the assistant's last words name what still fails"),
        (waits, "partial", "it ends with a question to the person"),
        (passed, "success", f"the last {end.check} passed"),
        (content, "success", "the person is content"),
        (announced, "partial", "it ends with work announced"),
        (end.changed and end.answered and done, "success", "the assistant says that it is done"),
        (end.answered and (not end.changed or only_asked), "success", "the question was answered"),
        (end.changed, "partial", "files were changed, and nothing says that it works"),
    )


def _waits(end: Ending, person: str, said: str) -> bool:
    """Tell whether the work waits for a word of the person; an offer after an answer does not."""
    if end.changed and end.worked_since:
        return False
    if _ASKS.search(said):
        return True
    return bool(_OFFERS.search(said)) and not _QUESTION.search(person)


def _ends(text: str) -> str:
    if len(text) <= 2 * _LAST_CHARS:
        return text
    return f"{text[:_LAST_CHARS]}\n{text[-_LAST_CHARS:]}"
