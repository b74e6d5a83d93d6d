"""Select the hits to show: merge near duplicates and apply the token budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lore.lazy_dataclass import dataclass
from lore.recall.features import Floats, needle
from lore.recall.question import Question
from lore.recall.sources import plain
from lore.records import TRUST, Hit
from lore.text import entities, tokens, words

NEARLY_SAME = 0.9
"""Texts that share this much of their words are duplicates and shown as one hit."""

QUOTED = 0.7
"""A message is a duplicate of a shown distillation line or fragment made of it, and a fragment of a
shown message that it was made of, if that has this share of its words."""

_PAGE, _SPARE = 15, 2
"""Candidates are loaded page by page: the budget is often spent after a few."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an answer: hits, token budget, and the number of hits shown in any case.

    `log_share` of hits and tokens is reserved for distillation lines that say something new.
    """

    hits: int
    tokens: int
    fewest: int = 1
    trusted_only: bool = False
    log_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The hits to show, and why others were dropped."""

    hits: tuple[Hit, ...]
    reasons: dict[str, str]


MakeHits = Callable[[Sequence[int], Collection[str]], Iterable[tuple[int, Hit]]]
"""Makes hits of some candidates; the second argument is what the hits so far already show."""


def select_hits(
    order: Sequence[int], logs: Collection[int], show: MakeHits, limits: Limits
) -> Selection:
    """Turn the best candidates into hits until the hit limit or the token budget is reached.

    `logs` are the distillations among them. What they leave of their share goes to the rest.
    """
    selection = _HitSelector(show, limits)
    log_hits = int(limits.log_share * limits.hits) if logs else 0
    if log_hits:
        others_tokens = int((1 - limits.log_share) * limits.tokens)
        selection.fill(order, limits.hits - log_hits, others_tokens)
        selection.fill([place for place in order if place in logs], limits.hits, limits.tokens)
    selection.fill(order, limits.hits, limits.tokens)
    return selection.result(order)


_WITHOUT_TEXT = {
    "distillation": "hits above already show what its lines say",
    "message": "nothing to show: a question that was not answered, or no text",
}


class _HitSelector:
    """The hits so far, and what is needed to judge the next one."""

    def __init__(self, show: MakeHits, limits: Limits) -> None:
        self._show = show
        self._limits = limits
        self._hits: list[Hit] = []
        self._places: list[int] = []
        self._bags: list[frozenset[str]] = []
        self._reasons: dict[str, str] = {}
        self._shown_ids: set[str] = set()
        self._answers: set[str] = set()
        self._judged: set[int] = set()
        self._spent = 0

    def fill(self, order: Iterable[int], most_hits: int, most_tokens: int) -> None:
        """Add candidates that were not judged yet, until there is no room."""
        waiting = [place for place in order if place not in self._judged]
        page = min(self._limits.hits, _PAGE) + _SPARE
        for start in range(0, len(waiting), page):
            if len(self._hits) >= most_hits:
                return
            for place, hit in self._show(waiting[start : start + page], self._shown_ids):
                if not self._add(place, hit, most_tokens):
                    return
                self._judged.add(place)
                if len(self._hits) >= most_hits:
                    return

    def result(self, order: Sequence[int]) -> Selection:
        """Return the hits in the order of the candidates."""
        rank = {place: number for number, place in enumerate(order)}
        best = sorted(range(len(self._hits)), key=lambda i: rank[self._places[i]])
        hits = tuple(self._hits[i] for i in best)
        return Selection(hits, self._reasons | describe_shown(hits))

    def _add(self, place: int, hit: Hit, most_tokens: int) -> bool:
        """Judge a candidate; return False where it exceeds the token budget."""
        if not hit.text and hit.type != "fragment":
            self._reasons[hit.id] = _WITHOUT_TEXT[hit.type]
            return True
        if hit.id in self._answers:
            self._set_reason(hit, f"shown as {hit.id}, an answer")
            return True
        bag = frozenset(words.split(hit.text))
        duplicate = _find_duplicate(bag, self._bags)
        if duplicate is None and hit.type != "distillation":
            duplicate = _find_quoting(hit, bag, self._hits, self._bags)
        if duplicate is not None:
            self._merge_duplicate(hit, duplicate)
            return True
        if self._spent + hit.tokens > most_tokens and len(self._hits) >= self._limits.fewest:
            self._set_reason(hit, f"cut by the budget of {self._limits.tokens} tokens")
            return False
        self._hits.append(hit)
        self._places.append(place)
        self._bags.append(bag)
        self._shown_ids.update((hit.id, *hit.sources))
        if hit.type == "message":
            self._answers.add(hit.id)
        self._spent += hit.tokens
        return True

    def _merge_duplicate(self, hit: Hit, duplicate: int) -> None:
        """Merge a hit with its duplicate; the more trusted one is shown."""
        shown, other = self._hits[duplicate], hit
        if TRUST[hit.origin] > TRUST[shown.origin]:
            shown, other = replace(hit, same=shown.same), shown
        self._hits[duplicate] = replace(shown, same=(*shown.same, other.id))
        self._set_reason(other, f"says nearly the same as {shown.id}")

    def _set_reason(self, hit: Hit, reason: str) -> None:
        """Record why a hit is not shown, for its message and for the question it answers."""
        for id_ in filter(None, (hit.id, hit.question_id)):
            self._reasons[id_] = reason


