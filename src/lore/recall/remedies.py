"""Remedies: what mended an error before, found by the error's own words.

What a tool printed is compared and never handed on: an error's words are a stranger's. What the
assistant did about it, and what was learned of it, are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from lore.recall import unasked
from lore.recall.question import parse
from lore.recall.sources import Sources
from lore.records import Fragment, Hit, Remedies, Remedy
from lore.store import fragments, keywords
from lore.store.db import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import Within
from lore.text import words

ALIKE = 0.7
"""Errors that share so much of their words are one, with another name or number in it."""

COVERED = 0.6
"""A fragment about an error has so much of its words."""

FEWEST_WORDS = 3
"""Less than this, as in 'exit status 1', names no error."""

MOST_HITS, MOST_REMEDIES = 2, 2
_LOOKED_AT = 60
_ABOUT_ERRORS = ("bug_fix", "anti_pattern")
_OWN = ("user", "assistant", "tool")
"""Origins of an episode whose deeds were done here; one that quotes an error has a tool's."""


def find(
    sources: Sources,
    db: Connection,
    met: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
) -> Remedies:
    """Return what is known of an error that was just met."""
    if len(_telling(met)) < FEWEST_WORDS:
        return Remedies()
    hits = _about(sources, met, project_n=project_n, without=without, now=now)
    done = _done(db, met, project_n=project_n, without=without, now=now)
    return Remedies(tuple(hits), tuple(done))


def _about(
    sources: Sources, met: str, *, project_n: int | None, without: Sequence[int], now: datetime
) -> list[Hit]:
    fits = unasked.find(
        sources, met, project_n=project_n, without=without, now=now, types=("fragment",)
    )
    told = [f.hit for f in fits if f.hit.kind in _ABOUT_ERRORS and f.covered >= COVERED]
    return told[:MOST_HITS]


def _done(
    db: Connection, met: str, *, project_n: int | None, without: Sequence[int], now: datetime
) -> list[Remedy]:
    """Return what was done about an error like this, the latest first, each once."""
    found = keywords.search(
        db,
        "fragment_words",
        parse(met, now).match(),
        limit=_LOOKED_AT,
        weights=(1.0, 1.0, 1.0),
        within=Within(project_n, without=without),
    )
    ns = [n for n, _ in found]
    shown = fragments.visible(db, FragmentFilter(kind="episode", project_n=project_n), ns)
    kept = fragments.by_number(db, sorted(shown)).values()
    told: dict[str, Remedy] = {}
    for episode in sorted(kept, key=lambda one: one.created_at, reverse=True):
        did = next(_resolutions(episode, met), "")
        if did:
            told.setdefault(did, Remedy(episode.id, episode.created_at, did))
    return list(told.values())[:MOST_REMEDIES]


def _resolutions(episode: Fragment, met: str) -> Iterator[str]:
    errors = episode.payload.get("errors")
    if episode.origin not in _OWN or not isinstance(errors, list):
        return
    for error in errors:
        if isinstance(error, dict) and _are_alike(str(error.get("message", "")), met):
            did = error.get("resolution")
            if isinstance(did, str) and did and did != "tried again":
                yield did


def _are_alike(one: str, other: str) -> bool:
    a, b = _telling(one), _telling(other)
    return bool(a and b) and len(a & b) >= ALIKE * len(a | b)


def _telling(text: str) -> frozenset[str]:
    return frozenset(word for word in words.split(text) if not word.isdigit())
