"""Usage of requests whose responses do not report it."""

from __future__ import annotations

import json

import pytest

from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import ErrorDetails, Reply
from lore.gateway.usage import RequestUsage, UpstreamResponse, measure_usage
from lore.records import TokenUse

PROMPT = TokenUse(fresh_tokens=1_000)
SAID = "x" * 400


def event(document: object) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def chunk(text: str, stop: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": stop}]})


BEGUN = {
    "anthropic": event({
        "type": "message_start",
        "message": {"usage": {"input_tokens": 7, "output_tokens": 1}},
    })
    + event({"type": "content_block_start", "index": 0, "content_block": {"type": "text"}})
    + event({
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": SAID},
    }),
    "chat": chunk(SAID),
    "responses": event({"type": "response.output_text.delta", "output_index": 0, "delta": SAID}),
    "gemini": event({"candidates": [{"content": {"parts": [{"text": SAID}]}}]}),
}
"""A stream of each wire as far as it came."""


def read(wire: str, stream: bytes) -> Reply:
    return ADAPTERS[wire].read_reply(stream, streams=True)


@pytest.mark.parametrize("wire", BEGUN)
def test_a_stream_that_breaks_off_costs_its_prompt_and_what_came_of_it(wire: str):
    taken = measure_usage([UpstreamResponse(200, read(wire, BEGUN[wire]), is_cut=True)], PROMPT)
    # Anthropic tells the length of the prompt first of all.
    given = 7 if wire == "anthropic" else 1_000
    assert taken == RequestUsage(TokenUse(fresh_tokens=given, output_tokens=100), estimated=True)


@pytest.mark.parametrize("wire", ["chat", "responses", "gemini"])
def test_a_stream_that_is_left_before_it_says_anything_costs_its_prompt(wire: str):
    assert measure_usage(
        [UpstreamResponse(200, read(wire, b""), is_cut=True)], PROMPT
    ) == RequestUsage(PROMPT, True)


def test_calls_and_reasoning_are_charged_like_text():
    called = event({"choices": [{"delta": {"tool_calls": [{"function": {"arguments": SAID}}]}}]})
    thought = event({"choices": [{"delta": {"reasoning_content": SAID}}]})
    taken = measure_usage(
        [UpstreamResponse(200, read("chat", called + thought), is_cut=True)], PROMPT
    )
    assert taken.use.output_tokens == 200


def test_all_choices_are_paid_for():
    other = event({"choices": [{"index": 1, "delta": {"content": SAID}}]})
    taken = measure_usage(
        [UpstreamResponse(200, read("chat", chunk(SAID) + other), is_cut=True)], PROMPT
    )
    assert taken.use.output_tokens == 200


def test_a_whole_stream_that_was_not_asked_for_its_usage_is_estimated():
    taken = measure_usage(
        [UpstreamResponse(200, read("chat", chunk(SAID) + chunk("", "stop")))], PROMPT
    )
    assert taken == RequestUsage(TokenUse(fresh_tokens=1_000, output_tokens=100), estimated=True)


def test_what_a_provider_reports_is_taken_as_it_is():
    told = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}})
    taken = measure_usage([UpstreamResponse(200, read("chat", chunk(SAID, "stop") + told))], PROMPT)
    assert taken == RequestUsage(TokenUse(fresh_tokens=5, output_tokens=3), estimated=False)


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_what_is_refused_costs_nothing(status: int):
    assert measure_usage([UpstreamResponse(status, Reply(), is_cut=True)], PROMPT) == RequestUsage(
        TokenUse()
    )


def test_an_error_in_the_place_of_an_answer_costs_nothing():
    refused = event({"error": {"code": "overloaded", "message": "Later."}})
    assert measure_usage([UpstreamResponse(200, read("chat", refused))], PROMPT) == RequestUsage(
        TokenUse()
    )
    # Some errors have a message and nothing else.
    told = Reply(error=ErrorDetails("unreadable", "Later."))
    assert measure_usage([UpstreamResponse(200, told)], PROMPT) == RequestUsage(TokenUse())


@pytest.mark.parametrize("is_cut", [True, False])
def test_what_cannot_be_read_may_be_an_answer_and_costs_its_prompt(is_cut: bool):
    page = Reply(error=ErrorDetails("unreadable", ""))
    assert measure_usage([UpstreamResponse(200, page, is_cut)], PROMPT) == RequestUsage(
        PROMPT, estimated=True
    )


def test_an_estimate_is_no_longer_than_an_answer_may_be():
    prompt = TokenUse(fresh_tokens=1_000, output_tokens=60)
    taken = measure_usage([UpstreamResponse(200, Reply(chars=400), is_cut=True)], prompt)
    assert taken == RequestUsage(prompt, estimated=True)


def test_what_is_written_later_may_take_all_that_was_set_aside():
    prompt = TokenUse(fresh_tokens=1_000, output_tokens=60)
    taken = measure_usage(
        [UpstreamResponse(200, Reply(stop_reason="queued", in_background=True))], prompt
    )
    assert taken == RequestUsage(prompt, estimated=True)


def test_an_error_in_the_middle_of_an_answer_costs_what_came_before():
    broken = chunk(SAID) + event({"error": {"message": "Later."}})
    taken = measure_usage([UpstreamResponse(200, read("chat", broken))], PROMPT)
    assert taken == RequestUsage(TokenUse(fresh_tokens=1_000, output_tokens=100), estimated=True)


def test_several_answers_to_a_request_are_paid_together():
    told = Reply(usage=TokenUse(fresh_tokens=5, output_tokens=3), stop_reason="stop")
    cut = UpstreamResponse(200, Reply(chars=8), is_cut=True)
    taken = measure_usage([UpstreamResponse(200, told), cut], PROMPT)
    assert taken.use == TokenUse(fresh_tokens=1_005, output_tokens=5)
    assert taken.rounds == (told.usage, TokenUse(fresh_tokens=1_000, output_tokens=2))
    assert taken.estimated
