"""State of the sessions in this process, and the prompts that can be built from it alone."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from lore.budget.estimate import Calibration, ReportedTurn
from lore.budget.reports import usage_without_additions, usage_without_compaction
from lore.context import layers, planner
from lore.context.layers import HistoryEnd, PromptRoom, StandingTexts, TokenMeasure
from lore.context.planner import PlanTerms
from lore.errors import StoreError
from lore.gateway.session.session_store import (
    MARKER_TIMEOUT_S,
    SNAPSHOT_FIELDS,
    SessionStore,
    StoredPrefix,
)
from lore.records import (
    ClientSession,
    Dialogue,
    Distilled,
    Entry,
    InjectedItem,
    Injection,
    Measured,
    ModelPrice,
    PastTurns,
    Plan,
    SessionSnapshot,
    TokenUse,
)
from lore.store.dialogue_state import StateName

NOTHING = Injection()

_chars_of: Callable[[Entry], int] = attrgetter("chars")

KNOWLEDGE = ""
"""Key of the knowledge block in `told`, where notes have the keys of their entries."""

_MAX_ENDS = 16
"""A repeated request, or another branch of a conversation, matches one of the last ends."""

_MAX_TURNS = 200
"""The forecast uses the gaps and growths of this many turns."""


@dataclass(slots=True, weakref_slot=True, eq=False)
class SessionState:
    """What this process knows of a session."""

    snapshot: SessionSnapshot
    calibration: Calibration
    generation: str = ""
    """Cache generation of its texts: once anything is forgotten they are not sent again."""
    revision: int = 0
    """Counts changes of its generation and of its private mode."""
    submitted: SessionSnapshot | None = None
    """The snapshot that was last submitted to the store; None if texts were dropped."""
    write_count: int = 0
    unsaved: set[StateName] = field(default_factory=set)
    """Fields that the store has not confirmed."""
    pending_write: Future[None] | None = None
    """The last write."""
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_TURNS))
    growth_tokens: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_TURNS))
    past_turns: PastTurns | None = None
    """Statistics of other sessions of the project; looked up off the request path."""
    recorded_ends: deque[HistoryEnd] = field(default_factory=lambda: deque(maxlen=_MAX_ENDS))
    """The ends of recent requests, up to which all entries are stored."""
    distilled: tuple[Distilled, ...] = ()
    """Distillations of the session as they were last found."""
    distilled_at_tokens: int = 0
    """The size of its prompt when it was last distilled, with nothing left out."""
    stored_prefix: StoredPrefix = field(default_factory=StoredPrefix)
    markers: Mapping[str, str] = field(default_factory=dict)
    """What its markers stand for, as far as this process knows."""
    has_all_markers: bool = False
    """Whether the stored markers were loaded."""
    withdrawn: frozenset[InjectedItem] = frozenset()
    """Memory that dropped texts contained, and that may be given again."""
    sent_without_note: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_ENDS))
    """Keys of entries that were sent without a note: a note now would change the cached prefix."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    """Guards all changes. The event loop takes it too, so nobody waits for the store under it."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """How a session changes once a prompt is sent."""

    state: SessionState
    snapshot: SessionSnapshot
    generation: str
    """Cache generation of its texts."""
    last: str = ""
    """Key of the last entry that is not the system's."""
    injections: tuple[Injection, ...] = ()
    """Memory that the session is given for the first time."""
    withdrawn: frozenset[InjectedItem] = frozenset()
    """Memory that earlier prompts contained and this one does not."""

    def apply(self, *, rewritten: bool) -> None:
        """Apply the change to its session, once its prompt was sent; later changes stay.

        Earlier notes are dropped where the prefix is `rewritten`. No texts are taken over if
        anything was forgotten meanwhile.
        """
        state, then = self.state, self.snapshot
        with state.lock:
            now = state.snapshot
            pins = replace(then.pins, floor=max(now.pins.floor, then.pins.floor))
            state.snapshot = replace(now, pins=pins)
            if state.generation == self.generation:
                state.snapshot = replace(
                    state.snapshot,
                    knowledge=then.knowledge,
                    notes=then.notes if rewritten else {**now.notes, **then.notes},
                    tiers=then.tiers,
                    bare=then.bare,
                    told=then.told if rewritten else {**now.told, **then.told},
                )
            state.withdrawn -= self.withdrawn
            if self.last and self.last not in state.snapshot.notes:
                state.sent_without_note.append(self.last)


