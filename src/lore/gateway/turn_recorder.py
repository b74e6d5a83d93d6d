"""Records finished turns, also those whose response is fetched later from the background."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lore.errors import InvalidInput
from lore.gateway import billing
from lore.gateway.apis import entry_keys, openai_responses, parse_cache
from lore.gateway.apis.adapter import Reply
from lore.gateway.billing import CompletedRequest
from lore.gateway.cache_invalidation import AnnotationCache, BoundedCache, CacheInvalidator
from lore.gateway.client_session import (
    ParsedRequest,
    RequestParser,
    find_client_session,
    is_auxiliary,
    with_conversation_id,
)
from lore.gateway.commands import RECALL_CHARS
from lore.gateway.observer import SUCCESS, ResponseBuffer
from lore.gateway.plugin_protocol import ClientRequest, Outcome
from lore.gateway.session.private_mode import find_private_entries
from lore.gateway.session.prompt_composer import PromptComposer
from lore.gateway.session.session_state import ComposedPrompt
from lore.gateway.tool_loop import ToolLoop
from lore.gateway.usage import UpstreamResponse, measure_usage
from lore.gateway.workers import Workers
from lore.memory import Memory
from lore.records import ClientSession, Entry, RequestOutcome, TokenUse

BACKGROUND_PROVIDER = "openai"
"""The only provider that writes responses in the background."""

MAX_PENDING_TURNS = 32
"""Each pending turn holds its whole history, some megabytes at most. Of others only the cost is
recorded."""

_UNKNOWN_USAGE = TokenUse()
"""The ledger keeps the prompt tokens that were recorded before."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A request that is a turn of a conversation, and the body that was sent for it."""

    parsed: ParsedRequest
    client: ClientSession
    composed: ComposedPrompt
    body: bytes
    tool_loop: ToolLoop | None = None

    def entries_with(self, replies: Sequence[Reply]) -> tuple[Entry, ...]:
        """Return all entries as the client's next request will send them.

        The results of the gateway's own tool calls stand between the responses to one request.
        """
        entries = self.parsed.request.dialogue.entries
        if self.tool_loop is not None and self.tool_loop.last_body:
            parse, target = self.parsed.adapter.parse_request, self.parsed.incoming.target
            sent = len(parse(self.body, target).dialogue.entries)
            for entry in parse(self.tool_loop.last_body, target).dialogue.entries[sent:]:
                entries = (*entries, entry_keys.with_next_key(entries, entry))
        return with_response(entries, replies)


def with_response(entries: tuple[Entry, ...], replies: Sequence[Reply]) -> tuple[Entry, ...]:
    """Return entries with the last response, unless that is empty."""
    last = replies[-1].entry if replies else None
    if last is None or not last.blocks:
        return entries
    return (*entries, entry_keys.with_next_key(entries, last))


@dataclass(frozen=True, slots=True)
class PendingTurn:
    """A turn whose response is written in the background."""

    client: ClientSession
    entries: tuple[Entry, ...]
    unstored: frozenset[str]
    """Keys of the entries that were not stored when the turn became pending."""
    record: Callable[[Sequence[Reply]], object]