def describe_shown(hits: Sequence[Hit]) -> dict[str, str]:
    """Return for each message that hits show, or whose answer they are, as which hit."""
    return {
        id_: f"shown as hit {number}"
        for number, hit in enumerate(hits, 1)
        for id_ in (hit.id, hit.question_id)
        if id_
    }


def _find_duplicate(bag: frozenset[str], bags: Sequence[frozenset[str]]) -> int | None:
    """Return the place of an earlier hit that says nearly the same."""
    for place, other in enumerate(bags):
        smaller, larger = sorted((len(bag), len(other)))
        if larger and smaller >= NEARLY_SAME * larger:
            shared = len(bag & other)
            if shared >= NEARLY_SAME * (len(bag) + len(other) - shared):
                return place
    return None


def _find_quoting(
    hit: Hit, bag: frozenset[str], hits: Sequence[Hit], bags: Sequence[frozenset[str]]
) -> int | None:
    """Return the place of an earlier hit, made of a message or its source, that says it already."""
    for place, other in enumerate(hits):
        is_source = hit.id in other.sources
        if hit.type == "fragment" and other.id in hit.sources:  # it may be corrected since
            is_source = _still_says(other.text, hit.text, bag)
        if is_source and len(bag & bags[place]) >= QUOTED * len(bag):
            return place
    return None


_CLAUSE_END = re.compile(r"[.,;:!?]+(?:\s|$)|[\n()—–]")
_SAME_CLAUSE = 0.5
"""A clause with this share of its words in a fragment is about what the fragment says."""


def _still_says(message: str, fragment: str, bag: frozenset[str]) -> bool:
    """Return whether a message has all values of a fragment, and negates it only if it does."""
    same = [
        clause
        for clause in _CLAUSE_END.split(message)
        if (own := words.split(clause))
        and sum(word in bag for word in own) >= _SAME_CLAUSE * len(own)
    ]
    is_negated = any(map(entities.is_negated, same))
    return is_negated == entities.is_negated(fragment) and entities.covers_values(message, fragment)


LINE_FITTING = 0.5
"""Lines with at least this share of the best line's score are shown beside it."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_HEADING = re.compile(r"^\d{4}-\d\d-\d\d$|:$|^\s*$")


class SelectedLines(NamedTuple):
    """The selected lines of a distillation, and their source messages, best first."""

    text: str
    sources: tuple[str, ...]


def select_lines(
    text: str,
    line_sources: Sequence[Sequence[str] | None],
    question: Question,
    rarity: Floats,
    *,
    most_tokens: int,
    already_shown: Collection[str] = (),
) -> SelectedLines:
    """Return the lines that fit a question best, in their order, without those already shown.

    `line_sources` has the source message ids of each line, None if it is outdated. Lines without a
    word of the question are returned only where no line has any: its vector found the
    distillation then.
    """
    lines = text.split("\n")
    known = [line_sources[i] if i < len(line_sources) else () for i in range(len(lines))]
    sources = [tuple(one or ()) for one in known]
    fit = _line_fit(lines, question, rarity)
    unseen = [
        i
        for i, line in enumerate(lines)
        if known[i] is not None
        and (
            any(id_ not in already_shown for id_ in sources[i])
            or not (sources[i] or _HEADING.search(line))
        )
    ]
    if not unseen:
        return SelectedLines("", ())
    best = max(fit[i] for i in range(len(lines)))
    fitting = [i for i in unseen if fit[i] >= LINE_FITTING * best and (fit[i] > 0 or best <= 0)]
    order = sorted(fitting, key=lambda i: -fit[i])
    selected: list[int] = []
    spent = 0
    for i in order:
        size = tokens.count(lines[i])
        if selected and spent + size > most_tokens:
            continue
        selected.append(i)
        spent += size
    source_ids = tuple(dict.fromkeys(n for i in selected for n in sources[i]))
    return SelectedLines(_with_days(lines, sorted(selected)), source_ids)


def _line_fit(lines: Sequence[str], question: Question, rarity: Floats) -> Floats:
    """Return the total rarity of the question's words in each line."""
    fit = np.zeros(len(lines))
    levelled = [plain(line) for line in lines]
    for term, weight in zip(question.terms, rarity.tolist(), strict=True):
        pattern = needle(term)
        fit += [weight * (pattern in line) for line in levelled]
    return fit


def _with_days(lines: Sequence[str], selected: Sequence[int]) -> str:
    shown: list[str] = []
    days = [i for i, line in enumerate(lines) if _DAY.fullmatch(line)]
    last = -1
    for i in selected:
        day = max((d for d in days if d < i), default=-1)
        if day > last:
            shown.append(lines[day])
            last = day
        shown.append(lines[i])
    return "\n".join(shown)
