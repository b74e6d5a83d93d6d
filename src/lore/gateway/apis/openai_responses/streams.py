"""Responses of OpenAI's Responses API: parse, answer in place of the model, rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson

from lore.gateway import sse
from lore.gateway.apis import adapter, json_values, stream_rewriter
from lore.gateway.apis.adapter import (
    JSON_HEADERS,
    STREAM_HEADERS,
    MakeId,
    Reply,
    Request,
    Tool,
)
from lore.gateway.apis.json_values import Json, as_count, as_object, as_text
from lore.gateway.apis.openai_chat.streams import parse_error, usage_from_counts
from lore.gateway.apis.openai_responses.requests import (
    call_and_output,
    input_items,
    parse_entry,
    without_id,
)
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.gateway.plugin_protocol import LocalResponse
from lore.gateway.sse import Event
from lore.records.gateway import TokenUse

LOCAL_ID = "resp_lore"
"""Id of a response that the gateway writes."""

_DELTA_SUFFIX = ".delta"
"""Suffix of events that carry text of the model."""

_START_EVENTS = ("response.created", "response.queued", "response.in_progress")
_RUNNING_STATUSES = ("queued", "in_progress")
_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")


class ResponseAssembler:
    """Assembles a response from the events of its stream."""

    def __init__(self) -> None:
        self.items: dict[int, Json] = {}
        self.response: Json = {}
        self.error: Json = {}
        self.begun: Json = {}
        self.chars = 0

    def add_event(self, event: Json) -> None:
        """Add the next event."""
        kind, at = as_text(event.get("type")), event.get("output_index")
        if kind == "response.output_item.done" and isinstance(at, int):
            self.items[at] = as_object(event.get("item"))
        elif kind.endswith(_DELTA_SUFFIX):
            self.chars += len(as_text(event.get("delta")))
        elif kind in _START_EVENTS:
            self.begun = as_object(event.get("response"))
        elif kind in _END_EVENTS:
            self.response = as_object(event.get("response"))
            self.error = as_object(self.response.get("error"))
        elif kind == "error":
            self.error = as_object(event.get("error")) or event

    @property
    def output(self) -> list[Json]:
        """Return the items in order."""
        return [self.items[at] for at in sorted(self.items)]

    def reply(self) -> Reply:
        """Return the parsed response once it has ended or was cut off."""
        if self.error:
            use = parse_usage(as_object(self.response.get("usage")))
            fault, stop = parse_error(self.error), as_text(self.response.get("status"))
            return Reply(usage=use, stop_reason=stop, error=fault, chars=self.chars)
        reply = replace(_make_reply(self.output, self.response), chars=self.chars)
        is_running = self.begun.get("background") is True and not self.response
        return _in_background(reply, self.begun) if is_running else reply


def read_reply(body: bytes, *, streams: bool) -> Reply:
    """Parse a response, complete or cut off."""
    return adapter.read_stream(ResponseAssembler(), body) if streams else parse_reply(body)


def parse_reply(body: bytes) -> Reply:
    """Parse a response that is one JSON document."""
    response = json_values.read_object(body)
    error = as_object(response.get("error"))
    if error or "output" not in response:
        use, stop = parse_usage(as_object(response.get("usage"))), as_text(response.get("status"))
        return Reply(usage=use, stop_reason=stop, error=parse_error(error))
    reply = _make_reply(json_values.objects_in(response.get("output")), response)
    return _in_background(reply, response) if response.get("status") in _RUNNING_STATUSES else reply


def _in_background(reply: Reply, response: Json) -> Reply:
    return replace(reply, in_background=True, response_id=as_text(response.get("id")))


def _make_reply(items: list[Json], response: Json) -> Reply:
    why = as_object(response.get("incomplete_details")).get("reason")
    entry = parse_entry(items, {}) if items else None
    return Reply(
        entry,
        parse_usage(as_object(response.get("usage"))),
        as_text(why) or as_text(response.get("status")),
        chars=entry.chars if entry else 0,
        service_tier=as_text(response.get("service_tier")),
    )


def parse_usage(usage: Json) -> TokenUse:
    """Return the token usage."""
    return usage_from_counts(
        as_count(usage.get("input_tokens")),
        as_object(usage.get("input_tokens_details")),
        as_count(usage.get("output_tokens")),
    )


def answer_with_text(request: Request, text: str) -> LocalResponse:
    """Answer a request with a text in place of the model."""
    item = message_item("msg_lore", text)
    usage = {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }
    whole: Json = {
        "id": LOCAL_ID,
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": request.dialogue.model,
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    if not request.streams:
        return LocalResponse(200, JSON_HEADERS, orjson.dumps(whole))
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    event_list: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *message_events(0, item),
        {"type": "response.completed", "response": whole},
    ]
    chunks = [
        sse.write({**one, "sequence_number": number}, one["type"])
        for number, one in enumerate(event_list)
    ]
    return LocalResponse(200, STREAM_HEADERS, b"".join(chunks))


def message_item(item_id: str, text: str) -> Json:
    """Return a text as a message item."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    head = {"type": "message", "id": item_id, "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def message_events(at: int, item: Json) -> list[Json]:
    """Return the events of a message item."""
    (part,) = item["content"]
    place = {"item_id": item["id"], "output_index": at, "content_index": 0}
    begun = {**item, "status": "in_progress", "content": []}
    added = {**part, "text": ""}
    full_text = {"text": part["text"], "logprobs": []}
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        {"type": "response.content_part.added", **place, "part": added},
        {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []},
        {"type": "response.output_text.done", **place, **full_text},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]


