"""Layers: what of a dialogue stands in a prompt, from everything down to what the moment needs.

Each is made of the one before it, so that a higher layer is never larger.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from lore.context import annotating, turns
from lore.context.sizing import Measure
from lore.context.standing import Standing
from lore.records.dialogues import Dialogue, Distilled, Layer

OUTPUT_SHARE, KNOWLEDGE_SHARE = 0.25, 0.05
"""What of the usable window is left free for the answer and for long-term knowledge."""

LAYERS: tuple[Layer, ...] = (1, 2, 3, 4)
"""The layers at which something is left out."""

RAW_SHARES = {1: 0.40, 2: 0.50, 3: 0.55}
DISTILLED_SHARES = {1: 0.25, 2: 0.25, 3: 0.15}
"""What of the usable window the raw window and the prefix may take, by layer."""

EVICT_TO = 0.75
"""A window that overflows is cut to this share of its room: then it holds for many turns."""

PROTECTED_TURNS = 2
"""So many turns before the current one keep their tool outputs at layer 2."""

KEPT_AT_3, KEPT_AT_4 = 5, 2
"""Distillations of generation 0 that stay at layer 3, and distillations at layer 4."""

TAIL_LEAST, TAIL_MOST, TAIL_SHARE = 2_000, 8_000, 0.05
"""The raw tail of layer 4 in tokens; it begins with a turn, and so may have fewer, or more where
the current turn is longer."""


@dataclass(frozen=True, slots=True)
class Room:
    """How much a model can read, and how small a window may become to save money."""

    window_tokens: int
    fixed_tokens: int = 0
    """What stands before the first entry: knowledge; a plan adds the client's own."""
    keep_tokens: int = 0
    """To so many tokens a window is cut where it is cut at all, and so long may the prefix be;
    0: as far as it must."""

    @property
    def usable_tokens(self) -> int:
        """Return what is left for the dialogue and the answer to it."""
        return max(0, self.window_tokens - self.fixed_tokens)

    @property
    def whole_tokens(self) -> int:
        """Return how long the whole dialogue may be at layer 0."""
        return int(self.usable_tokens * (1 - OUTPUT_SHARE - KNOWLEDGE_SHARE))

    def raw_tokens(self, layer: Layer) -> int:
        """Return how long the raw window may be at a layer."""
        return int(self.usable_tokens * RAW_SHARES.get(layer, 1 - OUTPUT_SHARE))

    def prefix_tokens(self, layer: Layer) -> int:
        """Return how long the distillations may be at a layer."""
        most = int(self.usable_tokens * DISTILLED_SHARES.get(layer, OUTPUT_SHARE))
        return min(most, self.keep_tokens) if self.keep_tokens else most

    def evict_to_tokens(self, layer: Layer) -> int:
        """Return to what size a window is cut at a layer."""
        if layer == 4:
            return max(TAIL_LEAST, min(TAIL_MOST, int(self.usable_tokens * TAIL_SHARE)))
        most = int(EVICT_TO * self.raw_tokens(layer))
        return min(most, self.keep_tokens) if self.keep_tokens else most


