"""Rules that extract the decisions, limits, owners and dates that a user states at work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lore.llm.offline import sentence_rules, user_rules
from lore.llm.offline.sentence_rules import HIGH, MEDIUM, Finding, has_statement_length
from lore.records import FragmentKind, MessageText
from lore.text import statements
from lore.text.regex import PatternFile
from lore.text.statements import Statement, assertion_part, is_whole, strip_opening

_re = PatternFile("decisions")


class Choice(NamedTuple):
    """The classification of a sentence; if `open`, it needs the next sentence to be complete."""

    kind: FragmentKind
    importance: float
    score: float
    corrects: str = ""
    open: bool = False


_BRIEF_WORDS = 3


def strip_opening_phrase(sentence: str) -> str:
    """Return a sentence without its opening signs and announcement."""
    return _re.preamble.sub("", _re.preamble.sub("", _re.signs.sub("", sentence)))


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence is self-contained; 'the one who' refers to nothing."""
    return statements.stands_alone(_re.the_one.sub("", sentence))


def classify(sentence: str) -> Choice | None:
    """Classify a sentence as decision, preference or fact; None if it settles nothing."""
    if _re.labelled.match(sentence):
        return Choice("decision", HIGH, 3.2)
    wished = _re.requested.search(sentence)
    if wished and not sentence.endswith("?"):
        return Choice("preference", HIGH, 3.5, wished["former"] or "")
    if _re.open_ended.search(sentence):
        return None
    return _classify_decision(sentence) or _classify_fact(sentence)


def _classify_decision(sentence: str) -> Choice | None:
    if (
        _re.picked.match(sentence) and not sentence_rules.is_command(sentence)
    ) or _re.refused.match(sentence):
        return Choice("decision", HIGH, 2.8, open=True)
    moved = _re.moves.match(sentence) or _re.moved.search(sentence)
    if moved:
        return Choice("decision", HIGH, 3.0, moved["former"].strip(" `\"'"))
    return Choice("decision", MEDIUM, 2.4) if _re.deliberate.search(sentence) else None


def _classify_fact(sentence: str) -> Choice | None:
    if _re.owner.search(sentence):
        return Choice("fact", MEDIUM, 2.2)
    is_dated = _re.scheduled.search(sentence) and _re.when.search(sentence)
    is_order = sentence_rules.is_command(sentence) and not _re.subject.match(sentence)
    if is_order or not (_re.limit.search(sentence) or is_dated):
        return None
    return Choice("fact", MEDIUM, 2.0)


def continues(before: Choice, sentence: str) -> bool:
    """Return whether a sentence continues the decision before it."""
    if _re.follows.match(sentence):
        return True
    if sentence.endswith("?") or sentence_rules.is_command(sentence):
        return before.open and bool(_re.refused.match(sentence))
    brief = len(sentence.split()) <= _BRIEF_WORDS and sentence[:1].islower()
    if before.open:
        return bool(_re.refused.match(sentence) or _re.named.match(sentence) or brief)
    return (
        before.kind == "fact"
        and bool(_re.owner.search(sentence))
        and not _re.limit.search(sentence)
    )


def replaced_in(sentence: str) -> str:
    """Return what a continuing sentence declares obsolete; empty if nothing."""
    match = _re.replaces.match(sentence) or _re.follows.match(sentence)
    return (match["former"] or "").strip() if match else ""


@dataclass(slots=True)
class _PendingDecision:
    """A decision that following sentences may still extend."""

    text: str
    choice: Choice
    last: str


def find_decisions(one: MessageText) -> Iterator[Finding]:
    """Yield the decisions that a user states while an agent works for them."""
    own = user_rules.strip_pasted_text(one.text)
    if len(own) > user_rules.MAX_OWN_CHARS or user_rules.is_restatement(own):
        return
    pending: _PendingDecision | None = None
    parts = statements.split_statements(own, by_line=True)
    for place, statement in enumerate(parts):
        raw = statement.text
        follows = pending is not None and pending.last == statement.before
        if pending and follows and (_is_rule(statement) or continues(pending.choice, raw)):
            former = pending.choice.corrects or replaced_in(raw)
            pending.text = f"{user_rules.with_period(pending.text)} {_capital(raw)}"
            pending.choice = pending.choice._replace(corrects=former)
            pending.last = raw
            continue
        if pending:
            yield from _findings(one, pending)
        pending = _start_decision(statement)
        if pending and pending.choice.kind == "fact" and _is_premise(parts, place):
            pending = None
    if pending:
        yield from _findings(one, pending)


def _start_decision(statement: Statement) -> _PendingDecision | None:
    """Return the decision that a sentence starts, without its opening phrase."""
    raw = statement.text
    opened = _re.like_it.sub("", strip_opening_phrase(raw))
    if _is_rule(statement):
        return _PendingDecision(_capital(opened), Choice("preference", HIGH, 4.0), raw)
    if _re.printed.search(raw):
        return None
    part = assertion_part(opened)
    rule = None if _re.tentative.match(part) else user_rules.find_rule(opened, part)
    if rule and _re.keep_in_mind.match(part):
        rule = None
    pending = _pending_statement(rule, raw) or _pending_choice(opened, raw)
    if pending or user_rules.is_question_about_code(raw, part):
        return pending
    return _pending_statement(user_rules.find_statement(part, at_work=True), raw)


def _is_premise(parts: list[Statement], place: int) -> bool:
    """Return whether a fact only leads to the question after it, or answers one of a list."""
    here = parts[place]
    after = parts[place + 1].text if place + 1 < len(parts) else ""
    if after.endswith("?") and _re.asks_of_it.search(after):
        return True
    first = parts[0]
    return (
        here.is_item and not here.lead and first.is_item and bool(_re.bare_answer.match(first.text))
    )


def _pending_choice(opened: str, raw: str) -> _PendingDecision | None:
    for text in (strip_opening(opened), _capital(opened)):
        choice = classify(text)
        if choice is None:
            continue
        if choice.open:
            return _PendingDecision(text, choice, raw)
        if stands_alone(text) and is_whole(text):
            former = choice.corrects or user_rules.replaced_by(text)
            return _PendingDecision(text, choice._replace(corrects=former), raw)
    return None


def _pending_statement(
    statement: tuple[str, FragmentKind, float, float] | None, raw: str
) -> _PendingDecision | None:
    if statement is None:
        return None
    return _PendingDecision(
        statement[0], Choice(*statement[1:], user_rules.replaced_by(statement[0])), raw
    )


def _findings(one: MessageText, pending: _PendingDecision) -> Iterator[Finding]:
    text = pending.text
    if has_statement_length(text):
        kind, importance, score, corrects, _ = pending.choice
        content = user_rules.with_date(one.at, user_rules.with_period(text))
        payload = user_rules.payload_of(kind, text)
        yield Finding(content, kind, importance, score, (one.id,), payload, corrects)


def _is_rule(statement: Statement) -> bool:
    """Return whether a sentence is an item of a list that the user calls rules."""
    return statement.is_item and bool(_re.rules.search(statement.lead))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
