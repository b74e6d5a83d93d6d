"""Billing of gateway requests: reserve money, delay, observe the response, and settle."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from lore.budget.estimate import CostEstimate, add_chars, prompt_usage
from lore.budget.throttle import Quota, parse_quotas, quota_delay_s, request_delay_s
from lore.errors import BudgetSpent, InvalidInput
from lore.gateway.apis.adapter import ApiAdapter, Reply
from lore.gateway.observer import SUCCESS, ResponseBuffer
from lore.gateway.plugin_protocol import (
    ClientRequest,
    LocalResponse,
    Outcome,
    Provider,
    RequestPlan,
    error_response,
)
from lore.gateway.request_head import path_label
from lore.gateway.upstream_call import UpstreamCall
from lore.gateway.usage import (
    RequestUsage,
    UpstreamResponse,
    is_unreadable,
    measure_usage,
)
from lore.gateway.workers import Failure, attempt
from lore.memory import Memory
from lore.records import Layer, RequestCost, RequestHold, RequestOutcome, TokenUse


class ThrottleDelay:
    """Remembers the rate limits that providers report; safe for threads."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._quotas: dict[str, tuple[Quota, ...]] = {}

    def note_quotas(self, provider: str, headers: Mapping[str, str]) -> None:
        """Remember the rate limits in the headers of a response, if it has any."""
        quotas = parse_quotas(headers, self._memory.database.now())
        if quotas:
            self._quotas[provider] = quotas
            used = [(quota.utilisation, quota.resets_at) for quota in quotas]
            self._memory.context.gateway_stats.note_quotas(provider, used)

    def delay_s(
        self, provider: str, *, cache_left_s: float | None = None, free: bool = False
    ) -> float:
        """Return the delay of a request; `cache_left_s` is None if nothing is cached.

        A request that is `free` is only delayed by the rate limit of its provider.
        """
        now = self._memory.database.now()
        quota_s = quota_delay_s(self._quotas.get(provider, ()), now)
        budget_s = 0.0 if free else self._memory.budget.spend_pressure(at_hand=True).delay_s
        return request_delay_s(budget_s, quota_s, cache_left_s=cache_left_s)

    def least_layer(self, model: str = "", provider: str = "") -> Layer:
        """Return the least compaction layer that the daily budget demands for a paid model."""
        if not self._memory.budget.spend_pressure().exceeds:
            return 0
        price = self._memory.budget.find_model_price(model, provider=provider)
        is_free = price is not None and not price.input_usd and not price.output_usd
        return 0 if is_free else 2


_API_OWNERS: Mapping[str, Provider] = {
    "anthropic": "anthropic",
    "chat": "openai",
    "responses": "openai",
    "gemini": "gemini",
}
"""The provider of each API: refusals use its error format, whatever upstream is configured."""

_PRICED_AS: Mapping[Provider, str] = {"gemini": "google"}

PROVIDERS: Mapping[str, str] = {
    api: _PRICED_AS.get(owner, owner) for api, owner in _API_OWNERS.items()
}
"""The price list for the models of each API."""

_DEFAULT_OUTCOME = RequestOutcome()

BUDGET_SPENT_STATUS, RETRY_LATER_STATUS = 402, 429
"""Clients retry after a 429 and not after a 402."""


class FollowUpReservation:
    """A reservation for the follow-up requests of a tool loop, one at a time."""

    def __init__(
        self,
        memory: Memory,
        first: RequestHold,
        most: TokenUse,
        reserve: Callable[[TokenUse], RequestHold],
    ) -> None:
        self._memory, self._first, self._most, self._reserve = memory, first, most, reserve
        self._held: tuple[RequestHold, ...] = ()
        self._is_over = False
        self._lock = threading.Lock()

    def reserve(self, usage: RequestUsage, more_chars: int) -> None:
        """Reserve money for a prompt that is longer than the first one, or raise `BudgetSpent`.

        Release first what the requests so far did not use.
        """
        if usage.use.input_tokens:
            self._memory.budget.release_unused(self._first, usage.use, service=usage.service)
        self._hold()
        self._hold(self._reserve(add_chars(self._most, more_chars)))

    def close(self) -> None:
        """Release the reservation, and refuse further ones."""
        with self._lock:
            self._is_over = True
        self._hold()

    def _hold(self, *reserved: RequestHold) -> None:
        """Replace the reservation; once the client has left, release all of them."""
        with self._lock:
            to_release = (*self._held, *reserved) if self._is_over else self._held
            self._held = () if self._is_over else reserved
        for one in to_release:
            self._memory.budget.release_request(one)


