"""Choosing: which hits are shown within a budget, doubles as one, log lines with a share of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lore.records import TRUST, Hit
from lore.text import words

NEARLY_SAME = 0.9
"""Texts that share so much of their words are one hit."""

QUOTED = 0.7
"""A message of whose words a shown log line has so many adds nothing to it."""

_PAGE, _SPARE = 10, 2
"""Candidates are read by so many at a time: the budget is often spent after a few."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be shown: hits, tokens, and the hits that are shown in any case.

    `log_share` of hits and tokens is kept for log lines that tell what no hit before shows.
    """

    hits: int
    tokens: int
    fewest: int = 1
    trusted_only: bool = False
    log_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Chosen:
    """The hits that are shown, and why others are not."""

    hits: tuple[Hit, ...]
    reasons: dict[str, str]


Show = Callable[[Sequence[int], Collection[str]], Iterable[tuple[int, Hit]]]
"""Makes hits of some candidates; the messages that the hits so far show or tell are known."""


def choose(order: Sequence[int], logs: Collection[int], show: Show, limits: Limits) -> Chosen:
    """Turn the best candidates into hits until a limit is reached.

    `logs` are the distillations among them. What their share leaves over goes to the rest.
    """
    choice = _Choice(show, limits)
    kept_hits = int(limits.log_share * limits.hits) if logs else 0
    if kept_hits:
        others_tokens = int((1 - limits.log_share) * limits.tokens)
        choice.fill(order, limits.hits - kept_hits, others_tokens)
        choice.fill([place for place in order if place in logs], limits.hits, limits.tokens)
    choice.fill(order, limits.hits, limits.tokens)
    return choice.chosen(order)


class _Choice:
    """The hits so far, with what is needed to judge the next one."""

    def __init__(self, show: Show, limits: Limits) -> None:
        self._show = show
        self._limits = limits
        self._hits: list[Hit] = []
        self._places: list[int] = []
        self._bags: list[frozenset[str]] = []
        self._reasons: dict[str, str] = {}
        self._told: set[str] = set()
        self._judged: set[int] = set()
        self._spent = 0

    def fill(self, order: Iterable[int], most_hits: int, most_tokens: int) -> None:
        """Add the candidates that were not judged yet, until there is no room."""
        waiting = [place for place in order if place not in self._judged]
        page = min(self._limits.hits, _PAGE) + _SPARE
        for start in range(0, len(waiting), page):
            if len(self._hits) >= most_hits:
                return
            for place, hit in self._show(waiting[start : start + page], self._told):
                if not self._add(place, hit, most_tokens):
                    return
                self._judged.add(place)
                if len(self._hits) >= most_hits:
                    return

    def chosen(self, order: Sequence[int]) -> Chosen:
        """Return the hits in the order of the candidates."""
        rank = {place: number for number, place in enumerate(order)}
        best = sorted(range(len(self._hits)), key=lambda i: rank[self._places[i]])
        hits = tuple(self._hits[i] for i in best)
        shown = {hit.id: f"shown as hit {number}" for number, hit in enumerate(hits, 1)}
        return Chosen(hits, self._reasons | shown)

    def _add(self, place: int, hit: Hit, most_tokens: int) -> bool:
        """Judge a candidate; False where it finds no room."""
        if not hit.text and hit.type == "distillation":
            self._reasons[hit.id] = "what its lines tell is shown by hits above"
            return True
        bag = frozenset(words.split(hit.text))
        double = _double_of(bag, self._bags)
        if double is None and hit.type == "message":
            double = _quoted_by(hit, bag, self._hits, self._bags)
        if double is not None:
            self._join(hit, double)
            return True
        if self._spent + hit.tokens > most_tokens and len(self._hits) >= self._limits.fewest:
            self._reasons[hit.id] = f"cut by the budget of {self._limits.tokens} tokens"
            return False
        self._hits.append(hit)
        self._places.append(place)
        self._bags.append(bag)
        self._told.update((hit.id, *hit.sources))
        self._spent += hit.tokens
        return True

    def _join(self, hit: Hit, double: int) -> None:
        """Show a hit and its double as one: the one that is trusted more."""
        shown, other = self._hits[double], hit
        if TRUST[hit.origin] > TRUST[shown.origin]:
            shown, other = replace(hit, same=shown.same), shown
        self._hits[double] = replace(shown, same=(*shown.same, other.id))
        self._reasons[other.id] = f"says nearly the same as {shown.id}"


def _double_of(bag: frozenset[str], bags: Sequence[frozenset[str]]) -> int | None:
    """Return the place of an earlier hit that says nearly the same."""
    for place, other in enumerate(bags):
        smaller, larger = sorted((len(bag), len(other)))
        if larger and smaller >= NEARLY_SAME * larger:
            shared = len(bag & other)
            if shared >= NEARLY_SAME * (len(bag) + len(other) - shared):
                return place
    return None


def _quoted_by(
    hit: Hit, bag: frozenset[str], hits: Sequence[Hit], bags: Sequence[frozenset[str]]
) -> int | None:
    """Return the place of an earlier hit whose lines tell nearly all that a message says."""
    for place, other in enumerate(hits):
        if hit.id in other.sources and len(bag & bags[place]) >= QUOTED * len(bag):
            return place
    return None
