"""Tiers: an alternative plan that summarizes the oldest part and moves it down.

Nothing happens until a dialogue takes most of the window. Then three tiers share it: the current
dialogue unchanged, topics (one distillation per segment), and bulks (one of several topics).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lore.context.layers import OUTPUT_SHARE, LayerBuilder, PromptShape
from lore.context.planner import (
    PinnedShape,
    PlanTerms,
    finish_plan,
    never_bust,
    open_layers,
    plan_prompt,
    restore_shape,
)
from lore.records.gateway import Dialogue, Distilled, Plan, PromptState
from lore.text import tokens

TIERS_FROM_SHARE = 0.70
"""The share of the window from which tiers are used."""

CURRENT_SHARE, TOPICS_SHARE, BULKS_SHARE = 0.50, 0.30, 0.20
"""The share of each tier."""

MERGED_AT_ONCE = 4
"""How many of the oldest items of a tier are summarized at once."""

TIER_ID_PREFIX = "tier-"
"""The start of the ids of summaries made here."""

_MAX_ROUNDS = 64
"""Each round moves something down or shrinks the lowest tier.

There are as many further rounds as turns, in which one turn each becomes a topic."""

Summarize = Callable[[Sequence[str], int], str]
"""Summarize texts in a number of tokens."""


@dataclass(frozen=True, slots=True)
class _Tiers:
    start: int
    topics: tuple[Distilled, ...] = ()
    bulks: tuple[Distilled, ...] = ()


def plan_tiers(
    dialogue: Dialogue,
    state: PromptState,
    distilled: Sequence[Distilled],
    terms: PlanTerms,
    *,
    condense: Summarize,
) -> Plan:
    """Return the plan of the next prompt with tiers.

    New summaries exist only in the plan: the caller must store them and pass them again, as the
    state refers to them.
    """
    if state.layer > 1:
        return _plan_by_layers(dialogue, state, distilled, terms)
    scene = open_layers(dialogue, distilled, terms)
    pinned = restore_shape(scene, state)
    now = pinned.shape
    # After a refusal as too long, start at a half or a third of the size.
    most = int(TIERS_FROM_SHARE * scene.room.usable_tokens) // max(1, state.floor, terms.min_layer)
    if now.tokens <= most:
        return finish_plan(scene, state, pinned, now, why="", cold=terms.cold)
    then = _rebalance(scene, pinned, most, condense)
    then = then if then.tokens < now.tokens else now
    if then.tokens > int((1 - OUTPUT_SHARE) * scene.room.usable_tokens):
        return _plan_by_layers(dialogue, state, distilled, terms)
    return finish_plan(scene, state, pinned, then, why="fit", cold=terms.cold)


def _plan_by_layers(
    dialogue: Dialogue, state: PromptState, distilled: Sequence[Distilled], terms: PlanTerms
) -> Plan:
    """Return a plan by layers if too little is summarized yet."""
    room = replace(terms.room, keep_tokens=0)
    return plan_prompt(dialogue, state, distilled, replace(terms, room=room, cost_rule=never_bust))


def _rebalance(
    scene: LayerBuilder, pinned: PinnedShape, most: int, condense: Summarize
) -> PromptShape:
    """Move the oldest items of the fullest tier down until all tiers fit."""
    tiers = _tiers_of(pinned.shape)
    for _ in range(len(scene.starts) + _MAX_ROUNDS):
        over = {
            "current": scene.raw_tokens(tiers.start, frozenset()) - CURRENT_SHARE * most,
            "topics": _size(tiers.topics) - TOPICS_SHARE * most,
            "bulks": _size(tiers.bulks) - BULKS_SHARE * most,
        }
        changed = None
        for fullest in sorted(over, key=lambda name: -over[name]):
            if over[fullest] > 0 and changed is None:
                changed = _push_down(scene, tiers, fullest, condense)
        if changed is None:
            break
        tiers = changed
    prefix = (*tiers.bulks, *tiers.topics)
    return replace(
        scene.build_shape(1, tiers.start, prefix, frozenset()), layer=1 if tiers.start else 0
    )


def _tiers_of(shape: PromptShape) -> _Tiers:
    return _Tiers(
        shape.start,
        tuple(one for one in shape.prefix if not one.generation),
        tuple(one for one in shape.prefix if one.generation),
    )


def _push_down(
    scene: LayerBuilder, tiers: _Tiers, fullest: str, condense: Summarize
) -> _Tiers | None:
    """Return the tiers after moving the oldest items of one down, None if that is impossible."""
    if fullest == "current":
        return _move_turns_down(scene, tiers)
    if fullest == "topics":
        oldest = tiers.topics[:MERGED_AT_ONCE]
        summary = _summarize(oldest, condense)
        remaining = tiers.topics[len(oldest) :]
        return replace(tiers, topics=remaining, bulks=(*tiers.bulks, summary)) if summary else None
    oldest = tiers.bulks[:MERGED_AT_ONCE]
    summary = _summarize(oldest, condense)
    return replace(tiers, bulks=(summary, *tiers.bulks[len(oldest) :])) if summary else None


def _move_turns_down(scene: LayerBuilder, tiers: _Tiers) -> _Tiers | None:
    """Move the fewest oldest turns into topics that make the prompt shorter."""
    covered = max((one.until for one in (*tiers.bulks, *tiers.topics)), default=0)
    logs = [one for one in scene.distilled if not one.generation and one.until > covered]
    for start in scene.starts:
        if not tiers.start < start <= min(scene.current, scene.covered):
            continue
        if start <= covered:
            return replace(tiers, start=start)
        before = sum(one.until < start for one in logs)
        new = logs[: before + 1]
        if new and _size(new) < scene.tokens_between(covered, new[-1].until):
            return replace(tiers, start=start, topics=(*tiers.topics, *new))
    return None


def _summarize(oldest: Sequence[Distilled], condense: Summarize) -> Distilled | None:
    """Return a summary of distillations, None if it is not shorter."""
    size = _size(oldest)
    text = condense([one.text for one in oldest], size // 2) if oldest else ""
    counted = tokens.count(text)
    if not text or counted >= size:
        return None
    id_ = TIER_ID_PREFIX + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return Distilled(
        id_, text, counted, oldest[-1].until, max(one.generation for one in oldest) + 1
    )


def _size(distilled: Sequence[Distilled]) -> int:
    return sum(one.tokens for one in distilled)
