"""The memory plugin: plans each request from memory, and has its turn recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial

from lore import telemetry
from lore.budget import estimate
from lore.budget.estimate import CostEstimate
from lore.context import layers
from lore.errors import BudgetSpent, InvalidInput
from lore.gateway import commands
from lore.gateway.apis import ADAPTERS, anthropic, parse_cache
from lore.gateway.apis.adapter import ApiAdapter, PromptAdditions, Tool
from lore.gateway.billing import (
    PROVIDERS,
    BillingObserver,
    BudgetGuard,
    CompletedRequest,
    Reservation,
)
from lore.gateway.cache_invalidation import AnnotationCache, BoundedCache, CacheInvalidator
from lore.gateway.client_session import (
    COUNT_TOKENS_PATH,
    ParsedRequest,
    RequestInfo,
    RequestParser,
    find_client_session,
    has_hook_memory,
    is_auxiliary,
    is_compaction,
    is_side_question,
    may_offer_tool,
)
from lore.gateway.plugin_protocol import ClientRequest, Command, LocalResponse, Pairs, RequestPlan
from lore.gateway.request_head import has_long_cache, peek_cost
from lore.gateway.session.private_mode import is_private_dialogue
from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.session.session_state import ComposedPrompt
from lore.gateway.tool_loop import MemorySearch, ToolLoop
from lore.gateway.turn_recorder import BackgroundResponseObserver, Turn, TurnRecorder
from lore.gateway.upstream_call import UpstreamCall
from lore.gateway.workers import Failure, Workers, attempt, log
from lore.memory import Memory
from lore.records import ClientSession, Injection

PROMPT_TIMEOUT_S = 0.08
"""Share of a request's deadline for finding the memory that its prompt needs."""

_MAX_PROMPT_CHARS = 20_000
"""A longer prompt was not typed; its question is at its start."""

WARM_UP_TIMEOUT_S = 10.0
"""How long a start waits for the model and the price lists, which take one to three seconds.
Without them the first request of a session would go out without memory, and the second would begin
differently."""

_MAX_MARKERS = 200
"""Markers for turns that go on while the store is locked: a turn that waits for results has at most
ten, and few turns wait at a time."""


