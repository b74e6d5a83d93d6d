"""Recall inside an answer, through the real proxy, with an upstream that knows its own words."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from lore.errors import StoreBusy, StoreFull
from lore.gateway.exchanges import Command, Incoming, Prepared
from lore.gateway.recalling import Recalling
from lore.gateway.wires.registry import WIRES
from lore.gateway.wires.wire import Call, Texts, Tool
from lore.records.dialogues import Pins, Plan
from tests.gateway import replies
from tests.gateway.proxied import Proxied, proxied
from tests.gateway.upstream import Fails, Says, Thought, Upstream, upstream
from tests.gateway.wires import test_anthropic_splicing as messages
from tests.gateway.wires import test_responses_splicing as responses

Json = dict[str, Any]
TOOL = Tool("recall", "Search memory.", {"type": "object", "properties": {"query": {}}})
LOOK = replies.Call("recall", {"query": "printing"})
READ = replies.Call("Read", {"path": "x"})


class Remembering:
    """Offers recall on every request, and puts back what it kept."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.search: Callable[[Call], str] = lambda call: f"found {call.arguments['query']}"
        self.keep: Callable[[Any], None] = self.kept.update

    def prepare(self, incoming: Incoming) -> Prepared:
        wire = WIRES[incoming.wire]
        request = wire.expand(wire.read(incoming.body(), incoming.path), self.kept.get)
        body = wire.rewrite(request, Plan(0, Pins()), Texts(recall=TOOL))
        splice = wire.open_splice(request, body, TOOL, lambda: uuid.uuid4().hex)
        return Prepared(body, splice=Recalling(splice, self._search, self._keep))

    def go_on(self, incoming: Incoming) -> Prepared | None:
        raise AssertionError(incoming.path)

    def find_command(self, incoming: Incoming) -> Command | None:
        raise AssertionError(incoming.path)

    def admit(self, incoming: Incoming) -> Prepared:
        raise AssertionError(incoming.path)

    def _search(self, call: Call) -> str:
        return self.search(call)

    def _keep(self, stored: Any) -> None:
        self.keep(stored)


class Stage:
    """A gateway with recall in front of an upstream of its own."""

    def __init__(self, gateway: Proxied, up: Upstream, memory: Remembering) -> None:
        self.gateway = gateway
        self.up = up
        self.memory = memory


@pytest.fixture
def stage(tmp_path):
    memory = Remembering()
    with (
        upstream() as up,
        proxied(tmp_path, up.url, turning=memory) as gateway,
    ):
        yield Stage(gateway, up, memory)


class MessagesClient:
    """Speaks Anthropic's Messages as an agent does, and keeps its own history."""

    path = "/v1/messages"

    def __init__(self, *, streams: bool) -> None:
        self.streams = streams
        self.history: list[Json] = []

    def body(self) -> Json:
        return {
            "model": "claude-sonnet-4-5",
            "max_tokens": 2000,
            "stream": self.streams,
            "thinking": {"type": "adaptive"},
            "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
            "messages": self.history,
        }

    def say(self, said: str) -> None:
        self.history.append({"role": "user", "content": said})

    def hear(self, answer: bytes) -> list[str]:
        content = messages.received(answer, streams=self.streams)["content"]
        self.history.append({"role": "assistant", "content": content})
        return [block["id"] for block in content if block["type"] == "tool_use"]

    def give(self, ids: list[str]) -> None:
        results = [{"type": "tool_result", "tool_use_id": one, "content": "file"} for one in ids]
        self.history.append({"role": "user", "content": results})


class ResponsesClient:
    """Speaks OpenAI's Responses as an agent does, and keeps its own history."""

    path = "/v1/responses"

    def __init__(self, *, streams: bool) -> None:
        self.streams = streams
        self.history: list[Json] = []

    def body(self) -> Json:
        return {
            "model": "gpt-5.5",
            "store": False,
            "stream": self.streams,
            "reasoning": {"effort": "low"},
            "tools": [{"type": "function", "name": "Read", "parameters": {}}],
            "input": self.history,
        }

    def say(self, said: str) -> None:
        self.history.append({"type": "message", "role": "user", "content": said})

    def hear(self, answer: bytes) -> list[str]:
        output = responses.bare(responses.received(answer, streams=self.streams)["output"])
        self.history += output
        return [item["call_id"] for item in output if item["type"] == "function_call"]

    def give(self, ids: list[str]) -> None:
        self.history += [
            {"type": "function_call_output", "call_id": one, "output": "file"} for one in ids
        ]


Client = MessagesClient | ResponsesClient


def ask(stage: Stage, client: Client) -> list[str]:
    got = stage.gateway.ask(client.path, client.body())
    assert got.status == 200, got.body
    assert not got.header("x-lore-degraded")
    return client.hear(got.body)


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("speaks", [MessagesClient, ResponsesClient])
def test_a_conversation_with_recall_breaks_no_rule_of_the_upstream(stage, speaks, streams):
    client = speaks(streams=streams)
    client.say("How do we print?")
    stage.up.reply_with(
        Says(Thought("Memory first."), "I search.", LOOK),
        Says(Thought("Now the file."), "And a file.", READ, LOOK),
        Says("On Thursdays."),
        Says(LOOK, LOOK),
        Says("Nothing more."),
    )
    ids = ask(stage, client)
    assert len(ids) == 1
    client.give(ids)
    assert ask(stage, client) == []
    client.say("Anything else?")
    assert ask(stage, client) == []
    assert stage.up.refused == []
    sent = [json.dumps(one.tree) for one in stage.up.asked]
    assert len(sent) == 5
    assert [one.count("found printing") for one in sent] == [0, 1, 2, 2, 4]
    assert len(stage.memory.kept) == 4
    assert "lore-recall-" not in "".join(sent)
    assert "lore-recall-" in json.dumps(client.body())


def test_memory_that_fails_is_told_to_the_model(stage):
    def fail(_call: Call) -> str:
        msg = "The store is busy."
        raise StoreBusy(msg)

    stage.memory.search = fail
    stage.up.reply_with(Says(LOOK), Says("Then without."))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    assert "could not be searched" in json.dumps(stage.up.asked[-1].tree)
    assert client.history[-1]["content"][-1]["text"] == "Then without."


def test_a_marker_that_was_not_kept_stays_a_text_that_the_upstream_takes(stage):
    def fail(_stored: object) -> None:
        msg = "No space is left."
        raise StoreFull(msg)

    stage.memory.keep = fail
    stage.up.reply_with(Says(LOOK), Says("On Thursdays."), Says("You are welcome."))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    client.say("Thanks.")
    ask(stage, client)
    assert stage.up.refused == []
    assert "lore-recall-" in json.dumps(stage.up.asked[-1].tree)


def test_an_upstream_that_does_not_go_on_ends_the_answer_with_its_error(stage):
    stage.up.reply_with(Says("I search.", LOOK), Fails(529, "overloaded_error", "Overloaded"))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    got = stage.gateway.ask(client.path, client.body())
    assert got.status == 200
    assert got.body.rstrip().splitlines()[-2] == b"event: error"
    assert b"Overloaded" in got.body
