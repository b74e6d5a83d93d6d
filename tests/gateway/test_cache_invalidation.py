"""What was forgotten is in nobody's mind either, whoever forgot it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lore.errors import StoreBusy
from lore.gateway.apis import anthropic, parse_cache
from lore.gateway.apis.parse_cache import ParseCache
from lore.gateway.cache_invalidation import CacheInvalidator
from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.plugin_protocol import ClientRequest, RequestPlan
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import ClientSession
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import HELLO
from tests.gateway.test_settling import MESSAGE
from tests.waiting import eventually

HEADERS = {"x-claude-code-session-id": "s-1"}


class Eras:
    """An era that a test changes, and what was let go of."""

    def __init__(self) -> None:
        self.now = "a"
        self.fails = False
        self.failed = 0
        self.gone: list[str] = []

    def find(self) -> str:
        if self.fails:
            self.failed += 1
            raise StoreBusy(self.now)
        return self.now


def test_caches_are_cleared_once_per_generation():
    eras = Eras()
    invalidator = CacheInvalidator(eras.find, eras.gone.append)
    for eras.now in "aabb":
        invalidator.check()
    assert eras.gone == ["a", "b"]


def test_polling_continues_while_the_store_is_busy():
    eras = Eras()
    eras.fails = True
    invalidator = CacheInvalidator(eras.find, eras.gone.append, every_s=0.001)
    invalidator.start()
    eventually(lambda: eras.failed)
    eras.fails = False
    eventually(lambda: eras.gone == ["a"])
    eras.now = "b"
    eventually(lambda: eras.gone == ["a", "b"])
    invalidator.close()


def test_failed_invalidation_is_retried():
    eras = Eras()

    def fail_once(era: str) -> None:
        eras.gone.append(era)
        if len(eras.gone) == 1:
            raise StoreBusy(era)

    invalidator = CacheInvalidator(eras.find, fail_once)
    with pytest.raises(StoreBusy):
        invalidator.check()
    invalidator.check()
    invalidator.check()
    assert eras.gone == ["a", "a"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    config = load({}, home=tmp_path).settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


def asked(*said: str, **more: Any) -> ClientRequest:
    speakers = ("user", "assistant")
    told = [{"role": speakers[n % 2], "content": one} for n, one in enumerate(said)]
    body = json.dumps({**HELLO, "messages": told, **more}).encode()
    return ClientRequest("anthropic", "/v1/messages", "", HEADERS, body, 1_000_000)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another process"])
def test_parse_cache_is_cleared_once_anything_is_forgotten(memory: Memory, elsewhere: bool):
    plugin = MemoryPlugin(memory, PromptComposer(memory))
    incoming = asked("The staging port is 5436.")
    plugin.invalidator.check()
    plugin.plan(incoming)
    before = anthropic.parse_request(incoming.raw).dialogue.entries[0].blocks
    plugin.invalidator.check()
    assert anthropic.parse_request(incoming.raw).dialogue.entries[0].blocks is before
    kept = memory.remember("The staging port is 5436")
    if elsewhere:
        with Memory.open(config=memory.settings, embedder=FakeEmbedder()) as other:
            other.forget(id=kept.id)
    else:
        memory.forget(id=kept.id)
    plugin.invalidator.check()
    assert anthropic.parse_request(incoming.raw).dialogue.entries[0].blocks is not before
    plugin.close()


SECRET = "The staging port is 5436."
ON, OFF = "/lore:amnesia on", "/lore:amnesia off"
SAID = ("Hello.", "Yes.", ON, "Done.", SECRET, "Well.", OFF, "Done.")
HISTORIES: dict[str, tuple[str, ...]] = {
    "history": SAID,
    "capitals": tuple(one.upper() if "amnesia" in one else one for one in SAID),
    "store": ("Hello.", "Yes.", SECRET, "Well."),
}
ERRANDS: dict[str, dict[str, Any]] = {
    "Go on.": {},
    "Anything?": {"max_tokens": 1},
    "CRITICAL: Respond with TEXT ONLY. Sum it up.": {},
    "[SUGGESTION MODE: What might the user type next?]": {},
}
"""A turn, a probe, a summary and what is asked on the side."""


def are_in_mind(words: str) -> bool:
    """Tell whether any cache of requests has some words."""
    held = list(parse_cache._CACHES)
    assert any(type(one) is ParseCache for one in held)
    return any(words in repr(vars(one)) for one in held)


def end(prepared: RequestPlan | None) -> None:
    """Let a request be answered."""
    if prepared is not None:
        assert prepared.observer is not None
        prepared.observer.begin(200, {"content-type": "application/json"})
        prepared.observer.see(json.dumps(MESSAGE).encode())
        prepared.observer.end("complete")


def way_of(plugin: MemoryPlugin, name: str) -> Callable[[ClientRequest], RequestPlan | None]:
    ways = {"prepare": plugin.plan, "go_on": plugin.plan_from_cache, "admit": plugin.passthrough}
    return ways[name]


@pytest.mark.parametrize("asks", ERRANDS, ids=["turn", "probe", "summary", "aside"])
@pytest.mark.parametrize("way", ["prepare", "go_on", "admit"])
@pytest.mark.parametrize("told_by", HISTORIES)
def test_private_requests_are_not_cached(memory: Memory, told_by: str, way: str, asks: str):
    composer = PromptComposer(memory)
    plugin = MemoryPlugin(memory, composer)
    if told_by == "store":
        composer.sessions.begin_private_mode(ClientSession("s-1", "claude-code"))
        plugin.plan(asked("Hello."))
    incoming = asked(*HISTORIES[told_by], asks, **ERRANDS[asks])
    parse_cache.clear_caches()
    prepared = way_of(plugin, way)(incoming)
    end(prepared)
    if prepared is None:  # It is no turn, and goes out as it came.
        end(plugin.passthrough(incoming))
    assert not are_in_mind(SECRET)
    plugin.close()


def test_command_in_private_mode_leaves_nothing_cached(memory: Memory):
    composer = PromptComposer(memory)
    plugin = MemoryPlugin(memory, composer)
    composer.sessions.begin_private_mode(ClientSession("s-1", "claude-code"))
    incoming = asked(SECRET, "Well.", "/lore:status")
    for find in (plugin.plan, plugin.find_command):
        parse_cache.clear_caches()
        assert find(incoming)
        assert not are_in_mind(SECRET)
    plugin.close()


@pytest.mark.parametrize("way", ["prepare", "admit"])
def test_requests_that_only_mention_private_mode_are_cached(memory: Memory, way: str):
    plugin = MemoryPlugin(memory, PromptComposer(memory))
    parse_cache.clear_caches()
    end(way_of(plugin, way)(asked(SECRET, "Well.", f"What does {ON} do?")))
    assert are_in_mind(SECRET)
    plugin.close()
