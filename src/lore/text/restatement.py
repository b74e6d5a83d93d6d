"""Restatements: compare whether a text says a statement with the same negation, order and dates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice, pairwise
from typing import NamedTuple

from lore.text import entities, sentences, words
from lore.text.regex import compile_lazy

_DATE = compile_lazy(r"(?<![\w/.@-])(?:19|20)\d\d-\d\d(?:-\d\d)?(?![\w/@-]|\.\w)")
"""A date that is not part of a name: a model's version and a path may end with one."""

_INTERJECTION = compile_lazy(
    r"(?i)^\W*(?:(?:no|nope|nah|nein|non)(?=[,.!;:]|\s[-–—])"
    r"|(?:no (?:problem|worries)|don['’]t worry)\b)|\bfrom now on\b"
)
"""'No, use tabs' negates what was before it, and 'from now on' puts nothing in an order."""

_NUMBER = compile_lazy(r"\d+(?:[.,:/]\d+)*")
_ITEM = compile_lazy(r"(?:[-*•+]|\d+[.)])\s")

_NEGATIONS = frozenset(
    """nobody nothing nowhere hardly dont doesnt didnt isnt arent cant wont shouldnt mustnt
    nicht nichts kein keine keinen keinem keiner keines nie niemals niemand ohne
    ne pas jamais aucun sans non nunca ningún sin não sem mai senza niet geen nooit zonder
    не нет никогда без нельзя""".split()
)
"""Negations beside those of `entities.is_negated`, also those of other languages."""

_SENSE_WORDS = frozenset(
    """before after until till since than over under above below only more most less unless instead
    rather against from""".split()
)
"""Words that say in which order or in which place of a comparison the next word is."""

_DIRECTIONS = frozenset("to into onto by replac swap exchang supersed prefer".split())
"""Stems beside which the order of words decides: 'move A to B', 'A replaces B'."""

_NOT = "not"

_MAX_STARTS = 50
"""Places in a text where a statement may begin; a text may repeat one word without end."""

_NEAR_DAYS = {"today": 0, "tonight": 0, "yesterday": -1, "last night": -1, "tomorrow": 1}
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAY_OF_MONTH = compile_lazy(
    rf"\b(?:(\d\d?)(?:st|nd|rd|th)?\.?\s+(?:of\s+)?({'|'.join(_MONTHS)})[a-z]*"
    rf"|({'|'.join(_MONTHS)})[a-z]*\.?\s+(\d\d?)(?:st|nd|rd|th)?)\b(?:,?\s+(\d{{4}}))?"
)


class _Token(NamedTuple):
    """A stem with the negations and words of order right before it."""

    marks: tuple[str, ...]
    stem: str


class _Wording(NamedTuple):
    """The content words of a text in order; `is_ordered` if their order decides its sense."""

    tokens: tuple[_Token, ...]
    negations: int
    is_ordered: bool


def leave_out_dates(text: str) -> str:
    """Return a text without its dates."""
    return _DATE.sub(" ", text)


def find_dates(text: str) -> frozenset[str]:
    """Return the dates in a text, as days or months: '2026-05-13', '2026-05'."""
    return frozenset(_DATE.findall(text))


def possible_dates(text: str, at: datetime) -> frozenset[str]:
    """Return the dates that a text of a day says or means, and the months of these.

    The day itself is always among them: who writes down what was said may add when.
    """
    lowered, today = text.lower(), at.date()
    days = {today} | {
        today + timedelta(days=by) for name, by in _NEAR_DAYS.items() if name in lowered
    }
    for number, name in enumerate(_WEEKDAYS):
        if name in lowered:
            ahead = (number - today.weekday()) % 7
            days |= {today + timedelta(days=ahead + by) for by in (-7, 0, 7)}
    days.update(_days_of_months(lowered, today.year))
    known = {day.isoformat() for day in days} | find_dates(text)
    return frozenset(known | {day[:7] for day in known})


def _days_of_months(text: str, year: int) -> Iterator[date]:
    for match in _DAY_OF_MONTH.finditer(text):
        month = _MONTHS.index(match[2] or match[3]) + 1
        years = (int(match[5]),) if match[5] else (year - 1, year, year + 1)
        for one in years:
            try:
                yield date(one, month, int(match[1] or match[4]))
            except ValueError:
                continue


