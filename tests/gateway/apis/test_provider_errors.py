"""Errors of every provider for a too long prompt are recognized."""

from __future__ import annotations

import pytest

from lore.context.planner import raise_floor
from lore.gateway.apis.adapter import parse_error_message
from lore.records.gateway import PromptState

INVALID = "invalid_request_error"


@pytest.mark.parametrize(
    ("kind", "message", "sizes", "floor"),
    [
        (INVALID, "prompt is too long: 215300 tokens > 200000 maximum", (215_300, 200_000), 2),
        (INVALID, "Prompt is too long: 250,000 tokens > 200,000 maximum", (250_000, 200_000), 3),
        (INVALID, "Prompt is too long", (0, 0), 2),
        (
            INVALID,
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000,"
            " decrease input length or `max_tokens` and try again",
            (188_240, 178_667),
            2,
        ),
        (
            INVALID,
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000,"
            " decrease input length or `max_tokens` and try again",
            (178_959, 136_000),
            3,
        ),
        (
            INVALID,
            "input length and `max_tokens` exceed context limit: 9000 + 64000 > 50000",
            (9_000, 0),
            2,
        ),
        ("context_length_exceeded", "", (0, 0), 2),
        ("context_length_exceeded", "Your input exceeds the context window.", (0, 0), 2),
        (
            INVALID,
            "This model's maximum context length is 128000 tokens. However, your messages"
            " resulted in 204308 tokens. Please reduce the length of the messages.",
            (204_308, 128_000),
            3,
        ),
        (
            "",
            "This endpoint's maximum context length is 131072 tokens. However, you requested"
            " about 140000 tokens (139000 of text input, 1000 in the output).",
            (140_000, 131_072),
            2,
        ),
        (
            INVALID,
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted"
            " in 289650 tokens. Please reduce the length of the messages.",
            (289_650, 272_000),
            2,
        ),
        (
            "INVALID_ARGUMENT",
            "The input token count (1200293) exceeds the maximum number of tokens allowed"
            " (1048576).",
            (1_200_293, 1_048_576),
            2,
        ),
        (
            "INVALID_ARGUMENT",
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            (0, 0),
            2,
        ),
        (
            "INVALID_ARGUMENT",
            "Unable to submit request because the input token count is 2097152 but the model"
            " only supports up to 1048576.",
            (2_097_152, 1_048_576),
            3,
        ),
    ],
)
def test_a_prompt_that_is_too_long_is_known_and_raises_the_floor(kind, message, sizes, floor):
    told = parse_error_message(kind, message)
    assert told.is_too_long
    assert (told.prompt_tokens, told.limit_tokens) == sizes
    assert raise_floor(PromptState(), *sizes).floor == floor


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (INVALID, "messages: at least one message is required"),
        ("rate_limit_error", "This request would exceed your rate limit of 40,000 tokens."),
        ("overloaded_error", "Overloaded"),
        ("INVALID_ARGUMENT", "The name of the function is too long."),
    ],
)
def test_other_faults_are_none_of_the_size(kind, message):
    assert not parse_error_message(kind, message).is_too_long
