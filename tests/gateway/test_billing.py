"""Reservations of requests with several responses, and the billing observer."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lore.budget.estimate import (
    CostEstimate,
    add_chars,
    max_usage,
    output_limit,
    prompt_usage,
    requested_service,
)
from lore.errors import BudgetSpent, StoreBusy
from lore.gateway.apis import anthropic, gemini
from lore.gateway.apis.adapter import Reply
from lore.gateway.billing import BillingObserver, BudgetGuard, CompletedRequest, Reservation
from lore.gateway.observer import MAX_STREAM_BYTES
from lore.gateway.plugin_protocol import ClientRequest, Outcome
from lore.gateway.usage import RequestUsage
from lore.memory import Memory
from lore.records import RequestCost, RequestHold, TokenUse
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import HELLO
from tests.gateway.priced_gateway import PRICES, paying, total
from tests.gateway.test_memory_plugin import HEADERS, PATH
from tests.upstream import Call, ModelReply, Text, Upstream, running_upstream
from tests.waiting import eventually

MOST = TokenUse(1_000)
"""A dollar, as the prices of these tests are."""

INCOMING = ClientRequest("anthropic", PATH, "", {}, b"{}", 1_000)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    config = replace(load({}, home=tmp_path / "own").settings, prices=PRICES, daily_budget=3.0)
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def set_aside(memory: Memory) -> float:
    memory.database.write(lambda _: None)
    return memory.budget.day_budget().reserved_usd


def billed(memory: Memory) -> Reservation:
    with BudgetGuard(memory).reserve(
        INCOMING, anthropic, CostEstimate("dear", MOST, "", streams=False)
    ) as bill:
        return bill


def test_money_is_set_aside_for_the_request_at_hand_and_what_was_taken_before(memory: Memory):
    bill = billed(memory)
    assert bill.follow_up is not None
    assert set_aside(memory) == pytest.approx(1.0)
    bill.follow_up.reserve(RequestUsage(TokenUse(100)), 0)
    assert set_aside(memory) == pytest.approx(0.1 + 1.0)
    bill.follow_up.reserve(RequestUsage(TokenUse(250)), 0)
    assert set_aside(memory) == pytest.approx(0.25 + 1.0)
    memory.budget.settle_request(bill.hold, TokenUse(250))
    bill.follow_up.close()
    assert set_aside(memory) == 0
    assert memory.budget.day_budget().spent_usd == pytest.approx(0.25)


def test_what_is_set_aside_after_the_client_left_is_given_back(memory: Memory):
    bill = billed(memory)
    assert bill.follow_up is not None
    memory.budget.release_request(bill.hold)
    bill.follow_up.close()
    bill.follow_up.reserve(RequestUsage(TokenUse(100)), 0)
    assert set_aside(memory) == 0


def test_a_request_for_which_there_is_no_money_leaves_none_set_aside(memory: Memory):
    bill = billed(memory)
    assert bill.follow_up is not None
    with pytest.raises(BudgetSpent):
        bill.follow_up.reserve(RequestUsage(TokenUse(3_000)), 0)
    assert set_aside(memory) == pytest.approx(3.0), "what was taken is not settled yet"
    memory.budget.release_request(bill.hold)
    assert set_aside(memory) == 0


def test_a_reservation_is_released_if_anything_fails_before_it_is_handed_over(memory: Memory):
    order = CostEstimate("dear", MOST, "", streams=False)

    def fail() -> None:
        with BudgetGuard(memory).reserve(INCOMING, anthropic, order):
            raise StoreBusy(PATH)

    with pytest.raises(StoreBusy):
        fail()
    assert set_aside(memory) == 0


@pytest.mark.parametrize(
    "most",
    [
        TokenUse(10, output_tokens=5),
        TokenUse(cache_write_tokens=10, output_tokens=5),
        TokenUse(cache_write_1h_tokens=10, output_tokens=5),
    ],
)
def test_a_longer_prompt_is_longer_in_its_own_class(most: TokenUse):
    longer = add_chars(most, 1_000)
    assert longer.input_tokens > 260
    assert longer.output_tokens == 5
    kinds = ("fresh_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    assert sum(bool(getattr(longer, kind)) for kind in kinds) == 1
    assert add_chars(most, -5) == most


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


@pytest.mark.parametrize("stream", [True, False])
def test_a_search_ends_an_answer_whose_budget_is_spent(tmp_path: Path, up: Upstream, stream: bool):
    look = Call("recall", {"query": "tides"})
    body: dict[str, Any] = {**HELLO, "model": "dear", "stream": stream}
    with paying(tmp_path, up.url, daily_budget=0.001) as (memory, gateway):
        up.reply_with(ModelReply(Text("Let me see."), look), ModelReply(Text("Low.")))
        got = gateway.ask(PATH, body, HEADERS)
        assert got.status == (200 if stream else 429)
        assert b"rate_limit_error" in got.body
        assert b"set aside for requests under way" in got.body
        assert (b"Let me see." in got.body) is stream
        assert len(up.requests) == 1
        eventually(lambda: total(memory).requests == 1)
        assert total(memory).estimated == 0
        assert set_aside(memory) == 0


def test_searches_leave_no_money_set_aside(tmp_path: Path, up: Upstream):
    look = Call("recall", {"query": "tides"})
    with paying(tmp_path, up.url, daily_budget=1_000.0) as (memory, gateway):
        up.reply_with(*[ModelReply(Text("Let me see."), look)] * 3, ModelReply(Text("Low.")))
        got = gateway.ask(PATH, {**HELLO, "model": "dear"}, HEADERS)
        assert got.status == 200
        assert len(up.requests) == 4
        eventually(lambda: total(memory).requests == 1)
        assert set_aside(memory) == 0


BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
RESERVED = RequestHold("k", BEGUN, RequestCost("m", None, "google"), usd=None)
PROMPT = TokenUse(fresh_tokens=100)
STREAMED = b'data: {"candidates": [], "usageMetadata": {"promptTokenCount": 7}}\n\n'
WHOLE = b'{"candidates": [], "usageMetadata": {"promptTokenCount": 7}}'


def observed(
    bill: Reservation,
    piece: bytes,
    headers: Mapping[str, str],
    on_headers: Callable[[Mapping[str, str]], None] = lambda _headers: None,
) -> list[Reply]:
    """Return what an observer makes of an answer."""
    return list(ended(bill, piece, headers, on_headers=on_headers).replies)


def ended(
    bill: Reservation,
    piece: bytes,
    headers: Mapping[str, str],
    *,
    on_headers: Callable[[Mapping[str, str]], None] = lambda _headers: None,
    outcome: Outcome = "complete",
    status: int = 200,
    whole: bool = True,
) -> CompletedRequest:
    """Return what an observer tells at the end."""
    seen: list[CompletedRequest] = []
    watching = BillingObserver(bill, seen.append, seen.append, on_headers, whole=whole)
    watching.begin(status, headers)
    watching.see(piece)
    watching.end(outcome)
    return seen[0]


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize(
    ("piece", "form"),
    [
        (STREAMED, "text/event-stream"),
        (STREAMED, " Text/Event-Stream;charset=utf-8"),
        (WHOLE, "application/json; charset=UTF-8"),
    ],
)
def test_an_answer_is_read_in_the_form_that_it_has(piece: bytes, form: str, expected: bool):
    bill = Reservation(gemini, RESERVED, expected, PROMPT)
    [reply] = observed(bill, piece, {"content-type": form})
    assert reply.usage.input_tokens == 7


def test_a_response_without_a_content_type_has_the_requested_format():
    [reply] = observed(Reservation(gemini, RESERVED, streams=True, prompt=PROMPT), STREAMED, {})
    assert reply.usage.input_tokens == 7


@pytest.mark.parametrize(("piece", "form"), [(STREAMED, "text/event-stream"), (WHOLE, "x/json")])
@pytest.mark.parametrize("status", [200, 201, 206])
def test_an_answer_of_any_good_status_is_read(piece: bytes, form: str, status: int):
    bill = Reservation(gemini, RESERVED, streams=False, prompt=PROMPT)
    told = ended(bill, piece, {"content-type": form}, status=status)
    assert told.usage.use.input_tokens == 7


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("piece", "form"), [(STREAMED, "text/event-stream"), (WHOLE, "x/json")])
def test_an_answer_that_is_packed_all_the_same_is_read(piece: bytes, form: str, whole: bool):
    bill = Reservation(gemini, RESERVED, streams=False, prompt=PROMPT)
    headers = {"content-type": form, "content-encoding": "gzip"}
    assert ended(bill, gzip.compress(piece), headers, whole=whole).usage.use.input_tokens == 7


@pytest.mark.parametrize("form", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_a_packed_answer_that_cannot_be_unpacked_is_estimated(form: str, outcome: Outcome):
    bill = Reservation(gemini, RESERVED, streams=False, prompt=PROMPT)
    headers = {"content-type": form, "content-encoding": "gzip"}
    told = ended(bill, gzip.compress(WHOLE)[:40], headers, outcome=outcome)
    assert told.usage == RequestUsage(TokenUse(fresh_tokens=100, output_tokens=10), estimated=True)


def test_a_page_in_the_place_of_an_answer_is_estimated():
    bill = Reservation(gemini, RESERVED, streams=False, prompt=replace(PROMPT, output_tokens=9))
    told = ended(bill, b"<p>" + b"x" * 17, {"content-type": "text/html"})
    assert told.usage == RequestUsage(TokenUse(fresh_tokens=100, output_tokens=5), estimated=True)
    told = ended(bill, b"<p>" + b"x" * 1_000, {"content-type": "text/html"})
    assert told.usage.use.output_tokens == 9


def test_headers_that_cannot_be_read_do_not_hide_what_an_answer_took():
    def fail(_headers: Mapping[str, str]) -> None:
        raise ZeroDivisionError

    [reply] = observed(Reservation(gemini, RESERVED, streams=False, prompt=PROMPT), WHOLE, {}, fail)
    assert reply.usage.input_tokens == 7


def test_an_unreadable_response_still_settles_its_request():
    class Broken:
        def read_reply(self, body: bytes, *, streams: bool) -> object:
            raise ZeroDivisionError(body, streams)

    bill = Reservation(Broken(), RESERVED, streams=False, prompt=PROMPT)  # type: ignore[arg-type]  # only this is asked
    assert observed(bill, WHOLE, {}) == [Reply(chars=len(WHOLE))]


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        ({"max_tokens": 9}, 9),
        ({"max_completion_tokens": 9}, 9),
        ({"max_output_tokens": 9}, 9),
        ({"generationConfig": {"maxOutputTokens": 9}}, 9),
        ({"max_tokens": 9, "n": 100}, 900),
        ({"generationConfig": {"maxOutputTokens": 9, "candidateCount": 3}}, 27),
        # No model can write more, and nobody is asked for more answers.
        ({"max_tokens": 9.0, "n": 2.0}, 18),
        ({"max_tokens": math.inf, "n": math.nan}, 128_000),
        ({"max_tokens": 1e30}, 10_000_000),
        ({"max_tokens": 2**64}, 10_000_000),
        ({"max_tokens": 9, "n": 10**18}, 9 * 1_000),
        ({"generationConfig": {"maxOutputTokens": 10**30, "candidateCount": 10**30}}, 10**10),
        ({"max_tokens": 10**30, "n": True}, 10_000_000),
        # What a client does not say is what the model can.
        ({"max_tokens": True}, 128_000),
        ({"max_tokens": "many"}, 128_000),
        ({"n": "many"}, 128_000),
        ({}, 128_000),
    ],
)
def test_a_client_says_how_much_its_answers_may_take(document: dict[str, object], limit: int):
    assert output_limit(document, "gpt-5.1") == limit


@pytest.mark.parametrize(
    ("wire", "long", "most"),
    [
        ("anthropic", False, TokenUse(cache_write_tokens=7, output_tokens=9)),
        ("anthropic", True, TokenUse(cache_write_1h_tokens=7, output_tokens=9)),
        ("chat", True, TokenUse(7, output_tokens=9)),
    ],
)
def test_all_of_a_prompt_may_be_new_to_the_cache(wire: str, long: bool, most: TokenUse):
    assert max_usage(wire, 7, 9, long=long) == most
    assert prompt_usage(most, counted=True) == most


def test_a_likely_prompt_is_partly_read_from_the_cache():
    most = TokenUse(fresh_tokens=1_001, output_tokens=9)
    assert prompt_usage(most, counted=True, cached_share=0.8) == TokenUse(
        fresh_tokens=200, cache_read_tokens=801, output_tokens=9
    )


CUT = b'data: {"candidates": [{"content": {"parts": [{"text": "abcdefgh"}]}}]}\n\n'


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outcome", ["aborted", "failed", "complete"])
def test_what_came_of_an_answer_without_usage_is_read_also_where_it_is_only_paid_for(
    outcome: Outcome, whole: bool
):
    bill = Reservation(gemini, RESERVED, streams=True, prompt=PROMPT)
    told = ended(bill, CUT, {"content-type": "text/event-stream"}, outcome=outcome, whole=whole)
    assert told.usage == RequestUsage(TokenUse(fresh_tokens=100, output_tokens=2), estimated=True)


def test_a_document_that_is_cut_off_was_written_before_it_was_sent():
    bill = Reservation(gemini, RESERVED, streams=False, prompt=PROMPT)
    told = ended(bill, WHOLE[:40], {"content-type": "application/json"}, outcome="failed")
    assert told.usage == RequestUsage(TokenUse(fresh_tokens=100, output_tokens=10), estimated=True)


def test_a_refusal_that_is_cut_off_is_free():
    bill = Reservation(gemini, RESERVED, streams=True, prompt=PROMPT)
    assert ended(bill, b"{", {}, outcome="aborted", status=429).usage == RequestUsage(TokenUse())


@pytest.mark.parametrize(
    ("document", "service"),
    [
        ({"service_tier": "flex"}, "flex"),
        ({"speed": "fast"}, "fast"),
        ({"service_tier": "auto", "speed": "fast"}, "fast"),
        ({"service_tier": None, "speed": 1}, ""),
        ({}, ""),
    ],
)
def test_a_client_says_which_service_it_wants(document: dict[str, object], service: str):
    assert requested_service(document) == service


def test_of_an_answer_that_is_too_long_the_beginning_and_the_cost_are_kept():
    seen: list[Reply] = []
    bill = Reservation(gemini, RESERVED, streams=True, prompt=PROMPT)
    watching = BillingObserver(
        bill, lambda ended: seen.extend(ended.replies), lambda _: None, lambda _: None
    )
    watching.begin(200, {"content-type": "text/event-stream"})
    said = "word " * 20_000
    tree = {"candidates": [{"content": {"role": "model", "parts": [{"text": said}]}}]}
    piece = b"data: " + json.dumps(tree).encode() + b"\n\n"
    for _ in range(2 * MAX_STREAM_BYTES // len(piece)):
        watching.see(piece)
    watching.see(STREAMED)
    watching.end("complete")
    [reply] = seen
    assert reply.usage.input_tokens == 7
    assert reply.entry is not None
    kept = sum(len(block.text) for block in reply.entry.blocks)
    assert MAX_STREAM_BYTES * 0.9 < kept < MAX_STREAM_BYTES * 1.1
