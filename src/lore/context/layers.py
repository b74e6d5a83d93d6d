"""Prompt layers: how much of a dialogue a prompt contains, from layer 0 (everything) to layer 4.

Each layer is built from the one before it, so a higher layer is never larger.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from lore.records.gateway import Block, Dialogue, Distilled, Entry, Layer, Plan
from lore.text import memory_tags, transcript_text
from lore.text.tokens import TOKENS_PER_CHAR, UNCALIBRATED_FACTOR

_HASH_BYTES = 8
"""Size of a hash, which must be unique among a thousand conversations."""


def turn_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the numbers of the entries that start a turn.

    A turn starts with a user's text. Entries with only tool results or reminders continue it, and
    so do entries with results and text. Consecutive user entries start one turn.
    """
    starts: list[int] = []
    spoken = False
    for number, entry in enumerate(entries):
        if entry.voice == "system":
            continue
        begins = entry.begins_turn
        if begins and not spoken:
            starts.append(number)
        spoken = begins
    return tuple(starts)


def last_spoken_entry(entries: Sequence[Entry]) -> Entry | None:
    """Return the last entry that is not from the system; agents append messages of their own."""
    return next((entry for entry in reversed(entries) if entry.voice != "system"), None)


class HistoryEnd(NamedTuple):
    """The end of a history: the number of its user and assistant entries, and their hash.

    System entries are ignored: agents insert and remove them at will.
    """

    entries: int
    digest: bytes


def history_ends(keys: Sequence[str], counts: Iterable[int]) -> list[HistoryEnd]:
    """Return the ends of a history after these numbers of entries, given their keys."""
    hashed = hashlib.blake2b(digest_size=_HASH_BYTES)
    ends, before = [], 0
    for count in sorted(counts):
        hashed.update("".join(keys[before:count]).encode())
        ends.append(HistoryEnd(count, hashed.digest()))
        before = count
    return ends


def safe_turn_starts(entries: Sequence[Entry]) -> tuple[int, ...]:
    """Return the starts of turns before which every call has its results."""
    cuts = [0] * (len(entries) + 1)
    called: dict[str, int] = {}
    for number, entry in enumerate(entries):
        for block in entry.blocks:
            if block.kind == "call":
                called[block.call_id] = number
            elif block.kind == "result" and block.call_id in called:
                cuts[called[block.call_id] + 1] += 1
                cuts[number + 1] -= 1
    open_calls = list(accumulate(cuts))
    return tuple(start for start in turn_starts(entries) if not open_calls[start])


def entry_name(entries: Sequence[Entry], number: int) -> str:
    """Return a unique name of an entry: two entries may have the same key."""
    key = entries[number].key
    return f"{key}#{sum(entry.key == key for entry in entries[:number])}"


def find_entry(entries: Sequence[Entry], name: str) -> int | None:
    """Return the number of the entry with a name, None if it is gone."""
    key, _, before = name.rpartition("#")
    places = [number for number, entry in enumerate(entries) if entry.key == key]
    return places[int(before)] if before.isdigit() and int(before) < len(places) else None


MAX_ANNOTATION_CHARS = 480
"""Maximum length of an annotation: a few errors and paths by which to recall the rest."""

MIN_OUTPUT_CHARS = 2 * MAX_ANNOTATION_CHARS
"""A shorter output is not replaced, as little would be saved."""

_RECALL = "; left out to save room, use recall to read it"


def is_long_output(block: Block) -> bool:
    """Return whether a tool output is long enough to be replaced by an annotation."""
    return block.kind == "result" and bool(block.call_id) and block.chars > MIN_OUTPUT_CHARS


def annotate_output(block: Block, tool: str = "") -> str:
    """Return the annotation that replaces an output; it is deterministic."""
    tool_name = tool or block.tool
    if not block.text:
        annotation = f"[result] {tool_name or 'tool'}: nothing in words"
    else:
        annotation = transcript_text.summarize_output(block.text, tool_name)
    if block.failed:
        annotation = f"{annotation}; it failed"
    most = MAX_ANNOTATION_CHARS - len(_RECALL)
    return (
        annotation if len(annotation) <= most else annotation[: most - 1].rstrip() + "…"
    ) + _RECALL