def is_restated(statement: str, texts: Sequence[str], *, known: str = "") -> bool:
    """Return whether texts say a statement, with its negation and its order.

    Each sentence of it must be in one sentence or one text. One without negations and words of
    order may also be put together from sentences without negations. What the statement repeats of
    a `known` text needs to be in no other.
    """
    wordings = [_parse(part) for text in texts for part in (*_sentences(text), text)]
    if known:
        return _is_corrected(_parse(statement), wordings, _parse(known))
    affirmed = {token for one in wordings if not one.negations for token in one.tokens}
    for sentence in sentences.split_sentences(statement, typed=True):
        claim = _parse(sentence)
        in_pieces = not claim.is_ordered and affirmed.issuperset(claim.tokens)
        if not in_pieces and not any(_says(one, claim) for one in wordings):
            return False
    return True


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, the items of a list each with the line before the list."""
    lead, is_first = "", False
    for sentence in sentences.split_sentences(text, typed=True):
        belongs = bool(lead) and (is_first or _ITEM.match(sentence) is not None)
        yield f"{lead} {sentence}" if belongs else sentence
        if sentence.endswith(":") and not belongs:
            lead, is_first = sentence, True
        else:
            lead, is_first = (lead if belongs else ""), False


def _parse(text: str) -> _Wording:
    tokens: list[_Token] = []
    marks: list[str] = []
    negations = 0
    is_directed = False
    for word in words.split(_INTERJECTION.sub(" ", leave_out_dates(text))):
        stem = words.stem(word)
        is_directed = is_directed or word in _DIRECTIONS or stem in _DIRECTIONS
        if word in _NEGATIONS or entities.is_negated(word):
            marks.append(_NOT)
            negations += 1
        elif word in _SENSE_WORDS:
            marks.append(word)
        elif word not in words.STOP_WORDS:
            tokens.append(_Token(tuple(marks), stem))
            marks = []
    if marks:
        tokens.append(_Token(tuple(marks), ""))
    has_numbers = len(_NUMBER.findall(leave_out_dates(text))) > 1
    is_ordered = is_directed or has_numbers or any(one.marks for one in tokens)
    return _Wording(tuple(tokens), negations, is_ordered)


def _says(text: _Wording, claim: _Wording) -> bool:
    if text.negations != claim.negations or not set(claim.tokens) <= set(text.tokens):
        return False
    in_order = claim.is_ordered and len(claim.tokens) > 1
    return not in_order or _has_in_order(text.tokens, claim.tokens)


def _has_in_order(tokens: Sequence[_Token], claimed: Sequence[_Token]) -> bool:
    """Return whether a text has tokens in an order.

    If they have words of order, the text has no others between them: 'test before you push, ask
    after you deploy' does not say 'test after you deploy'.
    """
    marked = [one for one in claimed if one.marks]
    starts = (place for place, token in enumerate(tokens) if token == claimed[0])
    for start in islice(starts, _MAX_STARTS):
        places = [start]
        for token in claimed[1:]:
            at = next((n for n in range(places[-1] + 1, len(tokens)) if tokens[n] == token), -1)
            if at < 0:
                return False
            places.append(at)
        window = tokens[start : places[-1] + 1]
        if not marked or [one for one in window if one.marks] == marked:
            return True
    return False


def _is_corrected(claim: _Wording, texts: Sequence[_Wording], known: _Wording) -> bool:
    """Return whether one text says all that a statement changes of a known one."""
    shared = [one for one in claim.tokens if one in known.tokens]
    former = [one for one in known.tokens if one in claim.tokens]
    if claim.negations != known.negations or (claim.is_ordered and shared != former):
        return False
    left_out = {one.marks for one in known.tokens if one not in claim.tokens}
    return any(_says_changes(one, claim, known, left_out) for one in texts)


def _says_changes(
    text: _Wording, claim: _Wording, known: _Wording, left_out: set[tuple[str, ...]]
) -> bool:
    """Return whether a text has the new words of a correction, and turns none of the others.

    Of 'only on Fridays' the 'only' stays if the text just says 'Mondays'; a negation does not.
    """
    if text.negations not in (0, claim.negations):
        return False
    stems = {one.stem for one in text.tokens}
    for token in claim.tokens:
        plain = _Token((), token.stem) in text.tokens
        is_moved = plain and token.marks in left_out and _NOT not in token.marks
        if token in text.tokens or is_moved:
            continue
        is_turned = token.stem in stems and _NOT in (*token.marks, *_marks_of(text, token.stem))
        if is_turned or token not in known.tokens:
            return False
    new = [one.stem for one in claim.tokens if one not in known.tokens]
    places = [[one.stem for one in text.tokens].index(stem) for stem in new]
    return not claim.is_ordered or all(one <= other for one, other in pairwise(places))


def _marks_of(text: _Wording, stem: str) -> list[str]:
    return [mark for one in text.tokens if one.stem == stem for mark in one.marks]
