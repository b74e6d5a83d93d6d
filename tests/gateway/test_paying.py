"""What a request took is read from its answer, whatever form that has and whatever fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import pytest

from lore.gateway.exchanges import Incoming, Outcome
from lore.gateway.paying import MOST_KEPT_BYTES, Bill, Observing, most_of_unread, output_limit
from lore.gateway.wires import gemini
from lore.gateway.wires.wire import Reply
from lore.records import Reserved

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
RESERVED = Reserved("k", BEGUN, "m", "google", "request:turn", "", "", usd=None, kept=False)
STREAMED = b'data: {"candidates": [], "usageMetadata": {"promptTokenCount": 7}}\n\n'
WHOLE = b'{"candidates": [], "usageMetadata": {"promptTokenCount": 7}}'


def observed(
    bill: Bill,
    piece: bytes,
    headers: Mapping[str, str],
    on_headers: Callable[[Mapping[str, str]], None] = lambda _headers: None,
) -> list[Reply]:
    """Return what an observer makes of an answer."""
    seen: list[Reply] = []

    def end(_bill: Bill, replies: list[Reply], _outcome: Outcome) -> None:
        seen.extend(replies)

    watching = Observing(bill, end, on_headers)
    watching.begin(200, headers)
    watching.see(piece)
    watching.end("complete")
    return seen


@pytest.mark.parametrize("expected", [True, False])
@pytest.mark.parametrize(
    ("piece", "form"),
    [(STREAMED, "text/event-stream"), (WHOLE, "application/json; charset=UTF-8")],
)
def test_an_answer_is_read_in_the_form_that_it_has(piece: bytes, form: str, expected: bool):
    bill = Bill(gemini, RESERVED, expected)
    [reply] = observed(bill, piece, {"content-type": form})
    assert reply.use.input_tokens == 7


def test_an_answer_that_does_not_tell_its_form_has_the_one_that_was_asked_for():
    [reply] = observed(Bill(gemini, RESERVED, streams=True), STREAMED, {})
    assert reply.use.input_tokens == 7


def test_headers_that_cannot_be_read_do_not_hide_what_an_answer_took():
    def fail(_headers: Mapping[str, str]) -> None:
        raise ZeroDivisionError

    [reply] = observed(Bill(gemini, RESERVED, streams=False), WHOLE, {}, fail)
    assert reply.use.input_tokens == 7


def test_an_answer_that_cannot_be_read_still_ends_its_request():
    class Broken:
        def open_reader(self, *, streams: bool) -> object:
            raise ZeroDivisionError(streams)

    bill = Bill(Broken(), RESERVED, streams=False)  # type: ignore[arg-type]  # only this is asked
    assert observed(bill, WHOLE, {}) == [Reply()]


@pytest.mark.parametrize(
    ("document", "limit"),
    [
        ({"max_tokens": 9}, 9),
        ({"max_completion_tokens": 9}, 9),
        ({"max_output_tokens": 9}, 9),
        ({"generationConfig": {"maxOutputTokens": 9}}, 9),
        ({"max_tokens": "many"}, 8_000),
        ({}, 8_000),
    ],
)
def test_a_client_says_how_much_an_answer_may_take(document: dict[str, object], limit: int):
    assert output_limit(document) == limit


@pytest.mark.parametrize(
    ("path", "raw", "model"),
    [
        ("/v1/messages", b'{"model": "claude-x"}', "claude-x"),
        ("/v1beta/models/gemini-y:generateContent", b"{}", "gemini-y"),
        ("/v1/messages", b"no gzip", ""),
    ],
)
def test_the_model_of_a_request_is_found_without_reading_it(path: str, raw: bytes, model: str):
    assert most_of_unread(Incoming("anthropic", path, "", {}, raw, 1_000))[0] == model


def test_of_an_answer_that_is_too_long_the_beginning_and_the_cost_are_kept():
    seen: list[Reply] = []
    bill = Bill(gemini, RESERVED, streams=True)
    watching = Observing(
        bill, lambda _bill, replies, _outcome: seen.extend(replies), lambda _: None
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