@dataclass(frozen=True, slots=True)
class ComposedPrompt:
    """A planned prompt, and the texts that memory adds to it."""

    plan: Plan
    price: ModelPrice
    knowledge: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    is_private: bool = False
    bare: bool = False
    cold: bool = False
    calibrated: bool = False
    """Whether its token count is based on what the provider reported for the prompt before."""
    cached_share: float = 0.0
    """Share of the prompt that is likely read from the cache, by the last report."""
    whole_tokens: int = 0
    """Token count with nothing left out."""
    chars: int = 0
    """Length of the planned prompt in characters."""
    change: StateChange | None = None
    """None for a prompt that changes nothing."""

    @property
    def is_plain(self) -> bool:
        """Return whether the prompt is exactly what the client sent."""
        plan = self.plan
        changed = self.knowledge or self.notes or plan.start or plan.prefix or plan.annotated
        return not changed


def restore_calibration(measured: Measured) -> Calibration:
    """Return the calibration that a former process stored."""
    if not measured.tokens:
        return Calibration()
    cached = measured.cached_tokens
    use = TokenUse(fresh_tokens=measured.tokens - cached, cache_read_tokens=cached)
    return Calibration((ReportedTurn(measured.chars, use),), measured.turns_without_writes)


def token_measure(state: SessionState, dialogue: Dialogue) -> TokenMeasure:
    """Return how tokens of a session are measured, by what its provider reported."""
    calibration, last = state.calibration, state.snapshot.measured
    if not calibration.calibrated:
        return TokenMeasure()
    goes_on = (
        0 < last.entries <= len(dialogue.entries)
        and dialogue.entries[last.entries - 1].key == last.end
    )
    ratio = last.tokens_per_char or calibration.tokens_per_char
    return TokenMeasure(ratio, last.tokens if goes_on else 0, last.entries if goes_on else 0)


def dialogue_chars(dialogue: Dialogue) -> int:
    """Return the length of all entries in characters."""
    return entries_chars(dialogue.entries)


def entries_chars(entries: Sequence[Entry]) -> int:
    """Return the length of entries in characters."""
    return sum(map(_chars_of, entries))


def given_in(snapshot: SessionSnapshot) -> frozenset[InjectedItem]:
    """Return the memory that the prompts of a session contain."""
    return frozenset(one for injected in snapshot.told.values() for one in injected)


def advance_generation(state: SessionState, generation: str) -> None:
    """Drop the texts of a session if they belong to another cache generation."""
    if generation == state.generation:
        return
    state.withdrawn |= given_in(state.snapshot)
    state.snapshot = replace(state.snapshot, knowledge=None, notes={}, tiers=(), told={})
    state.markers, state.distilled, state.stored_prefix = {}, (), StoredPrefix()
    state.has_all_markers = False
    state.generation, state.submitted = generation, None


def plan_full(
    state: SessionState, snapshot: SessionSnapshot, dialogue: Dialogue, price: ModelPrice
) -> Plan:
    """Return a plan that leaves nothing out, however long the prompt is."""
    measured = token_measure(state, dialogue)
    knowledge_tokens = (
        0 if snapshot.is_private else measured.of_chars(len(snapshot.knowledge or ""))
    )
    terms = PlanTerms(PromptRoom(price.window_tokens, knowledge_tokens), measured)
    return planner.plan_whole_prompt(dialogue, snapshot.pins, terms)


