"""Rules that extract knowledge from what an agent reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lore.llm.offline import sentence_rules
from lore.llm.offline.sentence_rules import (
    HIGH,
    MAX_CHARS,
    MEDIUM,
    Finding,
    has_statement_length,
    parse_tool_calls,
    strip_tool_calls,
)
from lore.records import FragmentKind, MessageText
from lore.text import call_text, entities, sentences, statements, words
from lore.text.statements import Statement, is_whole, stands_alone, strip_opening

MAX_FOLLOWUPS = 24
"""An agent repairs a defect within this many of its messages, or not at all."""

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


_ANNOUNCED = re.compile(r"^(?:the\s)?(?:fix|solution)(?:\s[\w\s]{2,24})?:\s*(?P<what>.*)$", re.I)
_COMPLAINT = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|errors?|crash(?:es|ed)?|broken?|wrong|bugs?|hangs?|panics?"
    r"|time[sd]? ?outs?|cannot|can't|doesn'?t|twice|unhealthy|missing|flaky|stuck|lost|duplicates?"
    r"|slow|seconds|garbled|too (?:late|early|long|slow)|[45]\d\ds?|exceeded|never|dead|blocked"
    r"|double booked|complain\w*|looks? funny)\b",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"^now\s+|^(?:hi|hey|morning|ok|thanks|yes|no)\b[^.!?]{0,20}[.!,]\s*", re.IGNORECASE
)
_OPTION = re.compile(r"^(?:option|two|three|plan|or|alternatively)\b|\?$", re.IGNORECASE)

_PRINTED = re.compile(
    r"\d\d:\d\d:\d\d|\||\w=\w|^(?:can|could|however|and|okay|missing)\b", re.IGNORECASE
)
_SUMMED_UP = re.compile(r"^(?:done|here's|here is|in summary|to summarize|you)\b", re.IGNORECASE)

CAUSE_SENTENCES = 2
"""The cause stands in the last sentences before the fix."""


class Fix(NamedTuple):
    """A fix with its cause, and the indexes of both among the statements."""

    cause: str
    solution: str
    places: frozenset[int]


def find_fix(parts: Sequence[Statement]) -> Fix | None:
    """Return the one fix that a message announces, with the cause stated before it."""
    places = [at for at, one in enumerate(parts) if _ANNOUNCED.match(one.text)]
    if len(places) != 1 or places[0] == 0:
        return None
    at = places[0]
    solution, used = _solution(parts, at)
    first = max(0, at - CAUSE_SENTENCES)
    cause = [one.text for one in parts[first:at] if not one.is_item]
    if not solution or not cause or any(_OPTION.search(one) for one in cause):
        return None
    if any(_SUMMED_UP.match(one) for one in cause):
        return None
    return Fix(" ".join(cause), solution, frozenset(range(first, at + 1 + used)))


def _solution(parts: Sequence[Statement], at: int) -> tuple[str, int]:
    """Return the solution: the sentence itself, or the first item of the list that it introduces.

    Later items are proposals that may be rejected.
    """
    match = _ANNOUNCED.match(parts[at].text)
    text = match["what"].rstrip(":").strip() if match else ""
    if text:
        return f"Fix: {text}", 0
    first = parts[at + 1] if at + 1 < len(parts) else None
    if first is None or first.lead != parts[at].text:
        return "", 0
    led = sum(one.lead == parts[at].text for one in parts[at + 1 :])
    return f"Fix: {first.text}", led


def find_complaint(asked: Sequence[Statement]) -> str:
    """Return the sentence in which a user says what goes wrong; empty if there is none."""
    for one in asked:
        text = _GREETING.sub("", one.text)
        if _PRINTED.search(text):
            continue
        if _COMPLAINT.search(text) and len(text.split()) > CAUSE_SENTENCES:
            return text
    return ""


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
    r"|lint(?:ing)? (?:is|passes|clean)|build(?:s)? (?:passes|succeed|clean|fine)|committed|pushed"
    r"|no (?:issues|errors|changes)|ready|completed?|successfully|working tree|is (?:clean|done"
    r"|green)|pre-existing|up to date|rebased?|merged|conflicts?|cherry-pick\w*|background task"
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
_ACTION = re.compile(
    r"(?:^|`\s*[-—:]+\s*)(?:now |also |i |i've |we )?(?:used|redesigned|kept|added|removed|updated"
    r"|changed|replaced|renamed|moved|created|extracted|refactored|switched|introduced|deleted"
    r"|converted|simplified|made|improved|wrote|implemented|modified|inlined|new|adds?|removes?"
    r"|updates?|changes?|tests?|verif\w+|test\w*)\b",
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
    r"|okay|good|valid|legitimate|acceptable|enough|overkill|straightforward|minimal|trivial"
    r"|confusing|misleading|dead|stale|outdated|missing|broken|identical|consistent|similar)\b"
    r"|\bmakes sense\b|\b(?:properly|correctly|legitimately|no longer needed|still needs?"
    r"|not (?:yet )?updated|remains?|unrelated|as expected|if you want|optional|simplest|cleanest"
    r"|easiest|that line|my changes|nolint|the linter|must be \w+ing|has been removed|currently"
    r"|right now|for now|at the moment|supposed to)\b",
    re.IGNORECASE,
)
_FOLLOWING = re.compile(
    r"^(?:I'd|additionally|furthermore|moreover|later|until|still|again|similarly|finally|meanwhile"
    r"|consequently|also|adding|using|renaming|having|changing|removing|making|issue|problem|bug"
    r"|question|requires|uses|validates|returns|creates|handles|fixes|checks|calls|adds|removes"
    r"|prevents|ensures|allows|avoids|keeps|makes|sets|reads|writes|runs|supports|stores|takes|gets"
    r"|goes|my|same|the remaining|the bug|both|none|if|confirmed|short answer|answer|status|result"
    r"|update|note|fix|key)\b|^[^\w`(]",
    re.IGNORECASE,
)
_ARCHITECTURE = re.compile(
    r"\b(?:architecture|strategy|strategies|design|layer|interface|abstraction|schema|protocol"
    r"|state machine|pipeline|data model|package|module|component|backend|storage|format|lifecycle"
    r"|hooks?|branch(?:es)?)\b",
    re.IGNORECASE,
)
SYMPTOM_CHARS, MAX_FIX_CHARS = 200, 900
MAX_REPORT_CHARS = 700
"""A longer report is a pasted log or review, which does not state the symptom."""

_MAX_FIX_DISTANCE = 3
"""The maximum distance between a cause and its fix, in sentences."""


@dataclass(frozen=True, slots=True)
class PrecedingContext:
    """What precedes an agent's message: the request, and the last error of a tool."""

    asked: str = ""
    asked_id: str = ""
    error: str = ""
    error_id: str = ""


