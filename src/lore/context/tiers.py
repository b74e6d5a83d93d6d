"""Tiers: the other classic scheme, in which the oldest is summed up and pushed down.

Nothing happens until a dialogue takes most of the window. Then three tiers share what it may take:
the current talk as it is, topics (a distillation of each segment), and bulks (one of several).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lore.context.layers import OUTPUT_SHARE, Scene, Shape
from lore.context.planning import Pinned, Terms, find_pinned, never, plan, scene_of, settled
from lore.records.dialogues import Dialogue, Distilled, Pins, Plan
from lore.text import tokens

BEGINS_AT = 0.70
"""The share of the window from which on tiers are made."""

CURRENT, TOPICS, BULKS = 0.50, 0.30, 0.20
"""What each tier may take of that."""

TOGETHER = 4
"""So many of the oldest of a tier are summed up at once."""

MADE = "tier-"
"""How the ids begin of distillations that are made here."""

_MOST_ROUNDS = 64
"""Each round pushes something down, and what is at the bottom only becomes less; as many rounds
as there are turns come before these, in which a turn each becomes a topic."""

Condense = Callable[[Sequence[str], int], str]
"""Sums up texts in so many tokens."""


@dataclass(frozen=True, slots=True)
class _Tiers:
    start: int
    topics: tuple[Distilled, ...] = ()
    bulks: tuple[Distilled, ...] = ()


def plan_tiers(
    dialogue: Dialogue,
    pins: Pins,
    distilled: Sequence[Distilled],
    terms: Terms,
    *,
    condense: Condense,
) -> Plan:
    """Return how to make the next prompt of tiers.

    Summaries that are made here stand in the plan only: whoever asks keeps them and gives them
    back with the others, because the pins name them.
    """
    if pins.layer > 1:
        return _by_layers(dialogue, pins, distilled, terms)
    scene = scene_of(dialogue, distilled, terms)
    pinned = find_pinned(scene, pins)
    now = pinned.shape
    # What was refused as too long begins earlier: a half or a third of it is left.
    most = int(BEGINS_AT * scene.room.usable_tokens) // max(1, pins.floor, terms.least)
    if now.tokens <= most:
        return settled(scene, pins, pinned, now, why="", cold=terms.cold)
    then = _stable(scene, pinned, most, condense)
    then = then if then.tokens < now.tokens else now
    if then.tokens > int((1 - OUTPUT_SHARE) * scene.room.usable_tokens):
        return _by_layers(dialogue, pins, distilled, terms)
    return settled(scene, pins, pinned, then, why="fit", cold=terms.cold)


def _by_layers(
    dialogue: Dialogue, pins: Pins, distilled: Sequence[Distilled], terms: Terms
) -> Plan:
    """Return what fits where too little is summed up by now, until all is written anew."""
    room = replace(terms.room, keep_tokens=0)
    return plan(dialogue, pins, distilled, replace(terms, room=room, cost=never))


def _stable(scene: Scene, pinned: Pinned, most: int, condense: Condense) -> Shape:
    """Push the oldest of the fullest tier down until all keep within their shares."""
    tiers = _tiers_of(pinned.shape)
    for _ in range(len(scene.starts) + _MOST_ROUNDS):
        over = {
            "current": scene.raw_tokens(tiers.start, frozenset()) - CURRENT * most,
            "topics": _size(tiers.topics) - TOPICS * most,
            "bulks": _size(tiers.bulks) - BULKS * most,
        }
        changed = None
        for fullest in sorted(over, key=lambda name: -over[name]):
            if over[fullest] > 0 and changed is None:
                changed = _push_down(scene, tiers, fullest, condense)
        if changed is None:
            break
        tiers = changed
    prefix = (*tiers.bulks, *tiers.topics)
    return replace(scene.made(1, tiers.start, prefix, frozenset()), layer=1 if tiers.start else 0)


def _tiers_of(shape: Shape) -> _Tiers:
    return _Tiers(
        shape.start,
        tuple(one for one in shape.prefix if not one.generation),
        tuple(one for one in shape.prefix if one.generation),
    )


def _push_down(scene: Scene, tiers: _Tiers, fullest: str, condense: Condense) -> _Tiers | None:
    """Return the tiers after the oldest of one went down, None if nothing of it can."""
    if fullest == "current":
        return _shortened(scene, tiers)
    if fullest == "topics":
        oldest = tiers.topics[:TOGETHER]
        made = _summed(oldest, condense)
        left = tiers.topics[len(oldest) :]
        return replace(tiers, topics=left, bulks=(*tiers.bulks, made)) if made else None
    oldest = tiers.bulks[:TOGETHER]
    made = _summed(oldest, condense)
    return replace(tiers, bulks=(made, *tiers.bulks[len(oldest) :])) if made else None


def _shortened(scene: Scene, tiers: _Tiers) -> _Tiers | None:
    """Let the oldest turns go to the topics, as few as are shorter distilled."""
    told = max((one.until for one in (*tiers.bulks, *tiers.topics)), default=0)
    logs = [one for one in scene.known if not one.generation and one.until > told]
    for start in scene.starts:
        if not tiers.start < start <= min(scene.current, scene.covered):
            continue
        if start <= told:
            return replace(tiers, start=start)
        before = sum(one.until < start for one in logs)
        new = logs[: before + 1]
        if new and _size(new) < scene.tokens_between(told, new[-1].until):
            return replace(tiers, start=start, topics=(*tiers.topics, *new))
    return None


def _summed(oldest: Sequence[Distilled], condense: Condense) -> Distilled | None:
    """Return a distillation of distillations, None if it is not shorter than they are."""
    size = _size(oldest)
    text = condense([one.text for one in oldest], size // 2) if oldest else ""
    counted = tokens.count(text)
    if not text or counted >= size:
        return None
    id_ = MADE + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    return Distilled(
        id_, text, counted, oldest[-1].until, max(one.generation for one in oldest) + 1
    )


def _size(distilled: Sequence[Distilled]) -> int:
    return sum(one.tokens for one in distilled)
