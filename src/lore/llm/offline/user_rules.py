"""Rules that extract knowledge from what a user says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lore.llm.offline import sentence_rules
from lore.llm.offline.sentence_rules import HIGH, LOW, MEDIUM, Finding, has_statement_length
from lore.records import FragmentKind, MessageText
from lore.text import entities, instructions, statements
from lore.text.regex import PatternFile
from lore.text.statements import (
    assertion_after_question,
    assertion_part,
    is_whole,
    question_day,
    stands_alone,
    strip_opening,
)

_re = PatternFile("user_rules")


def is_exercise(sentence: str) -> bool:
    """Return whether a sentence poses an exercise, or repeats a claim about a product."""
    specifics = entities.count_specifics(sentence)
    if _re.never_exercise.search(sentence):
        return False
    if _re.claim.search(sentence) and _re.heard.match(sentence) and not specifics.dates:
        return not _re.owned.search(sentence)
    if _re.formula.search(sentence) and "`" not in sentence and "://" not in sentence:
        return not _re.learning.search(sentence)
    if not _re.school_words.search(sentence) or specifics.dates or _re.learning.search(sentence):
        return False
    return bool(_re.task_opening.match(sentence))


MAX_OWN_CHARS = 700
"""At work, a longer message is a pasted plan or review, not the user's own words."""

_CATEGORIES = ("style", "testing", "workflow", "tools")


def find_in_user_message(
    one: MessageText, *, is_conversation: bool, at_work: bool
) -> Iterator[Finding]:
    """Yield the findings in a user's message.

    `is_conversation` is for conversations between named people; `at_work` for work on a project,
    where most sentences are commands of the moment.
    """
    own = strip_pasted_text(one.text)
    if (at_work and len(own) > MAX_OWN_CHARS) or is_restatement(own):
        return
    cut = statements.split_statements(own, by_line=True)
    joined = ""
    for place, statement in enumerate(cut):
        part = assertion_part(statement.text)
        if joined and part and joined.endswith(part):
            continue
        if is_question_about_code(statement.text, part):
            continue
        following = cut[place + 1].text if place + 1 < len(cut) else ""
        several = (
            find_rule(statement.text, part)
            or _complete_statement(part, statement.text, following, in_code=at_work),
            None
            if at_work
            else _complete_statement(
                assertion_after_question(statement.text), "", "", in_code=at_work
            ),
        )
        for candidate in several:
            if candidate is not None and (not is_conversation or _is_about_self(candidate[0])):
                joined = candidate[0]
                finding = _finding(one, *candidate, named=is_conversation)
                before = (
                    "" if finding.corrects else _withdrawn_before(statement.before, candidate[0])
                )
                yield replace(finding, corrects=before) if before else finding


def _withdrawn_before(sentence: str, rule: str) -> str:
    """Return what the sentence before a rule withdraws by name."""
    withdrawal = instructions.find_paired_withdrawal(sentence, rule)
    return withdrawal.withdrawn if withdrawal and withdrawal.form == "name" else ""


def _complete_statement(
    part: str, sentence: str, following: str, *, in_code: bool
) -> tuple[str, FragmentKind, float, float] | None:
    """Return a complete decision or fact, with the day and the outcome from its neighbours."""
    statement = find_statement(part, at_work=in_code)
    if statement is None or in_code or statement[1] != "fact":
        return statement
    text = strip_sentiment(part)
    if not text or is_exercise(text) or is_unclear(text):
        return None
    if _re.announced.search(text):
        text = _join_outcome(text, following)
    elif part.startswith(text) and find_statement(text, at_work=False) is None:
        text = part
    if not has_statement_length(text) or not is_whole(text) or not stands_alone(text):
        return None
    day = question_day(sentence)
    return (f"{text} ({day})" if day and day not in text else text, *statement[1:])


def _join_outcome(sentence: str, following: str) -> str:
    """Return an announcement joined with the sentence that says what; empty without one."""
    outcome = assertion_part(following)
    if (
        not has_statement_length(outcome)
        or not _re.first_person.search(outcome)
        or following.rstrip().endswith("?")
    ):
        return ""
    return f"{with_period(sentence)} {outcome}"


def strip_sentiment(sentence: str) -> str:
    """Return the facts of a sentence without its mood or intention; empty if there are none."""
    text = _strip_tail(sentence)
    mood = _re.mood.match(text)
    feared = _re.feared.match(text, mood.end()) if mood else None
    if feared:
        return _capitalize(text[feared.end() :])
    if _re.cut_off.match(text):
        return ""
    if mood:
        enclosed = _enclosed_statement(text, mood.end())
        if enclosed:
            return enclosed
    planned = _re.intention.match(text)
    if planned and not _re.open.search(planned.group()) and entities.count_specifics(text).dates:
        return text  # plans for a date are asked for later
    if (mood or planned) and not _has_substance(text):
        return ""
    return text