def find_in_agent_message(
    one: MessageText, context: PrecedingContext, after: Sequence[MessageText] = ()
) -> Iterator[Finding]:
    """Yield the findings in an agent's message; `after` are the messages that follow it."""
    parts = statements.split_statements(strip_tool_calls(one.text))
    used: set[int] = set()
    for place, statement in enumerate(parts):
        if place in used or not _CAUSE.search(statement.text):
            continue
        fix = _find_fix_after(parts, place)
        bug = _bug_fix(one, parts, place, fix, context)
        if bug is not None:
            used |= {place, fix} if fix is not None else {place}
            yield bug
    announced = None if used else _announced_fix(one, parts, context)
    if announced is not None:
        fact, used = announced
        yield fact
    for place, statement in enumerate(parts):
        if place not in used:
            single = _setting_finding(one, statement) or _lasting_finding(one, parts, place, after)
            if single is not None:
                yield single


def _lasting_finding(
    one: MessageText, parts: Sequence[Statement], place: int, after: Sequence[MessageText]
) -> Finding | None:
    finding = _classify(one, parts[place])
    if finding is None:
        return None
    if is_defect(parts, place) and is_followed_by_edit(after):
        return _repaired_defect(one, finding.text, after)
    if is_transient(parts, place, after) or is_withdrawn(finding.text, after):
        return None
    return finding