class TurnRecorder:
    """Stores what was said, settles what it cost, and has long sessions distilled."""

    def __init__(
        self,
        memory: Memory,
        composer: PromptComposer,
        parser: RequestParser,
        annotations: AnnotationCache,
        invalidator: CacheInvalidator,
        workers: Workers,
        payer: Memory | None = None,
    ) -> None:
        self._memory = memory
        self._payer = payer or memory
        self._composer = composer
        self._parser = parser
        self._annotations = annotations
        self._invalidator = invalidator
        self._workers = workers
        self._pending = BoundedCache[str, PendingTurn](MAX_PENDING_TURNS)
        self._in_digestion: set[str] = set()
        self._lock = threading.Lock()
        invalidator.register(self._drop_forgotten)

    def end_turn(self, turn: Turn, ended: CompletedRequest) -> None:
        """Record the usage and the entries of a planned turn, and settle its cost."""
        plan, without, replies = turn.composed.plan, None, ended.replies
        billing.release_unused(self._payer, ended)
        client, request = turn.client, turn.parsed.request
        try:
            if replies and replies[0].usage.input_tokens:
                without = self._composer.record_usage(
                    client,
                    request.dialogue,
                    turn.composed,
                    replies[0].usage,
                    tool_chars=RECALL_CHARS if turn.tool_loop is not None else 0,
                )
                if turn.body is request.body:
                    without = None  # It was sent unchanged.
            if ended.outcome != "unused":
                client = self._record(turn, replies)
                if not turn.composed.is_private:
                    record = partial(self._record, turn)
                    self._await_background(replies, client, request.dialogue.entries, record)
        finally:
            # The ledger knows session and project once they are stored.
            hold = ended.reservation.hold
            reserved = replace(hold, cost=replace(hold.cost, session=client.session))
            ended = replace(ended, reservation=replace(ended.reservation, hold=reserved))
            outcome = RequestOutcome(plan.layer, plan.busts, without=without)
            billing.settle_request(self._payer, ended, outcome)

    def _record(self, turn: Turn, replies: Sequence[Reply]) -> ClientSession:
        """Store the entries of a turn; return its session, which the response may name."""
        composer, client, request = self._composer, turn.client, turn.parsed.request
        for reply in replies:
            if reply.error is not None and reply.error.is_too_long:
                sizes = (reply.error.prompt_tokens, reply.error.limit_tokens)
                composer.raise_floor(client, *sizes, layer=turn.composed.plan.layer)
        entries = turn.entries_with(replies)
        if turn.tool_loop is not None and find_private_entries(client, entries):
            parse_cache.clear_caches()  # The follow-up requests were parsed too.
        named = with_conversation_id(client, entries[len(request.dialogue.entries) :])
        if named is None:
            return client
        is_private = turn.composed.is_private
        composer.record(named, entries, model=request.dialogue.model, is_private=is_private)
        if not is_private and composer.claim_distillation(turn.composed):
            self._annotations.prepare(entries)
            self._distill_later(named.session)
        return named

    def record_passthrough(
        self, incoming: ClientRequest, replies: Sequence[Reply], *, awaits: bool = False
    ) -> None:
        """Store a turn that was passed through.

        Nobody checked for private mode when it was sent: a session that ever was private is
        skipped, and its entries come again with the next request.
        """
        parsed = self._parser.parse(incoming)
        if parsed is None:
            return
        skips = is_auxiliary(parsed.info)
        client = find_client_session(parsed.info) if skips else self._parser.find_client(parsed)
        if client is None or self.was_private(client) or skips or client.parent:
            return
        if find_private_entries(client, parsed.info.entries):
            return
        dialogue = self._parser.expand(parsed, client).request.dialogue
        entries = with_response(dialogue.entries, replies)
        named = with_conversation_id(client, entries[len(dialogue.entries) :])
        if named is not None:
            self._composer.record(named, entries, model=dialogue.model)
        if awaits:
            record = partial(self.record_passthrough, incoming)
            self._await_background(replies, client, dialogue.entries, record)

    def was_private(self, client: ClientSession) -> bool:
        """Return whether a session ever was in private mode.

        Its requests do not stay in the parse cache then, nor while its parent is private.
        """
        store = self._composer.store
        was_private = store.private_mode.was_private(client)
        _, is_private = store.generation_and_privacy(client)
        if was_private or is_private:
            parse_cache.clear_caches()
        return was_private

    def _await_background(
        self,
        replies: Sequence[Reply],
        client: ClientSession,
        entries: tuple[Entry, ...],
        record: Callable[[Sequence[Reply]], object],
    ) -> None:
        """Keep a turn whose response is written in the background."""
        response_id = replies[-1].response_id if replies else ""
        if response_id:
            self._invalidator.check()
            unstored = self._composer.store.find_unstored(client, entries)
            self._pending.put(response_id, PendingTurn(client, entries, unstored, record))

    def record_background(self, response_id: str, reply: Reply) -> None:
        """Record a pending turn with its response that was fetched."""
        self._invalidator.check()
        pending = self._pending.pop(response_id)
        if pending is not None:
            pending.record([reply])

    def _drop_forgotten(self, _generation: str) -> None:
        """Drop the turns of which something was forgotten since they became pending."""
        for response_id, turn in self._pending.items():
            if not self._composer.store.find_unstored(turn.client, turn.entries) <= turn.unstored:
                self._pending.pop(response_id)

    def _distill_later(self, session: str) -> None:
        """Have a session distilled in the background, unless that is under way."""
        with self._lock:
            if session in self._in_digestion:
                return
            self._in_digestion.add(session)
        self._workers.recording.submit("distillation", partial(self._distill, session))

    def _distill(self, session: str) -> None:
        try:
            self._memory.distill(session)
        finally:
            with self._lock:
                self._in_digestion.discard(session)


@dataclass(slots=True)
class BackgroundResponseObserver:
    """Reads a response fetched from the background, and records its usage if it is final."""

    memory: Memory
    response_id: str
    on_response: Callable[[str, Reply], None]
    _buffer: ResponseBuffer | None = None

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Start to buffer a response."""
        self._buffer = ResponseBuffer.of(status, headers, streams=False)

    def see(self, piece: bytes) -> None:
        """Buffer a chunk."""
        if self._buffer is not None:
            self._buffer.add(piece)

    def end(self, outcome: Outcome) -> None:
        """Record the usage of a final response, and pass the response on."""
        reply = self._settled(outcome)
        if reply is not None:
            self.on_response(self.response_id, reply)

    def settle(self, outcome: Outcome) -> None:
        """Record the usage of a final response."""
        self._settled(outcome)

    def _settled(self, outcome: Outcome) -> Reply | None:
        del outcome  # A response that was cut off is not final.
        reply = self._read()
        if self._buffer is None or reply is None or not reply.stop_reason or reply.in_background:
            return None
        usage = measure_usage([UpstreamResponse(self._buffer.status, reply)], _UNKNOWN_USAGE)
        details = RequestOutcome(estimated=usage.estimated, service=usage.service)
        self.memory.budget.correct_request(
            self.response_id, usage.use, details, provider=BACKGROUND_PROVIDER
        )
        return reply

    def _read(self) -> Reply | None:
        if self._buffer is None or self._buffer.status not in SUCCESS:
            return None
        try:
            body = self._buffer.body()
        except InvalidInput:
            return None
        return openai_responses.read_reply(body, streams=self._buffer.streams)
