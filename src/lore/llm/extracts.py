"""From the facts that a chat lists to extracts: a tree, with sources that are really there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lore import payloads
from lore.llm.grounding import Grounds
from lore.llm.replies import Facts, Found
from lore.records import EdgeKind, Extract
from lore.text import lines

MOST_FACTS = 10
"""Of one exchange; the specification's limit."""

DEEPEST = 2
"""Depth of the most specific fact: broad, specific, and one between them."""

NOTHING = 0
"""What a root says that it lies under."""

IMPORTANCE = {"high": 0.9, "medium": 0.5, "low": 0.2}

_LONGEST_CONTENT_CHARS = 2_000
_LONGEST_FIELD_CHARS = 1_000
_MOST_ITEMS = 12
_MOST_LINKS = 5

Clean = Callable[[str], str]


def from_facts(facts: Facts, grounds: Grounds, clean: Clean) -> list[Extract]:
    """Return the roots of the tree that an answer tells; what rests on no message is left out."""
    kept: dict[int, Found] = {}
    for found in facts.facts:
        if found.content.strip() and found.number not in kept and len(kept) < MOST_FACTS:
            kept[found.number] = found
    return _Tree(kept, grounds, clean).below(None, (), 0)


class _Tree:
    def __init__(self, kept: dict[int, Found], grounds: Grounds, clean: Clean) -> None:
        self._kept = kept
        self._grounds = grounds
        self._clean = clean
        self._parents = {number: self._parent(number) for number in kept}

    def _parent(self, number: int) -> int | None:
        """Return what a fact lies under, if that is there and does not go round in a circle."""
        seen = {number}
        above = self._kept[number].under
        while above in self._kept and above != NOTHING:
            if above in seen:
                return None
            seen.add(above)
            above = self._kept[above].under
        under = self._kept[number].under
        return under if under in self._kept and under != NOTHING else None

    def below(self, parent: int | None, inherited: tuple[int, ...], depth: int) -> list[Extract]:
        """Return the facts under one, each with what lies under it."""
        made: list[Extract] = []
        for number, found in self._kept.items():
            if self._parents[number] == parent:
                made += self._extract(found, inherited, depth)
        return made

    def _extract(self, found: Found, inherited: tuple[int, ...], depth: int) -> list[Extract]:
        """Return a fact; one without sources is none, and what lies under it takes its place."""
        content = self._clean(found.content[:_LONGEST_CONTENT_CHARS]).strip()
        summary = self._summary(found)
        payload = self._payload(found, summary)
        corrects = self._field(found.corrects)
        named = self._grounds.known(found.sources) if found.sources else inherited
        beside = " ".join([summary, corrects, *_texts(payload)])
        sources = self._grounds.sources_of(content, named, beside=beside)
        below = self.below(found.number, sources, min(depth + 1, DEEPEST))
        if not sources or not content:
            return below
        extract = Extract(
            content,
            summary,
            found.kind,
            IMPORTANCE[found.importance],
            tuple(self._grounds.id_of(number) for number in sources),
            payload,
            corrects,
            self._links(found),
            () if depth == DEEPEST else tuple(below),
        )
        return [extract, *below] if depth == DEEPEST else [extract]

    def _payload(self, found: Found, summary: str) -> dict[str, Any]:
        """Return what the kind's form holds; a form of another kind is left out."""
        payload: dict[str, Any] = {"summary": summary}
        given = {"details": found.details, "keywords": found.keywords, "context": found.context}
        if found.payload.form == payloads.SCHEMA_OF[found.kind]:
            given |= found.payload.model_dump(exclude={"form"})
        for name, value in given.items():
            held = self._field(value) if isinstance(value, str) else self._items(value)
            if held:
                payload[name] = held
        return payload

    def _links(self, found: Found) -> tuple[tuple[EdgeKind, str], ...]:
        made: list[tuple[EdgeKind, str]] = []
        for link in found.relations[:_MOST_LINKS]:
            other = self._kept.get(link.to)
            if other is not None and other is not found:
                made.append((link.kind, self._summary(other)))
        return tuple(made)

    def _summary(self, found: Found) -> str:
        given = lines.one_line(self._field(found.summary), lines.SUMMARY_CHARS)
        return given or lines.summary(self._field(found.content))

    def _field(self, text: str) -> str:
        return self._clean(text[:_LONGEST_FIELD_CHARS]).strip()

    def _items(self, given: Sequence[str]) -> list[str]:
        held = [self._field(item) for item in given[:_MOST_ITEMS]]
        return [item for item in held if item]


def _texts(payload: dict[str, Any]) -> list[str]:
    """Return all texts of a payload: they need grounds as well."""
    texts: list[str] = []
    for value in payload.values():
        texts += [value] if isinstance(value, str) else value
    return texts