@dataclass(frozen=True, slots=True)
class TokenMeasure:
    """The token ratio of a session, and the size of its last prompt.

    `reported_tokens` is the size that the provider reported, and `reported_entries` the number of
    entries of the current dialogue that the prompt had; 0 if unknown.
    """

    tokens_per_char: float = TOKENS_PER_CHAR * UNCALIBRATED_FACTOR
    reported_tokens: int = 0
    reported_entries: int = 0

    def of_chars(self, chars: int) -> int:
        """Return the number of tokens of some characters."""
        return ceil(chars * self.tokens_per_char)

    def of_block(self, block: Block) -> int:
        """Return the number of tokens of an unchanged block."""
        return self.of_chars(block.chars)

    def of_entry(self, entry: Entry) -> int:
        """Return the number of tokens of an unchanged entry."""
        ratio = self.tokens_per_char
        return sum(ceil(block.chars * ratio) for block in entry.blocks)


MAX_STANDING_CHARS = 64_000
"""About a twelfth of the default window; project instructions are shorter."""

_BOOT = "# AGENTS.md instructions for "
"""The start of project instructions in Codex, which does not fence them."""


class StandingText(NamedTuple):
    """A text that still applies, and the number of its entry."""

    entry: int
    block: Block


class StandingTexts:
    """Texts before the window that still apply, and so remain in the prompt.

    Clients put project instructions before the first prompt, in the user role, and program messages
    into system entries. Of the latter only the newest one applies.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def find_before(self, start: int) -> list[StandingText]:
        """Return the texts before an entry that still apply, without duplicates."""
        if not start:
            return []
        by_text = {one.block.text: one for one in self._opening if one.entry < start}
        newest = bisect_left(self._systems, start) - 1
        if newest >= 0:
            for one in _texts(self._entries, self._systems[newest]):
                by_text.setdefault(one.block.text, one)
        texts: list[StandingText] = []
        chars_left = MAX_STANDING_CHARS
        for one in by_text.values():
            if one.block.chars <= chars_left:
                texts.append(one)
                chars_left -= one.block.chars
        return texts

    @cached_property
    def _opening(self) -> list[StandingText]:
        """The texts before the first response that apply to the whole conversation."""
        by_text: dict[str, StandingText] = {}
        for number, entry in enumerate(self._entries):
            if entry.voice == "assistant":
                break
            for one in _texts(self._entries, number):
                if entry.voice == "system" or _is_standing(one.block.text):
                    by_text.setdefault(one.block.text, one)
        return list(by_text.values())

    @cached_property
    def _systems(self) -> list[int]:
        return [number for number, entry in enumerate(self._entries) if entry.voice == "system"]


def _texts(entries: Sequence[Entry], number: int) -> list[StandingText]:
    blocks = entries[number].blocks
    return [StandingText(number, block) for block in blocks if block.kind == "text" and block.text]


def _is_standing(text: str) -> bool:
    if text.startswith(_BOOT):
        return True
    pieces = memory_tags.split_fences(text, memory_tags.INJECTED_TAGS)
    return all(is_fence or not piece.strip() for is_fence, piece in pieces)


OUTPUT_SHARE, KNOWLEDGE_SHARE = 0.25, 0.05
"""Shares of the usable window reserved for the response and for long-term knowledge."""

LAYERS: tuple[Layer, ...] = (1, 2, 3, 4)
"""The layers that leave something out."""

RAW_SHARES = {1: 0.40, 2: 0.50, 3: 0.55}
DISTILLED_SHARES = {1: 0.25, 2: 0.25, 3: 0.15}
"""Shares of the usable window for the raw window and the prefix, by layer."""

EVICT_TO_SHARE = 0.75
"""An overflowing window is cut to this share of its room, so that it lasts for many turns."""

PROTECTED_TURNS = 2
"""At layer 2 this many turns before the current one keep their tool outputs."""

MAX_LOGS_AT_3, MAX_DISTILLATIONS_AT_4 = 5, 2
"""Maximum number of generation-0 distillations at layer 3, and of distillations at layer 4."""

MIN_TAIL_TOKENS, MAX_TAIL_TOKENS, TAIL_SHARE = 2_000, 8_000, 0.05
"""Size of the raw tail at layer 4 in tokens.