def _repaired_defect(one: MessageText, defect: str, after: Sequence[MessageText]) -> Finding | None:
    """Return a defect with the fix that the agent reports later; None without one."""
    names = project_identifiers(defect)
    for later in after:
        if later.voice != "assistant":
            continue
        for statement in statements.split_statements(strip_tool_calls(later.text)):
            action = strip_opening(statement.text)
            if any(name in action for name in names) and _is_completed_action(action):
                text = f"{_with_period(defect)} {_with_period(action)}"
                payload = {"symptom": sentences.one_line(defect, SYMPTOM_CHARS), "solution": action}
                return Finding(text, "bug_fix", HIGH, 3.0, (one.id, later.id), payload)
    return None


def _is_completed_action(text: str) -> bool:
    """Return whether a sentence reports a completed action, without passing circumstances."""
    if not _ACTION.search(text) and not _FIX.search(text):
        return False
    passing = (_UNSURE, _FLEETING, _ABOUT_TESTS, _PROGRESS, _PRAISED)
    return (
        has_statement_length(text)
        and is_whole(text)
        and not any(form.search(text) for form in passing)
    )


def _announced_fix(
    one: MessageText, parts: Sequence[Statement], context: PrecedingContext
) -> tuple[Finding, set[int]] | None:
    """Return an announced fix for the user's complaint, and the statements that it uses."""
    fix = find_fix(parts)
    if fix is None or len(context.asked) > MAX_REPORT_CHARS or _UNSURE.search(fix.cause):
        return None
    symptom = find_complaint(statements.split_statements(context.asked, by_line=True))
    if not symptom or _FLEETING.search(f"{fix.cause} {fix.solution}"):
        return None
    symptom = sentences.one_line(symptom[:1].upper() + symptom[1:], SYMPTOM_CHARS)
    text = f"{_with_period(symptom)} Cause: {_with_period(fix.cause)} {_with_period(fix.solution)}"
    if len(text) > MAX_FIX_CHARS or _ABOUT_TESTS.search(fix.solution):
        return None
    payload = {"symptom": symptom, "root_cause": fix.cause, "solution": fix.solution}
    sources = (one.id, context.asked_id)
    return Finding(text, "bug_fix", HIGH, 3.5, sources, payload), set(fix.places)


def _setting_finding(one: MessageText, statement: Statement) -> Finding | None:
    """Return a setting in capitals with its value, whatever else the sentence reports."""
    text = strip_opening(sentence_rules.strip_commit_hash(statement.text))
    setting = sentence_rules.find_setting(text)
    if setting is None or len(text) > MAX_CHARS or not is_whole(text):
        return None
    payload = {"setting": setting.name, "value": setting.value}
    if setting.location:
        payload["location"] = setting.location
    return Finding(_with_period(text), "config", MEDIUM, 2.4, (one.id,), payload)


def _find_fix_after(parts: Sequence[Statement], place: int) -> int | None:
    for later in range(place + 1, min(place + 1 + _MAX_FIX_DISTANCE, len(parts))):
        text = parts[later].text
        if _FIX.search(text) and not _UNSURE.search(text) and not _PRAISED.search(text):
            return later
    return None


_PRAISED = re.compile(
    r"\b(?:fix|solution|approach|format|way)\b[^.:;]{0,60}\b(?:is|was|looks?|seems?|works?)"
    r" (?:already |quite |pretty )?(?:correct|fine|right|good|ok|okay|simple|straightforward|easy"
    r"|complete|in place|working|sound|trivial|obvious|clear|as expected)\b",
    re.IGNORECASE,
)
"""An opinion of the fix, not a fix."""