@dataclass(frozen=True, slots=True)
class Reservation:
    """A request with reserved money, and how to parse its response."""

    adapter: ApiAdapter
    hold: RequestHold
    streams: bool
    prompt: TokenUse
    """Likely usage of the prompt if no response reports it; its output is the maximum."""
    follow_up: FollowUpReservation | None = None
    """The reservation for follow-up requests."""
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A finished request: its replies, how it ended, and its usage."""

    reservation: Reservation
    replies: tuple[Reply, ...]
    outcome: Outcome
    usage: RequestUsage


@dataclass(slots=True)
class BillingObserver:
    """Observe the responses of upstream; a tool loop has several."""

    reservation: Reservation
    on_end: Callable[[CompletedRequest], None]
    on_settle: Callable[[CompletedRequest], None]
    on_headers: Callable[[Mapping[str, str]], None]
    on_use: Callable[[], None] | None = None
    """Called once upstream has accepted the prompt."""
    whole: bool = True
    """If not, parse only the usage of the response."""
    call: UpstreamCall | None = None
    """What the span of the request to upstream is made of, if spans are recorded."""
    _answers: list[ResponseBuffer] = field(default_factory=list)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Start to buffer a response."""
        if not self._answers and status in SUCCESS and self.on_use is not None:
            attempt("use", self.on_use)
        self._answers.append(ResponseBuffer.of(status, headers, streams=self.reservation.streams))
        attempt("quotas", partial(self.on_headers, headers))

    def see(self, piece: bytes) -> None:
        """Buffer a chunk; it is parsed at the end, off the request path."""
        self._answers[-1].add(piece)

    def end(self, outcome: Outcome) -> None:
        """Parse the buffered responses, and call `on_end`."""
        try:
            self.on_end(self._reported(self._ended(outcome, whole=self.whole)))
        finally:
            self._close()

    def settle(self, outcome: Outcome) -> None:
        """Parse the usage, and settle it."""
        try:
            self.on_settle(self._reported(self._ended(outcome, whole=False)))
        finally:
            self._close()

    def reserve_follow_up(self, first_bytes: int, body: bytes) -> None:
        """Reserve money for a follow-up request, or raise `BudgetSpent`."""
        if self.reservation.follow_up is not None:
            usage = self._ended("complete", whole=False).usage
            self.reservation.follow_up.reserve(usage, len(body) - first_bytes)

    def _reported(self, ended: CompletedRequest) -> CompletedRequest:
        if self.call is not None:
            reasons = [one.stop_reason for one in ended.replies if one.stop_reason]
            self.call.report(ended.usage.use, reasons, ended.outcome, len(ended.replies))
        return ended

    def _close(self) -> None:
        if self.reservation.follow_up is not None:
            self.reservation.follow_up.close()

    def _ended(self, outcome: Outcome, *, whole: bool) -> CompletedRequest:
        """Parse the buffered responses; one that cannot be parsed must not keep its reservation."""
        answered = []
        for place, buffer in enumerate(self._answers, start=1):
            is_cut = outcome != "complete" and place == len(self._answers)
            read = attempt("read", partial(self._read, buffer, is_cut=is_cut, whole=whole))
            reply = Reply(chars=buffer.length) if isinstance(read, Failure) else read
            answered.append(UpstreamResponse(buffer.status, reply, is_cut))
        replies = tuple(one.reply for one in answered)
        return CompletedRequest(
            self.reservation, replies, outcome, measure_usage(answered, self.reservation.prompt)
        )

    def _read(self, buffer: ResponseBuffer, *, is_cut: bool, whole: bool) -> Reply:
        try:
            body = buffer.body()
        except InvalidInput:
            # Stream events are about as much longer than their text as compression makes them
            # shorter.
            return Reply(chars=buffer.length)
        parse = partial(self.reservation.adapter.read_reply, streams=buffer.streams)
        if buffer.streams and not whole and not is_cut:
            partial_reply = parse(_usage_events(body))
            if partial_reply.usage.input_tokens:
                return partial_reply
        reply = parse(body)
        if not buffer.streams and (is_cut or is_unreadable(reply)):
            # Upstream had written all of it before the first byte came.
            return replace(reply, chars=max(reply.chars, len(body)))
        return reply