def compose_full(
    state: SessionState, snapshot: SessionSnapshot, dialogue: Dialogue, price: ModelPrice
) -> ComposedPrompt:
    """Return a prompt with nothing left out."""
    plan = plan_full(state, snapshot, dialogue, price)
    if snapshot.is_private:
        plan = replace(plan, busts=False, why="")
        return ComposedPrompt(plan, price, is_private=True, whole_tokens=plan.tokens)
    return ComposedPrompt(
        plan,
        price,
        snapshot.knowledge or "",
        snapshot.notes,
        bare=snapshot.bare,
        whole_tokens=plan.tokens,
    )


def build_prompt(
    change: StateChange, dialogue: Dialogue, plan: Plan, price: ModelPrice, *, cold: bool
) -> ComposedPrompt:
    """Return the prompt of a plan."""
    state, snapshot = change.state, change.snapshot
    return ComposedPrompt(
        plan,
        price,
        snapshot.knowledge or "",
        snapshot.notes,
        bare=snapshot.bare,
        cold=cold,
        calibrated=state.calibration.calibrated,
        cached_share=0.0 if cold or plan.busts else state.calibration.last_cached_share,
        whole_tokens=token_measure(state, dialogue).of_chars(
            dialogue_chars(dialogue) + dialogue.fixed_chars
        ),
        chars=_prompt_chars(dialogue, plan, snapshot),
        change=change,
    )


def is_cold(measured: Measured, now: datetime) -> bool:
    """Return whether the provider's cache of the last prompt has expired."""
    return bool(measured.at_s) and now.timestamp() - measured.at_s > measured.lifetime_s


def _after_plan(snapshot: SessionSnapshot, dialogue: Dialogue, plan: Plan) -> SessionSnapshot:
    """Return the snapshot after a plan; notes on entries that a bust leaves out are dropped."""
    notes = snapshot.notes
    if plan.busts and plan.start and notes:
        sent = {entry.key for entry in dialogue.entries[plan.start :]}
        notes = {key: note for key, note in notes.items() if key in sent}
    snapshot = _keep_notes(snapshot, notes)
    return replace(snapshot, pins=plan.state, tiers=_tier_distillations(snapshot.tiers, plan))


def _drop_repeated_notes(snapshot: SessionSnapshot, last: str) -> SessionSnapshot:
    """Drop notes that repeat the knowledge; the last one stays if it says more."""
    in_knowledge = {*snapshot.told.get(KNOWLEDGE, ())}
    notes = {
        key: note
        for key, note in snapshot.notes.items()
        if not in_knowledge.intersection(in_note := snapshot.told.get(key, ()))
        or (key == last and not in_knowledge.issuperset(in_note))
    }
    return snapshot if len(notes) == len(snapshot.notes) else _keep_notes(snapshot, notes)


def _keep_notes(snapshot: SessionSnapshot, notes: Mapping[str, str]) -> SessionSnapshot:
    if len(notes) == len(snapshot.notes):
        return snapshot
    injected = {key: one for key, one in snapshot.told.items() if key in notes or key == KNOWLEDGE}
    return replace(snapshot, notes=notes, told=injected)


def _tier_distillations(known: Sequence[Distilled], plan: Plan) -> tuple[Distilled, ...]:
    """Return the distillations that tiers made, including those of this plan."""
    by_id = {
        one.id: one for one in (*known, *plan.prefix) if one.id.startswith(planner.TIER_ID_PREFIX)
    }
    return tuple(one for one in by_id.values() if one.id in plan.state.prefix)


def _prompt_chars(dialogue: Dialogue, plan: Plan, snapshot: SessionSnapshot) -> int:
    total = (
        dialogue.fixed_chars
        + len(snapshot.knowledge or "")
        + sum(map(len, snapshot.notes.values()))
    )
    total += sum(len(one.text) for one in plan.prefix)
    total += sum(one.block.chars for one in StandingTexts(dialogue.entries).find_before(plan.start))
    if not plan.annotated:
        return total + entries_chars(dialogue.entries[plan.start :])
    for entry in dialogue.entries[plan.start :]:
        for block in entry.blocks:
            short = block.call_id in plan.annotated and layers.is_long_output(block)
            total += layers.MAX_ANNOTATION_CHARS // 2 if short else block.chars
    return total