def _strip_tail(sentence: str) -> str:
    for _ in range(2):
        tail = _re.trailing.search(sentence)
        if (
            tail
            and has_statement_length(sentence[: tail.start()])
            and not _is_specific(tail.group())
        ):
            sentence = sentence[: tail.start()]
    plan = _re.wish_behind.search(sentence)
    if plan and has_statement_length(sentence[: plan.start()]) and not _is_specific(plan["wish"]):
        sentence = sentence[: plan.start()]
    return sentence.rstrip(" ,;")


def _enclosed_statement(text: str, start: int) -> str:
    """Return the statement after a mood, prefixed with the mood's subject.

    Return '' if the mood itself names a day, an amount or a person.
    """
    joint = _re.joint.search(text, start)
    if joint is None or _is_specific(text[start : joint.start()]):
        return ""
    rest = text[joint.end() :].strip()
    matter = _re.matter.search(text[start : joint.start()])
    if _re.intention.match(rest) or _re.mood.match(rest) or not _has_substance(rest):
        return ""
    if matter is None and "like" in joint.group():
        return ""
    if matter:
        return _capitalize(f"{matter['what'].strip()}: {rest}")
    return "" if _re.unclear.search(rest) else _capitalize(rest)


def _has_substance(text: str) -> bool:
    """Return whether a text has an amount, a title, a person, a set date or a completed act."""
    specifics = entities.count_specifics(_re.year.sub("", _re.share.sub(" ", text)))
    quoted = specifics.quoted and not _re.seeking.match(text)
    if specifics.numbers or quoted or _re.kin.search(text) or _re.exact.search(text):
        return True
    name_count = specifics.names + specifics.code
    if specifics.dates and (name_count or _re.share.search(text) or _re.set_day.search(text)):
        return True
    if name_count > 1 and _re.year.search(text):
        return True
    return (
        bool(_re.act.search(_re.idle_act.sub(" ", text)))
        and entities.count_specifics(text).total > 0
    )


def _is_specific(text: str) -> bool:
    return entities.count_specifics(text).total > 0


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def is_unclear(sentence: str) -> bool:
    """Return whether a sentence depends on earlier words, or lacks an object."""
    specifics = entities.count_specifics(sentence)
    if _re.denied.search(sentence):
        return bool(_re.denies_it.search(sentence)) and not specifics.names
    is_named = bool(specifics.names or specifics.quoted or specifics.dates > 1)
    also = _re.also.search(sentence) and not (
        specifics.numbers or specifics.dates or specifics.quoted
    )
    return bool(
        any(
            form.search(sentence)
            for form in (_re.bare_share, _re.progress, _re.wanted, _re.shown, _re.seen)
        )
        or (_re.no_object.search(sentence) and not specifics.quoted)
        or (also and specifics.names < 2)
        or (_re.it.match(sentence) and not (specifics.quoted or specifics.code))
        or (_re.new.search(sentence) and not specifics.names)
        or ((_re.this.search(sentence) or _re.unnamed.search(sentence)) and not is_named)
    )


def is_restatement(text: str) -> bool:
    """Return whether a message repeats something to check that it was understood."""
    return bool(_re.restated.match(text.lstrip()))


def is_question_about_code(sentence: str, part: str) -> bool:
    """Return whether a statement is a clause of a question about code.

    In a question about their own life, a person states the clause after 'since' or 'because'.
    """
    asks = sentence.rstrip().endswith("?") and bool(entities.identifiers(part))
    return asks and (
        not strip_opening(sentence).startswith(part) or bool(_re.supposed.match(sentence))
    )


def replaced_by(text: str) -> str:
    """Return what a statement says is no longer so; empty if there is nothing."""
    withdrawal = instructions.find_withdrawal(text)
    if withdrawal:
        return withdrawal.withdrawn
    return sentence_rules.replaced_value(text) if sentence_rules.states_change(text) else ""


def with_period(text: str) -> str:
    """Return a sentence with a full stop."""
    return text if text[-1:] in ".!" else f"{text}."


def _is_about_self(part: str) -> bool:
    """Return whether someone speaks of themselves: conversations are full of politeness."""
    if _re.no_rule.match(part) or _re.shown.search(part):
        return False
    return bool(_re.own.search(part)) and not _re.you.search(part)


def strip_pasted_text(text: str) -> str:
    """Return a message without text that programs inserted."""
    return _re.pasted.sub("\n", text)


def find_rule(whole: str, part: str) -> tuple[str, FragmentKind, float, float] | None:
    """Return the standing instruction or preference in a sentence, if it has one."""
    if instructions.find_paired_withdrawal(part):
        # The reason follows a comma: "…, CI does it".
        rule = part if _is_clear(part) else part.partition(",")[0]
    else:
        rule = part if instructions.find_standing(part) else _standing_clause(whole)
    if not rule or not has_statement_length(rule) or not _is_clear(rule):
        return None
    if _re.decided.search(rule) and not _re.prefers.search(rule):
        return rule, "decision", HIGH, 3.0
    return rule, "preference", HIGH, 4.0