It starts with a turn, so it may be shorter, or longer if the current turn is."""


@dataclass(frozen=True, slots=True)
class PromptRoom:
    """The window of a model, and the size to which a prompt may be cut to save money."""

    window_tokens: int
    fixed_tokens: int = 0
    """Tokens before the first entry: knowledge; the plan adds the client's system prompt."""
    keep_tokens: int = 0
    """A window that must be cut is cut to this size, which also limits the prefix;

    0 means no further than necessary."""

    @property
    def usable_tokens(self) -> int:
        """Return the tokens left for the dialogue and the response."""
        return max(0, self.window_tokens - self.fixed_tokens)

    @property
    def whole_tokens(self) -> int:
        """Return the maximum size of the whole dialogue at layer 0."""
        return int(self.usable_tokens * (1 - OUTPUT_SHARE - KNOWLEDGE_SHARE))

    def raw_tokens(self, layer: Layer) -> int:
        """Return the maximum size of the raw window at a layer."""
        return int(self.usable_tokens * RAW_SHARES.get(layer, 1 - OUTPUT_SHARE))

    def prefix_tokens(self, layer: Layer) -> int:
        """Return the maximum size of the distillations at a layer."""
        most = int(self.usable_tokens * DISTILLED_SHARES.get(layer, OUTPUT_SHARE))
        return min(most, self.keep_tokens) if self.keep_tokens else most

    def evict_to_tokens(self, layer: Layer) -> int:
        """Return the size to which a window is cut at a layer."""
        if layer == 4:
            return max(MIN_TAIL_TOKENS, min(MAX_TAIL_TOKENS, int(self.usable_tokens * TAIL_SHARE)))
        most = int(EVICT_TO_SHARE * self.raw_tokens(layer))
        return min(most, self.keep_tokens) if self.keep_tokens else most


