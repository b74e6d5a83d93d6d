"""Rules that extract knowledge from what a user says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from lore.llm.offline import sentence_rules, statement_tone
from lore.llm.offline.sentence_rules import HIGH, LOW, MEDIUM, Finding, has_statement_length
from lore.records import FragmentKind, MessageText
from lore.text import entities, instructions, statements
from lore.text.statements import (
    assertion_after_question,
    assertion_part,
    is_whole,
    question_day,
    stands_alone,
    strip_opening,
)

_FORMULA = re.compile(
    r"\\[a-zA-Z(\[]|[√²³×÷≈∑∫π]|\bP\([\w|, ]+\)|\b[a-z]_[a-z]\b|\b\d+!|\d\)?\s?[+*^]\s?\(?\d"
    r"|\b[A-Za-z]\s?=\s?[\d(]"
)
_SCHOOL_WORDS = re.compile(
    r"\b(?:triangles?|hypotenuse|altitudes?|angles?|scalene|isosceles|equilateral|theorem|dice|die"
    r"|coins?|marbles?|deck of|permutations?|combinations?|factorials?|probabilit(?:y|ies)"
    r"|equations?|perimeter|circumference|radius|median length|heron's)\b",
    re.IGNORECASE,
)
_TASK_OPENING = re.compile(
    r"^(?:I'm|I am|I've been|I've got|I have|I've|I)\s(?:\w+\s){0,3}?(?:working with|given|trying"
    r"|an?|the|two|three|\d+|using|verify\w*|calculat\w*|check\w*|apply\w*|comput\w*|determin\w*|find"
    r"|draw\w*|need|want|won't|can|know|understand|got)\b",
    re.IGNORECASE,
)
_LEARNING = re.compile(
    r"\b(?:problems?|quiz|score|accuracy|goal|course|class|lessons?|prefer|solved|completed|practi[cs]"
    r"\w*|studied|studying|month|week|tutor|exams?)\b",
    re.IGNORECASE,
)
"""How someone learns is about them, whatever they learn."""

_NEVER_EXERCISE = re.compile(r"\bnever\b", re.IGNORECASE)
_CLAIM = re.compile(
    r"\b(?:which|that|it|they|unit|technology|material|insole|pad|panels?|upper|sole|cushioning"
    r"|fabric|its [\w -]{3,40}?)\s(?:can\s|is\s|are\s|has\s|was\s)?(?:been\s)?(?:improves?|improved"
    r"|reduces?|reduced|increases?|absorbs?|provides?|offers?|boosts?|enhances?|rated|lasts?|extends?"
    r"|speeds?|tested|claims?)\b[^.;]{0,80}\d+(?:\.\d+)?\s?%",
    re.IGNORECASE,
)
_HEARD = re.compile(
    r"^I(?:'m|'ve| have| am)?\s?(?:been\s|also\s|just\s|kinda\s)*(?:research\w*|heard|read|learn\w*"
    r"|consider\w*|think\w*|look\w*|interested|compar\w*|know|noticed|saw)\b",
    re.IGNORECASE,
)
_OWNED = re.compile(
    r"\bI(?:'ve| have)?\s(?:just\s|also\s|already\s|recently\s)*(?:got|bought|own|ordered|chose"
    r"|paid|purchased|wore|returned|picked|met|spent|decided)\b|[$€£]\d",
    re.IGNORECASE,
)


def is_exercise(sentence: str) -> bool:
    """Return whether a sentence poses an exercise, or repeats a claim about a product."""
    specifics = entities.count_specifics(sentence)
    if _NEVER_EXERCISE.search(sentence):
        return False
    if _CLAIM.search(sentence) and _HEARD.match(sentence) and not specifics.dates:
        return not _OWNED.search(sentence)
    if _FORMULA.search(sentence) and "`" not in sentence and "://" not in sentence:
        return not _LEARNING.search(sentence)
    if not _SCHOOL_WORDS.search(sentence) or specifics.dates or _LEARNING.search(sentence):
        return False
    return bool(_TASK_OPENING.match(sentence))


MAX_OWN_CHARS = 700
"""At work, a longer message is a pasted plan or review, not the user's own words."""