@dataclass(frozen=True, slots=True)
class Shape:
    """What a prompt is made of, and how long that is without what stands before all entries."""

    layer: Layer
    start: int = 0
    prefix: tuple[Distilled, ...] = ()
    annotated: frozenset[str] = frozenset()
    prefix_tokens: int = 0
    raw_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Return how long it is."""
        return self.prefix_tokens + self.raw_tokens

    def is_like(self, other: Shape) -> bool:
        """Tell whether both make the same prompt."""
        return (
            self.start == other.start
            and self.annotated == other.annotated
            and [one.id for one in self.prefix] == [one.id for one in other.prefix]
        )

    def fits(self, room: Room) -> bool:
        """Tell whether its parts keep within their shares."""
        if self.layer == 0:
            return self.tokens <= room.whole_tokens
        fitting = self.raw_tokens <= room.raw_tokens(self.layer)
        return fitting and self.prefix_tokens <= room.prefix_tokens(self.layer)


class Scene:
    """A dialogue, measured once, out of which the layers are made."""

    def __init__(
        self, dialogue: Dialogue, distilled: Sequence[Distilled], measure: Measure, room: Room
    ) -> None:
        self.entries = dialogue.entries
        self.measure = measure
        self.room = room
        self.known = tuple(sorted(distilled, key=lambda one: (one.until, one.generation)))
        self._standing = Standing(self.entries)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The numbers of the entries with which a window may begin."""
        return turns.whole_starts(self.entries)

    @cached_property
    def _begin_of_turns(self) -> tuple[int, ...]:
        return turns.turn_starts(self.entries)

    @cached_property
    def current(self) -> int:
        """The number of the entry with which the current turn begins."""
        return self._begin_of_turns[-1] if self._begin_of_turns else 0

    @cached_property
    def protected(self) -> int:
        """The number of the entry from which on tool outputs are protected at layer 2."""
        begun = self._begin_of_turns
        return begun[max(0, len(begun) - 1 - PROTECTED_TURNS)] if begun else 0

    @cached_property
    def standing(self) -> tuple[Distilled, ...]:
        """The distillations that no later one of a higher generation has replaced."""
        metas = [one for one in self.known if one.generation > 0]
        replaced = max((one.until for one in metas), default=0)
        newest = [one for one in metas if one.until == replaced][-1:]
        logs = (one for one in self.known if not one.generation and one.until > replaced)
        return (*newest, *logs)

    @property
    def covered(self) -> int:
        """The number of the first entry that no distillation tells of."""
        return self.known[-1].until if self.known else 0

    def whole(self) -> Shape:
        """Return layer 0: everything as it is."""
        return Shape(0, raw_tokens=self.raw_tokens(0, _NONE))

    def shapes(self, least_start: int) -> dict[Layer, Shape]:
        """Return layers 1 to 4 with windows that begin no earlier than at an entry."""
        before = replace(self.whole(), start=least_start) if not least_start else None
        found: dict[Layer, Shape] = {}
        start = least_start
        for layer in LAYERS:
            shape = self._shape(layer, start)
            if before is not None and shape.tokens > before.tokens:
                shape = replace(before, layer=layer)
            found[layer] = before = shape
            start = shape.start
        return found

    def _shape(self, layer: Layer, least_start: int) -> Shape:
        """Return a layer with the longest window that its room allows for."""
        until = self.protected if layer == 2 else self.current
        candidates = [least_start, *(s for s in self.starts if least_start < s <= self.current)]
        if layer < 4:
            candidates = [s for s in candidates if s <= max(self.covered, least_start)]
        annotated = self.long_outputs(least_start, until) if layer > 1 else _NONE
        # A window that begins later is never longer: the first that fits is found by halves.
        most = self.room.evict_to_tokens(layer)
        place = bisect_left(candidates, -most, key=lambda s: -self.raw_tokens(s, annotated))
        start = candidates[min(place, len(candidates) - 1)]
        if start == self.current and layer < 4:
            start = self._with_previous(candidates, annotated, layer)
        annotated = self.long_outputs(start, until) if layer > 1 else _NONE
        return self.made(layer, start, self._prefix(layer, start), annotated)

    def _with_previous(
        self, candidates: Sequence[int], annotated: frozenset[str], layer: Layer
    ) -> int:
        """Return where the turn before the current one begins, if both find room.

        To go on one has to know what was done just before: it may take as much again.
        """
        if len(candidates) < 2:
            return candidates[-1]
        most = min(self.room.raw_tokens(layer) * EVICT_TO, 2 * self.room.evict_to_tokens(layer))
        before = candidates[-2]
        return before if self.raw_tokens(before, annotated) <= most else candidates[-1]

    def made(
        self, layer: Layer, start: int, prefix: tuple[Distilled, ...], annotated: frozenset[str]
    ) -> Shape:
        """Return a shape with its sizes."""
        told = sum(one.tokens for one in prefix)
        return Shape(layer, start, prefix, annotated, told, self.raw_tokens(start, annotated))

    def _prefix(self, layer: Layer, start: int) -> tuple[Distilled, ...]:
        """Return the distillations that tell of what is before the window, as many as fit.

        Metas say little of much: they are told only where the logs of all segments find no room.
        """
        if not start:
            return ()
        most = self.room.prefix_tokens(layer)
        if layer >= 3:
            told = list(_until(self.standing, start))
            told = _newest(told, KEPT_AT_3) if layer == 3 else told[-KEPT_AT_4:]
            return tuple(_fitting(told, most))
        logs = _until([one for one in self.known if not one.generation], start)
        if sum(one.tokens for one in logs) <= most:
            return tuple(logs)
        meta = [one for one in self.standing if one.generation]
        left = most - sum(one.tokens for one in meta)
        return (*meta, *_fitting(logs, left)) if left >= 0 else tuple(_fitting(logs, most))

    @cached_property
    def _sums(self) -> list[int]:
        """The tokens of all entries before each."""
        sizes = (self.measure.of_entry(entry) for entry in self.entries)
        return list(accumulate(sizes, initial=0))

    @cached_property
    def _outputs(self) -> tuple[tuple[int, str, int], ...]:
        """The long outputs: entry, call, and the tokens that an annotation saves."""
        short = self.measure.of_chars(annotating.MOST_CHARS)
        return tuple(
            (number, block.call_id, self.measure.of_block(block) - short)
            for number, entry in enumerate(self.entries)
            for block in entry.blocks
            if annotating.is_long(block)
        )

    def raw_tokens(self, start: int, annotated: frozenset[str]) -> int:
        """Return how long a window is, with what stands of the entries before it."""
        stands = (self.measure.of_block(one.block) for one in self._standing.before(start))
        return self.tokens_from(start, annotated) + sum(stands)

    def tokens_from(self, start: int, annotated: frozenset[str]) -> int:
        """Return how long all entries are from one on."""
        saved = 0
        if annotated:
            saved = sum(s for n, id_, s in self._outputs if n >= start and id_ in annotated)
        return self._sums[-1] - self._sums[start] - saved

    def tokens_between(self, start: int, end: int) -> int:
        """Return how long all entries are from one to before another, as they are."""
        last = len(self._sums) - 1
        return self._sums[min(end, last)] - self._sums[min(start, last)]

    def long_outputs(self, start: int, until: int) -> frozenset[str]:
        """Return the calls with long outputs from an entry to before another, and nowhere else."""
        inside = {id_ for n, id_, _ in self._outputs if start <= n < until}
        return frozenset(inside - self.calls_from(until)) if inside else frozenset()

    def calls_from(self, start: int) -> set[str]:
        """Return the calls that have results from an entry on."""
        return {
            block.call_id
            for entry in self.entries[start:]
            for block in entry.blocks
            if block.kind == "result"
        }


_NONE: frozenset[str] = frozenset()


def _until(told: Sequence[Distilled], start: int) -> list[Distilled]:
    """Return the distillations that are needed to tell of all before an entry."""
    ends = (number for number, one in enumerate(told) if one.until >= start)
    return list(told[: next(ends, len(told)) + 1])


def _fitting(told: Sequence[Distilled], most_tokens: int) -> list[Distilled]:
    """Return the newest distillations that fit, metas before logs of segments, in their order."""
    kept: list[Distilled] = []
    for one in sorted(told, key=lambda one: (one.generation, one.until), reverse=True):
        most_tokens -= one.tokens
        if most_tokens < 0:
            break
        kept.append(one)
    return [one for one in told if one in kept]


def _newest(told: list[Distilled], most: int) -> list[Distilled]:
    """Return the metas and the newest logs of segments."""
    kept = [one.id for one in told if not one.generation][-most:]
    return [one for one in told if one.generation or one.id in kept]
