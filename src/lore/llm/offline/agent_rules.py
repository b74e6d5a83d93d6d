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
from lore.text.regex import PatternFile
from lore.text.statements import Statement, is_whole, stands_alone, strip_opening

_re = PatternFile("agent_rules")

MAX_FOLLOWUPS = 24
"""An agent repairs a defect within this many of its messages, or not at all."""

_CHECKS = frozenset("verify run rerun re-run test confirm commit push format lint".split())
"""An agent that continues with one of these treats its statement as settled."""


def is_transient(parts: Sequence[Statement], place: int, after: Sequence[MessageText]) -> bool:
    """Return whether an agent's statement is a step of its work rather than lasting knowledge."""
    text = parts[place].text
    if _re.past_state.search(text) or is_compiler_complaint(text):
        return True
    rest = [one.text for one in parts[place + 1 :]]
    if any(map(_re.thinks_aloud.search, (*rest, *(one.text for one in parts[:place])))):
        return not _re.limit.search(text)
    if _re.condition.search(text) and _re.planned.search(
        f"{parts[place].before} {parts[place].lead}"
    ):
        return True
    if not _re.limit.search(text) and any(map(_is_next_step, rest)):
        return True
    return not rest and not _re.limit.search(text) and is_followed_by_edit(after[:1])


def is_compiler_complaint(text: str) -> bool:
    """Return whether a sentence quotes a compiler or linter."""
    return bool(_re.compiler_complaint.search(text))


def is_defect(parts: Sequence[Statement], place: int) -> bool:
    """Return whether a statement describes a defect of the project's own code."""
    text = parts[place].text
    if _re.limit.search(text) or _re.fix_subject.match(text) or not project_identifiers(text):
        return False
    following = parts[place + 1].text if place + 1 < len(parts) else ""
    return bool(_re.defect.search(text) or _re.names_problem.match(following))


def project_identifiers(text: str) -> tuple[str, ...]:
    """Return the identifiers in a text that belong to the project's own code."""
    return tuple(name for name in entities.identifiers(text) if _re.own_code.search(name))


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
    step = _re.next_step.match(sentence)
    if step is None or step["verb"].lower() in _CHECKS:
        return False
    return not _re.external.search(sentence)


MIN_SHARED_NAMES = 0.5
"""Share of a claim's names that a message must have to be about it."""

MIN_SHARED_WORDS = 2
"""Words of a claim that a user's doubt must have to be about it."""


def is_withdrawn(claim: str, after: Sequence[MessageText]) -> bool:
    """Return whether the user doubts a claim next, or the agent says later that it was wrong."""
    names = {name.strip("`()") for name in entities.identifiers(claim)}
    question = next((one for one in after if _is_person(one)), None)
    if (
        question is not None
        and _re.doubted.search(question.text)
        and _is_about(claim, question.text)
    ):
        return True
    for one in after:
        if one.voice == "assistant" and _re.withdrawn.search(one.text):
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


CAUSE_SENTENCES = 2
"""The cause stands in the last sentences before the fix."""


class Fix(NamedTuple):
    """A fix with its cause, and the indexes of both among the statements."""

    cause: str
    solution: str
    places: frozenset[int]


def find_fix(parts: Sequence[Statement]) -> Fix | None:
    """Return the one fix that a message announces, with the cause stated before it."""
    places = [at for at, one in enumerate(parts) if _re.announced.match(one.text)]
    if len(places) != 1 or places[0] == 0:
        return None
    at = places[0]
    solution, used = _solution(parts, at)
    first = max(0, at - CAUSE_SENTENCES)
    cause = [one.text for one in parts[first:at] if not one.is_item]
    if not solution or not cause or any(_re.option.search(one) for one in cause):
        return None
    if any(_re.summed_up.match(one) for one in cause):
        return None
    return Fix(" ".join(cause), solution, frozenset(range(first, at + 1 + used)))


