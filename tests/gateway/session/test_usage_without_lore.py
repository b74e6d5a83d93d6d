"""What is called saved was saved: by what a provider reported, less what Lore itself has added."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import ClientSession, Dialogue, TokenUse
from lore.settings import load
from tests.fakes import FakeEmbedder, FixedClock
from tests.gateway.session.test_session_store import talk

SYSTEM_CHARS = 40_000
FIRST = TokenUse(5, 9_000, 1_000, output_tokens=50)
"""The system prompt is in the cache, for another session has sent it."""
SECOND = TokenUse(5, 10_000, 200, output_tokens=50)


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def answered(composer: PromptComposer, name: str, entries: int, use: TokenUse) -> TokenUse:
    client = ClientSession(name, "claude-code", "/code/almanac")
    dialogue = Dialogue("claude-sonnet-4-5", tuple(talk(3)[:entries]), fixed_chars=SYSTEM_CHARS)
    composed = composer.compose(client, dialogue)
    composer.mark_sent(client, composed)
    return composer.record_usage(client, dialogue, composed, use)


def test_unshortened_session_saves_nothing(memory: Memory):
    composer = PromptComposer(memory)
    for name in ("one", "two", "three"):
        assert answered(composer, name, 1, FIRST) == FIRST
        assert answered(composer, name, 5, SECOND) == SECOND


def test_given_memory_is_not_part_of_the_usage_without_lore(memory: Memory):
    memory.remember("Deploys go through ops/deploy.sh", kind="decision", project="/code/almanac")
    composer = PromptComposer(memory)
    first = answered(composer, "one", 1, FIRST)
    assert first.cache_read_tokens == FIRST.cache_read_tokens
    assert 0 < first.cache_write_tokens < FIRST.cache_write_tokens
    second = answered(composer, "one", 5, SECOND)
    assert 0 < second.cache_read_tokens < SECOND.cache_read_tokens
    assert second.cache_write_tokens == SECOND.cache_write_tokens