@dataclass(frozen=True, slots=True)
class PromptShape:
    """The parts of a prompt, and their sizes without the fixed tokens."""

    layer: Layer
    start: int = 0
    prefix: tuple[Distilled, ...] = ()
    annotated: frozenset[str] = frozenset()
    prefix_tokens: int = 0
    raw_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Return the size of prefix and window."""
        return self.prefix_tokens + self.raw_tokens

    def is_same_prompt(self, other: PromptShape) -> bool:
        """Return whether both shapes make the same prompt."""
        return (
            self.start == other.start
            and self.annotated == other.annotated
            and [one.id for one in self.prefix] == [one.id for one in other.prefix]
        )

    def fits(self, room: PromptRoom) -> bool:
        """Return whether the parts fit into their shares of the window."""
        if self.layer == 0:
            return self.tokens <= room.whole_tokens
        fitting = self.raw_tokens <= room.raw_tokens(self.layer)
        return fitting and self.prefix_tokens <= room.prefix_tokens(self.layer)


class LayerBuilder:
    """Build the layers of a dialogue, which is measured once."""

    def __init__(
        self,
        dialogue: Dialogue,
        distilled: Sequence[Distilled],
        measure: TokenMeasure,
        room: PromptRoom,
    ) -> None:
        self.entries = dialogue.entries
        self.measure = measure
        self.room = room
        self.distilled = tuple(sorted(distilled, key=lambda one: (one.until, one.generation)))
        self._standing = StandingTexts(self.entries)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The entries with which a window may start."""
        return safe_turn_starts(self.entries)

    @cached_property
    def _begin_of_turns(self) -> tuple[int, ...]:
        return turn_starts(self.entries)

    @cached_property
    def current(self) -> int:
        """The first entry of the current turn."""
        return self._begin_of_turns[-1] if self._begin_of_turns else 0

    @cached_property
    def protected(self) -> int:
        """The first entry whose tool outputs are protected at layer 2."""
        begun = self._begin_of_turns
        return begun[max(0, len(begun) - 1 - PROTECTED_TURNS)] if begun else 0

    @cached_property
    def current_distilled(self) -> tuple[Distilled, ...]:
        """The distillations that no later one of a higher generation has replaced."""
        metas = [one for one in self.distilled if one.generation > 0]
        replaced = max((one.until for one in metas), default=0)
        newest = [one for one in metas if one.until == replaced][-1:]
        logs = (one for one in self.distilled if not one.generation and one.until > replaced)
        return (*newest, *logs)

    @property
    def covered(self) -> int:
        """The first entry that no distillation covers."""
        return self.distilled[-1].until if self.distilled else 0

    def whole_shape(self) -> PromptShape:
        """Return layer 0: the whole dialogue."""
        return PromptShape(0, raw_tokens=self.raw_tokens(0, _NONE))

    def shapes(self, least_start: int) -> dict[Layer, PromptShape]:
        """Return layers 1 to 4 with windows that start at an entry or later."""
        before = replace(self.whole_shape(), start=least_start) if not least_start else None
        shapes: dict[Layer, PromptShape] = {}
        start = least_start
        for layer in LAYERS:
            shape = self._shape(layer, start)
            if before is not None and shape.tokens > before.tokens:
                shape = replace(before, layer=layer)
            shapes[layer] = before = shape
            start = shape.start
        return shapes

    def _shape(self, layer: Layer, least_start: int) -> PromptShape:
        """Return a layer with the longest window that fits."""
        until = self.protected if layer == 2 else self.current
        candidates = [least_start, *(s for s in self.starts if least_start < s <= self.current)]
        if layer < 4:
            candidates = [s for s in candidates if s <= max(self.covered, least_start)]
        annotated = self.long_outputs(least_start, until) if layer > 1 else _NONE
        # A window that starts later is never longer, so bisect for the first that fits.
        most = self.room.evict_to_tokens(layer)
        place = bisect_left(candidates, -most, key=lambda s: -self.raw_tokens(s, annotated))
        start = candidates[min(place, len(candidates) - 1)]
        if start == self.current and layer < 4:
            start = self._with_previous(candidates, annotated, layer)
        annotated = self.long_outputs(start, until) if layer > 1 else _NONE
        return self.build_shape(layer, start, self._prefix(layer, start), annotated)

    def _with_previous(
        self, candidates: Sequence[int], annotated: frozenset[str], layer: Layer
    ) -> int:
        """Return the start of the turn before the current one, if both fit.

        The agent needs to know what it just did, so the window may be twice as long.
        """
        if len(candidates) < 2:
            return candidates[-1]
        most = min(
            self.room.raw_tokens(layer) * EVICT_TO_SHARE, 2 * self.room.evict_to_tokens(layer)
        )
        before = candidates[-2]
        return before if self.raw_tokens(before, annotated) <= most else candidates[-1]

    def build_shape(
        self, layer: Layer, start: int, prefix: tuple[Distilled, ...], annotated: frozenset[str]
    ) -> PromptShape:
        """Return a shape with its sizes."""
        prefix_tokens = sum(one.tokens for one in prefix)
        return PromptShape(
            layer, start, prefix, annotated, prefix_tokens, self.raw_tokens(start, annotated)
        )

    def _prefix(self, layer: Layer, start: int) -> tuple[Distilled, ...]:
        """Return the distillations of the text before the window, as many as fit.

        Meta distillations say less, so they are used only if the logs of all segments do not fit.
        """
        if not start:
            return ()
        most = self.room.prefix_tokens(layer)
        if layer >= 3:
            chosen = list(_covering(self.current_distilled, start))
            chosen = (
                _keep_newest_logs(chosen, MAX_LOGS_AT_3)
                if layer == 3
                else chosen[-MAX_DISTILLATIONS_AT_4:]
            )
            return tuple(_newest_that_fit(chosen, most))
        logs = _covering([one for one in self.distilled if not one.generation], start)
        if sum(one.tokens for one in logs) <= most:
            return tuple(logs)
        meta = [one for one in self.current_distilled if one.generation]
        tokens_left = most - sum(one.tokens for one in meta)
        return (
            (*meta, *_newest_that_fit(logs, tokens_left))
            if tokens_left >= 0
            else tuple(_newest_that_fit(logs, most))
        )

    @cached_property
    def _sums(self) -> list[int]:
        """Cumulative sums of the tokens of the entries."""
        total, ratio = 0, self.measure.tokens_per_char
        sums = [0]
        for entry in self.entries:  # As `of_entry` does, in a loop, because every plan needs it.
            for block in entry.blocks:
                total += ceil(block.chars * ratio)
            sums.append(total)
        return sums

    @cached_property
    def _outputs(self) -> tuple[tuple[int, str, int], ...]:
        """The long outputs: entry, call id, and the tokens that an annotation saves."""
        short = self.measure.of_chars(MAX_ANNOTATION_CHARS)
        return tuple(
            (number, block.call_id, self.measure.of_block(block) - short)
            for number, entry in enumerate(self.entries)
            for block in entry.blocks
            if is_long_output(block)
        )

    def raw_tokens(self, start: int, annotated: frozenset[str]) -> int:
        """Return the size of a window, including earlier texts that still apply."""
        stands = (self.measure.of_block(one.block) for one in self._standing.find_before(start))
        return self.tokens_from(start, annotated) + sum(stands)

    def tokens_from(self, start: int, annotated: frozenset[str]) -> int:
        """Return the size of all entries from `start` on."""
        saved = 0
        if annotated:
            saved = sum(s for n, id_, s in self._outputs if n >= start and id_ in annotated)
        return self._sums[-1] - self._sums[start] - saved

    def tokens_between(self, start: int, end: int) -> int:
        """Return the size of the unchanged entries from `start` to before `end`."""
        last = len(self._sums) - 1
        return self._sums[min(end, last)] - self._sums[min(start, last)]

    def long_outputs(self, start: int, until: int) -> frozenset[str]:
        """Return the calls with long outputs in a range of entries and nowhere after it."""
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


