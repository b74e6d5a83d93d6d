"""Composes the next prompt of a session from its dialogue and its state.

The state of a session changes with the prompts that are sent. It is cached in this process and
written behind: a locked or missing store costs new sessions their memory, and no session its
prompt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lore.budget import cache_economics
from lore.budget.cache_economics import KEEP_TOKENS, CostPolicy, SessionCosts, forecast_session
from lore.budget.estimate import add_turn
from lore.context import layers, planner, prompt_text
from lore.context.layers import KNOWLEDGE_SHARE, OUTPUT_SHARE, PromptRoom, TokenMeasure
from lore.errors import StoreError
from lore.gateway.session import session_state
from lore.gateway.session.private_mode import is_private_dialogue
from lore.gateway.session.session_state import (
    MAX_SESSIONS,
    NOTHING,
    ComposedPrompt,
    Draft,
    SessionRegistry,
    SessionState,
)
from lore.gateway.session.session_store import KNOWLEDGE_TOKENS, SessionStore
from lore.memory.facade import Memory
from lore.records import (
    ClientSession,
    Dialogue,
    Entry,
    Injection,
    Layer,
    Measured,
    ModelPrice,
    PastTurns,
    Plan,
    SessionSnapshot,
    TokenUse,
)

UNKNOWN_PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 200_000)
"""Price of a model that no list has: about the middle of those in use."""

_MAX_NEW_SESSION_CHARS = 40_000
"""A conversation that went on for longer without memory keeps its cached prefix instead: writing so
much to the cache again costs some cents. For a session that began as a pass-through, the fixed part
of the prompt counts too."""


DISTILL_EVERY_SHARE = 0.125
"""A session is distilled again once it has grown by this share of the size from which it is
distilled. A cut leaves several times as much at its end as it is, so nothing uncovered is cut."""


class PromptComposer:
    """Composes the prompts of all sessions."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._settings = memory.settings
        self.store = SessionStore(memory)
        self.sessions = SessionRegistry(self.store)
        self._passthrough: deque[str] = deque(maxlen=MAX_SESSIONS)

    def compose(
        self,
        client: ClientSession,
        dialogue: Dialogue,
        *,
        provider: str = "",
        gives_memory: bool = True,
        note: Injection | None = None,
        min_layer: Layer = 0,
    ) -> ComposedPrompt:
        """Return the next prompt of a session; call `mark_sent` once it is sent.

        `gives_memory` is False for a client whose own hooks give it memory. A `note` is put behind
        the last entry.
        """
        state = self.sessions.get(client)
        price = self._price(dialogue.model, provider)
        draft = Draft.of(state, dialogue)
        cold = session_state.is_cold(draft.snapshot.measured, self._memory.database.now())
        if draft.snapshot.is_private or is_private_dialogue(client, dialogue.entries):
            return self._private_prompt(state, client, dialogue, price, cold=cold)
        draft = self._without_knowledge(draft, client, dialogue).with_note(note)
        budget = self._knowledge_budget(state, dialogue, price) if gives_memory else 0
        give = partial(self._with_knowledge, client=client, dialogue=dialogue, budget_tokens=budget)
        draft = give(draft, rewritten=cold)
        self._load_distillations(state, client, dialogue, price)
        plan_for = partial(
            self._plan, state, dialogue=dialogue, price=price, cold=cold, min_layer=min_layer
        )
        plan = plan_for(draft.snapshot)
        if plan.busts and not cold:
            # The bust rewrites everything behind the system prompt anyway.
            fresh = give(draft, rewritten=True)
            before, after = draft.snapshot.knowledge or "", fresh.snapshot.knowledge or ""
            if draft.snapshot.bare or not prompt_text.is_same_text(before, after):
                again = plan_for(fresh.snapshot)
                draft, plan = (fresh, again) if again.busts else (draft, plan)
        change = draft.change(plan, rewritten=plan.busts or cold)
        return session_state.build_prompt(change, dialogue, plan, price, cold=cold)

    def compose_from_cache(
        self, client: ClientSession, dialogue: Dialogue, *, provider: str = ""
    ) -> ComposedPrompt | None:
        """Return a prompt from the cached state of a session, None if it had no prompt before.

        For a request whose deadline passed: nothing is looked up except the cache generation.
        """
        state = self.sessions.find(client)
        is_private = is_private_dialogue(client, dialogue.entries)
        if state is None or not (
            state.snapshot.measured.turns or state.snapshot.is_private or is_private
        ):
            return None
        price = self._price(dialogue.model, provider)
        self.sessions.refresh(client, state)
        draft = Draft.of(state, dialogue)
        cold = session_state.is_cold(draft.snapshot.measured, self._memory.database.now())
        if draft.snapshot.is_private or is_private:
            return self._private_prompt(state, client, dialogue, price, cold=cold)
        plan = self._plan(state, draft.snapshot, dialogue, price, cold=cold)
        change = draft.change(plan, rewritten=plan.busts or cold)
        return session_state.build_prompt(change, dialogue, plan, price, cold=cold)

    def mark_sent(self, client: ClientSession, composed: ComposedPrompt) -> None:
        """Apply the change of a prompt that is sent, without waiting for the store. A prompt that
        is not sent leaves its session as it was."""
        change = composed.change
        if change is None:
            return
        change.apply(rewritten=composed.plan.busts or composed.cold)
        self.sessions.save(client, change.state)
        if not change.state.snapshot.is_private:
            self.store.record_withdrawn(client, change.withdrawn)
            self.store.record_given(client, change.injections)

    def compose_full(self, client: ClientSession, dialogue: Dialogue) -> ComposedPrompt:
        """Return a prompt with nothing left out, with the same prefix as the session's prompts.

        A session that exceeds the window is planned like its last turn.
        """
        state = self.sessions.get(client)
        price = self._price(dialogue.model, "")
        snapshot = state.snapshot
        snapshot = replace(
            snapshot,
            is_private=snapshot.is_private or is_private_dialogue(client, dialogue.entries),
        )
        full = session_state.compose_full(state, snapshot, dialogue, price)
        is_long = full.plan.tokens > (1 - OUTPUT_SHARE) * price.window_tokens
        if snapshot.is_private or not snapshot.pins.layer or not is_long:
            return full
        self._load_distillations(state, client, dialogue, price)
        plan = self._plan(state, snapshot, dialogue, price, cold=False, saves_cost=False)
        return replace(full, plan=plan)

    def mark_passthrough(self, client: ClientSession) -> None:
        """Remember that a session began with a request that was passed through."""
        self._passthrough.append(client.place)

    def record_usage(
        self,
        client: ClientSession,
        dialogue: Dialogue,
        composed: ComposedPrompt,
        use: TokenUse,
        *,
        tool_chars: int = 0,
    ) -> TokenUse:
        """Record the usage that the provider reported; return the usage without Lore.

        `tool_chars` is the length of the tool definition that the gateway added.
        """
        state = self.sessions.get(client, from_cache=True)
        now = self._memory.database.now().timestamp()
        with state.lock:
            before = state.snapshot.measured
            without = session_state.usage_without_lore(
                state, dialogue, composed, use, tool_chars=tool_chars
            )
            if composed.is_private:
                # It was sent in full and is not stored: the calibration of planned prompts stays.
                return without
            state.calibration = add_turn(
                state.calibration,
                composed.chars,
                use,
                is_warm=not composed.plan.busts and not composed.cold,
            )
            if before.at_s:
                state.gaps_s.append(max(0.0, now - before.at_s))
            if before.tokens and not composed.plan.busts and use.input_tokens:
                state.growth_tokens.append(use.input_tokens - before.tokens)
            lifetime_s = cache_economics.CACHE_TTL_S
            if use.cache_write_1h_tokens > use.cache_write_tokens:
                lifetime_s = cache_economics.LONG_CACHE_TTL_S
            measured = Measured(
                state.calibration.known_chars,
                state.calibration.known_tokens,
                state.calibration.tokens_per_char,
                state.calibration.turns_without_writes,
                before.turns + 1,
                len(dialogue.entries),
                dialogue.entries[-1].key if dialogue.entries else "",
                now,
                lifetime_s if use.input_tokens else before.lifetime_s,
                without.input_tokens,
                state.calibration.turns[-1].use.cache_read_tokens if state.calibration.turns else 0,
            )
            state.snapshot = replace(state.snapshot, measured=measured)
            self.sessions.save(client, state)
        if state.past_turns is None:
            state.past_turns = self._memory.budget.past_turns(project=client.project)
        return without

    def cache_left_s(self, client: ClientSession) -> float | None:
        """Return how long the last prompt of a session is still cached, None if it is not."""
        state = self.sessions.find(client)
        last = state.snapshot.measured if state is not None else Measured()
        if not last.at_s:
            return None
        left_s = last.at_s + last.lifetime_s - self._memory.database.now().timestamp()
        return left_s if left_s > 0 else None

    def raise_floor(
        self, client: ClientSession, tokens: int, most_tokens: int, *, layer: Layer = 0
    ) -> None:
        """Remember that a provider refused a prompt of a layer as too long."""
        state = self.sessions.get(client)
        with state.lock:
            pins = state.snapshot.pins
            raised = planner.raise_floor(replace(pins, layer=layer), tokens, most_tokens)
            state.snapshot = replace(state.snapshot, pins=replace(pins, floor=raised.floor))
            self.sessions.save(client, state)

    def record(
        self,
        client: ClientSession,
        entries: Sequence[Entry],
        *,
        model: str = "",
        is_private: bool = False,
    ) -> int:
        """Store the new entries of a session; return how many messages were stored.

        A request that was made in private mode is never stored, even if private mode ended
        meanwhile.
        """
        state = self.sessions.get(client, from_cache=True)
        if state.snapshot.is_private:
            self.sessions.retry_private_mode(client)
            return 0
        if is_private:
            if not client.unnamed:
                self.store.exclude_entries(client, entries)
            return 0
        spoken = [n for n, entry in enumerate(entries) if entry.voice != "system"]
        keys = [entries[n].key for n in spoken]
        recorded = {end for end in tuple(state.recorded_ends) if end.entries <= len(keys)}
        known = recorded.intersection(layers.history_ends(keys, {end.entries for end in recorded}))
        count = max((end.entries for end in known), default=0)
        first = 0 if not count else spoken[count] if count < len(spoken) else len(entries)
        stored = self.store.record(client, entries, first=first, model=model)
        last = {len(keys) - 1, len(keys)} if keys else ()
        state.recorded_ends.extend(layers.history_ends(keys, last))
        return len(stored)

    def claim_distillation(self, composed: ComposedPrompt) -> bool:
        """Return whether a session should be distilled now, and note its size if so.

        It has to be long enough to need distillations soon, and longer than at the last time: a
        distillation reads the whole session.
        """
        from_tokens = self._cost_policy().distill_from_tokens(composed.price.window_tokens)
        tokens = composed.whole_tokens
        if tokens < from_tokens:
            return False
        if composed.change is None:
            return True
        state = composed.change.state
        with state.lock:
            grown = tokens - state.distilled_at_tokens
            if 0 <= grown < DISTILL_EVERY_SHARE * from_tokens:
                return False
            state.distilled_at_tokens = tokens
        return True

    def describe(self, client: ClientSession, dialogue: Dialogue) -> str:
        """Describe the state of a session to the person who asks."""
        snapshot = self.sessions.get(client).snapshot
        last = snapshot.measured
        lines = [f"Session {client.session} of {client.agent}, {last.turns} turns."]
        if client.project:
            lines.append(f"Project: {client.project}.")
        lines.append(f"Layer {snapshot.pins.layer}; last prompt {last.tokens:,} tokens.")
        if snapshot.is_private or is_private_dialogue(client, dialogue.entries):
            lines.append("Private mode is on (/lore:amnesia): nothing of this is stored.")
        return "\n".join(lines)

    def _private_prompt(
        self,
        state: SessionState,
        client: ClientSession,
        dialogue: Dialogue,
        price: ModelPrice,
        *,
        cold: bool,
    ) -> ComposedPrompt:
        """Return the prompt of a private session, and store its private mode for its subagents."""
        if not client.unnamed and (client.parent or not state.snapshot.is_private):
            with suppress(StoreError):
                self.store.private_mode.begin_from_context(client)
        snapshot = replace(state.snapshot, is_private=True)
        return replace(session_state.compose_full(state, snapshot, dialogue, price), cold=cold)

    def _price(self, model: str, provider: str) -> ModelPrice:
        return self._memory.budget.find_model_price(model, provider=provider) or UNKNOWN_PRICE

    def _without_knowledge(self, draft: Draft, client: ClientSession, dialogue: Dialogue) -> Draft:
        """Leave a session without memory that began so, unless little of it is cached."""
        if draft.snapshot.measured.turns or client.first.place not in self._passthrough:
            return draft
        if session_state.dialogue_chars(dialogue) + dialogue.fixed_chars < _MAX_NEW_SESSION_CHARS:
            return draft
        return draft.with_knowledge(NOTHING, bare=True)

    def _knowledge_budget(self, state: SessionState, dialogue: Dialogue, price: ModelPrice) -> int:
        fixed = session_state.token_measure(state, dialogue).of_chars(dialogue.fixed_chars)
        usable = PromptRoom(price.window_tokens, fixed).usable_tokens
        return min(KNOWLEDGE_TOKENS, int(KNOWLEDGE_SHARE * usable))

    def _with_knowledge(
        self,
        draft: Draft,
        *,
        client: ClientSession,
        dialogue: Dialogue,
        budget_tokens: int,
        rewritten: bool,
    ) -> Draft:
        """Choose the knowledge of a session at its start, and whenever its prefix is rewritten."""
        if (draft.snapshot.knowledge is not None or draft.snapshot.bare) and not rewritten:
            return draft
        may = budget_tokens > 0 and (
            rewritten or session_state.dialogue_chars(dialogue) < _MAX_NEW_SESSION_CHARS
        )
        if not may:
            return draft.with_knowledge(NOTHING)
        return draft.with_knowledge(
            self.store.choose_knowledge(client, budget_tokens=budget_tokens)
        )

    def _load_distillations(
        self, state: SessionState, client: ClientSession, dialogue: Dialogue, price: ModelPrice
    ) -> None:
        if self._settings.context_strategy == "off":
            return
        whole_tokens = session_state.token_measure(state, dialogue).of_chars(
            session_state.dialogue_chars(dialogue) + dialogue.fixed_chars
        )
        from_tokens = self._cost_policy().distill_from_tokens(price.window_tokens)
        if state.snapshot.pins.layer or whole_tokens >= from_tokens:
            known = state.stored_prefix
            state.distilled = tuple(self.store.find_distillations(client, dialogue.entries, known))

    def _plan(
        self,
        state: SessionState,
        snapshot: SessionSnapshot,
        dialogue: Dialogue,
        price: ModelPrice,
        *,
        cold: bool,
        min_layer: Layer = 0,
        saves_cost: bool = True,
    ) -> Plan:
        """Return the plan of the next prompt; without `saves_cost` only what exceeds the window is
        left out."""
        measure = session_state.token_measure(state, dialogue)
        terms = self._cost_policy().terms(
            price,
            self._session_costs(state, price, measure),
            fixed_chars=dialogue.fixed_chars,
            knowledge_tokens=measure.of_chars(len(snapshot.knowledge or "")),
            cold=cold,
            min_layer=min_layer,
        )
        if not saves_cost:
            terms = replace(terms, cost_rule=planner.never_bust)
        pins, strategy = snapshot.pins, self._settings.context_strategy
        if strategy == "off":
            return session_state.plan_full(state, snapshot, dialogue, price)
        distilled = (*state.distilled, *snapshot.tiers)
        if strategy == "tiered":
            return planner.plan_tiers(dialogue, pins, distilled, terms, condense=condense)
        return planner.plan_prompt(dialogue, pins, distilled, terms)

    def _cost_policy(self) -> CostPolicy:
        settings = self._settings
        pinned = settings.context_max_layer0_tokens
        return CostPolicy(
            "seed" if settings.context_rule == "seed" else "horizon",
            settings.context_target_usd_per_turn,
            pinned,
            min(KEEP_TOKENS, pinned // 2) if pinned else KEEP_TOKENS,
        )

    @staticmethod
    def _session_costs(
        state: SessionState, price: ModelPrice, measure: TokenMeasure
    ) -> SessionCosts:
        calibration, past = state.calibration, state.past_turns or PastTurns()
        outlook = forecast_session(
            state.snapshot.measured.turns,
            gaps_s=tuple(state.gaps_s),
            grown_tokens=tuple(state.growth_tokens),
            project_lengths=past.lengths,
            project_gaps_s=past.gaps_s,
            lifetime_s=state.snapshot.measured.lifetime_s,
            cached_share=calibration.cached_share,
        )
        return SessionCosts(
            measure,
            outlook,
            calibration.calibrated,
            calibration.turns_without_writes,
            calibration.billed_read_usd(price),
        )


def condense(texts: Sequence[str], most_tokens: int) -> str:
    """Summarize texts by rules, because a client waits for it."""
    from lore.llm.offline import log_writer

    return log_writer.condense(texts, "", limit_tokens=most_tokens).text
