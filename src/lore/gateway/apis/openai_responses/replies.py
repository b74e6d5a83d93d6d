"""Reading an answer of OpenAI's Responses, and giving one in the model's place."""

from __future__ import annotations

from dataclasses import replace

import orjson

from lore.gateway import events
from lore.gateway.apis import listening, shapes
from lore.gateway.apis.openai_chat.replies import JSON_HEADERS, STREAM_HEADERS, fault_of, use_with
from lore.gateway.apis.openai_responses.reading import entry_of
from lore.gateway.apis.shapes import Json, count, table, text
from lore.gateway.apis.wire import Reply, ReplyReader, Request
from lore.gateway.exchanges import Answer
from lore.records.dialogues import TokenUse

LOCAL_ID = "resp_lore"
"""The id of a response that no provider has written."""

_DELTA = ".delta"
"""How the names of events end that bring a piece of what the model writes."""

_BEGUN = ("response.created", "response.queued", "response.in_progress")
_UNDER_WAY = ("queued", "in_progress")
_LAST = ("response.completed", "response.incomplete", "response.failed")


class Assembly:
    """Puts a response together from the events of its stream."""

    def __init__(self) -> None:
        self.items: dict[int, Json] = {}
        self.response: Json = {}
        self.error: Json = {}
        self.begun: Json = {}
        self.chars = 0

    def take(self, event: Json) -> None:
        """Take the next event."""
        kind, at = text(event.get("type")), event.get("output_index")
        if kind == "response.output_item.done" and isinstance(at, int):
            self.items[at] = table(event.get("item"))
        elif kind.endswith(_DELTA):
            self.chars += len(text(event.get("delta")))
        elif kind in _BEGUN:
            self.begun = table(event.get("response"))
        elif kind in _LAST:
            self.response = table(event.get("response"))
            self.error = table(self.response.get("error"))
        elif kind == "error":
            self.error = table(event.get("error")) or event

    @property
    def output(self) -> list[Json]:
        """Return the items in their order."""
        return [self.items[at] for at in sorted(self.items)]

    def reply(self) -> Reply:
        """Return what the answer was, when it has ended or broken off."""
        if self.error:
            use = use_of(table(self.response.get("usage")))
            fault, stop = fault_of(self.error), text(self.response.get("status"))
            return Reply(use=use, stop=stop, fault=fault, chars=self.chars)
        said = replace(_reply(self.output, self.response), chars=self.chars)
        goes_on = self.begun.get("background") is True and not self.response
        return _going_on(said, self.begun) if goes_on else said


def open_reader(*, streams: bool) -> ReplyReader:
    """Return a reader of one answer."""
    return listening.reader(Assembly(), read_whole, streams=streams)


def read_whole(body: bytes) -> Reply:
    """Read an answer that is one document."""
    response = table(shapes.loaded(body.decode(errors="replace")))
    error = table(response.get("error"))
    if error or "output" not in response:
        use, stop = use_of(table(response.get("usage"))), text(response.get("status"))
        return Reply(use=use, stop=stop, fault=fault_of(error))
    said = _reply(shapes.found(response.get("output")), response)
    return _going_on(said, response) if response.get("status") in _UNDER_WAY else said


def _going_on(said: Reply, response: Json) -> Reply:
    return replace(said, goes_on=True, fetched_by=text(response.get("id")))


def _reply(items: list[Json], response: Json) -> Reply:
    why = table(response.get("incomplete_details")).get("reason")
    entry = entry_of(items, {}) if items else None
    return Reply(
        entry,
        use_of(table(response.get("usage"))),
        text(why) or text(response.get("status")),
        chars=entry.chars if entry else 0,
        service=text(response.get("service_tier")),
    )


def use_of(usage: Json) -> TokenUse:
    """Return what an answer took."""
    return use_with(
        count(usage.get("input_tokens")),
        table(usage.get("input_tokens_details")),
        count(usage.get("output_tokens")),
    )


def answer(request: Request, said: str) -> Answer:
    """Say a text in the place of the model."""
    item = message_of("msg_lore", said)
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
        return Answer(200, JSON_HEADERS, orjson.dumps(whole))
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    told: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *message_events(0, item),
        {"type": "response.completed", "response": whole},
    ]
    chunks = [
        events.write({**one, "sequence_number": number}, one["type"])
        for number, one in enumerate(told)
    ]
    return Answer(200, STREAM_HEADERS, b"".join(chunks))


def message_of(item_id: str, said: str) -> Json:
    """Return a text as an item of an answer."""
    part = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    head = {"type": "message", "id": item_id, "role": "assistant", "status": "completed"}
    return {**head, "content": [part]}


def message_events(at: int, item: Json) -> list[Json]:
    """Return the events of an item of text."""
    (part,) = item["content"]
    place = {"item_id": item["id"], "output_index": at, "content_index": 0}
    begun = {**item, "status": "in_progress", "content": []}
    added = {**part, "text": ""}
    said = {"text": part["text"], "logprobs": []}
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        {"type": "response.content_part.added", **place, "part": added},
        {"type": "response.output_text.delta", **place, "delta": part["text"], "logprobs": []},
        {"type": "response.output_text.done", **place, **said},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]
