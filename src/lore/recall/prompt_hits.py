"""Find hits for a prompt that did not ask memory: related items, and remedies for an error."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np

from lore.index.numbers import is_among
from lore.recall import presentation, ranking
from lore.recall.candidates import Bounds
from lore.recall.hit_selection import Limits
from lore.recall.question import parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import Sources
from lore.records import ITEM_TYPES, Fragment, Hit, ItemType, PromptCandidate, Remedies, Remedy
from lore.store import distillations, fragments, items, keywords, messages
from lore.store.database import Connection
from lore.store.fragments import FragmentFilter
from lore.store.keywords import SearchScope
from lore.text import goals, message_features, words

MOST_PROMPT_HITS = 8
"""Most hits that are put into a prompt."""

_WIDE_TOKENS = 4_000


class CanFit(Protocol):
    """Decides by its features alone whether a candidate may be worth showing."""

    def __call__(self, *, cosine: float, rarity: float) -> bool:
        """Return whether it may be."""


def find_prompt_hits(
    sources: Sources,
    prompt: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    types: tuple[ItemType, ...] = ITEM_TYPES,
    can_fit: CanFit | None = None,
) -> list[PromptCandidate]:
    """Return the best hits for a prompt, of trusted origins and not from the sessions `without`.

    Nothing is presented if no candidate `can_fit`: presenting takes longer than searching.

    Superseded items are left out, and so are messages that those sessions also contain: a forked
    session has them in its prompt. An episode without actions only repeats its request, and would
    displace what was learned from it.
    """
    question = parse(prompt, now)
    bounds = Bounds(project_n, None, types, trusted_only=True, without=tuple(without))
    with sources.database.read() as db:
        ranked = rank(sources, db, question, bounds, "learned")
        ranked = ranking.apply_policy(db, ranked, question, None, now)
        order = ranking.select_relevant(ranked)
        if "replaced" in ranked.features:
            order = order[ranked.features["replaced"][order] == 0]
        without_actions = distillations.episodes_without_calls(db, ranked.pool.ns[order])
        order = order[~is_among(ranked.pool.ns[order], list(without_actions))]
        rarest = math.log1p(items.highest_number(db))
        if can_fit is not None and not _any_fits(ranked, rarest, can_fit):
            return []
        limits = Limits(MOST_PROMPT_HITS, _WIDE_TOKENS, trusted_only=True)
        selection = presentation.present(db, question, ranked, order, limits=limits)
        ns = items.numbers_of(db, [hit.id for hit in selection.hits])
        dropped = messages.find_repeated(db, list(ns.values()), without)
        dropped |= _find_repeated(db, [ns[hit.id] for hit in selection.hits if hit.role == "user"])
        hits = [
            _as_fragment(db, hit)
            for hit in selection.hits
            if ns[hit.id] not in dropped and not hit.is_outdated
        ]
        ns = items.numbers_of(db, [hit.question_id or hit.id for hit in hits])
        return _fits(ranked, hits, ns, rarest=rarest, now=now)


def _any_fits(ranked: Ranked, rarest: float, can_fit: CanFit) -> bool:
    """Return whether a candidate fits; a hit may be the answer to one that is not shown."""
    rarities = ranked.features["covered"] * _total_rarity(ranked, rarest)
    pairs = zip(ranked.pool.cosine.tolist(), rarities.tolist(), strict=True)
    return any(can_fit(cosine=cosine, rarity=rarity) for cosine, rarity in pairs)


def _total_rarity(ranked: Ranked, rarest: float) -> float:
    """Return the rarity of all words of a prompt; a word that occurs nowhere else has 1."""
    return float(ranked.pool.rarity.sum()) / max(rarest, 1.0)


def _as_fragment(db: Connection, hit: Hit) -> Hit:
    """Replace a message by the fragment that duplicates it, if there is one."""
    if hit.type != "message" or not hit.same:
        return hit
    duplicates = fragments.by_number(db, list(items.numbers_of(db, list(hit.same)).values()))
    fragment = next(iter(duplicates.values()), None)
    if fragment is None:
        return hit
    return replace(
        hit, id=fragment.id, type="fragment", kind=fragment.kind, origin=fragment.origin,
        title=fragment.summary, text=fragment.content, role="", breadcrumb="",
    )  # fmt: skip


def _find_repeated(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return the user messages that only repeat a conversation or that a program wrote."""
    by_n = messages.get_messages(db, ns)
    return {
        n
        for n, message in by_n.items()
        if goals.is_repeated(message_features.spoken_text(message.parts))
    }