class ResponseRewriter(StreamRewriter):
    """Stream rewriter for the Responses API.

    If the provider stores the history (`store`), clients refer to responses by id, and several
    cannot be joined into one: recall must not be offered there.
    """

    provider = "openai"

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._id = ""
        self._next_sequence_number = 0
        """The sequence number of the client's next event."""
        self._client_items: list[Json] = []
        """The items that the client has got."""
        self._next_index = 0

    def _start_round(self) -> None:
        super()._start_round()
        self._assembler = ResponseAssembler()
        self._client_indexes: dict[int, int] = {}
        self._withheld: set[int] = set()

    @property
    def _waits_for_results(self) -> bool:
        return self._assembler.response.get("status") == "completed"

    def _add_round(self, document: Json) -> None:
        document["input"] = [*input_items(document), *self._answered_items()]

    def _answered_items(self) -> Iterator[Json]:
        """Yield the items of the response, each recall call with its result."""
        answered = {as_text(one.call.get("call_id")): one for one in self._recall_calls.markers}
        for item in _replayable_items(self._assembler.output):
            if self._is_recall_call(item) and as_text(item.get("call_id")) in answered:
                yield from call_and_output(answered[as_text(item.get("call_id"))])
            else:
                yield item

    def _error_event(self, error: bytes) -> bytes:
        details = as_object(json_values.read_object(error).get("error"))
        code = details.get("code") or details.get("type")
        fields = {
            "code": code,
            "message": as_text(details.get("message")),
            "param": details.get("param"),
        }
        return self._write({"type": "error", **fields})

    def _write(self, document: Json) -> bytes:
        numbered = {**document, "sequence_number": self._next_sequence_number}
        self._next_sequence_number += 1
        return sse.write(numbered, as_text(document.get("type")))

    def _rewrite_event(self, event: Event) -> bytes:
        document = event.document()
        kind, at = as_text(document.get("type")), document.get("output_index")
        self._assembler.add_event(document)
        if isinstance(at, int):
            return self._rewrite_item(event, document, at)
        if not kind.startswith("response."):
            return event.raw
        if kind in _START_EVENTS:
            self._id = self._id or as_text(as_object(document.get("response")).get("id"))
            return b"" if self._round > 1 else self._pass_through(event)
        if self._assembler.response:
            self._usages.append(as_object(self._assembler.response.get("usage")))
            late_markers = self._late_markers()
            if not self._is_last_round:
                return late_markers
            if self._round > 1 or self._recall_calls:
                joined = self._join_responses(self._assembler.response)
                return late_markers + self._write({**document, "response": joined})
        return self._pass_through(event) if self._round == 1 else self._write(document)

    def _late_markers(self) -> bytes:
        """Return markers for calls that only the final event contains."""
        marked = b""
        for at, item in enumerate(json_values.objects_in(self._assembler.response.get("output"))):
            if (
                self._is_recall_call(item)
                and not self._recall_calls.has_call_at(at)
                and at not in self._assembler.items
            ):
                self._assembler.items[at] = item
                marked += self._marker_events(item, at)
        return marked

    def _pass_through(self, event: Event) -> bytes:
        self._next_sequence_number += 1
        return event.raw

    def _rewrite_item(self, event: Event, document: Json, at: int) -> bytes:
        kind, item = document.get("type"), as_object(document.get("item"))
        if kind == "response.output_item.added":
            if self._is_recall_call(item):
                self._withheld.add(at)
                return b""
            self._has_client_calls = self._has_client_calls or _is_client_call(item)
            self._client_indexes[at] = self._next_index
            self._next_index += 1
        if at in self._withheld or self._is_recall_call(item):
            return self._marker_events(item, at) if kind == "response.output_item.done" else b""
        if kind == "response.output_item.done":
            self._client_items.append(item)
        place = self._client_indexes.get(at, at)
        if place == at and self._next_sequence_number == document.get(
            "sequence_number", self._next_sequence_number
        ):
            return self._pass_through(event)
        return self._write({**document, "output_index": place})

    def _is_recall_call(self, item: Json) -> bool:
        return item.get("type") == "function_call" and item.get("name") == self._tool

    def _marker_events(self, item: Json, at: int) -> bytes:
        """Return the events of a marker for a call; a call that was cut off leaves nothing."""
        shown = {} if self._recall_calls.has_call_at(at) else self._add_marker(item, at)
        if not shown:
            return b""
        event_list = message_events(self._next_index, shown)
        self._next_index += 1
        return b"".join(map(self._write, event_list))

    def _add_marker(self, item: Json, at: int) -> Json:
        arguments = json_values.call_arguments(
            json_values.parse_or_none(as_text(item.get("arguments")) or "{}")
        )
        if arguments is None and item.get("status") == "incomplete":
            self._assembler.items.pop(at, None)
            return {}
        if arguments is None:
            arguments, item = {}, {**item, "arguments": "{}"}
        marker, sign = self._recall_calls.add(as_text(item.get("call_id")), arguments, item, at)
        shown = message_item(f"msg_{marker}", sign)
        self._client_items.append(shown)
        return shown

    def _join_responses(self, response: Json) -> Json:
        usage = stream_rewriter.sum_usages([one for one in self._usages if one])
        joined = {**response, "output": self._client_items, "usage": usage or None}
        return {**joined, "id": self._id} if self._id else joined

    def _join_document(self, document: Json) -> Json | None:
        if "output" not in document:
            return None
        self._id = self._id or as_text(document.get("id"))
        self._usages.append(as_object(document.get("usage")))
        self._assembler.response = document
        items = json_values.objects_in(document.get("output"))
        self._assembler.items = dict(enumerate(items))
        for at, item in enumerate(items):
            if self._is_recall_call(item):
                self._add_marker(item, at)
                continue
            self._has_client_calls = self._has_client_calls or _is_client_call(item)
            self._client_items.append(item)
        return self._join_responses(document)


def _replayable_items(items: list[Json]) -> list[Json]:
    """Return the items of a response that can be sent again.

    Unencrypted reasoning items are not stored anywhere. The items after them are bound to them by
    id, and only messages and calls are accepted without one.
    """
    if not any(_is_lost_reasoning(one) for one in items):
        return items
    return [
        without_id(one) for one in items if one.get("type") == "message" or _is_client_call(one)
    ]


def _is_lost_reasoning(item: Json) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _is_client_call(item: Json) -> bool:
    """Return whether the client has to answer an item."""
    return as_text(item.get("type")).endswith("_call") and bool(item.get("call_id"))


open_rewriter = ResponseRewriter
