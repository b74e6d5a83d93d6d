"""Streams that differ from the documentation: all but recall calls passes unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway import sse
from lore.gateway.apis import ADAPTERS
from lore.gateway.apis.adapter import PromptAdditions
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.records.gateway import Plan, PromptState
from tests.gateway.apis.rewriter_driver import RECALL, make_ids

Json = dict[str, Any]
ASKED: dict[str, Json] = {
    "chat": {"messages": [{"role": "user", "content": "Hm?"}]},
    "responses": {"store": False, "input": [{"role": "user", "content": "Hm?"}]},
}
ITEM = {"type": "message", "id": "m1", "role": "assistant", "content": []}
LOOK = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "recall", "arguments": "{}"}
CALLED = {"name": "recall", "arguments": "{}"}
READ = {"name": "Read", "arguments": "{}"}


def opened(wire: str) -> StreamRewriter:
    body = json.dumps({"model": "m", "stream": True, **ASKED[wire]}).encode()
    request = ADAPTERS[wire].parse_request(body)
    sent = ADAPTERS[wire].rewrite_request(
        request, Plan(0, PromptState()), PromptAdditions(recall_tool=RECALL)
    )
    return ADAPTERS[wire].open_rewriter(request, sent, RECALL, make_ids())


def chunk(delta: Json, stop: str | None = None) -> Json:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def item(kind: str, told: Json, at: int = 0) -> Json:
    return {"type": f"response.output_item.{kind}", "output_index": at, "item": told}


def ended(*output: Json) -> Json:
    response = {"id": "r", "status": "completed", "output": list(output), "usage": {}}
    return {"type": "response.completed", "response": response}


def streamed(told: list[Json]) -> bytes:
    return b"".join(sse.write(one, one.get("type", "")) for one in told)


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ("chat", [chunk({"content": "a", "tool_calls": None}), chunk({}, "stop")]),
        ("chat", [chunk({"tool_calls": "x"}), chunk({"tool_calls": [None]}), chunk({}, "stop")]),
        ("chat", [chunk({"tool_calls": [{"id": "a", "function": READ}]}), chunk({}, "tool_calls")]),
        ("responses", [item("done", ITEM), ended(ITEM)]),
        ("responses", [item("added", ITEM), item("done", ITEM), ended(ITEM)]),
        ("responses", [{"type": "response.x.delta", "output_index": 4, "delta": "{}"}, ended()]),
    ],
)
@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_what_is_no_call_of_recall_passes_as_it_is(wire: str, told: list[Json], cut: int):
    rewriter, stream = opened(wire), streamed(told)
    passed = b"".join(rewriter.feed(stream[at : at + cut]) for at in range(0, len(stream), cut))
    assert passed + rewriter.end_response() == stream
    assert rewriter.pending_calls == ()


@pytest.mark.parametrize(
    ("wire", "told"),
    [
        ("chat", [chunk({"tool_calls": [{"id": "a", "function": CALLED}]}, "tool_calls")] * 2),
        ("responses", [item("added", LOOK), item("done", LOOK), item("done", LOOK), ended(LOOK)]),
        ("responses", [item("done", LOOK), ended(LOOK)]),
        ("responses", [item("added", LOOK), ended(LOOK)]),
        ("responses", [ended(LOOK)]),
    ],
)
def test_a_call_that_is_told_in_whatever_way_is_one_search(wire: str, told: list[Json]):
    rewriter = opened(wire)
    shown = rewriter.feed(streamed(told)) + rewriter.end_response()
    assert len(rewriter.pending_calls) == 1
    assert b"function_call" not in shown
    assert rewriter.needs_follow_up
    rewriter.add_results({rewriter.pending_calls[0].id: "found"})
    assert b"found" in rewriter.follow_up_body()


def test_calls_without_numbers_are_told_apart_by_their_order():
    rewriter = opened("chat")
    calls = [{"id": "a", "function": CALLED}, {"id": "b", "function": READ}]
    shown = rewriter.feed(streamed([chunk({"tool_calls": calls}), chunk({}, "tool_calls")]))
    assert [call.id for call in rewriter.pending_calls] == ["a"]
    assert b"Read" in shown
    assert not rewriter.needs_follow_up


@pytest.mark.parametrize("place", [{"index": 0}, {}])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("in_pieces", [True, False])
@pytest.mark.parametrize("order", [["recall", "Read"], ["Read", "recall"], ["recall", "recall"]])
def test_a_new_id_or_name_in_a_known_place_is_another_call(place, named, in_pieces, order):
    if not named and order[0] == order[1]:
        pytest.skip("nothing tells them apart")
    told: list[Json] = [chunk({"role": "assistant", "content": ""})]
    for number, name in enumerate(order):
        given = json.dumps({"query" if name == "recall" else "path": f"{number}"})
        pieces = [given[:4], given[4:]] if in_pieces else [given]
        begun: Json = {**place, "type": "function", "function": {"name": name, "arguments": ""}}
        begun |= {"id": f"id{number}"} if named else {}
        told.append(chunk({"tool_calls": [begun]}))
        told += [
            chunk({"tool_calls": [{**place, "function": {"arguments": one}}]}) for one in pieces
        ]
    stream = streamed([*told, chunk({}, "stop")])
    rewriter = opened("chat")
    shown = rewriter.feed(stream) + rewriter.end_response()
    assert [call.arguments for call in rewriter.pending_calls] == [
        {"query": f"{number}"} for number, name in enumerate(order) if name == "recall"
    ]
    deltas = [one["choices"][0]["delta"] for one in sse.documents(shown)]
    theirs = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert {call["function"].get("name") for call in theirs} <= {"Read", None}
    given = "".join(call["function"]["arguments"] for call in theirs)
    assert given == "".join(
        json.dumps({"path": f"{number}"}) for number, name in enumerate(order) if name == "Read"
    )
    assert rewriter.needs_follow_up == ("Read" not in order)
    assert all(call.get("index", 0) == 0 for call in theirs)


def test_a_call_of_the_client_has_the_number_that_it_has_without_ours():
    rewriter = opened("chat")
    names = ["Read", "recall", "Bash", "recall", "Edit"]
    calls = [
        {"index": at, "id": f"id{at}", "function": {"name": name, "arguments": "{}"}}
        for at, name in enumerate(names)
    ]
    told = [chunk({"tool_calls": [call]}) for call in calls]
    shown = rewriter.feed(streamed([*told, chunk({}, "tool_calls")]))
    deltas = [one["choices"][0]["delta"] for one in sse.documents(shown)]
    theirs = [call for delta in deltas for call in delta.get("tool_calls", [])]
    assert [(one["index"], one["function"]["name"]) for one in theirs] == [
        (0, "Read"),
        (1, "Bash"),
        (2, "Edit"),
    ]


def test_a_call_without_an_id_does_not_break_the_answer():
    rewriter = opened("responses")
    nameless = {name: value for name, value in LOOK.items() if name != "call_id"}
    rewriter.feed(streamed([item("added", ITEM), item("done", ITEM), item("done", nameless, 1)]))
    rewriter.feed(streamed([ended(ITEM, nameless)]))
    rewriter.end_response()
    rewriter.add_results({})
    assert json.loads(rewriter.follow_up_body())["input"][1] == ITEM
