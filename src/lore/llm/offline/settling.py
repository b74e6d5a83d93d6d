"""What a person settles while an agent works for them: sentences that belong together are one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lore.llm.offline import choices, persons
from lore.llm.offline.choices import Choice
from lore.llm.offline.finding import HIGH, Found, fits
from lore.records import FragmentKind, Said
from lore.text import statements
from lore.text.statements import Statement
from lore.text.told import is_whole, strip_opening, told


@dataclass(slots=True)
class _Settled:
    """What a person settled, as far as it was read: sentences that belong to it are added."""

    text: str
    choice: Choice
    last: str


def find(one: Said) -> Iterator[Found]:
    """Yield what a person settles while an agent works for them."""
    own = persons.own_words(one.text)
    if len(own) > persons.PASTED_CHARS or persons.restates(own):
        return
    settled: _Settled | None = None
    told_here = statements.cut(own, by_line=True)
    for place, statement in enumerate(told_here):
        raw = statement.text
        follows = settled is not None and settled.last == statement.before
        if settled and follows and (_is_rule(statement) or choices.goes_on(settled.choice, raw)):
            former = settled.choice.corrects or choices.former_in(raw)
            settled.text = f"{persons.ended(settled.text)} {_capital(raw)}"
            settled.choice = settled.choice._replace(corrects=former)
            settled.last = raw
            continue
        if settled:
            yield from _settled(one, settled)
        settled = _settles(statement)
        if settled and settled.choice.kind == "fact" and _is_premise(told_here, place):
            settled = None
    if settled:
        yield from _settled(one, settled)


def _settles(statement: Statement) -> _Settled | None:
    """Return what a sentence settles, with the aside taken off that it opens with."""
    raw = statement.text
    opened = _LIKE_IT.sub("", choices.opened(raw))
    if _is_rule(statement):
        return _Settled(_capital(opened), Choice("preference", HIGH, 4.0), raw)
    if _PRINTED.search(raw):
        return None
    part = told(opened)
    rule = None if _MUSING.match(part) else persons.rule_of(opened, part)
    if rule and _MINDED.match(part):
        rule = None
    known = _kept(rule, raw) or _chosen(opened, raw)
    if known or persons.is_asked_of_code(raw, part):
        return known
    return _kept(persons.statement_of(part, in_code=True), raw)


def _is_premise(told_here: list[Statement], place: int) -> bool:
    """Tell whether a fact only leads to the question behind it, or answers one in a list."""
    here = told_here[place]
    after = told_here[place + 1].text if place + 1 < len(told_here) else ""
    if after.endswith("?") and _ASKS_OF_IT.search(after):
        return True
    first = told_here[0]
    return here.is_item and not here.lead and first.is_item and bool(_BARE.match(first.text))


def _chosen(opened: str, raw: str) -> _Settled | None:
    for text in (strip_opening(opened), _capital(opened)):
        choice = choices.judge(text)
        if choice is None:
            continue
        if choice.open:
            return _Settled(text, choice, raw)
        if choices.stands_alone(text) and is_whole(text):
            former = choice.corrects or persons.former_of(text)
            return _Settled(text, choice._replace(corrects=former), raw)
    return None


def _kept(found: tuple[str, FragmentKind, float, float] | None, raw: str) -> _Settled | None:
    if found is None:
        return None
    return _Settled(found[0], Choice(*found[1:], persons.former_of(found[0])), raw)


def _settled(one: Said, settled: _Settled) -> Iterator[Found]:
    text = settled.text
    if fits(text):
        kind, importance, score, corrects, _ = settled.choice
        content = persons.dated(one.at, persons.ended(text))
        payload = persons.payload_of(kind, text)
        yield Found(content, kind, importance, score, (one.id,), payload, corrects)


def _is_rule(statement: Statement) -> bool:
    """Tell whether a sentence is an item of a list that a person calls their rules."""
    return statement.is_item and bool(_RULES.search(statement.lead))


_RULES = re.compile(r"\b(?:rules?|conventions|preferences)\b[^:]{0,40}:$", re.IGNORECASE)
_MINDED = re.compile(
    r"^keep in mind that (?!.*\b(?:always|never|must|should|only)\b)", re.IGNORECASE
)
"""What is to be kept in mind for a request, without a word that it is to last."""

_ASKS_OF_IT = re.compile(r"\b(?:this|that|it|they|these|those)\b", re.IGNORECASE)
_BARE = re.compile(
    r"^(?:yes|no|yeah|nope|yep|sure|agreed?|correct|ok(?:ay)?)\b[.!,]?$", re.IGNORECASE
)
"""A list that begins with a bare yes or no answers questions that are not in it."""

_MUSING = re.compile(r"^(?:i think|i guess|maybe|i wonder)\b", re.IGNORECASE)
_LIKE_IT = re.compile(
    r",? like (?:that|this) one[.!]?$|, keep it that way[^.?]{0,40}[.!]?$", re.IGNORECASE
)
_PRINTED = re.compile(
    r"^remember (?:this|that) \w+(?: though| too)?\b[^\w]*$|"
    r"\b\w+(?:Error|Exception|Warning)\b:|\bhas been blocked\b|\b(?:asked|asks|wonder(?:s|ed)?"
    r"|wants to know) (?:whether|if)\b|^I (?:said|just (?:tested|tried|checked))\b|^in theory\b",
    re.IGNORECASE,
)
"""What a program printed, what someone asked, and what was said before: nothing is settled."""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
