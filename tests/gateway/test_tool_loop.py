"""Recall inside an answer, through the real proxy, with an upstream that knows its own words."""

from __future__ import annotations

import gzip
import json
import uuid
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
import zstandard

from lore.errors import StoreBusy, StoreFull
from lore.gateway import sse
from lore.gateway.apis import ADAPTERS, anthropic
from lore.gateway.apis.adapter import PromptAdditions, RecallCall, Tool
from lore.gateway.plugin_protocol import ClientRequest, Command, RequestPlan
from lore.gateway.tool_loop import ToolLoop
from lore.gateway.workers import Workers
from lore.records.gateway import Plan, PromptState
from tests.gateway.apis import test_anthropic_streams as messages
from tests.gateway.apis import test_responses_streams as responses
from tests.gateway.faulty_upstream import Peer, faulty
from tests.gateway.gateway_server import Proxied, proxied
from tests.upstream import (
    Call,
    ModelError,
    ModelReply,
    RawResponse,
    Thought,
    Upstream,
    running_upstream,
)

Json = dict[str, Any]
TOOL = Tool("recall", "Search memory.", {"type": "object", "properties": {"query": {}}})
LOOK = Call("recall", {"query": "printing"})
READ = Call("Read", {"path": "x"})


class Remembering:
    """Offers recall on every request, and puts back what it kept."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.workers = Workers()
        self.search: Callable[[RecallCall], str] = lambda call: f"found {call.arguments['query']}"
        self.keep: Callable[[Any], None] = self.kept.update

    def plan(self, incoming: ClientRequest) -> RequestPlan:
        wire = ADAPTERS[incoming.api]
        request = wire.expand_markers(
            wire.parse_request(incoming.body(), incoming.target), self.kept.get
        )
        body = wire.rewrite_request(
            request, Plan(0, PromptState()), PromptAdditions(recall_tool=TOOL)
        )
        splice = wire.open_rewriter(request, body, TOOL, lambda: uuid.uuid4().hex)
        return RequestPlan(body, interceptor=ToolLoop(splice, self._search, self._keep))

    def plan_from_cache(self, incoming: ClientRequest) -> RequestPlan | None:
        raise AssertionError(incoming.path)

    def find_command(self, incoming: ClientRequest) -> Command | None:
        raise AssertionError(incoming.path)

    def passthrough(self, incoming: ClientRequest, until_s: float) -> RequestPlan:
        raise AssertionError(incoming.path, until_s)

    def may_wait(self) -> bool:
        return True

    def is_limited(self) -> bool:
        return False

    def _search(self, call: RecallCall) -> str:
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
        running_upstream() as up,
        proxied(tmp_path, up.url, plugin=memory) as gateway,
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
def test_conversation_with_recall_is_valid_for_upstream(stage, speaks, streams):
    client = speaks(streams=streams)
    client.say("How do we print?")
    stage.up.reply_with(
        ModelReply(Thought("Memory first."), "I search.", LOOK),
        ModelReply(Thought("Now the file."), "And a file.", READ, LOOK),
        ModelReply("On Thursdays."),
        ModelReply(LOOK, LOOK),
        ModelReply("Nothing more."),
    )
    ids = ask(stage, client)
    assert len(ids) == 1
    client.give(ids)
    assert ask(stage, client) == []
    client.say("Anything else?")
    assert ask(stage, client) == []
    assert stage.up.rejected == []
    sent = [json.dumps(one.json) for one in stage.up.requests]
    assert len(sent) == 5
    assert [one.count("found printing") for one in sent] == [0, 1, 2, 2, 4]
    assert len(stage.memory.kept) == 4
    assert "lore-recall-" not in "".join(sent)
    assert "lore-recall-" in json.dumps(client.body())


@pytest.mark.parametrize("streams", [True, False])
def test_blank_text_before_a_recall_is_not_repeated(stage, streams):
    client = MessagesClient(streams=streams)
    client.say("How do we print?")
    stage.up.reply_with(
        ModelReply("\n\n", LOOK),
        ModelReply(" ", LOOK),
        ModelReply("On Thursdays."),
        ModelReply("Bye."),
    )
    ask(stage, client)
    client.say("Thanks.")
    ask(stage, client)
    assert stage.up.rejected == []
    before, after = (one.json["messages"] for one in stage.up.requests[-2:])
    assert after[: len(before)] == before


@pytest.mark.parametrize("speaks", [MessagesClient, ResponsesClient])
def test_repeated_marker_is_one_call(stage, speaks):
    client = speaks(streams=False)
    client.say("How do we print?")
    stage.up.reply_with(
        ModelReply("I search.", LOOK), ModelReply("On Thursdays."), ModelReply("Bye.")
    )
    ask(stage, client)
    again = [{name: one[name] for name in one if name != "id"} for one in client.history]
    client.history += again
    client.say("Thanks.")
    ask(stage, client)
    assert stage.up.rejected == []
    assert json.dumps(stage.up.requests[-1].json).count("found printing") == 1


@pytest.mark.parametrize("knows", [True, False])
def test_turn_without_memory_keeps_its_thinking_blocks(stage, knows):
    client = MessagesClient(streams=False)
    client.say("How do we print?")
    first, second = Thought("Memory first."), Thought("Now the file.")
    stage.up.reply_with(
        ModelReply(first, "I search.", LOOK), ModelReply(second, READ), ModelReply("On Thursdays.")
    )
    client.give(ask(stage, client))
    body = json.dumps(client.body()).encode()
    found = stage.memory.kept if knows else {}
    mended = anthropic.repair_thinking(body, found.get)
    assert mended != body
    stage.memory.plan = lambda _incoming: RequestPlan(mended)
    ask(stage, client)
    assert stage.up.rejected == []
    assert ("found printing" in mended.decode()) is knows
    client.say("Thanks.")
    later = json.dumps(client.body()).encode()
    assert anthropic.repair_thinking(later, found.get) == later


def test_memory_failure_is_reported_to_the_model(stage):
    def fail(_call: RecallCall) -> str:
        msg = "The store is busy."
        raise StoreBusy(msg)

    stage.memory.search = fail
    stage.up.reply_with(ModelReply(LOOK), ModelReply("Then without."))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    assert "could not be searched" in json.dumps(stage.up.requests[-1].json)
    assert client.history[-1]["content"][-1]["text"] == "Then without."


def test_unknown_marker_stays_valid_text(stage):
    def fail(_stored: object) -> None:
        msg = "No space is left."
        raise StoreFull(msg)

    stage.memory.keep = fail
    stage.up.reply_with(
        ModelReply(LOOK), ModelReply("On Thursdays."), ModelReply("You are welcome.")
    )
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    client.say("Thanks.")
    ask(stage, client)
    assert stage.up.rejected == []
    assert "lore-recall-" in json.dumps(stage.up.requests[-1].json)


def test_refused_follow_up_ends_the_response_with_the_upstream_error(stage):
    stage.up.reply_with(
        ModelReply("I search.", LOOK), ModelError(529, "overloaded_error", "Overloaded")
    )
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    got = stage.gateway.ask(client.path, client.body())
    assert got.status == 200
    name, data = got.body.rstrip().splitlines()[-2:]
    assert name == b"event: error"
    error = json.loads(data.removeprefix(b"data: "))["error"]
    assert error == {"type": "overloaded_error", "message": "Overloaded"}


GEMINI = "/v1beta/models/gemini-3-pro:{}?alt=sse"
ASKED: list[tuple[str, Json]] = [
    (MessagesClient.path, MessagesClient(streams=False).body()),
    (ResponsesClient.path, ResponsesClient(streams=False).body()),
    ("/v1/chat/completions", {"model": "gpt-5.5"}),
    (GEMINI.format("generateContent"), {}),
]


def asked(path: str, tree: Json, *, streams: bool) -> tuple[str, Json]:
    """Return a request with one prompt."""
    said = {"role": "user", "content": "How do we print?"}
    if "v1beta" in path:
        name = "streamGenerateContent" if streams else "generateContent"
        return GEMINI.format(name), {"contents": [{"role": "user", "parts": [{"text": "Hm?"}]}]}
    place = "input" if "responses" in path else "messages"
    return path, {**tree, "stream": streams, place: [said]}


@pytest.mark.parametrize(("path", "tree"), ASKED)
def test_complete_response_fails_like_its_last_follow_up(stage, path, tree):
    refused = ModelError(429, "rate_limit_error", "Slow down.", {"retry-after": "3"})
    stage.up.reply_with(ModelReply("I search.", LOOK), refused)
    got = stage.gateway.ask(*asked(path, tree, streams=False))
    assert (got.status, got.header("retry-after")) == (429, "3")
    assert got.json["error"]["message"] == "Slow down."
    assert len(stage.up.requests) == 2


@pytest.mark.parametrize(("path", "tree"), ASKED)
def test_stream_ends_with_the_providers_error(stage, path, tree):
    stage.up.reply_with(
        ModelReply("I search.", LOOK), ModelError(429, "rate_limit_error", "Slow down.")
    )
    got = stage.gateway.ask(*asked(path, tree, streams=True))
    told = [json.loads(line[6:]) for line in got.body.splitlines() if line.startswith(b"data: {")]
    error = told[-1].get("error", told[-1])
    assert error["message"] == "Slow down."
    assert "api_error" not in json.dumps(told[-1])
    if "v1beta" not in path:
        assert "rate_limit_error" in json.dumps(error)


def test_aborted_complete_response_is_an_error(tmp_path):
    call = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {"query": "printing"}}
    said = json.dumps({"type": "message", "content": [call], "stop_reason": "tool_use"}).encode()

    def behave(peer: Peer) -> None:
        if b"found printing" in peer.request:
            peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{")
            peer.reset()
        else:
            # it hangs up after one answer: without the word, who is quick asks on a dead connection
            head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            peer.send(head % len(said) + said)

    with faulty(behave) as up, proxied(tmp_path, up.url, plugin=Remembering()) as gateway:
        got = gateway.ask(*asked("/v1/messages", ASKED[0][1], streams=False))
        assert len(up.requests) == 2
    assert got.status == 502
    assert got.json["error"]["type"] == "api_error"


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": lambda body: zstandard.ZstdCompressor().compress(body),
    "gzip, br": lambda body: brotli.compress(gzip.compress(body)),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_compressed_response_is_decoded_and_continued(stage, encoding):
    path, tree = ASKED[0]
    pack = PACKED[encoding]
    headers = {"content-type": "application/json", "content-encoding": encoding}
    said = {"type": "text", "text": "Blue."}
    last = {"type": "message", "content": [said], "stop_reason": "end_turn"}
    for one in (whole_of(path, '{"query": "printing"}'), last):
        stage.up.reply_with(RawResponse(200, headers, pack(json.dumps(one).encode())))
    got = stage.gateway.ask(*asked(path, tree, streams=False))
    assert [one.header("accept-encoding") for one in stage.up.requests] == ["identity"] * 2
    assert "found printing" in json.dumps(stage.up.requests[-1].json)
    assert (got.header("content-encoding"), got.json["content"][-1]) == ("", said)
    assert "tool_use" not in got.body.decode()


@pytest.mark.parametrize("encoding", PACKED)
def test_compressed_stream_is_decoded_and_continued(stage, encoding):
    call = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"query": "printing"}'}
    told: list[Json] = [
        {"type": "message_start", "message": {"type": "message", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    stream = PACKED[encoding](b"".join(sse.write(one, one["type"]) for one in told))
    headers = {"content-type": "text/event-stream", "content-encoding": encoding}
    stage.up.reply_with(RawResponse(200, headers, stream), ModelReply("Blue."))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    got = ask(stage, client)
    assert not got
    assert "Blue." in json.dumps(client.history[-1])
    assert "toolu_1" not in json.dumps(client.history[-1])
    assert "found printing" in json.dumps(stage.up.requests[-1].json)


def test_compressed_error_is_decoded(stage):
    path, tree = ASKED[0]
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}}
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    packed = gzip.compress(json.dumps(error).encode())
    stage.up.reply_with(ModelReply("I search.", LOOK), RawResponse(429, headers, packed))
    got = stage.gateway.ask(*asked(path, tree, streams=True))
    assert "Slow down." in got.body.decode()


def test_response_in_an_unknown_encoding_is_unchanged(stage):
    path, tree = ASKED[0]
    headers = {"content-type": "application/json", "content-encoding": "compress"}
    stage.up.reply_with(RawResponse(200, headers, b"\x1f\x9d"))
    got = stage.gateway.ask(*asked(path, tree, streams=False))
    assert (got.status, got.header("content-encoding"), got.body) == (200, "compress", b"\x1f\x9d")


DEEP = '{"query":' + "[" * 900 + "]" * 900 + "}"


def whole_of(path: str, written: str) -> Json:
    """Return an answer that calls recall with these arguments, read where the wire has it so."""
    try:
        read = json.loads(written)
    except ValueError:
        read = None
    if path == "/v1/messages":
        call: Json = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": read}
        return {"type": "message", "content": [call], "stop_reason": "tool_use"}
    function = {"name": "recall", "arguments": written}
    if path == "/v1/responses":
        call = {"type": "function_call", "call_id": "call_1", "status": "completed", **function}
        return {"id": "resp_1", "status": "completed", "output": [call]}
    if path == "/v1/chat/completions":
        calls = [{"id": "call_1", "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    parts = [{"functionCall": {"name": "recall", "args": read}}]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}


@pytest.mark.parametrize("written", ['["x"]', '"x"', "null", '{"query":', DEEP])
@pytest.mark.parametrize(("path", "tree"), ASKED)
def test_arguments_that_are_no_object_fail_the_search(stage, path, tree, written):
    def search(call: RecallCall) -> str:
        assert call.arguments == {}
        return "query is needed"

    stage.memory.search = search
    whole = json.dumps(whole_of(path.partition("?")[0], written)).encode()
    json_headers = {"content-type": "application/json"}
    stage.up.reply_with(RawResponse(200, json_headers, whole), ModelReply("Then without."))
    got = stage.gateway.ask(*asked(path, tree, streams=False))
    assert got.status == 200
    assert "Then without." in got.body.decode()
    assert stage.up.rejected == []
    assert "query is needed" in json.dumps(stage.up.requests[-1].json)


@pytest.mark.parametrize("written", ['["x"]', "null", '{"query":', DEEP])
def test_streamed_arguments_that_are_no_object_fail_the_search(stage, written):
    stage.memory.search = lambda _call: "query is needed"
    call = {"type": "tool_use", "id": "toolu_1", "name": "recall", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": written}
    told: list[Json] = [
        {"type": "message_start", "message": {"type": "message", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    stream = b"".join(sse.write(one, one["type"]) for one in told)
    headers = {"content-type": "text/event-stream"}
    stage.up.reply_with(
        RawResponse(200, headers, stream), ModelReply("Then without."), ModelReply("Bye.")
    )
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    client.say("Thanks.")
    ask(stage, client)
    assert stage.up.rejected == []
    before, after = (one.json["messages"] for one in stage.up.requests[-2:])
    assert after[: len(before)] == before
    assert "query is needed" in json.dumps(before)


def test_failing_search_is_reported_to_the_model(stage):
    def search(_call: RecallCall) -> str:
        raise RecursionError

    stage.memory.search = search
    stage.up.reply_with(ModelReply(LOOK), ModelReply("Then without."))
    client = MessagesClient(streams=True)
    client.say("How do we print?")
    ask(stage, client)
    assert "could not be searched" in json.dumps(stage.up.requests[-1].json)