def _solution(parts: Sequence[Statement], at: int) -> tuple[str, int]:
    """Return the solution: the sentence itself, or the first item of the list that it introduces.

    Later items are proposals that may be rejected.
    """
    match = _re.announced.match(parts[at].text)
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
        text = _re.greeting.sub("", one.text)
        if _re.printed.search(text):
            continue
        if _re.complaint.search(text) and len(text.split()) > CAUSE_SENTENCES:
            return text
    return ""


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
        if place in used or not _re.cause.search(statement.text):
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
    if not _re.action.search(text) and not _re.fix.search(text):
        return False
    passing = (_re.unsure, _re.fleeting, _re.about_tests, _re.progress, _re.praised)
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
    if fix is None or len(context.asked) > MAX_REPORT_CHARS or _re.unsure.search(fix.cause):
        return None
    symptom = find_complaint(statements.split_statements(context.asked, by_line=True))
    if not symptom or _re.fleeting.search(f"{fix.cause} {fix.solution}"):
        return None
    symptom = sentences.one_line(symptom[:1].upper() + symptom[1:], SYMPTOM_CHARS)
    text = f"{_with_period(symptom)} Cause: {_with_period(fix.cause)} {_with_period(fix.solution)}"
    if len(text) > MAX_FIX_CHARS or _re.about_tests.search(fix.solution):
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
        if _re.fix.search(text) and not _re.unsure.search(text) and not _re.praised.search(text):
            return later
    return None


def _bug_fix(
    one: MessageText,
    parts: Sequence[Statement],
    place: int,
    fix: int | None,
    context: PrecedingContext,
) -> Finding | None:
    """Return a cause with its fix; a cause without a fix is still open."""
    cause = parts[place].text
    if fix is None or _re.about_tests.match(cause) or _re.about_tests.search(parts[fix].text):
        return None
    if is_compiler_complaint(cause):
        return None
    if _re.unsure.search(cause) or not entities.identifiers(cause + parts[fix].text):
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
    reported = next((one.text for one in asked if _re.symptom.search(one.text)), "")
    candidates = (text for text in (cause.before, reported, cause.text) if _re.symptom.search(text))
    return sentences.one_line(next(candidates, ""), SYMPTOM_CHARS)


def _shares_name(error: str, text: str) -> bool:
    names = (name.strip("`()").lower() for name in entities.identifiers(text))
    return bool(error) and any(name in error.lower() for name in names)


def _classify(one: MessageText, statement: Statement) -> Finding | None:
    text = strip_opening(statement.text)
    if not _is_lasting(text, statement) or not has_statement_length(_re.brackets.sub("", text)):
        return None
    identifiers = entities.identifiers(text)
    names = [name for name in identifiers if _re.own_name.search(name)]
    reasoned = bool(_re.reasoned.search(text))
    enough = names or len(identifiers) > 1 if reasoned else len(names) > 1
    if not enough or _re.cause.search(text):
        return None
    setting = _re.setting.search(text)
    if setting:
        return Finding(text, "config", MEDIUM, 2.0, (one.id,), _config(setting, text))
    if not _re.constraint.search(text) and not reasoned:
        return None
    if (_re.action.search(text) or _re.now_so.search(text)) and not _re.ground.search(text):
        return None
    kind: FragmentKind = "fact"
    payload = {}
    if reasoned and _re.architecture.search(text):
        kind, payload = "architecture", sentence_rules.decision_payload(text)
    score = 1.0 + 0.8 * reasoned + 0.2 * min(len(names), 4)
    importance = MEDIUM
    return Finding(_with_period(text), kind, importance, score, (one.id,), payload)


def _is_lasting(text: str, statement: Statement) -> bool:
    if not has_statement_length(text) or _re.of_the_moment.match(text) or _re.unsure.search(text):
        return False
    if any(form.search(text) for form in _TRANSIENT):
        return False
    if sentence_rules.is_command(text) or not stands_alone(text) or not is_whole(text):
        return False
    return not _re.unsettled.search(f"{statement.heading} {statement.lead}")


_TRANSIENT = (
    _re.of_the_code, _re.progress, _re.fleeting, _re.about_tests, _re.reporting, _re.opinion,
    _re.following, _re.label, _re.pointing,
)  # fmt: skip
"""Patterns of transient remarks: true for a day, or only in their context."""


def _config(setting: re.Match[str], text: str) -> dict[str, str]:
    place = _re.place.search(text)
    return {
        "setting": setting["setting"] or setting["setting2"],
        "value": (setting["value"] or setting["value2"]).strip('`"'),
        **({"location": place[1]} if place else {}),
    }


def _with_period(text: str) -> str:
    return text if text[-1:] in ".!?…)" else f"{text}."