@dataclass(frozen=True, slots=True)
class Draft:
    """The snapshot that a session would have with the prompt in the making."""

    state: SessionState
    dialogue: Dialogue
    snapshot: SessionSnapshot
    generation: str
    last: str
    before: frozenset[InjectedItem]
    """Memory that earlier prompts contained."""
    knowledge: Injection = NOTHING
    note: Injection = NOTHING
    """Both only as far as they are new to the session."""

    @classmethod
    def of(cls, state: SessionState, dialogue: Dialogue) -> Draft:
        """Start from the current state of a session."""
        last = layers.last_spoken_entry(dialogue.entries)
        with state.lock:
            before = state.withdrawn | given_in(state.snapshot)
            key = last.key if last is not None else ""
            return cls(state, dialogue, state.snapshot, state.generation, key, before)

    def with_knowledge(self, knowledge: Injection, *, bare: bool = False) -> Draft:
        """Return the draft with other knowledge."""
        injected = {**self.snapshot.told, KNOWLEDGE: knowledge.given}
        snapshot = replace(self.snapshot, knowledge=knowledge.text, bare=bare, told=injected)
        return replace(self, snapshot=snapshot, knowledge=knowledge)

    def with_note(self, note: Injection | None) -> Draft:
        """Return the draft with a note, unless its last entry was sent before."""
        if note is None or not note.text or not self.last or self.last in self.snapshot.notes:
            return self
        with self.state.lock:
            if self.last in self.state.sent_without_note:
                return self
        notes = {**self.snapshot.notes, self.last: note.text}
        injected = {**self.snapshot.told, self.last: note.given}
        snapshot = replace(self.snapshot, notes=notes, told=injected)
        return replace(self, snapshot=snapshot, note=note)

    def change(self, plan: Plan, *, rewritten: bool) -> StateChange:
        """Return the change of the session by a plan; repeated notes are dropped from a `rewritten`
        prefix."""
        snapshot = _after_plan(self.snapshot, self.dialogue, plan)
        snapshot = _drop_repeated_notes(snapshot, self.last) if rewritten else snapshot
        sent = given_in(snapshot)
        injections = tuple(one for one in (self.knowledge, self.note) if sent.issuperset(one.given))
        return StateChange(
            self.state, snapshot, self.generation, self.last, injections, self.before - sent
        )


def usage_without_lore(
    state: SessionState,
    dialogue: Dialogue,
    composed: ComposedPrompt,
    use: TokenUse,
    *,
    tool_chars: int = 0,
) -> TokenUse:
    """Return the usage of a request without Lore; `state` is the state before its response."""
    plan, before = composed.plan, state.snapshot.measured
    last = dialogue.entries[before.entries :]
    new_chars = sum(len(composed.notes.get(entry.key, "")) for entry in last)
    added_chars = len(composed.knowledge) + tool_chars + sum(map(len, composed.notes.values()))
    if not before.turns or composed.cold or plan.busts:
        new_chars = added_chars
    chars = composed.chars + tool_chars
    # Providers also count images, which Lore has not added.
    ratio = min(use.input_tokens / chars, TokenMeasure().tokens_per_char) if composed.chars else 0.0
    new_tokens, added_tokens = round(new_chars * ratio), round(added_chars * ratio)
    if not (plan.start or plan.prefix or plan.annotated):
        return usage_without_additions(
            use, standing_tokens=added_tokens - new_tokens, new_tokens=new_tokens
        )
    return usage_without_compaction(
        use,
        # Without Lore an agent would have compacted before it exceeds the window.
        whole_tokens=min(composed.whole_tokens, composed.price.window_tokens),
        known_tokens=before.whole_tokens,
        new_tokens=new_tokens,
        busts=plan.busts,
        cold=composed.cold,
        caches=any(_is_cached(one.use) for one in state.calibration.turns) or _is_cached(use),
    )