def _fits(
    ranked: Ranked, hits: Sequence[Hit], ns: Mapping[str, int], *, rarest: float, now: datetime
) -> list[PromptCandidate]:
    """Return hits with their features."""
    total_rarity = _total_rarity(ranked, rarest)
    fits = []
    for hit in hits:
        place = int(np.searchsorted(ranked.pool.ns, ns[hit.question_id or hit.id]))
        covered = float(ranked.features["covered"][place])
        fits.append(
            PromptCandidate(
                hit=hit,
                cosine=float(ranked.pool.cosine[place]),
                rarity=covered * total_rarity,
                covered=covered,
                age_days=(now - hit.created_at) / timedelta(days=1),
            )
        )
    return fits


ALIKE = 0.7
"""Two errors that share this much of their words are the same, with another name or number in
it."""

COVERED = 0.6
"""A fragment about an error has this share of its words."""

FEWEST_WORDS = 3
"""Fewer words, as in 'exit status 1', identify no error."""

MOST_HITS, MOST_REMEDIES = 2, 2
_LOOKED_AT = 60
_ABOUT_ERRORS = ("bug_fix", "anti_pattern")
_OWN = ("user", "assistant", "tool")
"""Origins of an episode whose actions were taken here; one that quotes an error has a tool's."""


def find_remedies(
    sources: Sources,
    db: Connection,
    met: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
) -> Remedies:
    """Return fragments about an error, and what fixed it before.

    The error's text is untrusted tool output: it is compared and never returned. What the assistant
    did about it is returned.
    """
    if len(_error_words(met)) < FEWEST_WORDS:
        return Remedies()
    hits = _find_fragments(sources, met, project_n=project_n, without=without, now=now)
    done = _find_resolutions(db, met, project_n=project_n, without=without, now=now)
    return Remedies(tuple(hits), tuple(done))


def _find_fragments(
    sources: Sources, met: str, *, project_n: int | None, without: Sequence[int], now: datetime
) -> list[Hit]:
    fits = find_prompt_hits(
        sources, met, project_n=project_n, without=without, now=now, types=("fragment",)
    )
    hits = [f.hit for f in fits if f.hit.kind in _ABOUT_ERRORS and f.covered >= COVERED]
    return hits[:MOST_HITS]


def _find_resolutions(
    db: Connection, met: str, *, project_n: int | None, without: Sequence[int], now: datetime
) -> list[Remedy]:
    """Return what was done about a similar error, the latest first, without duplicates."""
    matches = keywords.search(
        db,
        "fragment_words",
        parse(met, now).match(),
        limit=_LOOKED_AT,
        weights=(1.0, 1.0, 1.0),
        within=SearchScope(project_n, excluded_sessions=without),
    )
    ns = [n for n, _ in matches]
    shown = fragments.filter_visible(db, FragmentFilter(kind="episode", project_n=project_n), ns)
    episodes = fragments.by_number(db, sorted(shown)).values()
    remedies: dict[str, Remedy] = {}
    for episode in sorted(episodes, key=lambda one: one.created_at, reverse=True):
        resolution = next(_resolutions_of(episode, met), "")
        if resolution:
            remedies.setdefault(resolution, Remedy(episode.id, episode.created_at, resolution))
    return list(remedies.values())[:MOST_REMEDIES]


def _resolutions_of(episode: Fragment, met: str) -> Iterator[str]:
    errors = episode.payload.get("errors")
    if episode.origin not in _OWN or not isinstance(errors, list):
        return
    for error in errors:
        if isinstance(error, dict) and _is_same_error(str(error.get("message", "")), met):
            resolution = error.get("resolution")
            if isinstance(resolution, str) and resolution and resolution != "tried again":
                yield resolution


def _is_same_error(one: str, other: str) -> bool:
    a, b = _error_words(one), _error_words(other)
    return bool(a and b) and len(a & b) >= ALIKE * len(a | b)


def _error_words(text: str) -> frozenset[str]:
    return frozenset(word for word in words.split(text) if not word.isdigit())
