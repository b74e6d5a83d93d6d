"""Responses of Anthropic's Messages API: parse, answer in place of the model, rewrite."""

from __future__ import annotations

from collections import defaultdict

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
from lore.gateway.apis.anthropic.requests import is_sendable, parse_entry, tool_result
from lore.gateway.apis.json_values import Json, as_count, as_object, as_text
from lore.gateway.apis.stream_rewriter import StreamRewriter
from lore.gateway.plugin_protocol import LocalResponse
from lore.gateway.sse import Event
from lore.records.gateway import TokenUse

LOCAL_ID = "msg_lore"
"""Id of a message that the gateway writes."""

_INPUT_DELTA = "partial_json"
_SIGNATURE = "signature"
_APPENDED_FIELDS = ("text", "thinking", _SIGNATURE, _INPUT_DELTA)
"""Fields of a delta that extend the previous value.

The model writes, and is paid for, all but the signature.
"""


class MessageAssembler:
    """Assembles a message from the events of its stream."""

    def __init__(self) -> None:
        self.blocks: dict[int, Json] = {}
        self.usage: Json = {}
        self.stop = ""
        self.chars = 0
        self.error: Json = {}
        self._deltas = defaultdict[tuple[int, str], list[str]](list)
        """Text that deltas add to blocks, by block and field."""

    def add_event(self, event: Json) -> None:
        """Add the next event."""
        kind, at = event.get("type"), event.get("index")
        if kind == "content_block_delta" and isinstance(at, int):
            self._add(at, as_object(event.get("delta")))
        elif kind == "message_start":
            self.usage |= as_object(as_object(event.get("message")).get("usage"))
        elif kind == "content_block_start" and isinstance(at, int):
            self.blocks[at] = dict(as_object(event.get("content_block")))
        elif kind == "content_block_stop" and isinstance(at, int):
            for name in _APPENDED_FIELDS:
                self._join(at, name)
        elif kind == "message_delta":
            self.stop = as_text(as_object(event.get("delta")).get("stop_reason"))
            usage = as_object(event.get("usage"))
            self.usage |= {name: value for name, value in usage.items() if value is not None}
        elif kind == "error":
            self.error = as_object(event.get("error"))

    def _add(self, at: int, delta: Json) -> None:
        text = delta.get("text")
        if delta.get("type") == "text_delta" and len(delta) == 2 and isinstance(text, str):
            self._deltas[at, "text"].append(text)  # most deltas are such
            self.chars += len(text)
            return
        for name, value in delta.items():
            if name in _APPENDED_FIELDS and isinstance(value, str):
                self._deltas[at, name].append(value)
                self.chars += len(value) if name != _SIGNATURE else 0
        if delta.get("type") == "citations_delta":
            block = self.blocks.setdefault(at, {})
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif delta.get("type") == "compaction_delta":
            self._add_compaction(self.blocks.setdefault(at, {}), delta)

    def _add_compaction(self, block: Json, delta: Json) -> None:
        """Add a summary that the API wrote when it compacted the history; it comes in one delta."""
        summary = as_text(block.get("content")) + as_text(delta.get("content"))
        block |= {name: value for name, value in delta.items() if name != "type"}
        block["content"] = summary or None
        self.chars += len(as_text(delta.get("content")))

    def _join(self, at: int, name: str) -> None:
        pieces = self._deltas.pop((at, name), None)
        if pieces is None:
            return
        block, joined = self.blocks.setdefault(at, {}), "".join(pieces)
        if name == _INPUT_DELTA:
            block["input"] = json_values.parse_or_none(joined or "{}")
        else:
            block[name] = as_text(block.get(name)) + joined

    @property
    def content(self) -> list[Json]:
        """Return the blocks as a request would repeat them, without empty ones.

        A text that was cut off stays; the input of a call that was cut off is dropped.
        """
        for at, name in [one for one in self._deltas if one[1] != _INPUT_DELTA]:
            self._join(at, name)
        ordered = [self.blocks[at] for at in sorted(self.blocks)]
        return [one for one in ordered if "type" in one and is_sendable(one)]

    def reply(self) -> Reply:
        """Return the parsed response once it has ended or was cut off."""
        use, error = parse_usage(self.usage), self.error
        if error:
            fault = adapter.parse_error_message(
                as_text(error.get("type")), as_text(error.get("message"))
            )
            return Reply(usage=use, error=fault, chars=self.chars)
        message = {"role": "assistant", "content": self.content}
        entry = parse_entry(message, {}) if self.blocks else None
        return Reply(
            entry,
            use,
            self.stop,
            chars=self.chars,
            service_tier=as_text(self.usage.get("speed")),
        )