def _is_cached(use: TokenUse) -> bool:
    return use.cache_read_tokens + use.cache_write_tokens + use.cache_write_1h_tokens > 0


T = TypeVar("T")


class LruCache(Generic[T]):
    """Least-recently-used cache by name; safe for threads.

    A value that is evicted while a thread still uses it is found again: two values of one name
    would have two locks.
    """

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._last: OrderedDict[str, T] = OrderedDict()
        self._in_use: WeakValueDictionary[str, T] = WeakValueDictionary()
        self._lock = threading.Lock()

    def find(self, name: str) -> T | None:
        """Return the value of a name, or None."""
        with self._lock:
            value = self._in_use.get(name)
            if value is not None:
                self._touch(name, value)
            return value

    def add(self, name: str, value: T) -> T:
        """Add a value unless the name has one; return the value of the name."""
        with self._lock:
            current = self._in_use.setdefault(name, value)
            self._touch(name, current)
            return current

    def all(self) -> list[T]:
        """Return all values that are cached or in use."""
        with self._lock:
            return list(self._in_use.values())

    def _touch(self, name: str, value: T) -> None:
        self._last[name] = value
        self._last.move_to_end(name)
        while len(self._last) > self._max_size:
            self._last.popitem(last=False)


MAX_SESSIONS = 256
"""Sessions cached in this process; the state of others is in the store."""