def _bug_fix(
    one: MessageText,
    parts: Sequence[Statement],
    place: int,
    fix: int | None,
    context: PrecedingContext,
) -> Finding | None:
    """Return a cause with its fix; a cause without a fix is still open."""
    cause = parts[place].text
    if fix is None or _ABOUT_TESTS.match(cause) or _ABOUT_TESTS.search(parts[fix].text):
        return None
    if is_compiler_complaint(cause):
        return None
    if _UNSURE.search(cause) or not entities.identifiers(cause + parts[fix].text):
        return None
    text = f"{_with_period(strip_opening(cause))} {_with_period(parts[fix].text)}"
    if not stands_alone(text) or not has_statement_length(text[:400]) or len(text) > 700:
        return None
    symptom = _symptom(parts[place], context)
    sources: tuple[str, ...] = (one.id,)
    if not symptom and _shares_name(context.error, text):
        symptom, sources = context.error, (one.id, context.error_id)
    payload = {"symptom": symptom, "root_cause": cause, "solution": parts[fix].text}
    return Finding(text, "bug_fix", HIGH, 3.5, sources, payload)


def _symptom(cause: Statement, context: PrecedingContext) -> str:
    """Return the sentence with the symptom: before the cause, in it, or in the request."""
    asked = statements.split_statements(context.asked[:2_000], by_line=True)
    reported = next((one.text for one in asked if _SYMPTOM.search(one.text)), "")
    candidates = (text for text in (cause.before, reported, cause.text) if _SYMPTOM.search(text))
    return sentences.one_line(next(candidates, ""), SYMPTOM_CHARS)


def _shares_name(error: str, text: str) -> bool:
    names = (name.strip("`()").lower() for name in entities.identifiers(text))
    return bool(error) and any(name in error.lower() for name in names)


def _classify(one: MessageText, statement: Statement) -> Finding | None:
    text = strip_opening(statement.text)
    if not _is_lasting(text, statement) or not has_statement_length(_BRACKETS.sub("", text)):
        return None
    identifiers = entities.identifiers(text)
    names = [name for name in identifiers if _OWN_NAME.search(name)]
    reasoned = bool(_REASONED.search(text))
    enough = names or len(identifiers) > 1 if reasoned else len(names) > 1
    if not enough or _CAUSE.search(text):
        return None
    setting = _SETTING.search(text)
    if setting:
        return Finding(text, "config", MEDIUM, 2.0, (one.id,), _config(setting, text))
    if not _CONSTRAINT.search(text) and not reasoned:
        return None
    if (_ACTION.search(text) or _NOW_SO.search(text)) and not _GROUND.search(text):
        return None
    kind: FragmentKind = "fact"
    payload = {}
    if reasoned and _ARCHITECTURE.search(text):
        kind, payload = "architecture", sentence_rules.decision_payload(text)
    score = 1.0 + 0.8 * reasoned + 0.2 * min(len(names), 4)
    importance = MEDIUM
    return Finding(_with_period(text), kind, importance, score, (one.id,), payload)


def _is_lasting(text: str, statement: Statement) -> bool:
    if not has_statement_length(text) or _OF_THE_MOMENT.match(text) or _UNSURE.search(text):
        return False
    if any(form.search(text) for form in _TRANSIENT):
        return False
    if sentence_rules.is_command(text) or not stands_alone(text) or not is_whole(text):
        return False
    return not _UNSETTLED.search(f"{statement.heading} {statement.lead}")


_GROUND = re.compile(r"\b(?:because|since|so that|to avoid|to prevent|otherwise)\b", re.IGNORECASE)
"""A change is worth keeping with its reason; the change itself is in the code."""