def _covering(distilled: Sequence[Distilled], start: int) -> list[Distilled]:
    """Return the distillations that are needed to cover everything before an entry."""
    ends = (number for number, one in enumerate(distilled) if one.until >= start)
    return list(distilled[: next(ends, len(distilled)) + 1])


def _newest_that_fit(distilled: Sequence[Distilled], most_tokens: int) -> list[Distilled]:
    """Return the newest distillations that fit, metas before segment logs, in their order."""
    chosen: list[Distilled] = []
    for one in sorted(distilled, key=lambda one: (one.generation, one.until), reverse=True):
        most_tokens -= one.tokens
        if most_tokens < 0:
            break
        chosen.append(one)
    return [one for one in distilled if one in chosen]


def _keep_newest_logs(distilled: list[Distilled], most: int) -> list[Distilled]:
    """Return the metas and the newest segment logs."""
    newest = [one.id for one in distilled if not one.generation][-most:]
    return [one for one in distilled if one.generation or one.id in newest]


MAX_BREAKPOINTS = 4
"""Anthropic's limit per prompt, including those of the client (from its documentation)."""

LOOKBACK_BLOCKS = 20
"""Anthropic looks this many blocks before a breakpoint for a cached prefix (its documentation)."""

PREFIX = -1
"""Stands for the end of the prefix among the entry numbers."""


def choose_breakpoints(dialogue: Dialogue, plan: Plan) -> tuple[int, ...]:
    """Return the entries after which to set a breakpoint, besides those of the client."""
    return tuple(
        rank_breakpoints(dialogue.entries, plan)[: available_breakpoints(dialogue.breakpoints)]
    )


def available_breakpoints(used: int) -> int:
    """Return how many breakpoints are available: at least one, even if a client's must go."""
    return max(1, MAX_BREAKPOINTS - used)


def rank_breakpoints(entries: Sequence[Entry], plan: Plan) -> list[int]:
    """Return the entries after which a breakpoint is useful, the most useful first.

    The end comes first, as the next prompt starts with this one. Then comes the end of the prefix,
    which outlives a window, and then the end of the last prompt. The latter comes second if it is
    so far from the end that the provider would not find it.
    """
    ends = [PREFIX] if plan.prefix or plan.start else []
    spoken = [n for n in range(plan.start, len(entries)) if entries[n].voice != "system"]
    if not spoken:
        return ends
    former = _previous_end(entries, spoken)
    since = sum(len(one.blocks) for one in entries[former[0] + 1 :]) if former else 0
    others = [*former, *ends] if since >= LOOKBACK_BLOCKS else [*ends, *former]
    return [spoken[-1], *others]


def _previous_end(entries: Sequence[Entry], spoken: Sequence[int]) -> list[int]:
    """Return the last entry of the previous prompt, if this prompt contains it."""
    answer = next((n for n in reversed(spoken) if entries[n].voice == "assistant"), -1)
    return [n for n in spoken if n < answer][-1:]
