"""What an agent found out: causes with their fixes, decisions with reasons, facts of a project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lore.llm.offline import fixes, moments, orders, reasons, reversals, told_settings
from lore.llm.offline.finding import HIGH, LONGEST_CHARS, MEDIUM, Found, fits
from lore.llm.offline.tool_lines import without_calls
from lore.records import FragmentKind, Said
from lore.text import lines, specifics, statements
from lore.text.statements import Statement
from lore.text.told import is_whole, stands_alone, strip_opening

_OF_THE_MOMENT = re.compile(
    r"""^(?:let\ me|let's|lets|now|i'll|i\ will|i'm|i\ am|i\ need|i\ should|i\ can|i\ see|i\ think
        |i\ want|we\ need|we'll|we\ can|we\ should|first|next|then|finally|looking|checking|running
        |reading|wait|hmm|actually|but|however|ok|okay|great|good|perfect|excellent|done|all|yes|no
        |sorry|you're|you\ are|you|your|would|should|shall|do|does|did|can|could|is|are|what|how
        |why|if\ you|want|please|here|here's|below|above|note\ to|to\ summarize|in\ summary|summary
        |overall|remaining|todo|pending|currently|so|since\ you|given|based|assuming|maybe|perhaps
        |for\ example|e\.g\.|example|consider|suppose|try|make\ sure|ensure|remember|step|both
        |after|before|once|when|while|as\ |by|one|another|with|without|two|three|four|also|thus
        |hence|therefore|instead|alternatively|otherwise|similarly|in\ )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_UNSURE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|probably|likely|seems?|appears?|i think|i believe|would"
    r"|possibly|presumably|suspect|assume|unclear|not sure|unless|hopefully|potential(?:ly)?"
    r"|should|suggest(?:s|ed|ion)?|recommend|consider|propose[sd]?|plan|will|todo|wait|let me"
    r"|i'll|we'll|we need|need to|needs to|you can|you could|you may|want me)\b|\?\s*$|:\s*$",
    re.IGNORECASE,
)
_PROGRESS = re.compile(
    r"\b(?:all (?:\d+ )?(?:unit |integration |the )?tests? (?:pass|are|now)|tests? pass"
    r"|lint(?:ing)?"
    r" (?:is|passes|clean)|build(?:s)? (?:passes|succeed|clean|fine)|committed|pushed|no (?:issues"
    r"|errors|changes)|ready|completed?|successfully|working tree|is (?:clean|done|green)"
    r"|pre-existing|up to date|rebased?|merged|conflicts?|cherry-pick\w*|background task"
    r"|PR #?\d+|pull request|CI |this session|the user|the reviewer|review comment|copilot|bugbot"
    r"|cursor)\b",
    re.IGNORECASE,
)
_FLEETING = re.compile(
    r"→|^\d+\.|\b[Ll]ines? \d+|:\d+(?:-\d+)?\b|\b[0-9a-f]{7,40}\b|\b\d+ (?:tests?|files?|lines?"
    r"|insertions"
    r"|deletions|commits?|errors?|occurrences|places|comments)\b|\btest\w*\.go\b|/tmp/|/private/"
)
_UNSETTLED = re.compile(
    r"\b(?:plan|todo|next|remaining|option|alternative|suggest|recommend|review|comment|question"
    r"|proposal|propos|issue|concern|severity|checklist|test (?:plan|cases?)|step|example|usage"
    r"|changes? (?:made|needed|required)|verification|files? (?:changed|modified|to)|what (?:was|i)"
    r"|pros|cons|status|feedback|evaluation|minor|nit|strength|good|positive|summary of changes"
    r"|before|after|phase|task|output|result|research|takeaway|let me|i'll|\\bfix|^why\\b"
    r"|difference)",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"""\b(?:root\ cause|the\ (?:\w+\ ){0,3}?(?:issue|problem|bug|failure|error|culprit|reason|crash
          |hang|deadlock|race|flake|flakiness)\ (?:was|is|here\ is|occurs|happens|comes|came)
        |fail(?:s|ed|ing)?\ because|broke\ because|happen(?:s|ed)\ because|caused\ by|due\ to\ a
        |turns\ out)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FIX = re.compile(
    r"""^(?:fixed|fix|solution|the\ fix|the\ solution|(?:i|i've|we)\ (?:fixed|changed|replaced
          |switched|moved|made|added|updated)|resolved|changed|replaced|switched|moved|updated
          |the\ correct\ (?:fix|approach|format|way))\b
      | \b(?:the\ fix\ (?:is|was|:)|fixed\ (?:it\ |this\ )?by|is\ fixed\ by|fix:|was\ to\ (?:use|add
          |change|move|replace|check|set|remove|make|pass))""",
    re.IGNORECASE | re.VERBOSE,
)
_SYMPTOM = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|error|crash(?:es|ed)?|broken?|wrong|bug|hang(?:s|ing)?|panic"
    r"|timeout|timed out|doesn't work|not work(?:ing)?|incorrect|missing|flaky|issue|problem"
    r"|regression|leak|deadlock|slow|stuck|overwrit|lost|duplicate|mismatch)\b",
    re.IGNORECASE,
)
_REASONED = re.compile(
    r"\b(?:instead of|rather than|because|so that|to avoid|to prevent|in order to|by design"
    r"|intentional(?:ly)?|deliberate(?:ly)?|on purpose|trade-?off|the reason|otherwise|which means"
    r"|this ensures|ensures that|to ensure|avoids|prevents|to keep|to preserve|since)\b",
    re.IGNORECASE,
)
_CONSTRAINT = re.compile(
    r"""\b(?:must(?:n't)?|requires?|never|always|cannot|can't|(?:doesn't|does\ not|don't)\ support
        |not\ supported|(?:is|are)\ (?:stored|located|configured|persisted|saved|gitignored|keyed
          |encoded|limited|capped|required|derived)
        |lives?\ (?:in|at|under)|defaults?\ to|by\ default|falls?\ back|expects?|overrides?
        |takes?\ precedence|maps?\ to|depends\ on|regardless|at\ most|at\ least)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SETTING = re.compile(
    r"""`(?P<setting>[\w.\-]{3,60})`\ (?:\([^)]{1,60}\)\ )?(?:now\ )?(?:is\ set\ to|defaults\ to|is
          |set\ to|has\ the\ default)\ (?P<value>`[^`]{1,60}`|"[^"]{1,60}"|\d[\w.]{0,20}|true
          |false|on|off|enabled|disabled)(?=[\s.,;)]|$)(?!\s`)
      | \bset(?:s|ting)?\ `(?P<setting2>[\w.\-]{3,60})`\ to\ (?P<value2>`[^`]{1,60}`|\d[\w.]{0,20}
          |true|false)""",
    re.VERBOSE,
)
_PLACE = re.compile(r"\b(?:in|at|under|inside)\s+`?([~./\w\-]*[/.][\w./\-]+)`?")
_DEED = re.compile(
    r"(?:^|`\s*[-—:]+\s*)(?:now |also |i |i've |we )?(?:used|redesigned|kept|added|removed"
    r"|updated|changed|replaced|renamed|moved"
    r"|created|extracted|refactored|switched"
    r"|introduced|deleted|converted|simplified|made|improved|wrote|implemented|modified|inlined"
    r"|new|adds?|removes?|updates?|changes?|tests?|verif\w+|test\w*)\b",
    re.IGNORECASE,
)
_ABOUT_TESTS = re.compile(
    r"\b(?:\w*Test[A-Z_]\w*|test_\w+|\w+_test\.\w+|\w+\.test\.\w+)|\b(?:verif(?:y|ies|ied)|asserts?"
    r"|test cases?|subtests?|unit tests?"
    r"|mock(?:s|ed)?|fixtures?|golden files?|the tests?|this test|coverage)\b",
    re.IGNORECASE,
)
_REPORTING = re.compile(
    r"^(?:the )?(?:user|reviewer|agent|assistant|explorer?)\b|\b(?:I|we)\s+(?:initially|had|was"
    r"|were"
    r"|found|checked|read|noticed|removed|added|ran|verified|looked|just|also)\b|^(?:had|got|found"
    r"|checked|saw|read|asked|received)\b|\b(?:dead code|unused|redundant|duplicated?|nit|dup)\b",
    re.IGNORECASE,
)
_OPINION = re.compile(
    r"\b(?:is|are|looks?|was) (?:fine|cleaner|safe|correct|expected|reasonable|simpler|better|ok"
    r"|okay"
    r"|good|valid|legitimate|acceptable|enough|overkill|straightforward|minimal|trivial|confusing"
    r"|misleading|dead|stale|outdated|missing|broken|identical|consistent|similar)\b"
    r"|\bmakes sense\b"
    r"|\b(?:properly|correctly|legitimately|no longer needed|still needs?|not (?:yet )?updated"
    r"|remains?|unrelated|as expected|if you want|optional|simplest|cleanest|easiest|that line"
    r"|my changes"
    r"|nolint|the linter|must be \w+ing|has been removed|currently|right now|for now"
    r"|at the moment|supposed to)\b",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(
    r"^(?:I'd|additionally|furthermore|moreover|later|until|still|again|similarly|finally|meanwhile"
    r"|consequently|also|adding|using|renaming|having|changing|removing|making|issue|problem|bug"
    r"|question|requires|uses|validates|returns|creates|handles|fixes|checks|calls|adds|removes"
    r"|prevents"
    r"|ensures|allows|avoids|keeps|makes|sets|reads|writes|runs|supports|stores|takes|gets|goes"
    r"|my|same"
    r"|the remaining|the bug|both|none|if|confirmed|short answer|answer|status|result|update"
    r"|note|fix"
    r"|key)\b|^[^\w`(]",
    re.IGNORECASE,
)
_BUILDING = re.compile(
    r"\b(?:architecture|strategy|strategies|design|layer|interface|abstraction|schema|protocol"
    r"|state machine|pipeline|data model|package|module|component|backend|storage|format|lifecycle"
    r"|hooks?|branch(?:es)?)\b",
    re.IGNORECASE,
)
SYMPTOM_CHARS, LONGEST_FIX = 200, 900
ASKED_CHARS = 700
"""A longer report is a log or a review that someone pasted: what went wrong is not told by it."""

_NEAR = 3
"""A fix stands within so many sentences of its cause."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What an agent's message follows: what was asked, and the last error that a tool gave."""

    asked: str = ""
    asked_id: str = ""
    error: str = ""
    error_id: str = ""


def find(one: Said, heard: Heard, after: Sequence[Said] = ()) -> Iterator[Found]:
    """Yield what an agent's message holds that is worth keeping; `after` is what follows it."""
    told = statements.cut(without_calls(one.text))
    used: set[int] = set()
    for place, statement in enumerate(told):
        if place in used or not _CAUSE.search(statement.text):
            continue
        fix = _fix_after(told, place)
        bug = _bug(one, told, place, fix, heard)
        if bug is not None:
            used |= {place, fix} if fix is not None else {place}
            yield bug
    announced = None if used else _announced(one, told, heard)
    if announced is not None:
        found, used = announced
        yield found
    for place, statement in enumerate(told):
        if place not in used:
            single = _setting(one, statement) or _holding(one, told, place, after)
            if single is not None:
                yield single


def _holding(
    one: Said, told: Sequence[Statement], place: int, after: Sequence[Said]
) -> Found | None:
    """Return what a statement says that still holds when the work is done."""
    found = _judged(one, told[place])
    if found is None:
        return None
    if moments.is_defect(told, place) and moments.is_edited(after):
        return _repaired(one, found.text, after)
    if moments.is_passing(told, place, after) or reversals.is_taken_back(found.text, after):
        return None
    return found


def _repaired(one: Said, defect: str, after: Sequence[Said]) -> Found | None:
    """Return a defect with what the agent says later that it did about it; none without that."""
    names = moments.own_names(defect)
    for later in after:
        if later.voice != "assistant":
            continue
        for statement in statements.cut(without_calls(later.text)):
            done = strip_opening(statement.text)
            if any(name in done for name in names) and _is_deed(done):
                text = f"{_ended(defect)} {_ended(done)}"
                payload = {"symptom": lines.one_line(defect, SYMPTOM_CHARS), "solution": done}
                return Found(text, "bug_fix", HIGH, 3.0, (one.id, later.id), payload)
    return None


def _is_deed(text: str) -> bool:
    """Tell whether a sentence says what was done, without the moment around it."""
    if not _DEED.search(text) and not _FIX.search(text):
        return False
    passing = (_UNSURE, _FLEETING, _ABOUT_TESTS, _PROGRESS, _PRAISED)
    return fits(text) and is_whole(text) and not any(form.search(text) for form in passing)


def _announced(one: Said, told: Sequence[Statement], heard: Heard) -> tuple[Found, set[int]] | None:
    """Return a fix that is announced as such, for what the person complained of."""
    fix = fixes.find(told)
    if fix is None or len(heard.asked) > ASKED_CHARS or _UNSURE.search(fix.cause):
        return None
    symptom = fixes.complaint_in(statements.cut(heard.asked, by_line=True))
    if not symptom or _FLEETING.search(f"{fix.cause} {fix.solution}"):
        return None
    symptom = lines.one_line(symptom[:1].upper() + symptom[1:], SYMPTOM_CHARS)
    text = f"{_ended(symptom)} Cause: {_ended(fix.cause)} {_ended(fix.solution)}"
    if len(text) > LONGEST_FIX or _ABOUT_TESTS.search(fix.solution):
        return None
    payload = {"symptom": symptom, "root_cause": fix.cause, "solution": fix.solution}
    sources = (one.id, heard.asked_id)
    return Found(text, "bug_fix", HIGH, 3.5, sources, payload), set(fix.places)


def _setting(one: Said, statement: Statement) -> Found | None:
    """Return a setting in capitals with its value, whatever else its sentence reports."""
    text = strip_opening(told_settings.without_commit(statement.text))
    told = told_settings.find(text)
    if told is None or len(text) > LONGEST_CHARS or not is_whole(text):
        return None
    payload = {"setting": told.name, "value": told.value}
    if told.location:
        payload["location"] = told.location
    return Found(_ended(text), "config", MEDIUM, 2.4, (one.id,), payload)


def _fix_after(told: Sequence[Statement], place: int) -> int | None:
    for later in range(place + 1, min(place + 1 + _NEAR, len(told))):
        text = told[later].text
        if _FIX.search(text) and not _UNSURE.search(text) and not _PRAISED.search(text):
            return later
    return None


_PRAISED = re.compile(
    r"\b(?:fix|solution|approach|format|way)\b[^.:;]{0,60}\b(?:is|was|looks?|seems?|works?)"
    r" (?:already |quite |pretty )?(?:correct|fine|right|good|ok|okay|simple|straightforward|easy"
    r"|complete|in place|working|sound|trivial|obvious|clear|as expected)\b",
    re.IGNORECASE,
)
"""A judgement of the fix mends nothing."""


def _bug(
    one: Said, told: Sequence[Statement], place: int, fix: int | None, heard: Heard
) -> Found | None:
    """Return a cause with its fix; a cause without a fix is open, so it is left out."""
    cause = told[place].text
    if fix is None or _ABOUT_TESTS.match(cause) or _ABOUT_TESTS.search(told[fix].text):
        return None
    if moments.is_of_an_edit(cause):
        return None
    if _UNSURE.search(cause) or not specifics.identifiers(cause + told[fix].text):
        return None
    text = f"{_ended(strip_opening(cause))} {_ended(told[fix].text)}"
    if not stands_alone(text) or not fits(text[:400]) or len(text) > 700:
        return None
    symptom = _symptom(told[place], heard)
    sources: tuple[str, ...] = (one.id,)
    if not symptom and _shares_name(heard.error, text):
        symptom, sources = heard.error, (one.id, heard.error_id)
    payload = {"symptom": symptom, "root_cause": cause, "solution": told[fix].text}
    return Found(text, "bug_fix", HIGH, 3.5, sources, payload)


def _symptom(cause: Statement, heard: Heard) -> str:
    """Return the sentence that says what was seen: before the cause, in it, or in the question."""
    asked = next((s.text for s in statements.cut(heard.asked[:2_000], by_line=True)
                  if _SYMPTOM.search(s.text)), "")  # fmt: skip
    told = (text for text in (cause.before, asked, cause.text) if _SYMPTOM.search(text))
    return lines.one_line(next(told, ""), SYMPTOM_CHARS)


def _shares_name(error: str, text: str) -> bool:
    names = (name.strip("`()").lower() for name in specifics.identifiers(text))
    return bool(error) and any(name in error.lower() for name in names)


def _judged(one: Said, statement: Statement) -> Found | None:
    text = strip_opening(statement.text)
    if not _lasting(text, statement) or not fits(_BRACKETS.sub("", text)):
        return None
    named = specifics.identifiers(text)
    names = [name for name in named if _OWN_NAME.search(name)]
    reasoned = bool(_REASONED.search(text))
    enough = names or len(named) > 1 if reasoned else len(names) > 1
    if not enough or _CAUSE.search(text):
        return None
    setting = _SETTING.search(text)
    if setting:
        return Found(text, "config", MEDIUM, 2.0, (one.id,), _config(setting, text))
    if not _CONSTRAINT.search(text) and not reasoned:
        return None
    if (_DEED.search(text) or _NOW_SO.search(text)) and not _GROUND.search(text):
        return None
    kind: FragmentKind = "fact"
    payload = {}
    if reasoned and _BUILDING.search(text):
        kind, payload = "architecture", reasons.decision(text)
    score = 1.0 + 0.8 * reasoned + 0.2 * min(len(names), 4)
    importance = MEDIUM
    return Found(_ended(text), kind, importance, score, (one.id,), payload)


def _lasting(text: str, statement: Statement) -> bool:
    if not fits(text) or _OF_THE_MOMENT.match(text) or _UNSURE.search(text):
        return False
    if any(form.search(text) for form in _PASSING):
        return False
    if orders.is_order(text) or not stands_alone(text) or not is_whole(text):
        return False
    return not _UNSETTLED.search(f"{statement.heading} {statement.lead}")


_GROUND = re.compile(r"\b(?:because|since|so that|to avoid|to prevent|otherwise)\b", re.IGNORECASE)
"""What was changed is worth keeping with the ground for it; the change itself is in the code."""

_BRACKETS = re.compile(r"\s?\([^()]*\)")
"""What stands in brackets is an aside: the sentence must be one without it."""

_OWN_NAME = re.compile(
    r"[a-z]_|_[a-z]|[a-z][A-Z]|\w/\w|\w\(|\w\.[a-z]{2}|^--[a-z]|[A-Z]_[A-Z]|\w \w"
)
"""A name that a project gave to something of its own, rather than a word the world knows."""

_LABEL = re.compile(
    r"^(?:`[^`]+`|[\w./-]+)\s*(?:[—–:]|\s-\s)\s*(?!(?:now |it |this )?(?:uses?|used|returns?|is"
    r"|was|are|runs?"
    r"|only|does|doesn't|has|checks?|takes?|falls?|stores?|creates?|writes?|reads?|requires?|must"
    r"|cannot"
    r"|can't|added|removed|updated|changed|replaced|always|never|when|if|the|a|an)\b)",
    re.IGNORECASE,
)
"""A name with a note behind it, as lists have them: no sentence."""

_POINTING = re.compile(
    r"^[A-Z]\. |^task \d|^the (?:real |best |right |correct |proper )?(?:fix|place|approach"
    r"|solution"
    r"|way|document|doc|deletions|commit message)\b(?! ensures)|\b(?:is|are) being\b|\bstill\b"
    r"|\bactually\b"
    r"|\boriginal\b|\b(?:these|those) \w+|\b(?:in|of|for|from) this \w+|^setting is\b|\bhere\.?$"
    r"|\bkeep HEAD\b"
    r"|\bmy \w+ (?:fix|change|code)|\((?:correct|fine|good)\b|\bflagg(?:ing|ed)\b"
    r"|\bsame (?:idea|thing|pattern)\b",
    re.IGNORECASE,
)
_OF_THE_CODE = re.compile(
    r"\b(?:is|are|was|were) (?:only )?(?:never|not) (?:called|updated|used|shown|set)\b"
    r"|\bnever updated\b"
    r"|\b(?:but )?NOT used\b|\b(?:bypassed|already fixed|ineffectual|only had|I can|I'm|we never)\b"
    r"|\bwas (?:blocking|renamed)\b|\bwere also\b|\bisn't being\b|\bthat's fine\b"
    r"|\bso that works\b"
    r"|\bwhy\b|\bthis reason\b|\bassertion\b"
    r"|^`[^`]+`(?: \w+){0,2}\s*[-—–]\s|^`[^`]+`(?:/`[^`]+`)*:\s"
    r"|^[A-Z][\w' -]{2,50}(?:\s[-—–]\s|:\s)"
    r"|^(?:clearer|proper|simpler|single|cleaner|better|continuing|old|new)\b"
    r"|^the (?:key insight|lint|staged|simpler|immediate|reason|stale|lack|branch|initial"
    r"|directory)\b"
    r"|^`[^`]+`(?: [\w-]+){1,3} in `",
    re.IGNORECASE,
)
"""How the code looks at the moment, labels of lists, and remarks on the work: the code says it."""

_NOW_SO = re.compile(
    r"\bnow (?:also |just |only |always )*(?:uses?|takes?|delegates?|calls?|detects?|accepts?"
    r"|returns?"
    r"|falls?|condenses?)\b",
    re.IGNORECASE,
)
"""A change of the code that was just made; worth keeping only with its ground."""

_PASSING = (
    _OF_THE_CODE, _PROGRESS, _FLEETING, _ABOUT_TESTS, _REPORTING, _OPINION, _FOLLOWING, _LABEL,
    _POINTING,
)  # fmt: skip
"""Signs of what is said in passing: true for a day, or only beside what stood before."""


def _config(setting: re.Match[str], text: str) -> dict[str, str]:
    place = _PLACE.search(text)
    return {
        "setting": setting["setting"] or setting["setting2"],
        "value": (setting["value"] or setting["value2"]).strip('`"'),
        **({"location": place[1]} if place else {}),
    }


def _ended(text: str) -> str:
    return text if text[-1:] in ".!?…)" else f"{text}."
