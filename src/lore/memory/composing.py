"""Composing: how the next prompt of a session is made, of what it says and what it holds on to.

One request at a time for each session. What a session holds is kept in this process and written
behind: a store that is locked or gone costs new sessions their memory, and no session its prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lore.budget import horizon
from lore.budget.calibration import calibrate
from lore.context import planning, tiers, turns
from lore.context.planning import Terms
from lore.context.sizing import Measure
from lore.errors import StoreError
from lore.memory import comparing, holding
from lore.memory.conversing import Conversing
from lore.memory.costing import KEPT_TOKENS, Economy, SoFar, foresee
from lore.memory.front import Memory
from lore.memory.holding import Composed, Live
from lore.memory.recent import Recent
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
anew costs some cents, and its first request may have been passed on as it came. What is known to
be cached without memory counts with all that stands before the talk."""


class Composer:
    """Makes the prompts of all sessions."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._settings = memory.settings
        self._desk = Conversing(memory)
        self._sessions = Recent[Live](_MOST_SESSIONS)
        self._passed: deque[str] = deque(maxlen=_MOST_SESSIONS)

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
            cold = holding.is_cold(live.held.measured, now)
            if live.held.amnesic:
                return replace(holding.whole(live.held, dialogue, price), cold=cold)
            self._note_bare(live, speaker, dialogue)
            tells = partial(self._tell, live, speaker, dialogue, gives_memory=gives_memory)
            tells(anew=cold)
            self._look_up_summaries(live, speaker, dialogue)
            plan = self._planned(live, live.held, dialogue, price, cold=cold, least=least)
            if plan.busts and live.held.bare:
                tells(anew=True)
            if plan.pins != live.held.pins or plan.busts:
                live.held = _following(live.held, dialogue, plan)
                self._hold(speaker, live)
            return holding.composed(live, live.held, dialogue, plan, price, cold=cold)

    def compose_held(
        self, speaker: Speaker, dialogue: Dialogue, *, provider: str = ""
    ) -> Composed | None:
        """Return a prompt of what a session holds on to in this process, None if it never began.

        For a request that memory has no time for: nothing is looked up, except whether anything
        was forgotten, and nobody is waited for.
        """
        live = self._sessions.find(speaker.session)
        if live is None or not (live.held.measured.turns or live.held.amnesic):
            return None
        price = self._price(dialogue.model, provider)
        held = live.held if self._era(live) == live.era else holding.without_texts(live.held)
        cold = holding.is_cold(held.measured, self._memory.database.now())
        if held.amnesic:
            return replace(holding.whole(held, dialogue, price), cold=cold)
        last = turns.last_said(dialogue.entries)
        if last is not None and last.key not in held.notes:
            live.unnoted.append(last.key)
        plan = self._planned(live, held, dialogue, price, cold=cold)
        return holding.composed(live, held, dialogue, plan, price, cold=cold)

    def compose_whole(self, speaker: Speaker, dialogue: Dialogue) -> Composed:
        """Return a prompt with nothing left out, that begins as the session's prompts do."""
        return holding.whole(self._live(speaker).held, dialogue, self._price(dialogue.model, ""))

    def pass_bare(self, speaker: Speaker) -> None:
        """Take note that a session began with a request that went out as it came."""
        self._passed.append(speaker.session)

    def add_note(self, speaker: Speaker, entry: Entry, note: str) -> None:
        """Put a text behind an entry, from now on, unless it has gone out without one."""
        live = self._live(speaker)
        with live.lock:
            if entry.key not in live.unnoted:
                live.held = replace(live.held, notes={**live.held.notes, entry.key: note})

    def markers(self, speaker: Speaker, *, at_hand: bool = False) -> Mapping[str, str]:
        """Return what the markers of a session stand for, by their ids.

        With `at_hand` only those that this process knows are, and nothing is looked up.
        """
        if at_hand:
            live = self._sessions.find(speaker.session)
            return (live.markers if live is not None else None) or {}
        live = self._live(speaker)
        known = live.markers
        if known is None:
            known = live.markers = self._desk.markers(speaker)
        return known

    def keep_markers(self, speaker: Speaker, markers: Mapping[str, str]) -> None:
        """Keep what markers stand for, and return once that is durable."""
        self._desk.keep_markers(speaker, markers)
        live = self._live(speaker)
        with live.lock:
            live.markers = {**(live.markers or self._desk.markers(speaker)), **markers}

    def settle(
        self,
        speaker: Speaker,
        dialogue: Dialogue,
        composed: Composed,
        use: TokenUse,
        *,
        tool_chars: int = 0,
    ) -> TokenUse:
        """Take note of what the provider reported; return what it would have without Lore.

        `tool_chars` is how long the tool is that the gateway has offered beside.
        """
        live = self._live(speaker)
        now = self._memory.database.now().timestamp()
        with live.lock:
            before = live.held.measured
            without = comparing.without_lore(live, dialogue, composed, use, tool_chars=tool_chars)
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
                without.input_tokens,
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
            return 0
        chain = turns.chain(entries)
        known = set(live.recorded)
        first = max((n + 1 for n, link in enumerate(chain) if link in known), default=0)
        stored = self._desk.record(speaker, entries, first=first, model=model)
        live.recorded.extend(chain[-2:])
        return len(stored)

    def needs_summaries(self, composed: Composed) -> bool:
        """Tell whether a session is so long that it will soon need summaries of all it said."""
        return composed.whole_tokens >= self._economy().kept_tokens

    def begin_amnesia(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on."""
        self._desk.begin_amnesia(speaker)
        self._set_amnesic(speaker, amnesic=True)

    def end_amnesia(self, speaker: Speaker, dialogue: Dialogue) -> None:
        """Let what a session says after this dialogue be stored and given to again."""
        self._desk.end_amnesia(speaker, dialogue.entries)
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
        found = self._sessions.find(speaker.session)
        if found is not None:
            self._let_go_of_forgotten(found)
            return found
        # The era first: what is forgotten between the two is then let go of once more.
        era = self._desk.era()
        held = self._desk.held(speaker)
        live = Live(held, holding.calibration(held.measured), era)
        return self._sessions.add(speaker.session, live)

    def _set_amnesic(self, speaker: Speaker, *, amnesic: bool) -> None:
        live = self._live(speaker)
        with live.lock:
            live.held = replace(live.held, amnesic=amnesic)

    def _let_go_of_forgotten(self, live: Live) -> None:
        """Drop all texts of a session if anything was forgotten since, by whatever process."""
        era = self._era(live)
        if era == live.era:
            return
        with live.lock:
            live.held, live.markers, live.era = holding.without_texts(live.held), None, era

    def _era(self, live: Live) -> str:
        """Return the era that it is; where nothing can be read, nothing was forgotten either."""
        try:
            return self._desk.era()
        except StoreError:
            return live.era

    def _hold(self, speaker: Speaker, live: Live) -> None:
        """Keep what a session holds on to; under its lock, so that the last comes last."""
        if live.held.amnesic:
            return
        with suppress(StoreError):
            self._desk.hold(speaker, live.held, era=live.era)

    def _price(self, model: str, provider: str) -> ModelPrice:
        return self._memory.find_model_price(model, provider=provider) or UNKNOWN_PRICE

    def _note_bare(self, live: Live, speaker: Speaker, dialogue: Dialogue) -> None:
        """Let a session go on without memory that began so, unless little is cached of it."""
        held = live.held
        if held.measured.turns or speaker.session not in self._passed:
            return
        if holding.raw_chars(dialogue) + dialogue.fixed_chars >= _YOUNG_CHARS:
            live.held = replace(held, knowledge="", bare=True)
            self._hold(speaker, live)

    def _tell(
        self, live: Live, speaker: Speaker, dialogue: Dialogue, *, gives_memory: bool, anew: bool
    ) -> None:
        """Choose what a session is told: as it begins, and where it is written `anew` anyway."""
        if live.held.knowledge is not None and not anew:
            return
        may = gives_memory and (anew or holding.raw_chars(dialogue) < _YOUNG_CHARS)
        chosen = self._desk.choose_knowledge(speaker) if may else ""
        live.held = replace(live.held, knowledge=chosen, bare=False)
        self._hold(speaker, live)

    def _look_up_summaries(self, live: Live, speaker: Speaker, dialogue: Dialogue) -> None:
        if self._settings.context_strategy == "off":
            return
        raw_tokens = holding.measure(live, dialogue).of_chars(holding.raw_chars(dialogue))
        if live.held.pins.layer or raw_tokens >= self._economy().kept_tokens:
            live.summaries = tuple(self._desk.summaries(speaker, dialogue.entries))

    def _planned(
        self,
        live: Live,
        held: Held,
        dialogue: Dialogue,
        price: ModelPrice,
        *,
        cold: bool,
        least: Layer = 0,
    ) -> Plan:
        measure = holding.measure(live, dialogue)
        terms = self._economy().terms(
            price,
            self._so_far(live, price, measure),
            fixed_chars=dialogue.fixed_chars,
            knowledge_tokens=measure.of_chars(len(held.knowledge or "")),
            cold=cold,
            least=least,
        )
        pins, strategy = held.pins, self._settings.context_strategy
        if strategy == "off":
            return planning.plan(dialogue, Pins(), (), Terms(terms.room, measure))
        summaries = (*live.summaries, *held.tiers)
        if strategy == "tiered":
            return tiers.plan_tiers(dialogue, pins, summaries, terms, summarise=summarise)
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


def summarise(texts: Sequence[str], most_tokens: int) -> str:
    """Sum up texts by rules: a client waits for it."""
    from lore.llm.offline import condensing

    return condensing.condense(texts, "", limit_tokens=most_tokens).text
