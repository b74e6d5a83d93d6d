"""The scripted upstream rejects what the real APIs reject, and counts what they count."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.upstream import (
    Call,
    ModelError,
    ModelReply,
    RawResponse,
    ScriptedResponse,
    Text,
    Thought,
    Upstream,
    running_upstream,
)
from tests.upstream.prompt_cache import PromptUsage
from tests.upstream.script import sign


@pytest.fixture(scope="module")
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


def post(up: Upstream, path: str, tree: object) -> tuple[int, bytes]:
    request = urllib.request.Request(
        up.url + path, json.dumps(tree).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content) if len(content) != 1 else content[0]}


def assistant(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content) if len(content) != 1 else content[0]}


def system(text: str = "Mind the time.") -> dict[str, Any]:
    return {"role": "system", "content": text}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(id: str, name: str = "Read") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def result(id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "done"}


def thought(words: str, signature: str | None = None) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature or sign(words)}


BREAK = {"cache_control": {"type": "ephemeral"}}
TOOLS = [{"name": "Read", "input_schema": {"type": "object"}}]


def many(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return list(blocks)


@pytest.mark.parametrize(
    "messages",
    [
        [user("Hi")],
        [user("Hi"), user("Hello?")],
        [user("Hi"), system()],
        [user("Hi"), system(), system(), assistant("Yes"), user("Go")],
        [user("Hi"), assistant(many(use("a"), use("b"))), user(many(result("b"), result("a")))],
        [user("Hi"), assistant(many(use("a"))), user(many(result("a"))), user("And?")],
        [user("Hi"), assistant(many(use("a"))), user(many(result("a"))), system()],
        [user("Hi"), assistant(many(thought("so"), text("Yes"))), user("Go")],
        [user(many(text("Hi", **BREAK)))] * 4,
    ],
)
def test_anthropic_accepts_valid_messages(up: Upstream, messages: list[Any]):
    asked = {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": messages}
    status, body = post(up, "/v1/messages", asked)
    assert status == 200, body


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "at least one message"),
        ([assistant("Hi")], "first message"),
        ([system(), user("Hi")], "first message"),
        ([user("Hi"), system(), user("Hello?")], "precede an 'assistant'"),
        ([user("Hi"), assistant("Yes"), system(), user("Go")], "follow a 'user'"),
        ([user(many(text("")))], "non-whitespace"),
        ([user(" ")], "non-whitespace"),
        ([user("")], "non-empty"),
        ([user("Hi"), assistant(many(use("a")))], "without `tool_result`"),
        ([user("Hi"), assistant(many(use("a"))), user("And?")], "without `tool_result`"),
        (
            [user("Hi"), assistant(many(use("a"))), user(many(text("See"), result("a")))],
            "without `tool_result`",
        ),
        ([user("Hi"), assistant("Yes"), user(many(result("a")))], "unexpected `tool_use_id`"),
        (
            [user("Hi"), assistant(many(use("a"))), user(many(result("a"), result("a")))],
            "single result",
        ),
        (
            [user("Hi"), *[assistant(many(use("a"))), user(many(result("a")))] * 2],
            "must be unique",
        ),
        ([user("Hi"), assistant(many(thought("so", sign("other")))), user("Go")], "signature"),
        ([user(many(text("Hi", **BREAK)))] * 5, "A maximum of 4"),
        ([user(many(text("Hi", colour="red")))], "Extra inputs"),
        (
            [
                user(many(text("Hi", **BREAK))),
                user(many(text("Ho", cache_control={"type": "ephemeral", "ttl": "1h"}))),
            ],
            "must not come after",
        ),
    ],
)
def test_anthropic_rejects_invalid_messages(up: Upstream, messages: list[Any], message: str):
    asked = {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": messages}
    status, body = post(up, "/v1/messages", asked)
    assert status == 400
    assert message in json.loads(body)["error"]["message"]
    assert up.requests[-1].problem


def test_anthropic_rejects_calls_without_tool_definitions(up: Upstream):
    messages = [user("Hi"), assistant(many(use("a"))), user(many(result("a")))]
    status, body = post(up, "/v1/messages", {"model": "m", "max_tokens": 9, "messages": messages})
    assert status == 400
    assert "must define tools" in json.loads(body)["error"]["message"]


def test_anthropic_rejects_a_changed_thought_before_a_call():
    def once(blocks: list[Any]) -> int:
        script = [
            ModelReply(Thought("First I read."), Call("Read", id="toolu_1")),
            ModelReply("Done."),
        ]
        with running_upstream(script) as up:
            asked = {
                "model": "m",
                "max_tokens": 4096,
                "thinking": {"type": "enabled", "budget_tokens": 2048},
                "tools": TOOLS,
                "messages": [user("Hi")],
            }
            first = json.loads(post(up, "/v1/messages", asked)[1])
            asked["messages"] = [
                user("Hi"),
                assistant(blocks if blocks else first["content"]),
                user(many(result("toolu_1"))),
            ]
            return post(up, "/v1/messages", asked)[0]

    assert once([]) == 200
    assert once(many(use("toolu_1"))) == 400
    assert once(many(thought("Else."), use("toolu_1"))) == 400


def chat_call(*ids: str) -> dict[str, Any]:
    calls = [
        {"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "done"}


@pytest.mark.parametrize(
    ("messages", "status"),
    [
        ([user("Hi")], 200),
        ([user("Hi"), chat_call("a", "b"), chat_result("b"), chat_result("a")], 200),
        ([user("Hi"), chat_call("a")], 400),
        ([user("Hi"), chat_call("a"), user("And?"), chat_result("a")], 400),
        ([user("Hi"), chat_result("a")], 400),
        ([user("Hi"), {"role": "assistant", "content": None}], 400),
        ([], 400),
    ],
)
def test_chat_requires_a_result_for_each_call(up: Upstream, messages: list[Any], status: int):
    assert post(up, "/v1/chat/completions", {"model": "m", "messages": messages})[0] == status


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sign("")}
FUNCTION = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "done"}


@pytest.mark.parametrize(
    ("items", "status"),
    [
        ("Hi", 200),
        ([user("Hi"), REASONING, FUNCTION, OUTPUT], 200),
        ([user("Hi"), FUNCTION, user("And?"), OUTPUT], 200),
        ([user("Hi"), FUNCTION], 400),
        ([user("Hi"), OUTPUT], 400),
        ([user("Hi"), REASONING], 400),
        ([user("Hi"), REASONING, user("And?")], 400),
        ([user("Hi"), {**REASONING, "encrypted_content": "sealedx"}, FUNCTION, OUTPUT], 400),
    ],
)
def test_responses_require_results_and_reasoning(up: Upstream, items: Any, status: int):
    assert post(up, "/v1/responses", {"model": "m", "input": items})[0] == status


def test_responses_reject_a_call_without_its_reasoning():
    with running_upstream([
        ModelReply(Thought("so"), Call("f", id="c")),
        ModelReply("Done."),
    ]) as up:
        first = json.loads(post(up, "/v1/responses", {"model": "m", "input": "Hi"})[1])["output"]
        assert [item["type"] for item in first] == ["reasoning", "function_call"]
        again = {"model": "m", "input": [user("Hi"), first[1], OUTPUT]}
        assert post(up, "/v1/responses", again)[0] == 400
        again = {"model": "m", "input": [user("Hi"), *first, OUTPUT]}
        assert post(up, "/v1/responses", again)[0] == 200


def parts(role: str, *given: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(given)}


GREETED = parts("user", {"text": "Hi"})
CALLED = {"functionCall": {"name": "f", "args": {}}}
RESPONDED = {"functionResponse": {"name": "f", "response": {"ok": True}}}


@pytest.mark.parametrize(
    ("contents", "status"),
    [
        ([parts("user", {"text": "Hi"})], 200),
        ([parts("user", {"text": "Hi"}), parts("model", CALLED), parts("user", RESPONDED)], 200),
        ([GREETED, parts("model", CALLED), parts("user", {"text": "?"})], 400),
        ([GREETED, parts("model", {"text": "Yes"}), parts("user", RESPONDED)], 400),
        ([parts("user", {"text": "Hi"}), parts("user", {"text": "Hi"})], 200),
        ([parts("model", {"text": "Hi"})], 400),
        ([parts("user")], 400),
        ([], 400),
    ],
)  # fmt: skip
def test_gemini_requires_a_first_user_turn_and_results(
    up: Upstream, contents: list[Any], status: int
):
    assert post(up, "/v1beta/models/g:generateContent", {"contents": contents})[0] == status


def long_text(number: int) -> str:
    return f"part {number} " * 1000


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def prompt(*messages: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages)}


def test_a_prefix_up_to_a_breakpoint_is_cached_until_it_expires():
    clock = Time()
    with running_upstream(clock=clock) as up:
        first = prompt(user(many(text(long_text(1), **BREAK))))
        post(up, "/v1/messages", first)
        written = up.requests[-1].usage
        assert written.read == 0
        assert written.written_5m > 1500
        second = prompt(
            user(many(text(long_text(1)))),
            assistant("Yes"),
            user(many(text(long_text(2), **BREAK))),
        )
        post(up, "/v1/messages", second)
        assert up.requests[-1].usage.read == written.written_5m
        assert up.requests[-1].usage.written_5m > 1500
        clock.now += 301
        post(up, "/v1/messages", second)
        assert up.requests[-1].usage.read == 0


def test_a_prefix_with_ttl_1h_is_cached_for_an_hour():
    clock = Time()
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    with running_upstream(clock=clock) as up:
        post(up, "/v1/messages", prompt(user(many(text(long_text(1), **hour)))))
        assert up.requests[-1].usage.written_1h > 1500
        clock.now += 3000
        post(
            up,
            "/v1/messages",
            prompt(user(many(text(long_text(1), **hour))), assistant("Yes"), user("Go")),
        )
        assert up.requests[-1].usage.read > 1500
        post(up, "/v1/messages", prompt(user(many(text(long_text(2), **hour)))))
        assert up.requests[-1].usage.read == 0


def test_a_short_prefix_is_not_cached():
    with running_upstream() as up:
        for _ in range(2):
            post(up, "/v1/messages", prompt(user(many(text("short", **BREAK)))))
        assert up.requests[-1].usage == PromptUsage(up.requests[-1].usage.total)


def test_openai_caches_a_long_prefix_automatically():
    with running_upstream() as up:
        asked = {"model": "m", "messages": [user(long_text(1))]}
        post(up, "/v1/chat/completions", asked)
        told = json.loads(post(up, "/v1/chat/completions", asked)[1])["usage"]
        cached = told["prompt_tokens_details"]["cached_tokens"]
        assert 0 < cached <= told["prompt_tokens"]
        assert cached % 128 == 0
        asked = {"model": "m", "messages": [user("x"), user(long_text(1))]}
        told = json.loads(post(up, "/v1/chat/completions", asked)[1])["usage"]
        assert told["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_prompt_longer_than_the_window_is_rejected():
    with running_upstream(window_tokens=100) as up:
        status, body = post(up, "/v1/messages", prompt(user(long_text(1))))
        assert status == 400
        assert "prompt is too long" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    ("path", "tree"),
    [
        ("/v1/messages", {**prompt(user("Hi")), "stream": True}),
        ("/v1/chat/completions", {"model": "m", "messages": [user("Hi")], "stream": True}),
        ("/v1/responses", {"model": "m", "input": "Hi", "stream": True}),
        ("/v1beta/models/g:streamGenerateContent?alt=sse", {"contents": [GREETED]}),
    ],
)  # fmt: skip
def test_every_api_streams_text_thoughts_and_calls(path: str, tree: Any):
    says = ModelReply(Thought("Hm."), Text("I will read."), Call("Read", {"path": "a.py"}))
    with running_upstream([says]) as up:
        status, body = post(up, path, tree)
        assert status == 200
        events = [
            json.loads(line[6:])
            for line in body.decode().splitlines()
            if line.startswith("data: {")
        ]
        assert len(events) >= 3
        assert "I will read." in body.decode()
        assert up.requests[0].outcome == "complete"


def test_the_script_can_send_errors_and_raw_responses():
    script: list[ScriptedResponse] = [
        ModelError(529, "overloaded_error", "Overloaded", {"retry-after": "3"}),
        RawResponse(418),
    ]
    with running_upstream(script) as up:
        assert post(up, "/v1/messages", prompt(user("Hi")))[0] == 529
        assert post(up, "/v1/messages", prompt(user("Hi")))[0] == 418
        assert post(up, "/v1/messages", prompt(user("Hi")))[0] == 200
        assert len(up.model_requests) == 3