class MemoryPlugin:
    """Gives memory to the requests that pass through the gateway, and records their turns.

    A request has one of three outcomes: a fresh plan (`plan`), a plan from the cached state of its
    session when the deadline passed (`plan_from_cache`), or no change at all (`passthrough`).
    `payer` is the memory whose ledger and budget pay for the requests, by default the same.
    """

    def __init__(
        self, memory: Memory, composer: PromptComposer, payer: Memory | None = None
    ) -> None:
        self._memory = memory
        self._composer = composer
        self._payer = payer or memory
        self._budget = BudgetGuard(self._payer)
        self._parser = RequestParser(memory, composer)
        self._annotations = AnnotationCache()
        self._markers = BoundedCache[str, str](_MAX_MARKERS)
        self.workers = Workers()
        self._search = MemorySearch(memory, composer, self._markers, self.workers.planning)
        self.invalidator = CacheInvalidator(
            composer.store.generation,
            lambda _generation: parse_cache.clear_caches(),
            lambda _generation: self._annotations.clear(),
            lambda _generation: self._markers.clear(),
            composer.sessions.clear_caches,
            lambda _generation: memory.maintenance.clear_caches(),
        )
        self._recorder = TurnRecorder(
            memory, composer, self._parser, self._annotations, self.invalidator, self.workers,
            self._payer,
        )  # fmt: skip
        self._warm_up: Future[object] | None = None

    def warm_up(self) -> None:
        """Start to load what the first requests would have to wait for."""
        self._payer.budget.load_prices()
        self._warm_up = self.workers.recording.submit("distillation", self._load)
        self.invalidator.start()

    def wait_until_warm(self, within_s: float = WARM_UP_TIMEOUT_S) -> None:
        """Wait for the warm-up, within a timeout."""
        if self._warm_up is not None:
            wait((self._warm_up,), within_s)

    def _load(self) -> None:
        self._memory.prompts.warm_up()
        self._payer.budget.load_prices(wait_s=WARM_UP_TIMEOUT_S)

    def close(self) -> None:
        """Start no more work."""
        self.invalidator.close()
        self.workers.close()

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        """Return a fresh plan of a request."""
        if not self._memory.settings.gateway_memory:
            return self.passthrough(incoming)
        with telemetry.span("plan"):
            return self._plan(incoming)

    def _plan(self, incoming: ClientRequest) -> RequestPlan:
        parsed = self._parser.parse(incoming)
        if parsed is None:
            return RequestPlan()
        if is_auxiliary(parsed.info):
            return self._plan_auxiliary(parsed)
        with self._memory.database.read():  # One consistent read for the whole plan.
            client = self._parser.find_client(parsed)
            command = self._command(parsed, client)
            if command is not None:
                return RequestPlan(command=command)
            parsed = self._parser.expand(parsed, client)
            composed = self._compose(parsed, client)
        return self._plan_turn(parsed, client, composed)

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        """Return a plan from the cached state of a session, for a request whose deadline passed.

        A session without cached state is passed through and recorded. None for what is no turn.
        """
        parsed = self._parser.parse(incoming) if self._memory.settings.gateway_memory else None
        if parsed is None:
            return None
        client = self._parser.find_client(parsed, from_cache=True)
        dialogue = parsed.request.dialogue
        if is_auxiliary(parsed.info) or commands.find_command(client, dialogue) is not None:
            return None
        parsed = self._parser.expand(parsed, client, from_cache=True)
        composed = self._composer.compose_from_cache(
            client, parsed.request.dialogue, provider=PROVIDERS[incoming.api]
        )
        if composed is None:
            forwarded = self._forward(
                parsed,
                client=client,
                on_begin=partial(self._composer.mark_passthrough, client),
                on_end=partial(self._end_passthrough, incoming),
            )
            return replace(forwarded, has_state=False)
        return self._plan_turn(parsed, client, composed)

    def passthrough(self, incoming: ClientRequest, until_s: float = math.inf) -> RequestPlan:
        """Return a plan that sends the original bytes, if there is money for them.

        The budget is not waited for longer than `until_s` of the monotonic clock.
        """
        if incoming.background_response_id:
            on_response = self._recorder.record_background
            return RequestPlan(
                observer=BackgroundResponseObserver(
                    self._payer, incoming.background_response_id, on_response
                )
            )
        adapter = ADAPTERS.get(incoming.api)
        if adapter is None:
            return self._budget.forward_unparsed(incoming, until_s)
        if incoming.path.endswith(COUNT_TOKENS_PATH):
            return RequestPlan()
        cost = attempt("peek", partial(peek_cost, incoming))
        if isinstance(cost, Failure):
            return self._budget.forward_unparsed(incoming, until_s)
        remembers = self._memory.settings.gateway_memory
        on_end = partial(self._end_passthrough, incoming) if remembers else self._budget.settle
        limit = estimate.output_limit(cost.asks, cost.model)
        order = CostEstimate(
            cost.model,
            estimate.max_usage_of_bytes(incoming.api, cost.length, limit, long=cost.long),
            estimate.requested_service(cost.asks),
            cost.streams,
            client_session=find_client_session(RequestInfo(incoming.headers, {}, ())),
        )
        repaired = attempt("repair", partial(self._repair, incoming))
        body = repaired if isinstance(repaired, bytes) else None
        observe = partial(self._budget.observe, incoming, on_end=on_end, whole=remembers)
        # Without memory only the cost is settled, which waits for nothing but the price lists.
        ends_quickly = not remembers and self._payer.budget.has_prices()
        plan = RequestPlan(body, ends_quickly=ends_quickly)
        return self._reserve(incoming, adapter, order, observe, plan, until_s=until_s)

    def _repair(self, incoming: ClientRequest) -> bytes | None:
        """Return another body for a turn that began with memory and goes on without, if needed."""
        if incoming.api != "anthropic":
            return None  # In other APIs, markers are plain texts.
        body = incoming.body()
        repaired = anthropic.repair_thinking(body, self._markers.get)
        return repaired if repaired is not body else None

    def find_command(self, incoming: ClientRequest) -> Command | None:
        """Return the command to Lore that a request ends with, if it does."""
        parsed = self._parser.parse(incoming) if self._memory.settings.gateway_memory else None
        if parsed is None or is_auxiliary(parsed.info):
            return None
        return self._command(parsed, self._parser.find_client(parsed, from_cache=True))

    def _command(self, parsed: ParsedRequest, client: ClientSession) -> Command | None:
        adapter, request = parsed.adapter, parsed.request
        typed = commands.find_command(client, request.dialogue)
        if typed is None:
            return None
        parse_cache.clear_caches()  # Its session may be in private mode.
        if typed.begins_private_mode:
            self._composer.store.private_mode.mark_pending(client)

        def run() -> LocalResponse:
            text = commands.run_command(
                self._memory, self._composer, client, request.dialogue, typed
            )
            return adapter.answer_with_text(request, text)

        return Command(run, adapter.answer_with_text(request, commands.failure_text(typed)))

    def may_wait(self) -> bool:
        """Return whether a plan does more than estimate a price."""
        return self._memory.settings.gateway_memory or self.is_limited()

    def is_limited(self) -> bool:
        """Return whether there is a budget."""
        return self._payer.budget.has_budget()

    def _plan_auxiliary(self, parsed: ParsedRequest) -> RequestPlan:
        """Return the plan of an auxiliary request: it is paid for, and not recorded.

        Compactions and side questions are sent with the cached prefix of their session. Without
        tools in the request, no marker may be expanded to a call, and no tool is offered.
        """
        client = find_client_session(parsed.info)
        if client is None:
            return self._forward(parsed)
        may_recap = self._recorder.was_private(client)
        on_end = partial(self._end_recap, client) if may_recap else None
        forward = partial(self._forward, client=client, on_end=on_end)
        compacts = is_compaction(parsed.info)
        if not compacts and not is_side_question(parsed.info):
            return forward(parsed)
        if parsed.request.tools:
            parsed = self._parser.expand(parsed, client)
        compose = self._composer.compose_full if compacts else self._composer.compose_from_cache
        composed = compose(client, parsed.request.dialogue)
        if composed is None:
            return forward(parsed)
        tool = self._offered_tool(parsed, composed) if parsed.request.tools else None
        body, tool = self._rewrite(parsed, composed, tool)
        if body is parsed.request.body:
            return forward(parsed)
        return forward(parsed, body=body, tool_loop=self._tool_loop(parsed, client, body, tool))

    def _forward(
        self,
        parsed: ParsedRequest,
        *,
        body: bytes | None = None,
        tool_loop: ToolLoop | None = None,
        client: ClientSession | None = None,
        on_begin: Callable[[], None] | None = None,
        on_end: Callable[[CompletedRequest], None] | None = None,
    ) -> RequestPlan:
        """Return a plan that is priced by its bytes; `on_end` settles in place of the budget."""
        incoming, request = parsed.incoming, parsed.request
        sent = request.body if body is None else body
        limit = estimate.output_limit(request.document, request.dialogue.model)
        long = has_long_cache(request.body)
        order = CostEstimate(
            request.dialogue.model,
            estimate.max_usage_of_bytes(incoming.api, len(sent), limit, long=long),
            estimate.requested_service(request.document),
            request.streams,
        )
        observe = partial(
            self._budget.observe,
            incoming,
            on_end=on_end or self._budget.settle,
            on_begin=on_begin,
            whole=on_end is not None,
        )
        left_s = self._composer.cache_left_s(client) if client is not None else None
        plan = RequestPlan(body, interceptor=tool_loop)
        return self._reserve(incoming, parsed.adapter, order, observe, plan, cache_left_s=left_s)

    def _reserve(
        self,
        incoming: ClientRequest,
        adapter: ApiAdapter,
        order: CostEstimate,
        observe: Callable[[Reservation], BillingObserver],
        plan: RequestPlan,
        *,
        cache_left_s: float | None = None,
        until_s: float = math.inf,
    ) -> RequestPlan:
        """Return a plan with its cost reserved and an observer, or the refusal of the budget."""
        try:
            with self._budget.reserve(
                incoming, adapter, order, cache_left_s=cache_left_s, until_s=until_s
            ) as reservation:
                observer, delay_s = observe(reservation), reservation.delay_s
                if isinstance(plan.interceptor, ToolLoop):
                    sent_bytes = len(incoming.body() if plan.body is None else plan.body)
                    plan.interceptor.set_reservation(
                        partial(self._budget.reserve_follow_up, incoming, observer, sent_bytes)
                    )
                delay = (("x-lore-delay-s", f"{delay_s:.1f}"),) if delay_s else ()
                headers = (*plan.headers, *delay)
                if telemetry.is_on():
                    provider = PROVIDERS[incoming.api]
                    observer.call = UpstreamCall(incoming.api, provider, order, dict(plan.headers))
                return replace(
                    plan, headers=headers, delay_s=delay_s, observer=observer, call=observer.call
                )
        except BudgetSpent as error:
            return self._budget.refuse(incoming, error)

    def _compose(self, parsed: ParsedRequest, client: ClientSession) -> ComposedPrompt:
        dialogue, provider = parsed.request.dialogue, PROVIDERS[parsed.incoming.api]
        gives_memory = not has_hook_memory(client, parsed.request)
        has_note = gives_memory and not is_private_dialogue(client, dialogue.entries)
        return self._composer.compose(
            client,
            dialogue,
            provider=provider,
            gives_memory=gives_memory,
            note=self._find_note(parsed, client) if has_note else None,
            min_layer=self._budget.pacing.least_layer(dialogue.model, provider),
        )

    def _find_note(self, parsed: ParsedRequest, client: ClientSession) -> Injection | None:
        """Return the memory that clearly concerns a new prompt."""
        last = layers.last_spoken_entry(parsed.request.dialogue.entries)
        if last is None or not last.begins_turn or client.parent:
            return None
        prompt = "\n".join(block.text for block in last.blocks if block.kind == "text")
        if not prompt:
            return None
        return self._memory.prompts.for_prompt(
            prompt[:_MAX_PROMPT_CHARS],
            session=client.session,
            project=client.project,
            agent=client.agent,
            within_s=PROMPT_TIMEOUT_S,
            counts=False,
        )

    def _plan_turn(
        self, parsed: ParsedRequest, client: ClientSession, composed: ComposedPrompt
    ) -> RequestPlan:
        """Return the plan of a composed prompt: its body, its price and its observer."""
        incoming, request = parsed.incoming, parsed.request
        body, tool = self._rewrite(parsed, composed, self._offered_tool(parsed, composed))
        if composed.is_private:
            parse_cache.clear_caches()
        limit = estimate.output_limit(request.document, request.dialogue.model)
        long = has_long_cache(request.body)
        usage = estimate.max_usage(incoming.api, composed.plan.tokens, limit, long=long)
        order = CostEstimate(
            request.dialogue.model,
            estimate.add_chars(usage, commands.RECALL_CHARS if tool else 0),
            estimate.requested_service(request.document),
            request.streams,
            kind="turn",
            client_session=client,
            is_counted=composed.calibrated,
            cached_share=composed.cached_share,
        )
        tool_loop = self._tool_loop(parsed, client, body, tool)
        is_sent = body is not request.body or composed.is_plain
        turn = Turn(parsed, client, composed, body, tool_loop)
        observe = partial(
            self._budget.observe,
            incoming,
            on_end=partial(self._recorder.end_turn, turn),
            on_use=partial(self._composer.mark_sent, client, composed) if is_sent else None,
        )
        sent = body if body is not request.body else None
        plan = RequestPlan(sent, plan_headers(composed), interceptor=tool_loop)
        left_s = self._composer.cache_left_s(client)
        return self._reserve(incoming, parsed.adapter, order, observe, plan, cache_left_s=left_s)

    def _tool_loop(
        self, parsed: ParsedRequest, client: ClientSession, body: bytes, tool: Tool | None
    ) -> ToolLoop | None:
        if tool is None:
            return None
        return self._search.open_tool_loop(parsed.adapter, parsed.request, client, body, tool)

    def _offered_tool(self, parsed: ParsedRequest, composed: ComposedPrompt) -> Tool | None:
        request = parsed.request
        without = composed.is_private or (composed.bare and not request.is_expanded)
        may = may_offer_tool(request, commands.RECALL, self._memory.settings.gateway_recall)
        return commands.RECALL if may and not without else None

    def _rewrite(
        self, parsed: ParsedRequest, composed: ComposedPrompt, tool: Tool | None
    ) -> tuple[bytes, Tool | None]:
        """Return the body of a composed prompt and the tool it offers, or the original body.

        A request without history belongs to a conversation that the provider keeps.
        """
        adapter, request = parsed.adapter, parsed.request
        if not request.has_history:
            return request.body, None
        if composed.is_private:  # No memory, but thinking blocks need their markers repaired.
            if adapter is not anthropic:
                return request.body, None
            return anthropic.repair_thinking(request.body, self._markers.get), None
        texts = PromptAdditions(composed.knowledge, composed.notes, self._annotations.of, tool)
        try:
            return adapter.rewrite_request(request, composed.plan, texts), tool
        except InvalidInput:
            # No upstream accepts such a prompt, but it accepts what the client sent.
            log.warning("plan not legal", extra={"layer": composed.plan.layer})
            return request.body, None

    def _end_passthrough(self, incoming: ClientRequest, ended: CompletedRequest) -> None:
        """Record a turn that was passed through: it may be the last of its session."""
        try:
            if ended.outcome != "unused":
                self._recorder.record_passthrough(incoming, ended.replies, awaits=True)
        finally:
            self._budget.settle(ended)

    def _end_recap(self, client: ClientSession, ended: CompletedRequest) -> None:
        """Exclude a summary from storage, because it may repeat what was said in private mode."""
        self._budget.settle(ended)
        recaps = [reply.entry for reply in ended.replies if reply.entry is not None]
        self._composer.store.exclude_entries(client, recaps)


def plan_headers(composed: ComposedPrompt) -> Pairs:
    """Return the response headers that describe a plan."""
    plan = composed.plan
    headers = [("x-lore-layer", str(plan.layer)), ("x-lore-tokens", str(plan.tokens))]
    if plan.busts:
        headers.append(("x-lore-bust", plan.why))
    if plan.notes:
        headers.append(("x-lore-unfit", "; ".join(plan.notes)))
    return tuple(headers)
