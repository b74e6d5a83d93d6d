"""Unasked: what memory has for a prompt that asks it nothing, with numbers to judge the fit by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from lore.recall import answering, presenting
from lore.recall.choosing import Limits
from lore.recall.pool import Bounds
from lore.recall.question import parse
from lore.recall.ranking import Ranked, rank
from lore.recall.sources import Sources
from lore.records import ITEM_TYPES, Fit, Hit, ItemType
from lore.store import episodes, fragments, items, messages
from lore.store.db import Connection
from lore.text import goals, parts

MOST = 8
"""Of more hits than these none is put into a prompt."""

_WIDE_TOKENS = 4_000

NO_PROJECT = -1
"""Stands for a project that nothing is known of: only what holds everywhere is found."""


def find(
    sources: Sources,
    prompt: str,
    *,
    project_n: int | None,
    without: Sequence[int],
    now: datetime,
    types: tuple[ItemType, ...] = ITEM_TYPES,
) -> list[Fit]:
    """Return the best hits for a prompt, of trusted origins and of other sessions than `without`.

    What something newer has put out of date is left out, and so is what was said in those
    sessions too: one that was forked has it in its prompt. An episode in which nothing was done
    only repeats what was asked in it, and takes the place of what was learned from that.
    """
    question = parse(prompt, now)
    bounds = Bounds(project_n, None, types, trusted_only=True, without=tuple(without))
    with sources.database.read() as db:
        ranked = rank(sources, db, question, bounds, "learned")
        ranked = answering.with_policy(answering.aware_of_time(db, ranked), question, None, now)
        order = answering.worth_showing(ranked)
        if "replaced" in ranked.features:
            order = order[ranked.features["replaced"][order] == 0]
        idle = episodes.without_deeds(db, ranked.pool.ns[order])
        order = order[~np.isin(ranked.pool.ns[order], list(idle))]
        limits = Limits(MOST, _WIDE_TOKENS, trusted_only=True)
        chosen = presenting.present(db, question, ranked, order, limits=limits, explain=False)
        ns = items.numbers_of(db, [hit.id for hit in chosen.hits])
        copied = messages.said_in(db, list(ns.values()), without)
        copied |= _told_again(db, [ns[hit.id] for hit in chosen.hits if hit.role == "user"])
        told = [_as_learned(db, hit) for hit in chosen.hits if ns[hit.id] not in copied]
        ns = items.numbers_of(db, [hit.id for hit in told])
        return _fits(ranked, told, ns, rarest=math.log1p(items.highest(db)), now=now)


def _as_learned(db: Connection, hit: Hit) -> Hit:
    """Return a message as the fragment that says the same, if there is one: that is what stands."""
    if hit.type != "message" or not hit.same:
        return hit
    learned = fragments.by_number(db, list(items.numbers_of(db, list(hit.same)).values()))
    fragment = next(iter(learned.values()), None)
    if fragment is None:
        return hit
    return replace(
        hit, id=fragment.id, type="fragment", kind=fragment.kind, origin=fragment.origin,
        title=fragment.summary, text=fragment.content, role="", breadcrumb="",
    )  # fmt: skip


def _told_again(db: Connection, ns: Sequence[int]) -> set[int]:
    """Return those of a person's messages that only repeat a talk, or that a program wrote."""
    found = messages.by_number(db, ns)
    return {n for n, message in found.items() if goals.is_told_again(parts.said(message.parts))}


def _fits(
    ranked: Ranked, hits: Sequence[Hit], ns: Mapping[str, int], *, rarest: float, now: datetime
) -> list[Fit]:
    """Describe hits; in a memory of any size, a word that stands nowhere else weighs 1."""
    whole = float(ranked.pool.rarity.sum()) / max(rarest, 1.0)
    found = []
    for hit in hits:
        place = int(np.searchsorted(ranked.pool.ns, ns[hit.id]))
        covered = float(ranked.features["covered"][place])
        found.append(
            Fit(
                hit=replace(hit, answer=""),
                cosine=float(ranked.pool.cosine[place]),
                rarity=covered * whole,
                covered=covered,
                age_days=(now - hit.created_at) / timedelta(days=1),
            )
        )
    return found
