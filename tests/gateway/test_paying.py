"""What a request took is read from its answer, whatever form that has and whatever fails."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lore.gateway.apis import gemini
from lore.gateway.apis.wire import Reply
from lore.gateway.exchanges import Outcome
from lore.gateway.keeping import MOST_KEPT_BYTES
from lore.gateway.paying import (
    Bill,
    Ended,
    Observing,
    most_of,
    output_limit,
    prompt_of,
    service_of,
)
from lore.gateway.taking import Taken
from lore.records import Reserved, TokenUse

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
RESERVED = Reserved("k", BEGUN, "m", "google", "request:turn", "", "", usd=None, kept=False)
PROMPT = TokenUse(fresh_tokens=100)
STREAMED = b'data: {"candidates": [], "usageMetadata": {"promptTokenCount": 7}}\n\n'
WHOLE = b'{"candidates": [], "usageMetadata": {"promptTokenCount": 7}}'


def observed(
    bill: Bill,
    piece: bytes,
    headers: Mapping[str, str],
    on_headers: Callable[[Mapping[str, str]], None] = lambda _headers: None,
) -> list[Reply]:
    """Return what an observer makes of an answer."""
    return list(ended(bill, piece, headers, on_headers=on_headers).replies)


def ended(
    bill: Bill,
    piece: bytes,
    headers: Mapping[str, str],
    *,
    on_headers: Callable[[Mapping[str, str]], None] = lambda _headers: None,
    outcome: Outcome = "complete",
    status: int = 200,
    whole: bool = True,
) -> Ended:
    """Return what an observer tells at the end."""
    seen: list[Ended] = []
    watching = Observing(bill, seen.append, seen.append, on_headers, whole=whole)
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
    bill = Bill(gemini, RESERVED, expected, PROMPT)
    [reply] = observed(bill, piece, {"content-type": form})
    assert reply.use.input_tokens == 7


def test_an_answer_that_does_not_tell_its_form_has_the_one_that_was_asked_for():
    [reply] = observed(Bill(gemini, RESERVED, streams=True, prompt=PROMPT), STREAMED, {})
    assert reply.use.input_tokens == 7


@pytest.mark.parametrize(("piece", "form"), [(STREAMED, "text/event-stream"), (WHOLE, "x/json")])
@pytest.mark.parametrize("status", [200, 201, 206])
def test_an_answer_of_any_good_status_is_read(piece: bytes, form: str, status: int):
    bill = Bill(gemini, RESERVED, streams=False, prompt=PROMPT)
    told = ended(bill, piece, {"content-type": form}, status=status)
    assert told.taken.use.input_tokens == 7


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("piece", "form"), [(STREAMED, "text/event-stream"), (WHOLE, "x/json")])
def test_an_answer_that_is_packed_all_the_same_is_read(piece: bytes, form: str, whole: bool):
    bill = Bill(gemini, RESERVED, streams=False, prompt=PROMPT)
    headers = {"content-type": form, "content-encoding": "gzip"}
    assert ended(bill, gzip.compress(piece), headers, whole=whole).taken.use.input_tokens == 7


@pytest.mark.parametrize("form", ["text/event-stream", "application/json"])
@pytest.mark.parametrize("outcome", ["complete", "failed"])
def test_a_packed_answer_that_cannot_be_unpacked_is_estimated(form: str, outcome: Outcome):
    bill = Bill(gemini, RESERVED, streams=False, prompt=PROMPT)
    headers = {"content-type": form, "content-encoding": "gzip"}
    told = ended(bill, gzip.compress(WHOLE)[:40], headers, outcome=outcome)
    assert told.taken == Taken(TokenUse(fresh_tokens=100, output_tokens=10), estimated=True)


def test_a_page_in_the_place_of_an_answer_is_estimated():
    bill = Bill(gemini, RESERVED, streams=False, prompt=replace(PROMPT, output_tokens=9))
    told = ended(bill, b"<p>" + b"x" * 17, {"content-type": "text/html"})
    assert told.taken == Taken(TokenUse(fresh_tokens=100, output_tokens=5), estimated=True)
    told = ended(bill, b"<p>" + b"x" * 1_000, {"content-type": "text/html"})
    assert told.taken.use.output_tokens == 9


def test_headers_that_cannot_be_read_do_not_hide_what_an_answer_took():
    def fail(_headers: Mapping[str, str]) -> None:
        raise ZeroDivisionError

    [reply] = observed(Bill(gemini, RESERVED, streams=False, prompt=PROMPT), WHOLE, {}, fail)
    assert reply.use.input_tokens == 7


def test_an_answer_that_cannot_be_read_still_ends_its_request():
    class Broken:
        def open_reader(self, *, streams: bool) -> object:
            raise ZeroDivisionError(streams)

    bill = Bill(Broken(), RESERVED, streams=False, prompt=PROMPT)  # type: ignore[arg-type]  # only this is asked
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
    assert most_of(wire, 7, 9, long=long) == most
    assert prompt_of(most, counted=True) == most


CUT = b'data: {"candidates": [{"content": {"parts": [{"text": "abcdefgh"}]}}]}\n\n'


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("outcome", ["aborted", "failed", "complete"])
def test_what_came_of_an_answer_without_usage_is_read_also_where_it_is_only_paid_for(
    outcome: Outcome, whole: bool
):
    bill = Bill(gemini, RESERVED, streams=True, prompt=PROMPT)
    told = ended(bill, CUT, {"content-type": "text/event-stream"}, outcome=outcome, whole=whole)
    assert told.taken == Taken(TokenUse(fresh_tokens=100, output_tokens=2), estimated=True)


def test_a_document_that_is_cut_off_was_written_before_it_was_sent():
    bill = Bill(gemini, RESERVED, streams=False, prompt=PROMPT)
    told = ended(bill, WHOLE[:40], {"content-type": "application/json"}, outcome="failed")
    assert told.taken == Taken(TokenUse(fresh_tokens=100, output_tokens=10), estimated=True)


def test_a_refusal_that_is_cut_off_is_free():
    bill = Bill(gemini, RESERVED, streams=True, prompt=PROMPT)
    assert ended(bill, b"{", {}, outcome="aborted", status=429).taken == Taken(TokenUse())


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
    assert service_of(document) == service


def test_of_an_answer_that_is_too_long_the_beginning_and_the_cost_are_kept():
    seen: list[Reply] = []
    bill = Bill(gemini, RESERVED, streams=True, prompt=PROMPT)
    watching = Observing(
        bill, lambda ended: seen.extend(ended.replies), lambda _: None, lambda _: None
    )
    watching.begin(200, {"content-type": "text/event-stream"})
    said = "word " * 20_000
    tree = {"candidates": [{"content": {"role": "model", "parts": [{"text": said}]}}]}
    piece = b"data: " + json.dumps(tree).encode() + b"\n\n"
    for _ in range(2 * MOST_KEPT_BYTES // len(piece)):
        watching.see(piece)
    watching.see(STREAMED)
    watching.end("complete")
    [reply] = seen
    assert reply.use.input_tokens == 7
    assert reply.entry is not None
    kept = sum(len(block.text) for block in reply.entry.blocks)
    assert MOST_KEPT_BYTES * 0.9 < kept < MOST_KEPT_BYTES * 1.1
