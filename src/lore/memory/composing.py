"""Composing: how the next prompt of a session is made, of what it says and what it holds on to.

One request at a time for each session. What a session holds is kept in this process and written
behind: a store that is locked or gone costs new sessions their memory, and no session its prompt.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from lore.budget import horizon
from lore.budget.calibration import Calibration, Reported, calibrate
from lore.budget.counterfactual import without_lore
from lore.context import annotating, planning, tiers
from lore.context.layers import Room
from lore.context.planning import Terms
from lore.context.sizing import Measure
from lore.errors import StoreError
from lore.memory.conversing import Conversing
from lore.memory.costing import KEPT_TOKENS, Economy, SoFar, foresee
from lore.memory.front import Memory
from lore.records import (
    Dialogue,
    Entry,
    Held,
    Layer,
    Measured,
    ModelPrice,
    PastTurns,
    Pins,
    Plan,
    Speaker,
    Summary,
    TokenUse,
)

UNKNOWN_PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 200_000)
"""What a model is taken to cost that no list has: about the middle of those in use."""

_MOST_SESSIONS = 256
"""Sessions that this process remembers; what the others hold is in the store."""

_YOUNG_CHARS = 40_000
"""A talk that has gone on for longer without memory keeps its cache instead; to write so much
anew costs some cents, and its first request may have been passed on as it came."""

_REMEMBERED_ENDS = 16
"""A request that is sent again, or another branch of a talk, is known by one of so many ends."""

_REMEMBERED_TURNS = 200
"""Gaps and growths of so many turns tell what is to come."""


@dataclass(slots=True)
class Live:
    """What this process knows of a session."""

    held: Held
    calibration: Calibration
    era: str = ""
    """When its texts were chosen: once anything is forgotten, they are no longer said."""
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_TURNS))
    grown: deque[int] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_TURNS))
    past: PastTurns | None = None
    """How other sessions of the project went; looked up while nobody waits."""
    recorded: deque[bytes] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_ENDS))
    """Digests of all entries that are stored, in their order, up to the ends of some requests."""
    lock: threading.RLock = field(default_factory=threading.RLock)


@dataclass(frozen=True, slots=True)
class Composed:
    """A prompt: its plan, and what it says beside the client's words."""

    plan: Plan
    price: ModelPrice
    knowledge: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    amnesic: bool = False
    cold: bool = False
    whole_tokens: int = 0
    """How long the prompt would be with nothing left out."""
    chars: int = 0
    """How long the planned prompt is in characters."""


