"""Rules that extract the decisions, limits, owners and dates that a user states at work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from lore.llm.offline import sentence_rules, user_rules
from lore.llm.offline.sentence_rules import HIGH, MEDIUM, Finding, has_statement_length
from lore.records import FragmentKind, MessageText
from lore.text import statements
from lore.text.statements import Statement, assertion_part, is_whole, strip_opening


class Choice(NamedTuple):
    """The classification of a sentence; if `open`, it needs the next sentence to be complete."""

    kind: FragmentKind
    importance: float
    score: float
    corrects: str = ""
    open: bool = False


_PREAMBLE = re.compile(
    r"^[^:`\n]{0,60}\b(?:notes?|write (?:it )?down|written down|news|context|fyi|future|one thing"
    r"|more thing|heads up|remember)\b[^:`\n]{0,40}:\s+(?=\S)|^[^:`\n]{0,40}\bplease:\s+(?=\S)"
    r"|^i (?:like|prefer) it (?:this|that) way[^:`\n]{0,20}:\s+(?=\S)"
    r"|^(?:(?:and|but|also|so|btw|fyi|you know what),? )+(?=\S)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^[^\w\s`\"'“(/~#.@$<\[{-]+\s*")
_LABELLED = re.compile(
    r"^(?:(?:the|our|my|final|new)\s){0,2}(?:decision|convention|policy|(?:\w+\s)?rule)\b"
    r"[^:\n]{0,80}:\s+\S",
    re.IGNORECASE,
)
_PICKED = re.compile(
    r"^(?!(?:ok|okay|yes|no|fine|good|so|this|that|it|both|all|same|next|later|option|done|what|why"
    r"|how|bye|see|thanks|never|not|until|now|and|but|back|later|sounds?|let'?s"
    r"|maybe)\b)[a-z][\w@.+/-]*(?: [\w@.+/-]+){0,2} (?:then|it is)[.!]?$|^(?!(?:ok|okay|yes|no|fine"
    r"|good|done|sorry|thanks)\b)[a-z][\w-]*(?: [\w-]+){0,2}, no (?!need|problem|worries|idea"
    r"|longer|more|rush|hurry)[\w-]+(?: [\w-]+)?[.!]?$|^[a-z][\w-]* for (?:all"
    r"|every) [\w -]{3,30}[.!]?$|^then (?:the|an?) [\w-]+(?: [\w-]+)?[.!]?$",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"^no (?!need|problem|worries|idea|one|longer|more|it|i|we|you|they|this|that|there|please|but"
    r"|and|just|not|the|let|can|luck|rush|hurry|matter|wait)[\w-]+(?: [\w-]+){0,2}, (?:an?|the"
    r"|because|since|it's|\d\S*) \S",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"^(?!if\b|when\b|what\b|does\b|it\b)[^,;:?]{2,60} (?:moves?|goes|go|switch(?:es)?|changes?)"
    r" from (?P<former>[^,;?]{2,60}?) to \S",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:i|we)(?:'ve| have)? (?:just |also )?(?:moved|switched|migrated|ported|converted)"
    r" (?:the |our |my )?(?P<former>[\w./-]{3,40}) to (?:the |an? )?[\w./-]{2,40}\b",
    re.IGNORECASE,
)
_REQUESTED = re.compile(
    r"\bask me (?:first|before)\b|\b(?:don'?t|do not) (?:need|have) to (?P<former>[^,;?]{4,60}?)"
    r" any ?more\b|^(?:please:? )?no [\w -]{3,40} (?:please|at all|at the end|anywhere|ever)\b"
    r"|\bonly,? please\b|\bi (?:don'?t|do not|never) want [^,;?]{3,60} (?:anywhere|at all|ever)\b"
    r"|^please:? (?:write|use|name|format|keep|put|call)\b[^?]*, (?:never|always|not)\b"
    r"|\b(?:don'?t|do not) (?:add|use|put|write|commit|run)\b[^?]* (?:only for|just for"
    r"|anywhere)\b",
    re.IGNORECASE,
)
_AMOUNT = (
    r"(?<![\d.,])\d[\d.,]{0,9} ?(?:%|[kKmMgG]i?[bB]\b|(?:requests?|tries|sms|rows|files?|seconds?"
    r"|minutes?|hours?|days?|weeks?|per|an?|ms|s|h)\b)"
)
_DELIBERATE = re.compile(
    r"^(?:no, )?we (?!should\b|could\b|might\b|just\b)[^?]{3,80} (?:on purpose|by design)\b"
    r"|\bthat'?s why we \w+|^we (?:don'?t|do not|no longer) (?:have|use|support|need) `[^`]+`"
    r"(?: any ?more)?\b|\bwe (?:always|never) want\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    rf"\b(?:limits?|quota|page size|retention|max|maximum|idle timeout)\b[^?]{{0,40}}{_AMOUNT}"
    rf"|{_AMOUNT}[^?]{{0,20}}\b(?:limit|quota|max|maximum)\b|\bkept (?:for )?\d+ \w+"
    r"|^(?:the )?(?:oldest|lowest|minimum|newest) [\w ]{2,30} is (?:\w+ )?\d",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"\b(?:belongs? to (?:the )?\w+ team|belongs? to [A-Z]\w+|(?:is|are) (?:now )?(?:led|owned"
    r"|maintained|run) by (?:the )?[A-Z]\w+|is the one who \w+)"
    r"|^[A-Z][a-z]+ (?:now )?(?:(?:does|owns|leads|maintains|runs|handles) (?!not\b|n't\b|it\b|this"
    r"\b|that\b|a\b)(?:the )?[a-z]\w+|is (?:product|support|ops|our|the (?:lead|owner)|on leave"
    r"|responsible for|in charge of)\b|answers for\b|stands in for\b)"
)
_WHEN = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july"
    r"|august|september|october|november|december|\d{4}-\d\d-\d\d)\b|\b\d{1,2}:\d\d\b",
    re.IGNORECASE,
)
_SCHEDULED = re.compile(
    r"\b(?:releases?|deploy(?:s|ments?)?|deploy days|freeze|backups?|restore tests?|cutover|launch"
    r"|maintenance|code freeze)\b[^?]* (?:is|are|runs?|on|at|happens?|planned|starts?|every)\b",
    re.IGNORECASE,
)
_OPEN_ENDED = re.compile(
    r"\?|\b(?:maybe|perhaps|probably|i think|i guess|for now|not sure|wonder|seems?|might|could you"
    r"|can you|asked (?:whether|if)|yesterday i|failed|fails|error|broken|red|log attached)\b"
    r"|\b(?:today|tomorrow|tonight|this (?:week|morning|afternoon))\b|^no, (?!we\b)"
    r"|^(?:if|when|because|why|what|how|who|where)\b",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(
    r"^(?:she|he|they|keep it that way|it replaces)\b[^?]*$|^the (?P<former>[\w/ -]{3,40}?)(?: rule"
    r"| way)? (?:is|are) (?:history|gone|dead|obsolete)[.!]?$|^[\w ]{3,20} max\b[^?]{0,60}$"
    r"|^(?:but )?not for [^?]{3,100}$|^[^?]{2,30}\b(?:limit|quota|maximum) (?:for|of) it\b[^?]*$"
    r"|^(?:make|use|do|write|put|run|take) [^?]{3,100} instead[.!]?$",
    re.IGNORECASE,
)
_REPLACES = re.compile(r"^it replaces (?:the |our )?(?P<former>[\w./ -]{3,40})", re.IGNORECASE)
_BRIEF_WORDS = 3


def strip_opening_phrase(sentence: str) -> str:
    """Return a sentence without its opening signs and announcement."""
    return _PREAMBLE.sub("", _PREAMBLE.sub("", _SIGNS.sub("", sentence)))


def stands_alone(sentence: str) -> bool:
    """Return whether a sentence is self-contained; 'the one who' refers to nothing."""
    return statements.stands_alone(_THE_ONE.sub("", sentence))


_THE_ONE = re.compile(r"\bthe one (?=who\b|that\b|the\b)|^no (?:more )?", re.IGNORECASE)


def classify(sentence: str) -> Choice | None:
    """Classify a sentence as decision, preference or fact; None if it settles nothing."""
    if _LABELLED.match(sentence):
        return Choice("decision", HIGH, 3.2)
    wished = _REQUESTED.search(sentence)
    if wished and not sentence.endswith("?"):
        return Choice("preference", HIGH, 3.5, wished["former"] or "")
    if _OPEN_ENDED.search(sentence):
        return None
    return _classify_decision(sentence) or _classify_fact(sentence)


def _classify_decision(sentence: str) -> Choice | None:
    if (_PICKED.match(sentence) and not sentence_rules.is_command(sentence)) or _REFUSED.match(
        sentence
    ):
        return Choice("decision", HIGH, 2.8, open=True)
    moved = _MOVES.match(sentence) or _MOVED.search(sentence)
    if moved:
        return Choice("decision", HIGH, 3.0, moved["former"].strip(" `\"'"))
    return Choice("decision", MEDIUM, 2.4) if _DELIBERATE.search(sentence) else None


_SUBJECT = re.compile(r"^\w+(?: \w+)? (?:is|are|runs?)\b", re.IGNORECASE)
"""'Deploy days are …' starts like a command and is none."""


def _classify_fact(sentence: str) -> Choice | None:
    if _OWNER.search(sentence):
        return Choice("fact", MEDIUM, 2.2)
    is_dated = _SCHEDULED.search(sentence) and _WHEN.search(sentence)
    is_order = sentence_rules.is_command(sentence) and not _SUBJECT.match(sentence)
    if is_order or not (_LIMIT.search(sentence) or is_dated):
        return None
    return Choice("fact", MEDIUM, 2.0)


def continues(before: Choice, sentence: str) -> bool:
    """Return whether a sentence continues the decision before it."""
    if _FOLLOWS.match(sentence):
        return True
    if sentence.endswith("?") or sentence_rules.is_command(sentence):
        return before.open and bool(_REFUSED.match(sentence))
    brief = len(sentence.split()) <= _BRIEF_WORDS and sentence[:1].islower()
    if before.open:
        return bool(_REFUSED.match(sentence) or _NAMED.match(sentence) or brief)
    return before.kind == "fact" and bool(_OWNER.search(sentence)) and not _LIMIT.search(sentence)


_NAMED = re.compile(r"^(?:name|page size|limit|bucket|timeout|port|version)\b[^?]*$", re.IGNORECASE)
"""A detail of the choice, stated right after it."""


def replaced_in(sentence: str) -> str:
    """Return what a continuing sentence declares obsolete; empty if nothing."""
    match = _REPLACES.match(sentence) or _FOLLOWS.match(sentence)
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
    opened = _LIKE_IT.sub("", strip_opening_phrase(raw))
    if _is_rule(statement):
        return _PendingDecision(_capital(opened), Choice("preference", HIGH, 4.0), raw)
    if _PRINTED.search(raw):
        return None
    part = assertion_part(opened)
    rule = None if _TENTATIVE.match(part) else user_rules.find_rule(opened, part)
    if rule and _KEEP_IN_MIND.match(part):
        rule = None
    pending = _pending_statement(rule, raw) or _pending_choice(opened, raw)
    if pending or user_rules.is_question_about_code(raw, part):
        return pending
    return _pending_statement(user_rules.find_statement(part, at_work=True), raw)


def _is_premise(parts: list[Statement], place: int) -> bool:
    """Return whether a fact only leads to the question after it, or answers one of a list."""
    here = parts[place]
    after = parts[place + 1].text if place + 1 < len(parts) else ""
    if after.endswith("?") and _ASKS_OF_IT.search(after):
        return True
    first = parts[0]
    return here.is_item and not here.lead and first.is_item and bool(_BARE_ANSWER.match(first.text))


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
    return statement.is_item and bool(_RULES.search(statement.lead))


_RULES = re.compile(r"\b(?:rules?|conventions|preferences)\b[^:]{0,40}:$", re.IGNORECASE)
_KEEP_IN_MIND = re.compile(
    r"^keep in mind that (?!.*\b(?:always|never|must|should|only)\b)", re.IGNORECASE
)
"""A reminder for one request, without a word that makes it lasting."""

_ASKS_OF_IT = re.compile(r"\b(?:this|that|it|they|these|those)\b", re.IGNORECASE)
_BARE_ANSWER = re.compile(
    r"^(?:yes|no|yeah|nope|yep|sure|agreed?|correct|ok(?:ay)?)\b[.!,]?$", re.IGNORECASE
)
"""A list that starts with a bare yes or no answers questions that are not in it."""

_TENTATIVE = re.compile(r"^(?:i think|i guess|maybe|i wonder)\b", re.IGNORECASE)
_LIKE_IT = re.compile(
    r",? like (?:that|this) one[.!]?$|, keep it that way[^.?]{0,40}[.!]?$", re.IGNORECASE
)
_PRINTED = re.compile(
    r"^remember (?:this|that) \w+(?: though| too)?\b[^\w]*$|"
    r"\b\w+(?:Error|Exception|Warning)\b:|\bhas been blocked\b|\b(?:asked|asks|wonder(?:s|ed)?"
    r"|wants to know) (?:whether|if)\b|^I (?:said|just (?:tested|tried|checked))\b|^in theory\b",
    re.IGNORECASE,
)
"""Program output, questions of others, and repetitions: nothing is decided."""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
