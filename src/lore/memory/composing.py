"""Composing: how the next prompt of a session is made, of what it says and what it holds on to.

What a session holds on to changes with the prompts that go out. It is kept in this process and
written behind: a store that is locked or gone costs new sessions their memory, and no session its
prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from lore.budget import horizon
from lore.budget.calibration import calibrate
from lore.context import planning, silences, tiers, turns, wording
from lore.context.layers import KNOWLEDGE_SHARE, OUTPUT_SHARE, Room
from lore.context.sizing import Measure
from lore.errors import StoreError
from lore.memory import comparing, holding
from lore.memory.conversing import KNOWLEDGE_TOKENS, Conversing
from lore.memory.costing import KEPT_TOKENS, Economy, SoFar, foresee
from lore.memory.front import Memory
from lore.memory.holding import Composed, Live, Step
from lore.memory.lives import MOST_SESSIONS, Lives
from lore.records import (
    Dialogue,
    Entry,
    Given,
    Held,
    Injection,
    Layer,
    Measured,
    ModelPrice,
    PastTurns,
    Plan,
    Speaker,
    TokenUse,
)

UNKNOWN_PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 200_000)
"""What a model is taken to cost that no list has: about the middle of those in use."""

_YOUNG_CHARS = 40_000
"""A talk that has gone on for longer without memory keeps its cache instead; to write so much
anew costs some cents, and its first request may have been passed on as it came. What is known to
be cached without memory counts with all that stands before the talk."""


_NOTHING = Injection()


class Composer:
    """Makes the prompts of all sessions."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._settings = memory.settings
        self._desk = Conversing(memory)
        self._lives = Lives(self._desk)
        self._passed: deque[str] = deque(maxlen=MOST_SESSIONS)

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
        note: Injection | None = None,
        least: Layer = 0,
    ) -> Composed:
        """Return how the next prompt of a session is made; `use` it once that goes out.

        A client that has memory by its own hooks is not given it here: `gives_memory` is False. A
        `note` stands behind the last that was said.
        """
        live = self._lives.get(speaker)
        price = self._price(dialogue.model, provider)
        draft = _Draft.of(live, dialogue)
        cold = holding.is_cold(draft.held.measured, self._memory.database.now())
        if draft.held.amnesic or _is_silent(speaker, dialogue):
            return self._silent(live, speaker, dialogue, price, cold=cold)
        draft = self._told_bare(draft, speaker, dialogue).noted(note)
        budget = self._room_for_knowledge(live, dialogue, price) if gives_memory else 0
        tell = partial(self._told, speaker=speaker, dialogue=dialogue, budget_tokens=budget)
        draft = tell(draft, anew=cold)
        self._look_up_distilled(live, speaker, dialogue)
        make = partial(self._planned, live, dialogue=dialogue, price=price, cold=cold, least=least)
        plan = make(draft.held)
        if plan.busts and not cold:
            # All behind the system prompt is written anew anyway.
            told = tell(draft, anew=True)
            before, after = draft.held.knowledge or "", told.held.knowledge or ""
            if draft.held.bare or not wording.is_like(before, after):
                again = make(told.held)
                draft, plan = (told, again) if again.busts else (draft, plan)
        step = draft.step(plan, anew=plan.busts or cold)
        return holding.composed(step, dialogue, plan, price, cold=cold)

    def compose_held(
        self, speaker: Speaker, dialogue: Dialogue, *, provider: str = ""
    ) -> Composed | None:
        """Return a prompt of what a session holds on to in this process, None if it never began.

        For a request that memory has no time for: nothing is looked up, except whether anything
        was forgotten, and nobody is waited for.
        """
        live = self._lives.find(speaker)
        silent = _is_silent(speaker, dialogue)
        if live is None or not (live.held.measured.turns or live.held.amnesic or silent):
            return None
        price = self._price(dialogue.model, provider)
        self._lives.bring_up_to_date(speaker, live)
        draft = _Draft.of(live, dialogue)
        cold = holding.is_cold(draft.held.measured, self._memory.database.now())
        if draft.held.amnesic or silent:
            return self._silent(live, speaker, dialogue, price, cold=cold)
        plan = self._planned(live, draft.held, dialogue, price, cold=cold)
        step = draft.step(plan, anew=plan.busts or cold)
        return holding.composed(step, dialogue, plan, price, cold=cold)

    def use(self, speaker: Speaker, composed: Composed) -> None:
        """Take note that a prompt goes out; the store is not waited for.

        One that is not used leaves its session as it was: what is cached is another prompt.
        """
        step = composed.step
        if step is None:
            return
        holding.take(step, anew=composed.plan.busts or composed.cold)
        self._lives.hold(speaker, step.live)
        if not step.live.held.amnesic:
            self._desk.note_untold(speaker, step.untold)
            self._desk.note_given(speaker, step.given)

    def compose_whole(self, speaker: Speaker, dialogue: Dialogue) -> Composed:
        """Return a prompt with nothing left out, that begins as the session's prompts do.

        A session that has grown longer than the model can read is told as its last turn was.
        """
        live = self._lives.get(speaker)
        price = self._price(dialogue.model, "")
        held = live.held
        held = replace(held, amnesic=held.amnesic or _is_silent(speaker, dialogue))
        whole = holding.whole(live, held, dialogue, price)
        is_long = whole.plan.tokens > (1 - OUTPUT_SHARE) * price.window_tokens
        if held.amnesic or not held.pins.layer or not is_long:
            return whole
        self._look_up_distilled(live, speaker, dialogue)
        plan = self._planned(live, held, dialogue, price, cold=False, saves=False)
        return replace(whole, plan=plan)

    def pass_bare(self, speaker: Speaker) -> None:
        """Take note that a session began with a request that went out as it came."""
        self._passed.append(speaker.place)

    def markers(self, speaker: Speaker, *, at_hand: bool = False) -> Mapping[str, str]:
        """Return what the markers of a session stand for, by their ids.

        With `at_hand` only those that this process knows are, and nothing is looked up.
        """
        return self._lives.markers(speaker, at_hand=at_hand)

    def keep_markers(self, speaker: Speaker, markers: Mapping[str, str]) -> None:
        """Keep what markers stand for, and return once that is durable."""
        self._lives.keep_markers(speaker, markers)

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
        live = self._lives.get(speaker, at_hand=True)
        now = self._memory.database.now().timestamp()
        with live.lock:
            before = live.held.measured
            without = comparing.without_lore(live, dialogue, composed, use, tool_chars=tool_chars)
            if composed.amnesic:
                # It was sent whole and is not stored: what is known of planned prompts stays.
                return without
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
            self._lives.hold(speaker, live)
        if live.past is None:
            live.past = self._memory.past_turns(project=speaker.project)
        return without

    def cache_left_s(self, speaker: Speaker) -> float | None:
        """Return how long the last prompt of a session is still cached, None if it is not."""
        live = self._lives.find(speaker)
        last = live.held.measured if live is not None else Measured()
        if not last.at_s:
            return None
        left = last.at_s + last.lifetime_s - self._memory.database.now().timestamp()
        return left if left > 0 else None

    def raise_floor(
        self, speaker: Speaker, tokens: int, most_tokens: int, *, layer: Layer = 0
    ) -> None:
        """Take note that a provider refused a prompt of a layer as too long."""
        live = self._lives.get(speaker)
        with live.lock:
            pins = live.held.pins
            raised = planning.raise_floor(replace(pins, layer=layer), tokens, most_tokens)
            live.held = replace(live.held, pins=replace(pins, floor=raised.floor))
            self._lives.hold(speaker, live)

    def record(
        self, speaker: Speaker, entries: Sequence[Entry], *, model: str = "", silent: bool = False
    ) -> int:
        """Store what was said since the last time; return how many messages that were.

        What a `silent` session was asked is never stored, though it ended its amnesia meanwhile.
        """
        live = self._lives.get(speaker, at_hand=True)
        if live.held.amnesic:
            self._lives.write_down_amnesia(speaker)
            return 0
        if silent:
            if not speaker.unnamed:
                self._desk.leave_unsaid(speaker, entries)
            return 0
        chain = turns.chain(entries)
        known = set(live.recorded)
        first = max((n + 1 for n, link in enumerate(chain) if link in known), default=0)
        stored = self._desk.record(speaker, entries, first=first, model=model)
        live.recorded.extend(chain[-2:])
        return len(stored)

    def let_go(self, era: str) -> None:
        """Have nothing in mind that quotes memory of another era than this one."""
        self._lives.let_go(era)

    def needs_distilling(self, composed: Composed) -> bool:
        """Tell whether a session is so long that it will soon need distillations of all it said."""
        return composed.whole_tokens >= self._economy().kept_tokens

    def hush(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on, as long as this process runs."""
        self._lives.hush(speaker)

    def begin_amnesia(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on."""
        self._lives.begin_amnesia(speaker)

    def end_amnesia(self, speaker: Speaker, dialogue: Dialogue) -> None:
        """Let what a session says after this dialogue be stored and given to again."""
        self._lives.end_amnesia(speaker, dialogue)

    def describe(self, speaker: Speaker, dialogue: Dialogue) -> str:
        """Say how a session stands, for the person who asks."""
        held = self._lives.get(speaker).held
        last = held.measured
        told = [f"Session {speaker.session} of {speaker.agent}, {last.turns} turns."]
        if speaker.project:
            told.append(f"Project: {speaker.project}.")
        told.append(f"Layer {held.pins.layer}; last prompt {last.tokens:,} tokens.")
        if held.amnesic or _is_silent(speaker, dialogue):
            told.append("Amnesia is on: nothing of this is stored.")
        return "\n".join(told)

    def _silent(
        self, live: Live, speaker: Speaker, dialogue: Dialogue, price: ModelPrice, *, cold: bool
    ) -> Composed:
        """Return a prompt of a session that is given nothing; its helpers are to know that."""
        if not speaker.unnamed and (speaker.parent or not live.held.amnesic):
            with suppress(StoreError):
                self._desk.stay_amnesic(speaker)
        held = replace(live.held, amnesic=True)
        return replace(holding.whole(live, held, dialogue, price), cold=cold)

    def _price(self, model: str, provider: str) -> ModelPrice:
        return self._memory.find_model_price(model, provider=provider) or UNKNOWN_PRICE

    def _told_bare(self, draft: _Draft, speaker: Speaker, dialogue: Dialogue) -> _Draft:
        """Let a session go on without memory that began so, unless little is cached of it."""
        if draft.held.measured.turns or speaker.first.place not in self._passed:
            return draft
        if holding.raw_chars(dialogue) + dialogue.fixed_chars < _YOUNG_CHARS:
            return draft
        return draft.telling(_NOTHING, bare=True)

    def _room_for_knowledge(self, live: Live, dialogue: Dialogue, price: ModelPrice) -> int:
        """Return how many tokens of knowledge a prompt has room for."""
        fixed = holding.measure(live, dialogue).of_chars(dialogue.fixed_chars)
        usable = Room(price.window_tokens, fixed).usable_tokens
        return min(KNOWLEDGE_TOKENS, int(KNOWLEDGE_SHARE * usable))

    def _told(
        self,
        draft: _Draft,
        *,
        speaker: Speaker,
        dialogue: Dialogue,
        budget_tokens: int,
        anew: bool,
    ) -> _Draft:
        """Choose what a session is told: as it begins, and where it is written `anew` anyway."""
        if (draft.held.knowledge is not None or draft.held.bare) and not anew:
            return draft
        may = budget_tokens > 0 and (anew or holding.raw_chars(dialogue) < _YOUNG_CHARS)
        if not may:
            return draft.telling(_NOTHING)
        return draft.telling(self._desk.choose_knowledge(speaker, budget_tokens=budget_tokens))

    def _look_up_distilled(self, live: Live, speaker: Speaker, dialogue: Dialogue) -> None:
        if self._settings.context_strategy == "off":
            return
        raw_tokens = holding.measure(live, dialogue).of_chars(holding.raw_chars(dialogue))
        if live.held.pins.layer or raw_tokens >= self._economy().kept_tokens:
            live.distilled = tuple(self._desk.distilled(speaker, dialogue.entries))

    def _planned(
        self,
        live: Live,
        held: Held,
        dialogue: Dialogue,
        price: ModelPrice,
        *,
        cold: bool,
        least: Layer = 0,
        saves: bool = True,
    ) -> Plan:
        """Return the plan of the next prompt; unless it `saves`, only what must is left out."""
        measure = holding.measure(live, dialogue)
        terms = self._economy().terms(
            price,
            self._so_far(live, price, measure),
            fixed_chars=dialogue.fixed_chars,
            knowledge_tokens=measure.of_chars(len(held.knowledge or "")),
            cold=cold,
            least=least,
        )
        if not saves:
            terms = replace(terms, cost=planning.never)
        pins, strategy = held.pins, self._settings.context_strategy
        if strategy == "off":
            return holding.plan_whole(live, held, dialogue, price)
        distilled = (*live.distilled, *held.tiers)
        if strategy == "tiered":
            return tiers.plan_tiers(dialogue, pins, distilled, terms, condense=condense)
        return planning.plan(dialogue, pins, distilled, terms)

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


@dataclass(frozen=True, slots=True)
class _Draft:
    """What a session would hold on to with the prompt that is being made."""

    live: Live
    dialogue: Dialogue
    held: Held
    era: str
    last: str
    before: frozenset[Given]
    """What of memory the session was told, and may not be told any more."""
    knowledge: Injection = _NOTHING
    note: Injection = _NOTHING
    """What of both is new to the session."""

    @classmethod
    def of(cls, live: Live, dialogue: Dialogue) -> _Draft:
        """Begin with what a session holds on to now."""
        last = turns.last_said(dialogue.entries)
        with live.lock:
            before = live.untold | holding.told_of(live.held)
            key = last.key if last is not None else ""
            return cls(live, dialogue, live.held, live.era, key, before)

    def telling(self, knowledge: Injection, *, bare: bool = False) -> _Draft:
        """Return it with other knowledge."""
        told = {**self.held.told, holding.KNOWLEDGE: knowledge.given}
        held = replace(self.held, knowledge=knowledge.text, bare=bare, told=told)
        return replace(self, held=held, knowledge=knowledge)

    def noted(self, note: Injection | None) -> _Draft:
        """Return it with a note, unless its last entry has gone out before, with one or without."""
        if note is None or not note.text or not self.last or self.last in self.held.notes:
            return self
        with self.live.lock:
            if self.last in self.live.unnoted:
                return self
        notes = {**self.held.notes, self.last: note.text}
        told = {**self.held.told, self.last: note.given}
        held = replace(self.held, notes=notes, told=told)
        return replace(self, held=held, note=note)

    def step(self, plan: Plan, *, anew: bool) -> Step:
        """Return what becomes of the session with a plan; notes may go where it is told `anew`."""
        held = holding.following(self.held, self.dialogue, plan)
        held = holding.without_repeated(held, self.last) if anew else held
        told = holding.told_of(held)
        given = tuple(one for one in (self.knowledge, self.note) if told.issuperset(one.given))
        return Step(self.live, held, self.era, self.last, given, self.before - told)


def _is_silent(speaker: Speaker, dialogue: Dialogue) -> bool:
    """Tell whether a talk says itself that nothing of it is to be stored."""
    return silences.is_silent(dialogue.entries, joined=speaker.marks_what_it_adds)


def condense(texts: Sequence[str], most_tokens: int) -> str:
    """Sum up texts by rules: a client waits for it."""
    from lore.llm.offline import condensing

    return condensing.condense(texts, "", limit_tokens=most_tokens).text