def read_reply(body: bytes, *, streams: bool) -> Reply:
    """Parse a response, complete or cut off."""
    return adapter.read_stream(MessageAssembler(), body) if streams else parse_reply(body)


def parse_reply(body: bytes) -> Reply:
    """Parse a response that is one JSON document."""
    document = json_values.read_object(body)
    error = as_object(document.get("error"))
    if error or document.get("type") != "message":
        kind = as_text(error.get("type")) or adapter.UNREADABLE_ERROR
        return Reply(error=adapter.parse_error_message(kind, as_text(error.get("message"))))
    entry = parse_entry({"role": "assistant", "content": document.get("content")}, {})
    return Reply(
        entry,
        parse_usage(as_object(document.get("usage"))),
        as_text(document.get("stop_reason")),
        chars=entry.chars,
        service_tier=as_text(as_object(document.get("usage")).get("speed")),
    )


def parse_usage(usage: Json) -> TokenUse:
    """Return the token usage; cache writes without a lifetime count as five minutes."""
    written = as_count(usage.get("cache_creation_input_tokens"))
    long_lived = as_count(as_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens"))
    return TokenUse(
        fresh_tokens=as_count(usage.get("input_tokens")),
        cache_read_tokens=as_count(usage.get("cache_read_input_tokens")),
        cache_write_tokens=max(0, written - long_lived),
        cache_write_1h_tokens=long_lived,
        output_tokens=as_count(usage.get("output_tokens")),
    )


def answer_with_text(request: Request, text: str) -> LocalResponse:
    """Answer a request with a text in place of the model."""
    usage = {"input_tokens": 0, "output_tokens": 0}
    message: Json = {
        "id": LOCAL_ID,
        "type": "message",
        "role": "assistant",
        "model": request.dialogue.model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    if not request.streams:
        return LocalResponse(200, JSON_HEADERS, orjson.dumps(message))
    begun = {**message, "content": [], "stop_reason": None}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    event_list: list[Json] = [
        {"type": "message_start", "message": begun},
        *text_events(0, text),
        {"type": "message_delta", "delta": ended, "usage": usage},
        {"type": "message_stop"},
    ]
    return LocalResponse(
        200, STREAM_HEADERS, b"".join(sse.write(one, one["type"]) for one in event_list)
    )


def text_events(at: int, text: str) -> list[Json]:
    """Return the events of a text block."""
    block = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": text}
    return [
        {"type": "content_block_start", "index": at, "content_block": block},
        {"type": "content_block_delta", "index": at, "delta": delta},
        {"type": "content_block_stop", "index": at},
    ]


class MessageRewriter(StreamRewriter):
    """Stream rewriter for the Messages API."""

    provider = "anthropic"

    def __init__(self, request: Request, body: bytes, tool: Tool, make_id: MakeId) -> None:
        super().__init__(request, body, tool, make_id)
        self._next_index = 0
        """The index of the client's next block."""
        self._client_blocks: list[Json] = []
        """The blocks for the client of a response that is not streamed."""
        self._container: Json = {}
        """Container in which the API ran code of the model."""

    def _start_round(self) -> None:
        super()._start_round()
        self._assembler = MessageAssembler()
        self._client_indexes: dict[int, int] = {}
        self._withheld: set[int] = set()
        self._invalid_calls: list[Json] = []
        """Calls with invalid arguments: cut off, or to be answered with an error."""

    @property
    def _waits_for_results(self) -> bool:
        return self._assembler.stop == "tool_use"

    @property
    def _tail(self) -> int:
        last, blocks = self._recall_calls.last_place, self._assembler.blocks
        return sum(at > last and is_sendable(blocks[at]) for at in blocks)

    def _add_round(self, document: Json) -> None:
        document["messages"] = [
            *json_values.require_objects(document["messages"]),
            {"role": "assistant", "content": self._assembler.content},
            {"role": "user", "content": [tool_result(one) for one in self._recall_calls.markers]},
        ]
        if self._container:
            container, container_id = document.get("container"), self._container.get("id")
            document["container"] = (
                {**container, "id": container_id} if isinstance(container, dict) else container_id
            )

    def _error_event(self, error: bytes) -> bytes:
        return sse.frame(error, "error")

    def _rewrite_event(self, event: Event) -> bytes:
        document = event.document()
        kind, at = document.get("type"), document.get("index")
        self._assembler.add_event(document)
        if kind == "message_start":
            return b"" if self._round > 1 else event.raw
        if isinstance(at, int) and as_text(kind).startswith("content_block_"):
            return self._rewrite_block(event, document, at)
        if kind == "message_delta":
            self._usages.append(dict(self._assembler.usage))
            return self._invalid_call_markers() + self._rewrite_delta(event, document)
        if kind == "message_stop" and not self._is_last_round:
            return b""
        return event.raw

    def _rewrite_block(self, event: Event, document: Json, at: int) -> bytes:
        if document.get("type") == "content_block_start":
            block = as_object(document.get("content_block"))
            if block.get("type") == "tool_use":
                if block.get("name") == self._tool:
                    self._withheld.add(at)
                    return b""
                self._has_client_calls = True
            self._client_indexes[at] = self._next_index
            self._next_index += 1
        if at in self._withheld:
            return self._marker_events(at) if document.get("type") == "content_block_stop" else b""
        place = self._client_indexes.get(at, at)
        return event.raw if place == at else sse.write({**document, "index": place}, event.name)

    def _marker_events(self, at: int) -> bytes:
        """Return the events of a marker for a call; a call that was cut off leaves nothing."""
        block = self._assembler.blocks.get(at, {})
        if self._recall_calls.has_call_at(at) or not block:
            return b""
        if json_values.call_arguments(block.get("input")) is None:
            self._invalid_calls.append(self._assembler.blocks.pop(at))
            return b""
        return self._add_marker(block, at)

    def _add_marker(self, block: Json, at: int) -> bytes:
        _, sign = self._recall_calls.add(as_text(block.get("id")), block["input"], block, at)
        shown = text_events(self._next_index, sign)
        self._next_index += 1
        return b"".join(sse.write(one, one["type"]) for one in shown)

    def _invalid_call_markers(self) -> bytes:
        """Return markers for calls with invalid arguments that were not cut off."""
        shown = b""
        while self._invalid_calls and self._assembler.stop == "tool_use":
            at = max(self._assembler.blocks, default=-1) + 1
            block = self._assembler.blocks[at] = {**self._invalid_calls.pop(0), "input": {}}
            shown += self._add_marker(block, at)
        return shown

    def _rewrite_delta(self, event: Event, document: Json) -> bytes:
        self._save_container(as_object(document.get("delta")))
        if self._round == 1 and not self._is_recall_only:
            return event.raw
        if not self._is_last_round:
            return b""
        ended = {**as_object(document.get("delta")), **self._container_field()}
        if self._is_recall_only:
            ended["stop_reason"] = "end_turn"
        usage = stream_rewriter.sum_with_iterations(self._usages)
        return sse.write({**document, "delta": ended, "usage": usage}, event.name)

    def _save_container(self, source: Json) -> None:
        container = as_object(source.get("container"))
        self._container = container if container.get("id") else self._container

    def _container_field(self) -> Json:
        return {"container": self._container} if self._container else {}

    def _join_document(self, document: Json) -> Json | None:
        if document.get("type") != "message":
            return None
        blocks = json_values.objects_in(document.get("content"))
        assembler = self._assembler
        assembler.blocks = dict(enumerate(blocks))
        assembler.stop = as_text(document.get("stop_reason"))
        self._usages.append(as_object(document.get("usage")))
        self._save_container(document)
        for at, block in enumerate(blocks):
            self._client_blocks.append(self._rewrite_whole_block(at, block))
        usage = stream_rewriter.sum_with_iterations(self._usages)
        whole = {
            **document,
            **self._container_field(),
            "content": self._client_blocks,
            "usage": usage,
        }
        if self._is_recall_only:
            whole["stop_reason"] = "end_turn"
        return whole

    def _rewrite_whole_block(self, at: int, block: Json) -> Json:
        if block.get("type") != "tool_use":
            return block
        if block.get("name") != self._tool:
            self._has_client_calls = True
            return block
        arguments = json_values.call_arguments(block.get("input"))
        if arguments is None:
            arguments, block = {}, {**block, "input": {}}
            self._assembler.blocks[at] = block
        _, sign = self._recall_calls.add(as_text(block.get("id")), arguments, block, at)
        return {"type": "text", "text": sign}


open_rewriter = MessageRewriter
