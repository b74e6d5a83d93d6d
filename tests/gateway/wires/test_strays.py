"""Streams that are not as the documentation has them: what is no call of recall passes as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lore.gateway import events
from lore.gateway.wires.registry import WIRES
from lore.gateway.wires.wire import Splice, Texts
from lore.records.dialogues import Pins, Plan
from tests.gateway.wires.driving import RECALL, make_ids

Json = dict[str, Any]
ASKED: dict[str, Json] = {
    "chat": {"messages": [{"role": "user", "content": "Hm?"}]},
    "responses": {"store": False, "input": [{"role": "user", "content": "Hm?"}]},
}
ITEM = {"type": "message", "id": "m1", "role": "assistant", "content": []}
LOOK = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "recall", "arguments": "{}"}
CALLED = {"name": "recall", "arguments": "{}"}
READ = {"name": "Read", "arguments": "{}"}


def opened(wire: str) -> Splice:
    body = json.dumps({"model": "m", "stream": True, **ASKED[wire]}).encode()
    request = WIRES[wire].read(body)
    sent = WIRES[wire].rewrite(request, Plan(0, Pins()), Texts(recall=RECALL))
    return WIRES[wire].open_splice(request, sent, RECALL, make_ids())


def chunk(delta: Json, stop: str | None = None) -> Json:
    return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]}


def item(kind: str, told: Json, at: int = 0) -> Json:
    return {"type": f"response.output_item.{kind}", "output_index": at, "item": told}


def ended(*output: Json) -> Json:
    response = {"id": "r", "status": "completed", "output": list(output), "usage": {}}
    return {"type": "response.completed", "response": response}


def streamed(told: list[Json]) -> bytes:
    return b"".join(events.write(one, one.get("type", "")) for one in told)


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
    splice, stream = opened(wire), streamed(told)
    passed = b"".join(splice.feed(stream[at : at + cut]) for at in range(0, len(stream), cut))
    assert passed + splice.pause() == stream
    assert splice.calls == ()


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
    splice = opened(wire)
    shown = splice.feed(streamed(told)) + splice.pause()
    assert len(splice.calls) == 1
    assert b"function_call" not in shown
    assert splice.goes_on
    splice.answer({splice.calls[0].id: "found"})
    assert b"found" in splice.follow_up()


def test_calls_without_numbers_are_told_apart_by_their_order():
    splice = opened("chat")
    calls = [{"id": "a", "function": CALLED}, {"id": "b", "function": READ}]
    shown = splice.feed(streamed([chunk({"tool_calls": calls}), chunk({}, "tool_calls")]))
    assert [call.id for call in splice.calls] == ["a"]
    assert b"Read" in shown
    assert not splice.goes_on


def test_a_call_without_an_id_does_not_break_the_answer():
    splice = opened("responses")
    nameless = {name: value for name, value in LOOK.items() if name != "call_id"}
    splice.feed(streamed([item("added", ITEM), item("done", ITEM), item("done", nameless, 1)]))
    splice.feed(streamed([ended(ITEM, nameless)]))
    splice.pause()
    splice.answer({})
    assert json.loads(splice.follow_up())["input"][1] == ITEM