class SessionRegistry:
    """Finds the state of a session in this process or in the store, and saves it."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._sessions = LruCache[SessionState](MAX_SESSIONS)
        self._private_mode = store.private_mode

    def find(self, client: ClientSession) -> SessionState | None:
        """Return the cached state of a session, or None."""
        return self._sessions.find(client.place)

    def get(self, client: ClientSession, *, from_cache: bool = False) -> SessionState:
        """Return the state of a session.

        With `from_cache` a cached state is not compared with the store; that is enough where
        nothing is given from memory.
        """
        state = self.find(client) if from_cache else None
        state = state or self._load(client)
        with state.lock:
            if self._private_mode.is_pending(client) and not state.snapshot.is_private:
                state.snapshot = replace(state.snapshot, is_private=True)
        return state

    def _load(self, client: ClientSession) -> SessionState:
        cached = self.find(client)
        if cached is not None:
            self.refresh(client, cached)
            return cached
        # The generation first: what is forgotten between the two reads is then dropped again.
        generation = self._store.generation()
        snapshot = self._store.load(client)
        has_begun = snapshot.knowledge is not None or bool(snapshot.measured.turns)
        if client.began and not has_begun:
            snapshot = self._continue_from_first(client, snapshot)
        state = SessionState(snapshot, restore_calibration(snapshot.measured), generation)
        return self._sessions.add(client.place, state)

    def _continue_from_first(
        self, client: ClientSession, snapshot: SessionSnapshot
    ) -> SessionSnapshot:
        """Return the state of a session that had another name at its first request."""
        first = self.get(client.first).snapshot
        with suppress(StoreError):
            self._store.copy_injections(client)
        return replace(first, is_private=snapshot.is_private)

    def _set_private(self, client: ClientSession, *, is_private: bool) -> None:
        state = self.get(client)
        with state.lock:
            state.snapshot = replace(state.snapshot, is_private=is_private)
            state.revision += 1

    def refresh(self, client: ClientSession, state: SessionState) -> None:
        """Drop texts that may quote forgotten memory, and reread private mode: any process may have
        changed both."""
        before = state.revision
        generation, is_private = self._generation_and_privacy(client, state)
        if (generation, is_private) == (state.generation, state.snapshot.is_private):
            return
        with state.lock:
            if state.revision != before:
                return  # Changed meanwhile: what was read may be older.
            state.revision += 1
            state.snapshot = replace(state.snapshot, is_private=is_private)
            advance_generation(state, generation)

    def clear_caches(self, generation: str) -> None:
        """Drop the texts of all sessions that belong to another generation, and cached names."""
        self._store.clear_caches()
        for state in self._sessions.all():
            with state.lock:
                state.revision += state.generation != generation
                advance_generation(state, generation)

    def _generation_and_privacy(
        self, client: ClientSession, state: SessionState
    ) -> tuple[str, bool]:
        """Return both as stored, or as cached where the store cannot be read."""
        try:
            generation, is_private = self._store.generation_and_privacy(client)
        except StoreError:
            return state.generation, state.snapshot.is_private
        return generation, is_private or self._private_mode.is_pending(client)

    def save(self, client: ClientSession, state: SessionState) -> None:
        """Save the state of a session without waiting; a write that failed is retried, a pending
        one is not."""
        with state.lock:
            if state.snapshot.is_private:
                return
            before, after = state.submitted, state.snapshot
            changed = frozenset(
                name
                for name in SNAPSHOT_FIELDS
                if before is None or getattr(before, name) != getattr(after, name)
            )
            state.unsaved |= changed
            state.submitted = state.snapshot
            is_pending = state.pending_write is not None and not state.pending_write.done()
            if not state.unsaved or (is_pending and not changed):
                return
            state.write_count += 1
            with suppress(StoreError):
                # Under the lock, so that the last write comes last.
                names = frozenset(state.unsaved)
                pending_write = self._store.save(
                    client, state.snapshot, generation=state.generation, names=names
                )
                pending_write.add_done_callback(partial(_mark_saved, state, state.write_count))
                state.pending_write = pending_write

    def markers(self, client: ClientSession, *, from_cache: bool = False) -> Mapping[str, str]:
        """Return what the markers of a session stand for; `from_cache`: only those cached here."""
        if from_cache:
            return self._cached_markers(client)
        state = self.get(client)
        with state.lock:
            generation, is_complete = state.generation, state.has_all_markers
        if not is_complete:
            stored = self._store.load_markers(client)
            with state.lock:
                # Markers of another generation may quote what is forgotten.
                if state.generation == generation:
                    state.markers, state.has_all_markers = {**stored, **state.markers}, True
        return self._cached_markers(client)

    def _cached_markers(self, client: ClientSession) -> Mapping[str, str]:
        states = [self.find(one) for one in dict.fromkeys((client.first, client))]
        return {id_: text for state in states if state for id_, text in state.markers.items()}

    def save_markers(
        self,
        client: ClientSession,
        markers: Mapping[str, str],
        *,
        timeout_s: float = MARKER_TIMEOUT_S,
    ) -> None:
        """Cache what markers stand for, and wait until they are durable."""
        state = self.get(client, from_cache=True)
        with state.lock:
            state.markers = {**state.markers, **markers}
        self._store.save_markers(client, markers, timeout_s=timeout_s)

    def begin_private_mode(self, client: ClientSession) -> None:
        """Switch private mode on for a named session, and store that."""
        if client.unnamed:
            return
        self._private_mode.mark_pending(client)
        self._private_mode.begin(client)
        self._set_private(client, is_private=True)
        self._private_mode.pending.discard(client.session)

    def end_private_mode(self, client: ClientSession, dialogue: Dialogue) -> None:
        """Switch private mode off after this dialogue."""
        if client.unnamed:
            return
        self._store.end_private_mode(client, dialogue.entries)
        self._private_mode.pending.discard(client.session)
        self._set_private(client, is_private=False)

    def retry_private_mode(self, client: ClientSession) -> None:
        """Store a switch to private mode that could not be stored before."""
        if client.session in self._private_mode.pending:
            self.begin_private_mode(client)


def _mark_saved(state: SessionState, number: int, pending_write: Future[None]) -> None:
    """Clear the unsaved fields if this was the last write: it contains all earlier ones."""
    if pending_write.cancelled() or pending_write.exception() is not None:
        return
    with state.lock:
        if state.write_count == number:
            state.unsaved.clear()