def _is_clear(rule: str) -> bool:
    """Return whether a rule is self-contained; a swap names what its 'it' refers to."""
    withdrawal = instructions.find_withdrawal(rule)
    return stands_alone(rule) or (withdrawal is not None and withdrawal.form == "swap")


def _standing_clause(whole: str) -> str:
    """Return the clause of a longer sentence that is meant to last."""
    if not instructions.may_be_standing(whole):
        return ""
    for start in _re.clause.finditer(whole):
        clause = assertion_part(whole[start.end() :])
        if _re.subject.match(clause) and instructions.find_standing(clause):
            return clause
    return ""


def find_statement(part: str, *, at_work: bool) -> tuple[str, FragmentKind, float, float] | None:
    """Return the decision or fact in a sentence, with kind, importance and score."""
    if not has_statement_length(part) or not is_whole(part):
        return None
    classified = _classify(part, in_code=at_work)
    return None if classified is None else (part, *classified)


def _classify(part: str, *, in_code: bool) -> tuple[FragmentKind, float, float] | None:
    specifics = entities.count_specifics(part)
    if not stands_alone(part) or _re.about_talk.search(part):
        return None
    if in_code:
        return _classify_at_work(part, specifics)
    if _re.decided.search(part) and specifics.total and not _re.future.match(part):
        return (
            "decision",
            HIGH if sentence_rules.states_change(part) else MEDIUM,
            2.5 + 0.2 * specifics.total,
        )
    if sentence_rules.is_command(part) or not _re.own.search(part) or not _re.happened.search(part):
        return None
    if (
        _re.failing.search(part)
        or _re.lost.match(part)
        or (_re.hearsay.match(part) and not specifics.dates)
    ):
        return None
    return _classify_personal_fact(part, specifics)


def _classify_personal_fact(
    part: str, specifics: entities.Specifics
) -> tuple[FragmentKind, float, float] | None:
    """Classify a personal fact: it must say when, how much, who or what."""
    hard = specifics.numbers + specifics.dates + specifics.quoted + specifics.code
    if _re.future.match(part):
        told_when = specifics.dates and specifics.names and not _re.meant.match(part)
        planned = _re.planned.match(part) and (_re.money.search(part) or told_when)
        return ("fact", LOW, 1.0) if planned else None
    if _re.never.search(part):
        return "fact", MEDIUM, 1.5
    is_told = bool(_re.done.search(part)) or specifics.dates > 0 or specifics.quoted > 0
    needed = 1 if is_told else 2
    needed += 1 if _re.working.search(part) and not specifics.dates else 0
    if hard + specifics.names < needed or (
        not hard and specifics.names < 2 and not entities.has_relative_date(part)
    ):
        return None
    return "fact", MEDIUM, 1.0 + 0.3 * min(specifics.total, 5)


def _classify_at_work(
    part: str, specifics: entities.Specifics
) -> tuple[FragmentKind, float, float] | None:
    if sentence_rules.is_command(part) or _re.moment.search(part) or _re.future.match(part):
        return None
    if _re.aside.match(part) or _re.aside_in.search(part) or _re.about_tests.search(part):
        return None
    if _re.decided.search(part) and (specifics.code or specifics.names):
        return "decision", HIGH, 3.0
    if (
        specifics.code
        and _re.rule.search(part)
        and (_re.own.search(part) or _re.modal.search(part))
    ):
        return "decision", MEDIUM, 2.0
    if (
        specifics.code
        and _re.to_be.search(part)
        and _re.of_us.search(part)
        and not _re.working.search(part)
    ):
        return "fact", MEDIUM if specifics.code > 1 else LOW, 1.0
    return None


def _finding(
    one: MessageText, part: str, kind: FragmentKind, importance: float, score: float, *, named: bool
) -> Finding:
    text = with_period(part)
    content = _with_speaker(one, text) if named else with_date(one.at, text)
    return Finding(
        content, kind, importance, score, (one.id,), payload_of(kind, part), replaced_by(part)
    )


def _with_speaker(one: MessageText, text: str) -> str:
    if entities.has_relative_date(text):
        return f"{one.voice} ({_format_day(one.at)}): {text}"
    return f"{one.voice}: {text}"


def with_date(at: datetime, text: str) -> str:
    """Return a statement with the day it was made, if it says 'yesterday' or the like."""
    return f"{text} (said on {_format_day(at)})" if _re.by_day.search(text) else text


def _format_day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def payload_of(kind: FragmentKind, part: str) -> dict[str, Any]:
    """Return the payload of a statement."""
    if kind == "preference":
        category = next(
            (one for one in _CATEGORIES if getattr(_re, f"about_{one}").search(part)), "general"
        )
        return {"category": category}
    if kind == "decision":
        return sentence_rules.decision_payload(part)
    return {}