_BRACKETS = re.compile(r"\s?\([^()]*\)")
"""A sentence must be complete without the text in brackets."""

_OWN_NAME = re.compile(
    r"[a-z]_|_[a-z]|[a-z][A-Z]|\w/\w|\w\(|\w\.[a-z]{2}|^--[a-z]|[A-Z]_[A-Z]|\w \w"
)
"""A name that the project gave to something of its own, not a common word."""

_LABEL = re.compile(
    r"^(?:`[^`]+`|[\w./-]+)\s*(?:[—–:]|\s-\s)\s*(?!(?:now |it |this )?(?:uses?|used|returns?|is|was"
    r"|are|runs?|only|does|doesn't|has|checks?|takes?|falls?|stores?|creates?|writes?|reads?"
    r"|requires?|must|cannot|can't|added|removed|updated|changed|replaced|always|never|when|if|the"
    r"|a|an)\b)",
    re.IGNORECASE,
)
"""A name followed by a note, as in lists: not a sentence."""

_POINTING = re.compile(
    r"^[A-Z]\. |^task \d|^the (?:real |best |right |correct |proper )?(?:fix|place|approach"
    r"|solution|way|document|doc|deletions|commit message)\b(?! ensures)|\b(?:is|are) being\b"
    r"|\bstill\b|\bactually\b|\boriginal\b|\b(?:these|those) \w+|\b(?:in|of|for|from) this \w+"
    r"|^setting is\b|\bhere\.?$|\bkeep HEAD\b|\bmy \w+ (?:fix|change|code)|\((?:correct|fine"
    r"|good)\b|\bflagg(?:ing|ed)\b|\bsame (?:idea|thing|pattern)\b",
    re.IGNORECASE,
)
_OF_THE_CODE = re.compile(
    r"\b(?:is|are|was|were) (?:only )?(?:never|not) (?:called|updated|used|shown|set)\b"
    r"|\bnever updated\b|\b(?:but )?NOT used\b|\b(?:bypassed|already fixed|ineffectual|only had"
    r"|I can|I'm|we never)\b|\bwas (?:blocking|renamed)\b|\bwere also\b|\bisn't being\b"
    r"|\bthat's fine\b|\bso that works\b|\bwhy\b|\bthis reason\b|\bassertion\b"
    r"|^`[^`]+`(?: \w+){0,2}\s*[-—–]\s|^`[^`]+`(?:/`[^`]+`)*:\s|^[A-Z][\w' -]{2,50}(?:\s[-—–]\s"
    r"|:\s)|^(?:clearer|proper|simpler|single|cleaner|better|continuing|old|new)\b"
    r"|^the (?:key insight|lint|staged|simpler|immediate|reason|stale|lack|branch|initial"
    r"|directory)\b|^`[^`]+`(?: [\w-]+){1,3} in `",
    re.IGNORECASE,
)
"""The current state of the code, labels of lists, and remarks on the work."""

_NOW_SO = re.compile(
    r"\bnow (?:also |just |only |always )*(?:uses?|takes?|delegates?|calls?|detects?|accepts?"
    r"|returns?|falls?|condenses?)\b",
    re.IGNORECASE,
)
"""A change of the code that was just made; worth keeping only with its reason."""

_TRANSIENT = (
    _OF_THE_CODE, _PROGRESS, _FLEETING, _ABOUT_TESTS, _REPORTING, _OPINION, _FOLLOWING, _LABEL,
    _POINTING,
)  # fmt: skip
"""Patterns of transient remarks: true for a day, or only in their context."""


def _config(setting: re.Match[str], text: str) -> dict[str, str]:
    place = _PLACE.search(text)
    return {
        "setting": setting["setting"] or setting["setting2"],
        "value": (setting["value"] or setting["value2"]).strip('`"'),
        **({"location": place[1]} if place else {}),
    }


def _with_period(text: str) -> str:
    return text if text[-1:] in ".!?…)" else f"{text}."
