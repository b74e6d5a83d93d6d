"""Plans that come too late, are refused or meet a restart: what is cached stays what is sent."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.plugin_protocol import ClientRequest, RequestPlan
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.test_memory_plugin import HEADERS, HERE, PATH

SETTINGS: dict[str, Any] = {"context_max_layer0_tokens": 3_000, "inject_threshold": 0.0}


class Talk:
    """A conversation with what turns requests; whoever calls decides what becomes of each."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.sent: list[Any] = []
        self.busts: list[str] = []

    def incoming(self) -> ClientRequest:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": self.messages}
        return ClientRequest("anthropic", PATH, "", HEADERS, json.dumps(body).encode(), 10_000_000)

    def say(self, text: str) -> ClientRequest:
        self.messages.append({"role": "user", "content": text})
        return self.incoming()

    def answer(self, prepared: RequestPlan, text: str) -> None:
        """Let a prompt go out and be answered."""
        incoming = self.incoming()
        told = json.loads(prepared.body or incoming.raw)
        self.sent.append([
            bare(told.get("system")),
            told.get("tools"),
            *map(bare, told["messages"]),
        ])
        self.busts.append(dict(prepared.headers).get("x-lore-bust", ""))
        tokens = len(json.dumps(told)) // 4
        cached = len(json.dumps(self.sent[-2])) // 4 if len(self.sent) > 1 and self.goes_on else 0
        use = {
            "input_tokens": 10,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": max(0, tokens - cached),
        }
        reply = {
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": text}],
            "usage": {**use, "output_tokens": 9},
        }
        assert prepared.observer is not None
        prepared.observer.begin(200, {"content-type": "application/json"})
        prepared.observer.see(json.dumps(reply).encode())
        prepared.observer.end("complete")
        self.messages.append({"role": "assistant", "content": text})

    @property
    def goes_on(self) -> bool:
        """Tell whether the last prompt begins as the one before it, with all that this said."""
        before, after = self.sent[-2:]
        return bool(after[: len(before)] == before)


def bare(message: Any) -> Any:
    """Return a message without breakpoints, which are no part of what is cached."""
    if isinstance(message, dict):
        return {key: bare(one) for key, one in message.items() if key != "cache_control"}
    return [bare(one) for one in message] if isinstance(message, list) else message


def refuse(prepared: RequestPlan, status: int) -> None:
    assert prepared.observer is not None
    prepared.observer.begin(status, {})
    prepared.observer.end("complete")


def give_back(prepared: RequestPlan) -> None:
    assert prepared.observer is not None
    prepared.observer.end("unused")


@contextmanager
def turned(home: Path) -> Iterator[tuple[Memory, MemoryPlugin]]:
    config = replace(load({}, home=home).settings, **SETTINGS)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        yield memory, plugin
        plugin.close()


def settled(memory: Memory) -> None:
    memory.distill("s-1")
    memory.database.write(lambda db: db.rows("SELECT 1"))


def describe(n: int) -> str:
    return f"Part {n} is {'described at length here, ' * 60}done."


FATES = ("used", "used", "late", "refused", "restarted", "late and restarted", "said otherwise")


@pytest.mark.parametrize("seed", range(4))
def test_prompts_extend_the_sent_prompts_whatever_happened_to_other_plans(
    tmp_path: Path, seed: int
):
    chance, talk = random.Random(seed), Talk()
    asked = 0
    while asked < 24:
        with turned(tmp_path) as (memory, plugin):
            fate = ""
            while asked < 24 and "restarted" not in fate:
                fate = chance.choice(FATES) if asked else "used"
                memory.remember(f"Wheel {asked} of the engine turns left", project=HERE)
                incoming = talk.say(f"Describe part {asked} of the engine with its wheel, please.")
                prepared = plugin.plan(incoming)
                if fate == "refused":
                    refuse(prepared, 529)
                    prepared = plugin.plan(incoming)
                elif fate == "said otherwise":
                    give_back(prepared)
                    talk.messages.pop()
                    prepared = plugin.plan(talk.say(f"No, describe part {asked + 100}."))
                elif fate.startswith("late"):
                    give_back(prepared)
                    held = plugin.plan_from_cache(incoming)
                    prepared = held if held is not None else plugin.plan(incoming)
                talk.answer(prepared, describe(asked))
                assert asked == 0 or talk.busts[-1] or talk.goes_on, (asked, fate)
                asked += 1
                settled(memory)
    assert 1 <= sum(map(bool, talk.busts)) <= 8


def test_memory_that_was_not_sent_does_not_count_as_given(tmp_path: Path):
    fact, asked = "The staging port is 5436", "Which staging port do we have?"
    body = {"model": "gpt-5", "input": asked, "previous_response_id": "r-1"}
    headers = {**HEADERS, "x-session-id": "s-1", "user-agent": "opencode/1.18"}
    raw = json.dumps(body).encode()
    with turned(tmp_path) as (memory, plugin):
        memory.remember(fact, project=HERE)
        prepared = plugin.plan(
            ClientRequest("responses", "/v1/responses", "", headers, raw, 10_000_000)
        )
        assert prepared.body is None
        assert prepared.observer is not None
        prepared.observer.begin(200, {})
        prepared.observer.end("aborted")
        memory.database.write(lambda db: db.rows("SELECT 1"))
        assert fact in memory.prompts.for_prompt(asked, session="s-1", project=HERE).text
