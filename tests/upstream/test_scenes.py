"""The scripted upstream with scenes: replies, faults, and what it records."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.clients.conversation import read_exchanges
from tests.upstream import (
    Call,
    Fault,
    ModelReply,
    Result,
    Scene,
    SceneScript,
    Thought,
    Upstream,
    running_upstream,
)

Json = dict[str, Any]

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
LOOK = Call("look", {"at": "the sky"})
OVERLOADED = Fault(status=529, times=2, message="Overloaded", headers=(("retry-after", "1"),))


def repeat_result(results: tuple[Result, ...]) -> ModelReply:
    return ModelReply(f"I saw: {results[0].text}" if results else "")


SCENES = (
    Scene("You name talks", (ModelReply("A name"),), "client", "system"),
    Scene("look up", (ModelReply(Thought("Up."), "Looking.", LOOK), repeat_result)),
    Scene("be busy", (ModelReply("Here.", fault=OVERLOADED),)),
    Scene("break off", (ModelReply("A long answer", fault=Fault(cut_after_events=3)),)),
    Scene(
        "fail inside",
        (ModelReply("A long answer", fault=Fault(status=529, cut_after_events=3, times=9)),),
    ),
    Scene("be limited", (ModelReply("Here.", headers={"x-limit": "3"}),)),
    Scene("fill up", (ModelReply("Full.", input_tokens=180_000),)),
)


@pytest.fixture
def script():
    return SceneScript(SCENES)


@pytest.fixture
def upstream(script):
    with running_upstream(script) as running:
        yield running


def post(upstream: Upstream, path: str, body: Json) -> tuple[int, bytes]:
    request = urllib.request.Request(
        upstream.url + path,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer secret"},
    )
    try:
        with DIRECT.open(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def events(raw: bytes) -> list[Json]:
    data = [line[6:] for line in raw.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]


def messages(*sent: Json, **more: Any) -> Json:
    return {"model": "m", "max_tokens": 100, "tools": TOOLS, "messages": list(sent), **more}


def user(content: object) -> Json:
    return {"role": "user", "content": content}


def use(call_id: str) -> Json:
    block = {"type": "tool_use", "id": call_id, "name": "look", "input": {}}
    return {"role": "assistant", "content": [block]}


def result(call_id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "stars"}


MARKED = {"type": "text", "text": "look up", "cache_control": {"type": "ephemeral"}}


def test_a_messages_stream_has_the_whole_reply(upstream):
    body = messages(user("look up"), thinking={"type": "adaptive"})
    whole = json.loads(post(upstream, "/v1/messages", body)[1])
    said = events(post(upstream, "/v1/messages", {**body, "stream": True})[1])
    deltas = [one["delta"] for one in said if one["type"] == "content_block_delta"]
    assert "".join(one.get("text", "") for one in deltas) == "Looking."
    assert "".join(one.get("thinking", "") for one in deltas) == "Up."
    assert json.loads("".join(one.get("partial_json", "") for one in deltas)) == LOOK.arguments
    assert [block["type"] for block in whole["content"]] == ["thinking", "text", "tool_use"]
    assert said[-1] == {"type": "message_stop"}
    assert said[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"


def test_a_responses_stream_ends_with_the_whole_reply(upstream):
    body = {"model": "m", "input": "look up", "reasoning": {}, "stream": True}
    said = events(post(upstream, "/v1/responses", body)[1])
    assert [one["sequence_number"] for one in said] == list(range(len(said)))
    done = said[-1]["response"]["output"]
    assert [one["type"] for one in done] == ["reasoning", "message", "function_call"]
    assert [one["item"] for one in said if one["type"] == "response.output_item.done"] == done


def test_a_chat_stream_has_usage_only_when_asked(upstream):
    body = {"model": "m", "messages": [user("look up")], "stream": True}
    said = events(post(upstream, "/v1/chat/completions", body)[1])
    assert not any("usage" in one for one in said)
    body["stream_options"] = {"include_usage": True}
    said = events(post(upstream, "/v1/chat/completions", body)[1])
    assert said[-1]["usage"]["prompt_tokens"] > 0
    assert said[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_reply_can_use_the_result_of_a_tool(upstream):
    body = messages(user("look up"), use("t1"), user([result("t1")]))
    reply = json.loads(post(upstream, "/v1/messages", body)[1])
    assert reply["content"] == [{"type": "text", "text": "I saw: stars"}]


@pytest.mark.parametrize(
    "sent",
    [
        [{"role": "assistant", "content": "I begin"}],
        [user("look up"), use("t1"), user("and?")],
        [user("look up"), use("t1")],
        [user("look up"), user([result("t1")])],
        [user("look up"), use("t1"), user([result("t1")]), use("t1"), user([result("t1")])],
        [user([{"type": "text", "text": ""}])],
        [
            user("look up"),
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "x", "signature": "forged"}],
            },
            user("look up"),
        ],
        [user([MARKED] * 5)],
    ],
    ids=[
        "assistant first",
        "call without result",
        "call at the end",
        "result without call",
        "id twice",
        "empty text",
        "forged thinking",
        "five breakpoints",
    ],
)
def test_invalid_messages_are_rejected(upstream, sent):
    status, raw = post(upstream, "/v1/messages", messages(*sent))
    assert status == 400
    assert json.loads(raw)["error"]["type"] == "invalid_request_error"
    assert len(upstream.problems()) == 1


@pytest.mark.parametrize("raw", [b"{", b"[]", b"{}"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens", "/v1/responses"])
def test_an_invalid_body_is_rejected(upstream, path, raw):
    with pytest.raises(urllib.error.HTTPError, match="400") as caught:
        DIRECT.open(urllib.request.Request(upstream.url + path, raw))
    caught.value.close()


def test_results_may_come_in_another_order_than_the_calls(upstream):
    both = {"role": "assistant", "content": [*use("t1")["content"], *use("t2")["content"]]}
    body = messages(user("be busy"), both, user([result("t2"), result("t1")]), user("fill up"))
    assert post(upstream, "/v1/messages", body)[0] == 200


def test_responses_and_chat_reject_a_call_without_its_result(upstream):
    call = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    body = {"model": "m", "input": [user("look up"), call]}
    assert post(upstream, "/v1/responses", body)[0] == 400
    made = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [made]}
    body = {"model": "m", "messages": [user("look up"), asked, user("and?")]}
    assert post(upstream, "/v1/chat/completions", body)[0] == 400


def test_a_fault_ends_after_its_times(upstream):
    body = messages(user("be busy"))
    assert [post(upstream, "/v1/messages", body)[0] for _ in range(3)] == [529, 529, 200]


def test_a_cut_stream_has_no_end(upstream):
    body = messages(user("break off"), stream=True)
    with pytest.raises(http.client.IncompleteRead):
        post(upstream, "/v1/messages", body)
    assert events(post(upstream, "/v1/messages", body)[1])[-1] == {"type": "message_stop"}
    assert [one.outcome for one in upstream.requests] == ["cut", "complete"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
def test_an_error_can_come_inside_the_stream(upstream, path):
    body = {**messages(user("fail inside"), stream=True), "input": "fail inside"}
    reply = events(post(upstream, path, body)[1])
    assert len(reply) == 4
    assert "error" in json.dumps(reply[-1])


def test_a_reply_has_the_headers_of_the_script(upstream):
    body = json.dumps(messages(user("be limited"))).encode()
    with DIRECT.open(urllib.request.Request(upstream.url + "/v1/messages", body)) as answer:
        assert answer.headers["x-limit"] == "3"
        assert answer.headers["request-id"].startswith("req_")


def test_a_cached_prefix_is_read_and_not_written_again(upstream):
    mark = {"cache_control": {"type": "ephemeral"}}
    system = [{"type": "text", "text": "rules " * 1000, **mark}]
    first = messages(user("look up"), system=system)
    one = json.loads(post(upstream, "/v1/messages", first)[1])["usage"]
    two = json.loads(post(upstream, "/v1/messages", messages(user("fill up"), system=system))[1])
    again = json.loads(post(upstream, "/v1/messages", first)[1])["usage"]
    assert one["cache_creation_input_tokens"] == again["cache_read_input_tokens"] > 1000
    assert one["cache_read_input_tokens"] == again["cache_creation_input_tokens"] == 0
    assert sum(two["usage"][name] for name in two["usage"] if name.endswith("input_tokens")) == (
        180_000
    )


def test_tokens_are_counted_as_a_request_would_be_billed(upstream):
    body = messages(user("look up"))
    counted = json.loads(post(upstream, "/v1/messages/count_tokens", body)[1])["input_tokens"]
    usage = json.loads(post(upstream, "/v1/messages", body)[1])["usage"]
    assert usage["input_tokens"] == counted


def test_a_request_of_the_client_is_recognised_by_its_system_prompt(upstream, script):
    body = messages(user("look up"), system="You name talks.")
    assert json.loads(post(upstream, "/v1/messages", body)[1])["content"][0]["text"] == "A name"
    assert read_exchanges(upstream, script)[0].speaker == "client"


def test_a_request_without_a_scene_is_an_error(upstream):
    assert post(upstream, "/v1/messages", messages(user("sing")))[0] == 400
    assert upstream.problems() == ["1 /v1/messages: no scene has this prompt"]


def test_an_exchange_has_the_request_and_the_reply_but_no_key(upstream, script):
    post(upstream, "/v1/messages", messages(user("look up")))
    (exchange,) = read_exchanges(upstream, script)
    assert exchange.body
    assert exchange.body["messages"] == [user("look up")]
    assert exchange.headers["authorization"] == "hidden"
    assert exchange.reply
    assert exchange.reply["calls"][0]["input"] == LOOK.arguments


def test_a_websocket_is_answered_with_426_and_a_tunnel_with_403(upstream):
    host = upstream.url.removeprefix("http://")
    line = http.client.HTTPConnection(host)
    line.request("GET", "/v1/responses", headers={"Upgrade": "websocket"})
    assert line.getresponse().status == 426
    line.close()
    tunnel = http.client.HTTPConnection(host)
    tunnel.set_tunnel("example.org", 443)
    with pytest.raises(OSError, match="403"):
        tunnel.request("GET", "/")
    tunnel.close()
    assert upstream.blocked_hosts() == ["example.org:443"]
