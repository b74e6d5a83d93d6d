from __future__ import annotations

import pytest

from lore.budget.outputs import USUAL_OUTPUT, most_output


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-sonnet-4-5-20250929", 64_000),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-5-5", 128_000),
        ("anthropic/claude-3-5-haiku-latest", 8_192),
        ("gpt-4o-mini", 16_384),
        ("gpt-5.1-codex", 128_000),
        ("models/gemini-2.5-pro", 65_536),
        ("O3-pro", 100_000),
        ("my-own-model", USUAL_OUTPUT),
        ("", USUAL_OUTPUT),
    ],
)
def test_a_model_answers_no_more_than_its_maker_says(model, tokens):
    assert most_output(model) == tokens
