"""A gateway that is started anew for each turn: on every wire it plans as if never gone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import Proxied, proxied
from tests.gateway.test_late_plans import bare
from tests.gateway.test_memory_plugin import HERE
from tests.upstream import ModelError, ModelReply, Text, Upstream, running_upstream
from tests.waiting import PATIENCE_S, eventually

SETTINGS: dict[str, Any] = {"context_max_layer0_tokens": 3_000, "inject_threshold": 0.0}
TURNS = 14


@dataclass(frozen=True)
class Dialect:
    """How one wire says a conversation."""

    path: str
    fixed: dict[str, Any]
    talk: str
    """Where the conversation stands in a request."""
    says: Callable[[str], Any]
    answers: Callable[[Any], list[Any]]
    """Returns of an answer what a client says again with its next request."""
    heads: tuple[str, ...] = ()
    """What stands before the conversation."""

    def said(self, tree: Any) -> list[Any]:
        """Return a prompt piece by piece, in the order in which a provider caches it."""
        return [bare(tree.get(name)) for name in self.heads] + [
            bare(one) for one in tree[self.talk]
        ]


DIALECTS = {
    "anthropic": Dialect(
        "/v1/messages",
        {"model": "claude-sonnet-4-5", "max_tokens": 1_000},
        "messages",
        lambda text: {"role": "user", "content": text},
        lambda tree: [{"role": "assistant", "content": tree["content"]}],
        ("tools", "system"),
    ),
    "chat": Dialect(
        "/v1/chat/completions",
        {"model": "gpt-4.1"},
        "messages",
        lambda text: {"role": "user", "content": text},
        lambda tree: [tree["choices"][0]["message"]],
        ("tools",),
    ),
    "responses": Dialect(
        "/v1/responses",
        {"model": "gpt-5", "store": False},
        "input",
        lambda text: {"role": "user", "content": text},
        lambda tree: tree["output"],
        ("tools", "instructions"),
    ),
    "gemini": Dialect(
        "/v1beta/models/gemini-2.5-pro:generateContent",
        {},
        "contents",
        lambda text: {"role": "user", "parts": [{"text": text}]},
        lambda tree: [tree["candidates"][0]["content"]],
        ("tools", "systemInstruction"),
    ),
}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served
        assert not served.rejected


@contextmanager
def started(home: Path, up: Upstream) -> Iterator[tuple[Memory, Proxied]]:
    config = replace(load({}, home=home).settings, **SETTINGS)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(home, up.url, plugin=plugin, within_s=PATIENCE_S) as gateway:
            yield memory, gateway
        plugin.close()


def has_stored(memory: Memory, count: int) -> bool:
    return sum(len(memory.sessions.messages(one.id)) for one in memory.sessions()) == count


@pytest.mark.parametrize("wire", DIALECTS)
def test_long_session_is_shortened_and_byte_stable_through_restarts(
    tmp_path: Path, up: Upstream, wire: str
):
    dialect, talk = DIALECTS[wire], list[Any]()
    layers, busts = list[int](), list[str]()
    for n in range(TURNS):
        with started(tmp_path, up) as (memory, gateway):
            memory.remember(f"Wheel {n} of the engine turns left", project=HERE)
            up.reply_with(ModelReply(Text(f"Part {n} is {'described at length here, ' * 60}done.")))
            talk.append(dialect.says(f"Describe part {n} of the engine with its wheel, please."))
            body = {**dialect.fixed, dialect.talk: talk}
            got = gateway.ask(dialect.path, body, {"x-lore-project": HERE, "x-api-key": "k"})
            assert (got.status, got.header("x-lore-degraded")) == (200, "")
            talk += dialect.answers(got.json)
            layers.append(int(got.header("x-lore-layer")))
            busts.append(got.header("x-lore-bust"))
            eventually(partial(has_stored, memory, len(talk)))
            [session] = memory.sessions()
            memory.distill(session.id)
    assert layers[0] == 0
    assert max(layers) >= 1
    assert 1 <= sum(map(bool, busts)) <= 4
    told = [dialect.said(asked.json) for asked in up.requests]
    for before, after, bust in zip(told, told[1:], busts[1:], strict=False):
        assert bust or after[: len(before)] == before
    assert "Wheel" in json.dumps(told[0])
    assert len(told[-1]) < len(talk)


@pytest.mark.parametrize(
    ("failure", "restarts"),
    [(ModelError(529), False), (ModelError(429), False), (ModelError(500), True)],
)
def test_a_retry_keeps_the_layer_of_its_session(
    tmp_path: Path, up: Upstream, failure: ModelError, restarts: bool
):
    dialect, talk, layers = DIALECTS["anthropic"], list[Any](), list[int]()
    headers = {"x-lore-project": HERE, "x-api-key": "k", "x-claude-code-session-id": "s-1"}
    with ExitStack() as stack:
        memory, gateway = stack.enter_context(started(tmp_path, up))
        for n in range(TURNS):
            answer = ModelReply(Text(f"Part {n} is {'described at length here, ' * 60}done."))
            up.reply_with(failure, failure, answer)
            talk.append(dialect.says(f"Describe part {n} of the engine, please."))
            body = {**dialect.fixed, dialect.talk: talk}
            for _ in range(2):
                got = gateway.ask(dialect.path, body, headers)
                assert got.status == failure.status
                if restarts:
                    stack.close()
                    memory, gateway = stack.enter_context(started(tmp_path, up))
            got = gateway.ask(dialect.path, body, headers)
            first, second, third = (dialect.said(asked.json) for asked in up.requests[-3:])
            assert first == second == third
            layers.append(int(got.header("x-lore-layer")))
            talk += dialect.answers(got.json)
            eventually(partial(has_stored, memory, len(talk)))
            memory.distill("s-1")
    assert max(layers) >= 1