_DECIDED = re.compile(
    r"""\b(?:i|we|i've|we've|i\ have|we\ have)\ (?:just\ |finally\ |also\ |already\ |now\ |then\ )*
          (?:decided|chose|chosen|opted|settled\ on|picked|agreed|switched|migrated|replaced|adopted
          |moved\ (?:to|from|away)|went\ with|upgraded|dropped|declined|accepted|rejected|selected
          |rescheduled|postponed|committed\ to)\b
      | \b(?:i'll|we'll|i\ will|we\ will|i'm\ gonna|let's|lets|i\ think\ i'll
          |we\ should)\ (?:just\ )?
          (?:go\ with|stick\ with|stick\ to|keep\ using|use|drop|switch\ to|standardi[sz]e\ on)\b
      | \bwe're\ (?:going\ with|using|moving\ to|switching\ to)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FUTURE = re.compile(
    r"^(?:i'll|i\ will|i'm\ going\ to|i'm\ gonna|gonna|we'll|let's|lets|let\ me|maybe|perhaps|if"
    r"|once|when|i\ might|i\ may|i\ could|i\ should|i\ guess|we\ could|we\ might|for\ example"
    r"|for\ instance|imagine|suppose|then|first|next|after\ that|finally|lastly|assuming"
    r"|i\ hope|hopefully|i'd\ love|i'd\ like|i\ would\ like|i\ can|some|step|good|sounds|makes"
    r"|looks|no\ need|can't\ wait|looking\ forward|glad|happy\ to|sorry|hope)\b".replace(
        "\\ ", " "
    ),
    re.IGNORECASE,
)
_OWN = re.compile(r"\b(?:I|I'm|I've|I'd|we|We|we've|we're|We've|We're|my|My|our|Our|mine|myself)\b")
_HAPPENED = re.compile(
    r"""\b(?:i|we|he|she|they|[A-Z][a-z]+)(?:'ve|\ have|\ has|'s)?\ (?:just\ |also\ |already\ "
    r"|recently
          \ |only\ |finally\ |never\ |always\ |actually\ |even\ )*(?:\w+ed|was|were|had|got|went
          |made|met|took|bought|built|wrote|won|spent|found|set|read|saw|gave|told|said|sent
          |began|chose|ran|paid|lost|left|kept|felt|became|came|did|grew|taught|thought|drew|sold
          |been|done|gone|am|is|are|have|has|own|use|work|live|teach|like|love|enjoy|prefer|plan
          |started|need|want|believe|think)\b
      | \b(?:I'm|I'm\ |we're|we've|I've)\b
      | \b(?:my|our)\ (?:\w+\ ){1,4}?(?:is|are|was|were|has|have|will|had|\w+ed|\w+s)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ABOUT_TALK = re.compile(
    r"""\b(?:you're|you\ are|you've|you\ have|your|you'd|you)\ (?:\w+\ ){0,3}?(?:right|wrong|welcome
          |awesome|amazing|great|sweet|kind|so|really|such|an?|got|did|made|said|mentioned
          |suggested|can|should|have|look|inspire|support|help)\b
      | \bi'm\ (?:so\ |really\ |very\ |super\ )*(?:glad|happy|proud|sorry|excited)\ (?:for|of|to
          \ hear|that|you|about)\b
      | \b(?:makes\ sense|sounds\ (?:like|good|great)|can't\ wait|good\ luck|take\ care|talk\ (?:to
          \ you\ )?(?:soon|later)|let\ me\ know|keep\ me\ posted|i\ agree|i\ see|i\ know,?\ right
          |no\ problem|same\ here|see\ you|have\ (?:fun|a\ great))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_WORKING = re.compile(
    r"\bI(?:'m| am) (?:currently |also |still |now )*(?:trying|having|getting|stuck|struggling"
    r"|working|planning|looking|thinking|considering|feeling|kinda|worried|concerned)\b",
    re.IGNORECASE,
)
_RULE = re.compile(
    r"""\b(?:should|must|needs?\ to|has\ to|have\ to|shouldn't|mustn't|ought\ to|is\ supposed\ to)\b
      | \b(?:only|never|always|every|by\ default|instead\ of|rather\ than|because|so\ that)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_ASIDE = re.compile(
    r"(?:session \d|for a first|the function|we should|we are back|ah|we didn't|we updated"
    r"|we have found|I don't need|until recently|previously|formerly)\b|(?:I'm|I would|I do|I did"
    r"|you|mmm|now|continuing|looking|user|need|critical|linear)\b",
    re.IGNORECASE,
)
_ASIDE_IN = re.compile(
    r"\b(?:(?:these|those) \w+|also duplicated|would be (?:great|nice)|as well)\b", re.IGNORECASE
)
_OF_US = re.compile(r"\b(?:we|our|in my head)\b|==", re.IGNORECASE)
_MODAL = re.compile(r"\b(?:should|must|needs? to|has to|have to)\b", re.IGNORECASE)
_ABOUT_TESTS = re.compile(r"\b(?:tests?|Test\w+|\w+_test)\b")
_FAILING = re.compile(
    r"\b(?:still (?:not|getting|having|doesn't)|not working|doesn't work|no luck|(?:as|like) (?:we"
    r"|you|I) (?:discussed|mentioned|said|talked|suggested)|for this purpose)\b",
    re.IGNORECASE,
)
_LOST = re.compile(
    r"(?:m+m|ah|hm+)\b|now i'm (?:getting|seeing)\b|i'm confused\b|more what\b", re.IGNORECASE
)
_IS = re.compile(
    r"\b(?:is|are|was|were|has|have|uses?|runs?|lives?|returns?|means|contains|requires|depends"
    r"|supports?|comes|belongs|points|goes|works?|doesn't|don't|isn't|aren't|can't|cannot)\b"
)
_MOMENT = re.compile(
    r"\b(?:i see|i get|i got|i'm getting|i'm seeing|seems?|looks? like|not working|still|for now"
    r"|right now|at the moment|i think|maybe|probably|wondering|not sure|i guess|might|perhaps"
    r"|failing|fails now|just (?:ran|tried|pushed|merged|noticed))\b",
    re.IGNORECASE,
)
_CATEGORIES = (
    ("style", re.compile(r"\b(?:format|style|name|naming|comment|type|indent|wording|tone|concise"
                         r"|brief|short|bullet|syntax|highlight)", re.IGNORECASE)),
    ("testing", re.compile(r"\btest", re.IGNORECASE)),
    ("workflow", re.compile(r"\b(?:commit|push|merge|rebase|branch|pr|review|deploy|release)\b",
                            re.IGNORECASE)),
    ("tools", re.compile(r"\b(?:use|using|library|framework|tool|package|app)\b", re.IGNORECASE)),
)  # fmt: skip


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
    text = statement_tone.strip_sentiment(part)
    if not text or is_exercise(text) or statement_tone.is_unclear(text):
        return None
    if statement_tone.is_announcement(text):
        text = statement_tone.join_outcome(text, following)
    elif part.startswith(text) and find_statement(text, at_work=False) is None:
        text = part
    if not has_statement_length(text) or not is_whole(text) or not stands_alone(text):
        return None
    day = question_day(sentence)
    return (f"{text} ({day})" if day and day not in text else text, *statement[1:])


def is_restatement(text: str) -> bool:
    """Return whether a message repeats something to check that it was understood."""
    return bool(_RESTATED.match(text.lstrip()))


_RESTATED = re.compile(
    r"(?:(?:ok(?:ay)?|and|but|right|hmm*|just)\b[, ]*)*(?:so (?:that )?i (?:understand|get this)"
    r"|if i(?:'m)? understand\w*|(?:so )?in other words|(?:so )?you mean\b"
    r"|to (?:be clear|clarify|confirm)|let me (?:rephrase|repeat))\b",
    re.IGNORECASE,
)


def is_question_about_code(sentence: str, part: str) -> bool:
    """Return whether a statement is a clause of a question about code.

    In a question about their own life, a person states the clause after 'since' or 'because'.
    """
    asks = sentence.rstrip().endswith("?") and bool(entities.identifiers(part))
    return asks and (
        not strip_opening(sentence).startswith(part) or bool(_SUPPOSED.match(sentence))
    )


_SUPPOSED = re.compile(
    r"^(?:(?:ok(?:ay)?|ah|right|hmm*|and)\b[, ]*)*(?:so|then) (?:we|it|this|that|you|i)\b",
    re.IGNORECASE,
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
    if _NO_RULE.match(part) or statement_tone.refers_back(part):
        return False
    return bool(_OWN.search(part)) and not _YOU.search(part)


_NO_RULE = re.compile(r"^(?:always|never) (?:\w+ing|\w+ed|been)\b", re.IGNORECASE)
"""Between people 'always been …' describes someone, and is no rule."""


_YOU = re.compile(r"\b(?:you|your|you're|you've|no matter what)\b", re.IGNORECASE)


def strip_pasted_text(text: str) -> str:
    """Return a message without text that programs inserted."""
    return _PASTED.sub("\n", text)


_PASTED = re.compile(
    r"<([a-z][\w-]{2,40})\b[^>]{0,200}>.*?(?:</\1>|\Z)|^[ \t]*\[[^\]\n]{2,80}\][ \t]*$"
    r"|^[ \t]*(?:at \S{1,200}\(|File \"|\d+[→|]|[+-]{3} |@@ |=== |--- "
    r"|\S{1,200}\.\w{1,5}:\d+)[^\n]*$",
    re.MULTILINE | re.DOTALL,
)


def find_rule(whole: str, part: str) -> tuple[str, FragmentKind, float, float] | None:
    """Return the standing instruction or preference in a sentence, if it has one."""
    if instructions.find_paired_withdrawal(part):
        # The reason follows a comma: "…, CI does it".
        rule = part if _is_clear(part) else part.partition(",")[0]
    else:
        rule = part if instructions.find_standing(part) else _standing_clause(whole)
    if not rule or not has_statement_length(rule) or not _is_clear(rule):
        return None
    if _DECIDED.search(rule) and not _PREFERS.search(rule):
        return rule, "decision", HIGH, 3.0
    return rule, "preference", HIGH, 4.0


def _is_clear(rule: str) -> bool:
    """Return whether a rule is self-contained; a swap names what its 'it' refers to."""
    withdrawal = instructions.find_withdrawal(rule)
    return stands_alone(rule) or (withdrawal is not None and withdrawal.form == "swap")


def _standing_clause(whole: str) -> str:
    """Return the clause of a longer sentence that is meant to last."""
    for start in _CLAUSE.finditer(whole):
        clause = assertion_part(whole[start.end() :])
        if _SUBJECT.match(clause) and instructions.find_standing(clause):
            return clause
    return ""


_CLAUSE = re.compile(r", (?:(?:and|but|so|since|because) )?| (?:and|but|since|because) (?=I\b)")
_SUBJECT = re.compile(
    r"(?:I|I'd|I'm|I've|We|Always|Never|From|Please|Going|Whenever|My \w+ (?:is|are))\b"
)
_PREFERS = re.compile(
    r"\b(?:prefer\w*|always|never|from now on|going forward|rather|like|hate|love|whenever"
    r"|in future|insist)\b",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"^I(?:'ve| have) (?:heard|tried|been trying|looked|read)\b|^(?:I|We) (?:want|need"
    r"|'d like) to (?:make sure|ensure|know|see|understand)\b|^I'm (?:not|just|also|still) "
    r"|^I think (?!I'll|we'll)|^[\"“‘'*(]|^I'm (?:trying|having trouble|stuck"
    r"|struggling)[^,]{0,24}\b(?:apply|verify|calculat|solve|prove|find|comput|determin|understand"
    r"|simplify)\w*",
    re.IGNORECASE,
)


def find_statement(part: str, *, at_work: bool) -> tuple[str, FragmentKind, float, float] | None:
    """Return the decision or fact in a sentence, with kind, importance and score."""
    if not has_statement_length(part) or not is_whole(part):
        return None
    classified = _classify(part, in_code=at_work)
    return None if classified is None else (part, *classified)


def _classify(part: str, *, in_code: bool) -> tuple[FragmentKind, float, float] | None:
    specifics = entities.count_specifics(part)
    if not stands_alone(part) or _ABOUT_TALK.search(part):
        return None
    if in_code:
        return _classify_at_work(part, specifics)
    if _DECIDED.search(part) and specifics.total and not _FUTURE.match(part):
        return (
            "decision",
            HIGH if sentence_rules.states_change(part) else MEDIUM,
            2.5 + 0.2 * specifics.total,
        )
    if sentence_rules.is_command(part) or not _OWN.search(part) or not _HAPPENED.search(part):
        return None
    if _FAILING.search(part) or _LOST.match(part) or (_HEARSAY.match(part) and not specifics.dates):
        return None
    return _classify_personal_fact(part, specifics)


def _classify_personal_fact(
    part: str, specifics: entities.Specifics
) -> tuple[FragmentKind, float, float] | None:
    """Classify a personal fact: it must say when, how much, who or what."""
    hard = specifics.numbers + specifics.dates + specifics.quoted + specifics.code
    if _FUTURE.match(part):
        told_when = specifics.dates and specifics.names and not _MEANT.match(part)
        planned = _PLANNED.match(part) and (_MONEY.search(part) or told_when)
        return ("fact", LOW, 1.0) if planned else None
    if _NEVER.search(part):
        return "fact", MEDIUM, 1.5
    is_told = bool(_DONE.search(part)) or specifics.dates > 0 or specifics.quoted > 0
    needed = 1 if is_told else 2
    needed += 1 if _WORKING.search(part) and not specifics.dates else 0
    if hard + specifics.names < needed or (
        not hard and specifics.names < 2 and not _has_date(part)
    ):
        return None
    return "fact", MEDIUM, 1.0 + 0.3 * min(specifics.total, 5)


def _has_date(part: str) -> bool:
    return entities.has_relative_date(part)


_MONEY = re.compile(r"[$€£]\d")
_MEANT = re.compile(r"(?:I'll|I will|We'll|I'm gonna)\b", re.IGNORECASE)
"""What someone "will" do is over the same day; what they are "going to" do is planned."""

_PLANNED = re.compile(r"(?:I'll|I will|I'm going to|We'll|I'm gonna)\b", re.IGNORECASE)
_NEVER = re.compile(r"\bI(?:'ve| have)? never \w+", re.IGNORECASE)
_DONE = re.compile(
    r"\b(?:I|We|He|She|They|[A-Z][a-z]+)(?:'ve| have| has|'d| had)? (?:just |also |already "
    r"|recently |only |finally |actually )*(?:\w+ed|was|were|got|went|made|met|took|bought|built"
    r"|wrote|won|spent|found|set|read|saw|gave|told|said|sent|began|chose|ran|paid|lost|left|kept"
    r"|became|came|did|grew|taught|drew|sold|been|done|gone)\b|\bI've\b|\bI'm \d\d\b"
)


def _classify_at_work(
    part: str, specifics: entities.Specifics
) -> tuple[FragmentKind, float, float] | None:
    if sentence_rules.is_command(part) or _MOMENT.search(part) or _FUTURE.match(part):
        return None
    if _ASIDE.match(part) or _ASIDE_IN.search(part) or _ABOUT_TESTS.search(part):
        return None
    if _DECIDED.search(part) and (specifics.code or specifics.names):
        return "decision", HIGH, 3.0
    if specifics.code and _RULE.search(part) and (_OWN.search(part) or _MODAL.search(part)):
        return "decision", MEDIUM, 2.0
    if specifics.code and _IS.search(part) and _OF_US.search(part) and not _WORKING.search(part):
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
    return f"{text} (said on {_format_day(at)})" if _BY_DAY.search(text) else text


_BY_DAY = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this) (?:week|weekend|month|year|\w+day)"
    r"|(?:days?|weeks?|months?|years?) ago|on the \d{1,2}(?:st|nd|rd|th)(?! of))\b",
    re.IGNORECASE,
)


def _format_day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def payload_of(kind: FragmentKind, part: str) -> dict[str, Any]:
    """Return the payload of a statement."""
    if kind == "preference":
        category = next((name for name, form in _CATEGORIES if form.search(part)), "general")
        return {"category": category}
    if kind == "decision":
        return sentence_rules.decision_payload(part)
    return {}