class Composer:
    """Makes the prompts of all sessions."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._settings = memory.settings
        self._desk = Conversing(memory)
        self._sessions: OrderedDict[str, Live] = OrderedDict()
        self._hushed: set[str] = set()
        """Sessions whose amnesia is not written down yet."""
        self._lock = threading.Lock()

    @property
    def desk(self) -> Conversing:
        """Return the desk of the gateway."""
        return self._desk

    def compose(
        self,
        speaker: Speaker,
        dialogue: Dialogue,
        *,
        provider: str = "",
        gives_memory: bool = True,
        least: Layer = 0,
    ) -> Composed:
        """Return how the next prompt of a session is made, and hold on to it.

        A client that has memory by its own hooks is not given it here: `gives_memory` is False.
        """
        live = self._live(speaker)
        now = self._memory.database.now()
        price = self._price(dialogue.model, provider)
        with live.lock:
            cold = _is_cold(live.held.measured, now)
            if live.held.amnesic:
                return replace(self.compose_whole(speaker, dialogue), price=price, cold=cold)
            self._choose_knowledge(live, speaker, dialogue, gives_memory=gives_memory)
            plan = self._planned(live, speaker, dialogue, price, cold=cold, least=least)
            if plan.pins != live.held.pins or plan.busts:
                live.held = _following(live.held, dialogue, plan)
                self._hold(speaker, live)
            held = live.held
        measure = _measure(live, dialogue)
        raw = sum(entry.chars for entry in dialogue.entries)
        return Composed(
            plan,
            price,
            held.knowledge or "",
            held.notes,
            cold=cold,
            whole_tokens=measure.of_chars(raw + dialogue.fixed_chars),
            chars=_chars(dialogue, plan, held),
        )

    def compose_whole(self, speaker: Speaker, dialogue: Dialogue) -> Composed:
        """Return a prompt with nothing left out, that begins as the session's prompts do."""
        held = self._live(speaker).held
        price = self._price(dialogue.model, "")
        whole = planning.plan(dialogue, Pins(), (), Terms(Room(price.window_tokens)))
        if held.amnesic:
            return Composed(whole, price, amnesic=True, whole_tokens=whole.tokens)
        return Composed(whole, price, held.knowledge or "", held.notes, whole_tokens=whole.tokens)

    def add_note(self, speaker: Speaker, entry: Entry, note: str) -> None:
        """Put a text behind an entry, from now on."""
        live = self._live(speaker)
        with live.lock:
            if not live.held.amnesic:
                live.held = replace(live.held, notes={**live.held.notes, entry.key: note})

    def settle(
        self, speaker: Speaker, dialogue: Dialogue, composed: Composed, use: TokenUse
    ) -> TokenUse:
        """Take note of what the provider reported; return what the whole would have taken."""
        live = self._live(speaker)
        now = self._memory.database.now().timestamp()
        with live.lock:
            before = live.held.measured
            whole = max(composed.whole_tokens, use.input_tokens)
            without = without_lore(
                use,
                whole_tokens=whole,
                known_tokens=before.whole_tokens,
                cold=composed.cold,
                window_tokens=composed.price.window_tokens,
            )
            live.calibration = calibrate(live.calibration, composed.chars, use)
            if before.at_s:
                live.gaps_s.append(max(0.0, now - before.at_s))
            if before.tokens and not composed.plan.busts and use.input_tokens:
                live.grown.append(use.input_tokens - before.tokens)
            lifetime_s = horizon.LIFETIME_S
            if use.cache_write_1h_tokens > use.cache_write_tokens:
                lifetime_s = horizon.LONG_LIFETIME_S
            measured = Measured(
                live.calibration.known_chars,
                live.calibration.known_tokens,
                live.calibration.tokens_per_char,
                live.calibration.turns_without_writes,
                before.turns + 1,
                len(dialogue.entries),
                dialogue.entries[-1].key if dialogue.entries else "",
                now,
                lifetime_s if use.input_tokens else before.lifetime_s,
                whole,
            )
            live.held = replace(live.held, measured=measured)
            self._hold(speaker, live)
        if live.past is None:
            live.past = self._memory.past_turns(project=speaker.project)
        return without

    def cache_left_s(self, speaker: Speaker) -> float | None:
        """Return how long the last prompt of a session is still cached, None if it is not."""
        last = self._live(speaker).held.measured
        if not last.at_s:
            return None
        left = last.at_s + last.lifetime_s - self._memory.database.now().timestamp()
        return left if left > 0 else None

    def raise_floor(self, speaker: Speaker, tokens: int, most_tokens: int) -> None:
        """Take note that a provider refused a prompt as too long."""
        live = self._live(speaker)
        with live.lock:
            raised = planning.raise_floor(live.held.pins, tokens, most_tokens)
            live.held = replace(live.held, pins=raised)
            self._hold(speaker, live)

    def record(self, speaker: Speaker, entries: Sequence[Entry], *, model: str = "") -> int:
        """Store what was said since the last time; return how many messages that were."""
        live = self._live(speaker)
        if live.held.amnesic:
            if speaker.session in self._hushed:
                self.begin_amnesia(speaker)  # It could not be written down yet.
            return 0
        chain = _chain(entries)
        known = set(live.recorded)
        first = max((n + 1 for n, link in enumerate(chain) if link in known), default=0)
        stored = self._desk.record(speaker, entries, first=first, model=model)
        live.recorded.extend(chain[-2:])
        return len(stored)

    def needs_summaries(self, composed: Composed) -> bool:
        """Tell whether a session is so long that it will soon need summaries of all it said."""
        return composed.whole_tokens >= self._economy().kept_tokens

    def hush(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on, as long as this process runs.

        The store is not asked: it may be locked.
        """
        self._hushed.add(speaker.session)

    def begin_amnesia(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on."""
        self.hush(speaker)
        self._desk.begin_amnesia(speaker)
        self._set_amnesic(speaker, amnesic=True)
        self._hushed.discard(speaker.session)

    def end_amnesia(self, speaker: Speaker, dialogue: Dialogue) -> None:
        """Let what a session says after this dialogue be stored and given to again."""
        self._desk.end_amnesia(speaker, dialogue.entries)
        self._hushed.discard(speaker.session)
        self._set_amnesic(speaker, amnesic=False)

    def describe(self, speaker: Speaker) -> str:
        """Say how a session stands, for the person who asks."""
        held = self._live(speaker).held
        last = held.measured
        told = [f"Session {speaker.session} of {speaker.agent}, {last.turns} turns."]
        if speaker.project:
            told.append(f"Project: {speaker.project}.")
        told.append(f"Layer {held.pins.layer}; last prompt {last.tokens:,} tokens.")
        if held.amnesic:
            told.append("Amnesia is on: nothing of this is stored.")
        return "\n".join(told)

    def _live(self, speaker: Speaker) -> Live:
        live = self._found(speaker)
        if speaker.session in self._hushed and not live.held.amnesic:
            with live.lock:
                live.held = replace(live.held, amnesic=True)
        return live

    def _found(self, speaker: Speaker) -> Live:
        with self._lock:
            found = self._sessions.get(speaker.session)
            if found is not None:
                self._sessions.move_to_end(speaker.session)
        if found is not None:
            self._let_go_of_forgotten(found)
            return found
        # The era first: what is forgotten between the two is then let go of once more.
        era = self._desk.era()
        held = self._desk.held(speaker)
        live = Live(held, _calibration(held.measured), era)
        with self._lock:
            live = self._sessions.setdefault(speaker.session, live)
            while len(self._sessions) > _MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return live

    def _set_amnesic(self, speaker: Speaker, *, amnesic: bool) -> None:
        live = self._live(speaker)
        with live.lock:
            live.held = replace(live.held, amnesic=amnesic)

    def _let_go_of_forgotten(self, live: Live) -> None:
        """Drop all texts of a session if anything was forgotten since, by whatever process."""
        try:
            era = self._desk.era()
        except StoreError:
            return  # Where nothing can be read, nothing was forgotten either.
        with live.lock:
            if live.era != era:
                live.held = replace(live.held, knowledge=None, notes={}, tiers=())
                live.era = era

    def _hold(self, speaker: Speaker, live: Live) -> None:
        """Keep what a session holds on to; under its lock, so that the last comes last."""
        if live.held.amnesic:
            return
        with suppress(StoreError):
            self._desk.hold(speaker, live.held, era=live.era)

    def _price(self, model: str, provider: str) -> ModelPrice:
        return self._memory.find_model_price(model, provider=provider) or UNKNOWN_PRICE

    def _choose_knowledge(
        self, live: Live, speaker: Speaker, dialogue: Dialogue, *, gives_memory: bool
    ) -> None:
        """Choose what a session is told from its first prompt on, once."""
        if live.held.knowledge is not None:
            return
        is_young = sum(entry.chars for entry in dialogue.entries) < _YOUNG_CHARS
        chosen = self._desk.choose_knowledge(speaker) if gives_memory and is_young else ""
        live.held = replace(live.held, knowledge=chosen)
        self._hold(speaker, live)

    def _planned(
        self,
        live: Live,
        speaker: Speaker,
        dialogue: Dialogue,
        price: ModelPrice,
        *,
        cold: bool,
        least: Layer,
    ) -> Plan:
        measure = _measure(live, dialogue)
        terms = self._economy().terms(
            price,
            self._so_far(live, price, measure),
            fixed_chars=dialogue.fixed_chars,
            knowledge_tokens=measure.of_chars(len(live.held.knowledge or "")),
            cold=cold,
            least=least,
        )
        pins, strategy = live.held.pins, self._settings.context_strategy
        if strategy == "off":
            return planning.plan(dialogue, Pins(), (), Terms(terms.room, measure))
        raw = measure.of_chars(sum(entry.chars for entry in dialogue.entries))
        summaries: list[Summary] = []
        if pins.layer or raw >= self._economy().kept_tokens:
            summaries = [*self._desk.summaries(speaker, dialogue.entries), *live.held.tiers]
        if strategy == "tiered":
            return tiers.plan_tiers(dialogue, pins, summaries, terms, summarise=_summarise)
        return planning.plan(dialogue, pins, summaries, terms)

    def _economy(self) -> Economy:
        settings = self._settings
        pinned = settings.context_max_layer0_tokens
        return Economy(
            "seed" if settings.context_rule == "seed" else "horizon",
            settings.context_target_usd_per_turn,
            pinned,
            min(KEPT_TOKENS, pinned // 2) if pinned else KEPT_TOKENS,
        )

    @staticmethod
    def _so_far(live: Live, price: ModelPrice, measure: Measure) -> SoFar:
        """Return what is known of a session."""
        told, past = live.calibration, live.past or PastTurns()
        outlook = foresee(
            live.held.measured.turns,
            gaps_s=tuple(live.gaps_s),
            grown_tokens=tuple(live.grown),
            project_lengths=past.lengths,
            project_gaps_s=past.gaps_s,
            lifetime_s=live.held.measured.lifetime_s,
        )
        return SoFar(
            measure,
            outlook,
            told.calibrated,
            told.turns_without_writes,
            told.billed_read_usd(price),
        )


def _calibration(measured: Measured) -> Calibration:
    """Return what a former process knew of a session's prompts."""
    if not measured.tokens:
        return Calibration()
    use = TokenUse(fresh_tokens=measured.tokens)
    return Calibration((Reported(measured.chars, use),), measured.turns_without_writes)


def _measure(live: Live, dialogue: Dialogue) -> Measure:
    told, last = live.calibration, live.held.measured
    if not told.calibrated:
        return Measure()
    goes_on = (
        0 < last.entries <= len(dialogue.entries)
        and dialogue.entries[last.entries - 1].key == last.end
    )
    ratio = last.tokens_per_char or told.tokens_per_char
    return Measure(ratio, last.tokens if goes_on else 0, last.entries if goes_on else 0)


def _chain(entries: Sequence[Entry]) -> list[bytes]:
    """Return a digest of all entries up to each; clients put in system messages at will."""
    hashed = hashlib.blake2b(digest_size=16)
    chain = []
    for entry in entries:
        if entry.voice != "system":
            hashed.update(entry.key.encode())
        chain.append(hashed.digest())
    return chain


def _is_cold(measured: Measured, now: datetime) -> bool:
    """Tell whether the provider has forgotten the last prompt by now."""
    return bool(measured.at_s) and now.timestamp() - measured.at_s > measured.lifetime_s


def _following(held: Held, dialogue: Dialogue, plan: Plan) -> Held:
    """Return what a session holds on to by a plan; notes on what a bust leaves out go with it."""
    notes = held.notes
    if plan.busts and plan.start and notes:
        sent = {entry.key for entry in dialogue.entries[plan.start :]}
        notes = {key: note for key, note in notes.items() if key in sent}
    return replace(held, pins=plan.pins, notes=notes, tiers=_made(held.tiers, plan))


def _made(known: Sequence[Summary], plan: Plan) -> tuple[Summary, ...]:
    """Return the summaries that tiers made, those of this plan among them."""
    made = {one.id: one for one in (*known, *plan.prefix) if one.id.startswith(tiers.MADE)}
    return tuple(one for one in made.values() if one.id in plan.pins.prefix)


def _summarise(texts: Sequence[str], most_tokens: int) -> str:
    """Sum up texts by rules: a client waits for it."""
    from lore.llm.offline import condensing

    return condensing.condense(texts, "", limit_tokens=most_tokens).text


def _chars(dialogue: Dialogue, plan: Plan, held: Held) -> int:
    """Return how long a planned prompt is in characters."""
    total = dialogue.fixed_chars + len(held.knowledge or "") + sum(map(len, held.notes.values()))
    total += sum(len(one.text) for one in plan.prefix)
    for entry in dialogue.entries[plan.start :]:
        for block in entry.blocks:
            short = block.call_id in plan.annotated and annotating.is_long(block)
            total += annotating.MOST_CHARS // 2 if short else block.chars
    return total