@dataclass(slots=True)
class UnparsedObserver:
    """Observe an unparsed request, whose usage is unknown."""

    memory: Memory
    reserved: RequestHold
    _answered: bool = False

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Note whether upstream refused the request."""
        del headers
        self._answered = status in SUCCESS

    def see(self, piece: bytes) -> None:
        """Ignore a chunk."""

    def end(self, outcome: Outcome) -> None:
        """Settle the request if it was answered, else release its reservation."""
        del outcome
        if self._answered:
            self.memory.budget.settle_request(self.reserved, None)
        else:
            self.memory.budget.release_request(self.reserved)

    settle = end


def _usage_events(stream: bytes) -> bytes:
    """Return the events of a stream that contain usage or an error."""
    plain = stream.replace(b"\r\n", b"\n") if b"\r" in stream else stream
    relevant, end = [], 0
    for place in sorted((*_find_all(plain, b"usage"), *_find_all(plain, b"error"))):
        if place >= end:
            before, behind = plain.rfind(b"\n\n", end, place), plain.find(b"\n\n", place)
            start, end = before + 2 if before >= 0 else end, behind if behind >= 0 else len(plain)
            relevant.append(plain[start:end] + b"\n\n")
    return b"".join(relevant)


def _find_all(stream: bytes, name: bytes) -> Iterator[int]:
    place = stream.find(name)
    while place >= 0:
        yield place
        place = stream.find(name, place + 1)


def release_unused(memory: Memory, ended: CompletedRequest) -> None:
    """Release the unused part of a reservation before the rest of the work is done."""
    if ended.usage.use.input_tokens:
        memory.budget.release_unused(
            ended.reservation.hold, ended.usage.use, service=ended.usage.service
        )


def settle_request(
    memory: Memory, ended: CompletedRequest, outcome: RequestOutcome = _DEFAULT_OUTCOME
) -> None:
    """Settle a request with its usage, or release its reservation if it used nothing."""
    bill, usage, used = ended.reservation, ended.usage, ended.usage.use
    if not used.input_tokens and not used.output_tokens:
        memory.budget.release_request(bill.hold)
        return
    without = outcome.without
    if without is not None:
        # Without Lore the last response would have been the same.
        answered = usage.rounds[-1] if usage.rounds else used
        without = replace(without, output_tokens=answered.output_tokens)
    outcome = replace(
        outcome,
        without=without,
        delay_s=bill.delay_s,
        estimated=usage.estimated,
        rounds=usage.rounds,
        service=usage.service,
        fetched_by=next((one.response_id for one in ended.replies if one.in_background), ""),
    )
    memory.budget.settle_request(bill.hold, used, outcome)


class BudgetGuard:
    """Reserve money before requests and settle them afterwards, for every kind of request."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.pacing = ThrottleDelay(memory)

    @contextmanager
    def reserve(
        self,
        incoming: ClientRequest,
        adapter: ApiAdapter,
        order: CostEstimate,
        *,
        cache_left_s: float | None = None,
        until_s: float = math.inf,
    ) -> Iterator[Reservation]:
        """Reserve money for a request, or raise `BudgetSpent`; release it if the block fails."""
        provider = PROVIDERS[incoming.api]
        reserved = self._reserve(provider, order, order.max_usage, until_s=until_s)
        is_handed_over = False
        try:
            free = reserved.usd == 0
            delay_s = self.pacing.delay_s(provider, cache_left_s=cache_left_s, free=free)
            prompt = prompt_usage(
                order.max_usage, counted=order.is_counted, cached_share=order.cached_share
            )
            reserve = partial(self._reserve, provider, order)
            further = FollowUpReservation(self._memory, reserved, order.max_usage, reserve)
            yield Reservation(adapter, reserved, order.streams, prompt, further, delay_s)
            is_handed_over = True
        finally:
            if not is_handed_over:
                self._memory.budget.release_request(reserved)

    def refuse(self, incoming: ClientRequest, error: BudgetSpent) -> RequestPlan:
        """Return the response to a request that the budget refuses."""
        now = self._memory.database.now()
        wait_s = (error.until - now).total_seconds() if error.until else 0.0
        status = RETRY_LATER_STATUS if 0 < wait_s < 60 else BUDGET_SPENT_STATUS
        provider = _API_OWNERS.get(incoming.api, incoming.provider)
        answer = error_response(provider, status, f"Lore: {error} {error.hint}".strip())
        if status == RETRY_LATER_STATUS:
            retry_after = ("retry-after", str(math.ceil(wait_s)))
            answer = replace(answer, headers=(*answer.headers, retry_after))
        return RequestPlan(answer=answer)

    def observe(
        self,
        incoming: ClientRequest,
        bill: Reservation,
        on_end: Callable[[CompletedRequest], None],
        *,
        on_begin: Callable[[], None] | None = None,
        on_use: Callable[[], None] | None = None,
        whole: bool = True,
    ) -> BillingObserver:
        """Return the observer of a request's response.

        `on_begin` is called when a response starts, `on_use` when upstream has accepted the prompt.
        """
        note = partial(self._note_headers, PROVIDERS[incoming.api], on_begin)
        return BillingObserver(bill, on_end, self.settle, note, on_use, whole)

    def reserve_follow_up(
        self, incoming: ClientRequest, observer: BillingObserver, first_bytes: int, body: bytes
    ) -> LocalResponse | None:
        """Reserve money for a follow-up request, or return the refusal."""
        try:
            observer.reserve_follow_up(first_bytes, body)
        except BudgetSpent as error:
            return self.refuse(incoming, error).answer
        return None

    def settle(self, ended: CompletedRequest) -> None:
        """Settle a request."""
        settle_request(self._memory, ended)

    def forward_unparsed(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        """Forward a request in a format that is not parsed, while there is any money."""
        name, within_s = path_label(incoming.path), _seconds_until(until_s)
        try:
            cost = RequestCost(name, None, kind="other")
            reserved = self._memory.budget.reserve_request(cost, within_s=within_s)
        except BudgetSpent as error:
            return self.refuse(incoming, error)
        return RequestPlan(observer=UnparsedObserver(self._memory, reserved), reads=False)

    def _reserve(
        self, provider: str, order: CostEstimate, most: TokenUse, *, until_s: float = math.inf
    ) -> RequestHold:
        client = order.client_session
        cost = RequestCost(
            order.model,
            most,
            provider,
            order.service,
            session=client.session if client else "",
            project=client.project if client else "",
            kind=order.kind,
        )
        return self._memory.budget.reserve_request(cost, within_s=_seconds_until(until_s))

    def _note_headers(
        self, provider: str, on_begin: Callable[[], None] | None, headers: Mapping[str, str]
    ) -> None:
        if on_begin is not None:
            on_begin()
        self.pacing.note_quotas(provider, headers)


def _seconds_until(until_s: float) -> float | None:
    return None if until_s == math.inf else max(0.0, until_s - time.monotonic())
